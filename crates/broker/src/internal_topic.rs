//! The topics in which the coordinators keep their state: theirs alone to make, write and delete.

use highwater_coordinator::{CONSUMER_OFFSETS, TRANSACTION_STATE};
use highwater_log::{Overrides, TopicConfig};
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

/// Settings of theirs that an operator may choose: what size and how often, and not what is kept.
const CHOSEN: [&str; 8] = [
    "compression.type",
    "delete.retention.ms",
    "max.compaction.lag.ms",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "segment.bytes",
    "segment.jitter.ms",
    "segment.ms",
];

/// Refuses settings under which a coordinator's state would not be kept, or not be on disk when a client
/// hears of it. Apache Kafka takes them.
pub(crate) fn check_settings(
    topic: &str,
    current: &TopicConfig,
    new: &Overrides,
) -> Result<(), Fault> {
    if !is_internal(topic) {
        return Ok(());
    }
    let current = current.overrides();
    let mut names = current.keys().chain(new.keys());
    let differs = |name: &&String| current.get(*name) != new.get(*name);
    match names.find(|name| differs(name) && !CHOSEN.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let text = format!(
                "{name} of {topic} is the coordinators' own to say: their state would not be kept otherwise"
            );
            Err(Fault::new(ErrorCode::POLICY_VIOLATION, text))
        }
    }
}
