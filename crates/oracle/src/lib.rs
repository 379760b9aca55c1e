//! Captures the changes of an Oracle database through LogMiner, in the order in which each redo thread
//! wrote its commits.
//!
//! The cursor is a redo byte address a thread, never an SCN: redo of a private strand reaches the log
//! late, under its old SCN. A step of the log is read whole and then applied; rows wait in a
//! transaction buffer until their commit is seen; every record carries the position after which a
//! restart must continue.

mod address;
mod change;
mod committed;
mod connector;
mod cursor;
pub mod delivery;
pub mod engine;
mod engine_thread;
mod error;
pub mod fuzz;
mod layout;
pub mod mining;
pub mod outlet;
pub mod position;
mod redo_point;
mod row;
pub mod schema;
mod scn;
mod session;
mod sessions;
pub mod settings;
pub mod statement;
mod task;
pub mod transaction;
mod transaction_key;

pub use address::{AddressError, RedoAddress};
pub use change::{Change, Image, LobColumn, LobValue, Verb};
pub use committed::{Changes, Committed};
pub use connector::OracleConnector;
pub use cursor::{Cursor, Marks};
pub use error::{Code, OracleError};
pub use layout::{ColumnLayout, SupplementalLogging, TableLayout, TableName, UniqueIndex};
pub use redo_point::{RedoPoint, RedoThread};
pub use row::{ClientSession, ObjectId, Operation, RedoRow};
pub use scn::Scn;
pub use session::{
    ArchiveDestination, Database, Dictionary, ErrorClass, Identity, LogPlace, LogQuery,
    MiningStart, OpenMode, OpenTransaction, RedoLog, Role, RowMark, RowQuery, Session,
    SessionError, TableObject, ThreadState,
};
pub use sessions::Sessions;
pub use transaction_key::{TransactionKey, TransactionKeyError, Xid};
