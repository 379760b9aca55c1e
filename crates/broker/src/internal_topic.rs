//! The topics in which the coordinators keep their state: theirs alone to make, write and delete.

use highwater_coordinator::{CONSUMER_OFFSETS, TRANSACTION_STATE};
use highwater_protocol::ErrorCode;

use crate::fault::Fault;

/// Whether a topic is one of theirs.
pub(crate) fn is_internal(topic: &str) -> bool {
    matches!(topic, CONSUMER_OFFSETS | TRANSACTION_STATE)
}

/// Refuses what would break a coordinator's state.
pub(crate) fn check_not_internal(topic: &str) -> Result<(), Fault> {
    if !is_internal(topic) {
        return Ok(());
    }
    let text = format!("{topic} holds the state of the coordinators, who alone make and write it");
    Err(Fault::new(ErrorCode::INVALID_TOPIC_EXCEPTION, text))
}
