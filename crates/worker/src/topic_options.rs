//! The names of what a topic's group may say in `topic.creation.`: a misspelt one would be refused by the broker alone,
//! when the first record comes. One that is like none of those that are known is left to the broker, which may know more.

use highwater_connector::nearest;

/// Kafka's settings of topics (`TopicConfig` of 4.2, and what earlier brokers have besides), and this log's own.
const SETTINGS: &[&str] = &[
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "highwater.archive",
    "highwater.flush",
    "highwater.owner",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.copy.disable",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
];

/// What is wrong with the name of a topic's setting; `others` are the group's options that are none.
pub(crate) fn misspelt(name: &str, others: &[&str]) -> Option<String> {
    if SETTINGS.contains(&name) {
        return None;
    }
    let right = nearest(name, SETTINGS.iter().chain(others).copied())?;
    Some(format!("is no setting of a topic; did you mean {right}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_our_own_log_is_one() {
        for setting in highwater_log::TOPIC_SETTINGS {
            assert_eq!(misspelt(setting.name, &[]), None, "{}", setting.name);
        }
    }

    #[test]
    fn what_another_broker_may_know_is_left_to_it() {
        for name in
            ["confluent.placement.constraints", "errors.deadletterqueue.group.enable", "colour"]
        {
            assert_eq!(misspelt(name, &["partitions"]), None, "{name}");
        }
    }

    #[test]
    fn a_misspelt_one_is_named_with_the_nearest() {
        let said = |name| misspelt(name, &["partitions"]).unwrap();
        assert!(said("partitons").ends_with("did you mean partitions?"));
        assert!(said("retention.mss").ends_with("did you mean retention.ms?"));
    }
}
