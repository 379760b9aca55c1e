//! A partition by its topic's name.

use std::fmt;
use std::sync::Arc;

/// A partition of a topic. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopicPartition {
    /// Topic.
    pub topic: Arc<str>,
    /// Index of the partition.
    pub partition: i32,
}

impl TopicPartition {
    /// Partition `partition` of `topic`.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_shown_as_kafka_shows_it() {
        assert_eq!(TopicPartition::new("shop.orders", 3).to_string(), "shop.orders-3");
    }
}
