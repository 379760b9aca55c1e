//! From the logs of a database to the rows of a step: which logs, how far, which rows, each one once and
//! whole.
//!
//! A cursor is the greatest redo byte address applied, one a thread. Of each thread a step takes what
//! follows in the order of its log, up to the first row above the step's end, and leaves nothing out.

pub mod advance;
pub mod ddl_reach;
pub mod dictionary_build;
mod failure;
#[cfg(test)]
pub(crate) mod fake;
pub mod first_start;
pub mod inventory;
mod lagging;
mod miner;
pub mod objects;
pub mod ora;
pub mod plan;
pub mod reconnect;
mod row_codec;
pub mod safe_end;
mod settings;
pub mod slots;
pub mod stage;
mod staged_row;
mod start_scope;
pub mod statement_join;
mod step;
mod step_reader;
pub mod survey;
pub mod table_filter;
#[cfg(test)]
mod tests;
pub mod topology;
pub mod window;

pub use failure::MiningError;
pub use miner::{Miner, MiningFrom, OpenKeys};
pub use settings::{CaptureMode, MiningMode, MiningSettings};
pub use staged_row::StagedRow;
pub use start_scope::StartScope;
pub use step::{StagedStep, Step, StepEnd};
