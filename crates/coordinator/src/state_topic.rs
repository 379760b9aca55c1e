//! The topic that holds a coordinator's state: one partition, compacted, on disk before it is answered.

use std::sync::Arc;

use bytes::Bytes;
use highwater_log::{
    AppendOptions, Appended, EndMarker, Log, LogError, Origin, Partition, TopicConfig, Visible,
};
use highwater_protocol::records::{
    Batch, BatchBuilder, Compression, DECOMPRESSED_MAX, Marker, Record, batches,
};

use crate::CoordinatorError;

/// Bytes read at a time when the state is read back. A batch may be larger, up to the topic's
/// `max.message.bytes`.
const CHUNK: usize = 1 << 20;

/// Settings of a state topic. The size of a segment is Kafka's `offsets.topic.segment.bytes`: a smaller
/// one is compacted sooner, and less is read at start.
const SETTINGS: [(&str, &str); 3] =
    [("cleanup.policy", "compact"), ("highwater.flush", "durable"), ("segment.bytes", "104857600")];

/// Whether a text fits the records of state topics, whose lengths have 16 bits. A longer one would be cut, and
/// be another one once it is read back.
pub(crate) fn is_storable(text: &str) -> bool {
    i16::try_from(text.len()).is_ok()
}

/// A key with its value; without one it is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateRecord {
    /// What it is about.
    pub(crate) key: Bytes,
    /// What holds for it from now on; None is a tombstone.
    pub(crate) value: Option<Bytes>,
}

/// The producer in whose transaction records are written; they count once its marker says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
}

/// What is read back, in the order in which it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StateEntry {
    /// A record.
    Record {
        /// Its offset.
        offset: i64,
        /// Key and value.
        record: StateRecord,
        /// The producer id of its transaction, if it was written in one.
        transaction: Option<i64>,
    },
    /// The end of a producer's transaction.
    Marker {
        /// The producer's id.
        producer_id: i64,
        /// Whether it was committed; aborted otherwise.
        committed: bool,
    },
}

/// A state topic of a log. It is made when it is first written.
#[derive(Clone, Debug)]
pub(crate) struct StateTopic {
    log: Log,
    name: &'static str,
}

/// An append that is written and not yet known to be safe.
#[derive(Debug)]
pub(crate) struct Written {
    partition: Arc<Partition>,
    appended: Appended,
}

