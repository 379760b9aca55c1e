//! Where a setting's value comes from, as Kafka numbers it.

use highwater_log::ConfigEntry;

/// Set for the topic.
pub(crate) const TOPIC: i8 = 1;
/// Set when the broker was started.
pub(crate) const BROKER: i8 = 4;
/// Nobody set it.
pub(crate) const DEFAULT: i8 = 5;

pub(crate) fn of_topic(entry: &ConfigEntry) -> i8 {
    if entry.overridden { TOPIC } else { DEFAULT }
}
