//! The end of a transaction, as it stands in the log: a control batch of one record (KIP-98).
//!
//! Key: version 0 and the kind, 16 bits each. Value: version 0 (16 bits), then the epoch of the
//! coordinator that wrote it (32 bits). All big-endian.

use bytes::{BufMut, Bytes};
use highwater_protocol::records::{Batch, BatchBuilder, BatchError, Compression, Marker};

/// The one version of key and value.
const VERSION: i16 = 0;

/// Bytes of the value: version and coordinator epoch. A later version may have more.
const VALUE: usize = 6;

/// The most that the one record is opened to, in bytes, many times what it has.
const OPENED_MAX: usize = 64 * 1024;

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkerKind {
    /// Its records count.
    Commit,
    /// Its records are passed over by a reader at read_committed.
    Abort,
}

/// The marker that ends a producer's transaction in one partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndMarker {
    /// Whose transaction.
    pub producer_id: i64,
    /// The epoch under which it ends; a higher one than the producer's fences the producer.
    pub producer_epoch: i16,
    /// How it ends.
    pub kind: MarkerKind,
    /// The epoch of the transaction coordinator; a lower one than was seen is refused.
    pub coordinator_epoch: i32,
}

impl EndMarker {
    /// The batch to be appended.
    pub(crate) fn to_batch(self, now_ms: i64) -> Result<Bytes, BatchError> {
        let kind: i16 = match self.kind {
            MarkerKind::Abort => 0,
            MarkerKind::Commit => 1,
        };
        let mut key = Vec::with_capacity(4);
        key.put_i16(VERSION);
        key.put_i16(kind);
        let mut value = Vec::with_capacity(VALUE);
        value.put_i16(VERSION);
        value.put_i32(self.coordinator_epoch);
        let mut batch = BatchBuilder::new(Compression::None)
            .producer(self.producer_id, self.producer_epoch, -1)
            .transactional()
            .control();
        batch.push(now_ms, Some(&key), Some(&value), &[]);
        batch.build()
    }

    /// Reads a control batch; None if it is of another sort, or compaction has left no record in it.
    pub(crate) fn parse(batch: &Batch) -> Option<Self> {
        let mut records = batch.records(OPENED_MAX).ok()?;
        let record = records.next()?.ok()?;
        let kind = match Marker::parse(record.key.as_deref()?)? {
            Marker::Abort => MarkerKind::Abort,
            Marker::Commit => MarkerKind::Commit,
            Marker::Other(_) => return None,
        };
        let value = record.value?;
        let coordinator_epoch = i32::from_be_bytes(*value.get(2..VALUE)?.first_chunk()?);
        Some(Self {
            producer_id: batch.header.producer_id,
            producer_epoch: batch.header.producer_epoch,
            kind,
            coordinator_epoch,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_kafkas_and_comes_back() {
        for (kind, id) in [(MarkerKind::Abort, 0), (MarkerKind::Commit, 1)] {
            let marker =
                EndMarker { producer_id: 9, producer_epoch: 3, kind, coordinator_epoch: 7 };
            let bytes = marker.to_batch(1_800_000_000_000).unwrap();
            // Kafka's RECORD_BATCH_OVERHEAD, and 17 bytes of the one record.
            assert_eq!(bytes.len(), 61 + 17);
            let batch = Batch::parse(&bytes).unwrap();
            assert!(batch.header.is_control() && batch.header.is_transactional());
            assert_eq!(batch.header.base_sequence, -1);
            let record = batch.records(100).unwrap().next().unwrap().unwrap();
            assert_eq!(record.key.as_deref(), Some([0, 0, 0, id].as_slice()));
            assert_eq!(record.value.as_deref(), Some([0, 0, 0, 0, 0, 7].as_slice()));
            assert_eq!(EndMarker::parse(&batch), Some(marker));
        }
    }
}
