//! The offsets of a group: those that count, and those of transactions that have not ended.

use std::collections::BTreeMap;

use highwater_protocol::stored::OffsetCommitValue;

/// What an offset takes in memory besides its texts, roughly.
const ENTRY_BYTES: usize = 128;

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommittedOffset {
    pub(crate) offset: i64,
    /// The leader epoch of the last record read, or -1.
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: String,
    /// When it was committed, in milliseconds since 1970.
    pub(crate) commit_ms: i64,
    /// When it may go, where its client said so (OffsetCommit up to version 4).
    pub(crate) expire_ms: Option<i64>,
    /// Where the record lies that says so. Of several commits the last one written counts, also when
    /// it belongs to a transaction that ends after the others.
    pub(crate) record_offset: i64,
}

/// Partitions of topics.
type ByPartition = BTreeMap<String, BTreeMap<i32, CommittedOffset>>;

/// The offsets of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offsets {
    committed: ByPartition,
    /// By the id of the producer whose transaction is open.
    pending: BTreeMap<i64, ByPartition>,
    count: usize,
    bytes: usize,
}

impl CommittedOffset {
    pub(crate) fn from_stored(stored: OffsetCommitValue, record_offset: i64) -> Self {
        Self {
            offset: stored.offset,
            leader_epoch: stored.leader_epoch,
            metadata: stored.metadata,
            commit_ms: stored.commit_timestamp,
            expire_ms: (stored.expire_timestamp >= 0).then_some(stored.expire_timestamp),
            record_offset,
        }
    }

    pub(crate) fn to_stored(&self) -> OffsetCommitValue {
        OffsetCommitValue {
            offset: self.offset,
            leader_epoch: self.leader_epoch,
            metadata: self.metadata.clone(),
            commit_timestamp: self.commit_ms,
            expire_timestamp: self.expire_ms.unwrap_or(-1),
        }
    }
}

