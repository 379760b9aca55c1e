//! The settings that a topic may have: names and defaults, which are Kafka's own (4.2), and ours with the
//! prefix `highwater.`.
//!
//! Left out and refused are those that need what this log has not: tiered storage (`local.*`, `remote.*`
//! other than switched off), and those that Kafka 4.0 removed (`message.downconversion.enable`,
//! `message.format.version`, `message.timestamp.difference.max.ms`).

/// The type that Kafka gives a setting's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigKind {
    /// `true` or `false`.
    Boolean,
    /// A text.
    String,
    /// A number of 32 bits.
    Int,
    /// A number of 64 bits.
    Long,
    /// A number with a fraction.
    Double,
    /// Texts, separated by commas.
    List,
}

/// One setting that a topic may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TopicSetting {
    /// The name.
    pub name: &'static str,
    /// The value when nothing is set.
    pub default: &'static str,
    /// The type of the value.
    pub kind: ConfigKind,
    /// What it does here, for the reference.
    pub about: &'static str,
}

const fn setting(
    name: &'static str,
    default: &'static str,
    kind: ConfigKind,
    about: &'static str,
) -> TopicSetting {
    TopicSetting { name, default, kind, about }
}

/// As long or as much as there is.
const NO_BOUND: &str = "9223372036854775807";

use ConfigKind::{Boolean, Double, Int, List, Long, String as Text};

/// All of them, by name.
#[rustfmt::skip]
pub const TOPIC_SETTINGS: &[TopicSetting] = &[
    setting("cleanup.policy", "delete", List, "`delete`: retention removes old segments. `compact`: compaction keeps the newest record of each key. Both may stand together. Empty: neither, and nothing goes but by DeleteRecords."),
    setting("compression.gzip.level", "-1", Int, "Level where `compression.type` is `gzip`: 1 to 9, or -1 for the codec's own."),
    setting("compression.lz4.level", "9", Int, "Taken and shown, 1 to 17; LZ4 has one level here."),
    setting("compression.type", "producer", Text, "`producer`: batches are stored as they come. `uncompressed`, `gzip`, `snappy`, `lz4`, `zstd`: a batch that comes in another form is compressed anew on append."),
    setting("compression.zstd.level", "3", Int, "Level where `compression.type` is `zstd`: -131072 to 22."),
    setting("delete.retention.ms", "86400000", Long, "How long compaction keeps a record without value, and a transaction's marker, from the pass that found nothing left below it: a reader from the beginning has so long to see that the key is gone."),
    setting("file.delete.delay.ms", "0", Long, "Taken and shown; files go at once."),
    setting("flush.messages", NO_BOUND, Long, "Under `highwater.flush` `interval` and `os`: a sync begins when so many records are not synced."),
    setting("flush.ms", NO_BOUND, Long, "Under `highwater.flush` `interval` and `os`: a sync begins when records were not synced for so long; looked at once a second."),
    setting("follower.replication.throttled.replicas", "", List, "Taken and shown; one node replicates nothing."),
    setting("highwater.archive", "default", Text, "`true`: a closed segment is copied below `archive.dir` before retention or DeleteRecords remove it. `default`: as the server's `archive.by_default` says. Compacted topics are not archived."),
    setting("highwater.flush", "durable", Text, "`durable`: nothing is visible, and no `acks=all` write answered, before its fsync. `interval` (synced every second) and `os` are faster and can lose what was acknowledged when the machine loses power."),
    setting("highwater.owner", "", Text, "The connector that writes the topic, as a trail has one: then nobody else but administrators writes to it, or changes this setting."),
    setting("index.interval.bytes", "4096", Int, "Bytes of records from one index entry to the next."),
    setting("leader.replication.throttled.replicas", "", List, "Taken and shown; one node replicates nothing."),
    setting("max.compaction.lag.ms", NO_BOUND, Long, "A record is compacted at the latest so long after it came, however little there is to gain; the active segment ends in time for it."),
    setting("max.message.bytes", "1048588", Int, "The largest batch, compressed as it is stored."),
    setting("message.timestamp.after.max.ms", "3600000", Long, "Under `CreateTime`: how far a record's time may lie in the future; else the batch is refused with INVALID_TIMESTAMP."),
    setting("message.timestamp.before.max.ms", NO_BOUND, Long, "Under `CreateTime`: how far a record's time may lie in the past."),
    setting("message.timestamp.type", "CreateTime", Text, "`CreateTime`: records bear the producer's time. `LogAppendTime`: the time of the append."),
    setting("min.cleanable.dirty.ratio", "0.5", Double, "Compaction begins when more than this share of the closed segments' bytes was not compacted yet, 0 to 1."),
    setting("min.compaction.lag.ms", "0", Long, "A record is not compacted before so long after its time; counted by whole segments."),
    setting("min.insync.replicas", "1", Int, "Taken and shown; never more than there are replicas, which is one."),
    setting("preallocate", "false", Boolean, "Taken and shown; space is always set aside ahead, in steps."),
    setting("remote.storage.enable", "false", Boolean, "`false` alone: there is no tiered storage."),
    setting("retention.bytes", "-1", Long, "Bytes of a partition above which its oldest segments go; -1: no bound."),
    setting("retention.ms", "604800000", Long, "Milliseconds after its newest record's time when a segment goes; -1: never."),
    setting("segment.bytes", "1073741824", Int, "Bytes at which a segment ends."),
    setting("segment.index.bytes", "10485760", Int, "Bytes of an index at which its segment ends."),
    setting("segment.jitter.ms", "0", Long, "A segment ends up to so much before `segment.ms`, each by another time, so that not all end at once."),
    setting("segment.ms", "604800000", Long, "Milliseconds from a segment's first append at which it ends."),
    setting("unclean.leader.election.enable", "false", Boolean, "Taken and shown; one node has no other leader to elect."),
];

/// The setting of that name.
pub(crate) fn find(name: &str) -> Option<&'static TopicSetting> {
    TOPIC_SETTINGS.iter().find(|setting| setting.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_and_names_each_once() {
        assert!(TOPIC_SETTINGS.is_sorted_by(|one, other| one.name < other.name));
    }
}