impl StateTopic {
    /// The topic of this name, which may not be there yet.
    pub(crate) fn new(log: Log, name: &'static str) -> Self {
        Self { log, name }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Its partition, if the topic was made already.
    pub(crate) fn existing(&self) -> Option<Arc<Partition>> {
        self.log.partition(self.name, 0)
    }

    /// Its partition; the topic is made if need be. Blocks on the disk.
    ///
    /// # Errors
    /// Of the log.
    pub(crate) fn partition(&self) -> Result<Arc<Partition>, CoordinatorError> {
        if let Some(partition) = self.existing() {
            return Ok(partition);
        }
        let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = TopicConfig::parse(settings.into())?;
        match self.log.create_topic(self.name, 1, config) {
            // Another thread was first.
            Ok(_) | Err(LogError::TopicExists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.existing().ok_or_else(|| LogError::Closed.into())
    }

    /// Appends records as one batch, all or none. Blocks on the disk; they are safe once
    /// [`Written::durable`] says so.
    ///
    /// # Errors
    /// Of the log; nothing was written then.
    pub(crate) fn append(
        &self,
        records: &[StateRecord],
        transaction: Option<Transaction>,
        now_ms: i64,
    ) -> Result<Written, CoordinatorError> {
        let partition = self.partition()?;
        let batch = self.batch(records, transaction, now_ms)?;
        let appended =
            partition.append(batch, AppendOptions { now_ms, origin: Origin::Coordinator })?;
        Ok(Written { partition, appended })
    }

    /// Appends the end of a producer's transaction, as [`StateTopic::append`] does records.
    ///
    /// # Errors
    /// Of the log; nothing was written then.
    pub(crate) fn append_marker(
        &self,
        marker: EndMarker,
        now_ms: i64,
    ) -> Result<Written, CoordinatorError> {
        let partition = self.partition()?;
        let appended = partition.append_marker(marker, now_ms)?;
        Ok(Written { partition, appended })
    }

    fn batch(
        &self,
        records: &[StateRecord],
        transaction: Option<Transaction>,
        now_ms: i64,
    ) -> Result<Bytes, CoordinatorError> {
        let mut batch = BatchBuilder::new(Compression::None);
        if let Some(Transaction { producer_id, producer_epoch }) = transaction {
            batch = batch.producer(producer_id, producer_epoch, -1).transactional();
        }
        for record in records {
            batch.push(now_ms, Some(&record.key), record.value.as_deref(), &[]);
        }
        batch.build().map_err(|error| {
            LogError::InvalidRecord { reason: error.to_string(), records: Vec::new() }.into()
        })
    }

    /// Shows everything that was written, oldest first; nothing if the topic was never made. Takes the
    /// memory of one chunk. Blocks on the disk.
    ///
    /// # Errors
    /// Of the log, and [`CoordinatorError::Unreadable`].
    pub(crate) fn read_back(
        &self,
        mut take: impl FnMut(StateEntry),
    ) -> Result<(), CoordinatorError> {
        let Some(partition) = self.existing() else { return Ok(()) };
        let marks = partition.watermarks_now();
        let mut offset = marks.log_start;
        while offset < marks.high_watermark {
            let bytes = partition.read(offset, CHUNK, true, Visible::HighWatermark)?;
            let from = offset;
            for batch in batches(bytes) {
                let batch = batch.map_err(|error| self.unreadable(offset, &error))?;
                offset = batch.header.next_offset();
                self.take_batch(&batch, &mut take)?;
            }
            if offset == from {
                return Err(self.unreadable(offset, &"no batch begins there"));
            }
        }
        Ok(())
    }

    fn take_batch(
        &self,
        batch: &Batch,
        take: &mut impl FnMut(StateEntry),
    ) -> Result<(), CoordinatorError> {
        let header = &batch.header;
        let broken = |error| self.unreadable(header.base_offset, &error);
        for record in batch.records(DECOMPRESSED_MAX).map_err(broken)? {
            let record = record.map_err(broken)?;
            if header.is_control() {
                take_marker(header.producer_id, &record, take);
                continue;
            }
            let Record { offset, key: Some(key), value, .. } = record else { continue };
            let transaction = header.is_transactional().then_some(header.producer_id);
            take(StateEntry::Record { offset, record: StateRecord { key, value }, transaction });
        }
        Ok(())
    }

    fn unreadable(&self, offset: i64, reason: &impl ToString) -> CoordinatorError {
        CoordinatorError::Unreadable { topic: self.name, offset, reason: reason.to_string() }
    }
}

fn take_marker(producer_id: i64, record: &Record, take: &mut impl FnMut(StateEntry)) {
    let committed = match record.key.as_deref().and_then(Marker::parse) {
        Some(Marker::Commit) => true,
        Some(Marker::Abort) => false,
        Some(Marker::Other(_)) | None => return,
    };
    take(StateEntry::Marker { producer_id, committed });
}

impl Written {
    /// The offset of its first record.
    pub(crate) fn first_offset(&self) -> i64 {
        self.appended.base_offset
    }

    /// Waits until the append is fsynced.
    ///
    /// # Errors
    /// Of the log: the append is lost.
    pub(crate) async fn durable(&self) -> Result<(), CoordinatorError> {
        Ok(self.partition.durable(&self.appended).await?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use highwater_log::{Flush, LogConfig, RealFileSystem};

    use super::*;

    fn open(dir: &std::path::Path) -> StateTopic {
        let log = Log::open(Arc::new(RealFileSystem), dir, LogConfig::default()).unwrap();
        StateTopic::new(log, "__state")
    }

    fn record(key: &'static str, value: Option<&'static str>) -> StateRecord {
        StateRecord { key: key.into(), value: value.map(Bytes::from) }
    }

    fn all(topic: &StateTopic) -> Vec<StateEntry> {
        let mut entries = Vec::new();
        topic.read_back(|entry| entries.push(entry)).unwrap();
        entries
    }

    #[tokio::test]
    async fn what_is_durable_is_read_back_after_a_kill() {
        let dir = tempfile::tempdir().unwrap();
        let topic = open(dir.path());
        assert_eq!((all(&topic), topic.existing().is_none()), (vec![], true), "nothing is made");
        let records = [record("a", Some("1")), record("b", None)];
        topic.append(&records, None, 5).unwrap().durable().await.unwrap();
        let config = topic.existing().unwrap().config();
        assert!(config.cleanup.compact && config.flush == Flush::Durable);
        drop(topic);
        let read = all(&open(dir.path()));
        let entry = |offset, record| StateEntry::Record { offset, record, transaction: None };
        assert_eq!(read, [entry(0, record("a", Some("1"))), entry(1, record("b", None))]);
    }

    #[tokio::test]
    async fn more_than_a_chunk_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let topic = open(dir.path());
        let large = Bytes::from(vec![7; CHUNK / 3]);
        for _ in 0..7 {
            let record = StateRecord { key: "k".into(), value: Some(large.clone()) };
            topic.append(&[record], None, 5).unwrap().durable().await.unwrap();
        }
        assert_eq!(all(&topic).len(), 7);
    }
}