impl Offsets {
    /// Those that count, not those of open transactions.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0 && self.pending.is_empty()
    }

    /// What they take in memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&self, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.committed.get(topic)?.get(&partition)
    }

    /// All that count, by topic.
    pub(crate) fn topics(
        &self,
    ) -> impl Iterator<Item = (&String, &BTreeMap<i32, CommittedOffset>)> {
        self.committed.iter()
    }

    /// Whether an open transaction would change the offset.
    pub(crate) fn has_pending(&self, topic: &str, partition: i32) -> bool {
        let of = |topics: &ByPartition| {
            topics.get(topic).is_some_and(|partitions| partitions.contains_key(&partition))
        };
        self.pending.values().any(of)
    }

    /// Whether there are offsets of a topic, also ones that do not count yet.
    pub(crate) fn has_topic(&self, topic: &str) -> bool {
        self.pending.values().chain([&self.committed]).any(|topics| topics.contains_key(topic))
    }

    pub(crate) fn has_open_transactions(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Topic and partition of all, also of those that do not count yet.
    pub(crate) fn keys(&self) -> Vec<(String, i32)> {
        let all = self.pending.values().chain([&self.committed]);
        let keys = all.flatten().flat_map(|(topic, partitions)| {
            partitions.keys().map(|partition| (topic.clone(), *partition))
        });
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Commits an offset.
    pub(crate) fn put(&mut self, topic: &str, partition: i32, committed: CommittedOffset) {
        self.bytes += size(topic, &committed);
        let before =
            self.committed.entry(topic.to_owned()).or_default().insert(partition, committed);
        match before {
            Some(before) => self.bytes -= size(topic, &before),
            None => self.count += 1,
        }
    }

    /// Keeps an offset that counts once the producer's transaction is committed.
    pub(crate) fn put_pending(
        &mut self,
        producer_id: i64,
        topic: &str,
        partition: i32,
        committed: CommittedOffset,
    ) {
        self.bytes += size(topic, &committed);
        let topics = self.pending.entry(producer_id).or_default();
        if let Some(before) =
            topics.entry(topic.to_owned()).or_default().insert(partition, committed)
        {
            self.bytes -= size(topic, &before);
        }
    }

    /// Forgets an offset, also where it does not count yet.
    pub(crate) fn remove(&mut self, topic: &str, partition: i32) {
        if let Some(removed) = remove(&mut self.committed, topic, partition) {
            self.count -= 1;
            self.bytes -= size(topic, &removed);
        }
        for topics in self.pending.values_mut() {
            if let Some(removed) = remove(topics, topic, partition) {
                self.bytes -= size(topic, &removed);
            }
        }
    }

    /// The producer's transaction has ended: its offsets count, or are gone.
    pub(crate) fn end_transaction(&mut self, producer_id: i64, committed: bool) {
        for (topic, partitions) in self.pending.remove(&producer_id).unwrap_or_default() {
            for (partition, offset) in partitions {
                self.bytes -= size(&topic, &offset);
                let newest = self.get(&topic, partition).map_or(-1, |other| other.record_offset);
                if committed && offset.record_offset > newest {
                    self.put(&topic, partition, offset);
                }
            }
        }
    }
}

fn remove(topics: &mut ByPartition, topic: &str, partition: i32) -> Option<CommittedOffset> {
    let partitions = topics.get_mut(topic)?;
    let removed = partitions.remove(&partition);
    if partitions.is_empty() {
        topics.remove(topic);
    }
    removed
}

fn size(topic: &str, offset: &CommittedOffset) -> usize {
    ENTRY_BYTES + topic.len() + offset.metadata.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(offset: i64, record_offset: i64) -> CommittedOffset {
        let metadata = "m".repeat(usize::try_from(offset).unwrap_or(0));
        CommittedOffset {
            offset,
            leader_epoch: -1,
            metadata,
            commit_ms: 0,
            expire_ms: None,
            record_offset,
        }
    }

    fn committed(offsets: &Offsets) -> Option<i64> {
        offsets.get("t", 0).map(|offset| offset.offset)
    }

    #[test]
    fn an_offset_of_a_transaction_counts_once_it_is_committed() {
        let mut offsets = Offsets::default();
        offsets.put("t", 0, offset(1, 10));
        offsets.put_pending(7, "t", 0, offset(2, 11));
        assert_eq!((committed(&offsets), offsets.has_pending("t", 0)), (Some(1), true));
        offsets.end_transaction(8, true);
        assert_eq!(committed(&offsets), Some(1), "the transaction of another producer");
        offsets.end_transaction(7, true);
        assert_eq!((committed(&offsets), offsets.has_pending("t", 0)), (Some(2), false));
        offsets.put_pending(7, "t", 0, offset(3, 12));
        offsets.end_transaction(7, false);
        assert_eq!((committed(&offsets), offsets.is_empty()), (Some(2), false));
    }

    #[test]
    fn a_commit_written_after_those_of_a_transaction_outlives_its_end() {
        let mut offsets = Offsets::default();
        offsets.put_pending(7, "t", 0, offset(1, 10));
        offsets.put("t", 0, offset(2, 11));
        offsets.end_transaction(7, true);
        assert_eq!(committed(&offsets), Some(2));
    }

    #[test]
    fn what_is_forgotten_takes_no_memory() {
        let mut offsets = Offsets::default();
        offsets.put("t", 0, offset(5, 1));
        offsets.put("t", 0, offset(9, 2));
        offsets.put_pending(7, "t", 0, offset(3, 3));
        offsets.put_pending(7, "t", 0, offset(4, 4));
        offsets.put_pending(8, "u", 1, offset(4, 5));
        assert_eq!(offsets.keys(), [("t".to_owned(), 0), ("u".to_owned(), 1)]);
        offsets.remove("t", 0);
        offsets.end_transaction(7, true);
        offsets.end_transaction(8, false);
        assert_eq!(offsets, Offsets::default());
    }
}
