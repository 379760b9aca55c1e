//! The coordinators of groups and of transactions, behind the broker.
//!
//! What a coordinator decides, it decides in a plain state machine without I/O, to which time is passed
//! in. What must outlive a crash stands in a topic, in Kafka's own formats, and is on disk before
//! a client hears of it.

mod blocking;
mod clock;
mod commits;
mod completion;
mod coordinator;
mod counters;
mod error;
mod expiry;
mod group;
mod group_admin;
mod group_coordinator;
mod group_record;
mod group_settings;
#[cfg(test)]
mod group_tests;
mod groups;
mod hanging;
mod join;
mod journal;
mod leave;
mod loading;
mod member;
mod membership;
mod offsets;
#[cfg(test)]
mod recovery_tests;
mod state_topic;
mod sweep;
mod sync;
mod tasks;
mod time_out;
mod transaction;
mod transaction_counters;
mod transaction_listing;
mod transaction_log;
#[cfg(test)]
mod transaction_tests;
mod transactional_id;
mod transactions;
mod waiting;

pub use blocking::blocking;
pub(crate) use clock::Clock;
pub use clock::Now;
pub use commits::{StillOpen, TransactionalCommit};
pub use coordinator::{Coordinator, CoordinatorConfig};
pub use counters::describe_metrics;
pub use error::CoordinatorError;
pub use group::GroupState;
pub use group_coordinator::GroupCoordinator;
pub use group_settings::GroupSettings;
pub use groups::{CONSUMER_OFFSETS, Groups};
pub use member::Caller;
pub use state_topic::Transaction;
pub(crate) use state_topic::{StateEntry, StateRecord, StateTopic, Written};
pub use transaction::{Producer, TransactionMetadata, TransactionResult, TransactionState};
pub use transaction_listing::TransactionFilter;
pub use transactions::{TRANSACTION_STATE, Transactions, TransactionsConfig};
pub use waiting::Waiting;

/// How many cases a property is tried with: `HW_CASES` scales proofs (rule T2).
#[cfg(test)]
pub(crate) fn cases(usual: u32) -> u32 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}
