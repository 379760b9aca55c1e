//! The coordinators of groups and of transactions, behind the broker.
//!
//! What a coordinator decides, it decides in a plain state machine without I/O, to which time is passed
//! in. What must outlive a crash stands in a [`StateTopic`], in Kafka's own formats, and is on disk before
//! a client hears of it.

mod error;
mod state_topic;

pub use error::CoordinatorError;
pub use state_topic::{StateEntry, StateRecord, StateTopic, Transaction, Written};
