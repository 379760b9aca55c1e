//! Layouts of captured tables by version, and what a DDL does to them.
//!
//! A layout always comes from the dictionary; the text of a DDL only says that there is something to
//! look at. Each change keeps the version that was current where its row stood, so what was staged
//! before a DDL is decoded as it was then.

pub mod apply;
pub mod column_type;
pub mod ddl_class;
pub mod ddl_objects;
pub mod ddl_words;
pub mod key;
#[cfg(test)]
pub(crate) mod sample;
pub mod start;
pub mod stored;
pub mod versions;

pub use apply::{Ddl, Effect, TIME_SLACK_US};
pub use column_type::ColumnType;
pub use ddl_class::{DdlClass, WrittenName, classify};
pub use ddl_objects::refreshes_objects;
pub use key::{Key, KeyRules, KeySource, MissingKey};
pub use start::LastDdl;
pub use versions::{IsExcluded, LayoutVersion, Layouts};
