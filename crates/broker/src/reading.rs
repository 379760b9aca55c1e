//! How far one Fetch has come in one partition.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use highwater_log::{Aborted, LogError, Partition, PartitionState, Visible, Watermarks};
use highwater_protocol::records::batches;
use highwater_protocol::{AbortedTransaction, ErrorCode, FetchPartition, PartitionData};
use tokio::sync::watch;

use crate::fault::Fault;
use crate::node::Node;

/// What holds for all partitions of a Fetch.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) visible: Visible,
    /// Bytes that all partitions together may still take.
    pub(crate) room: usize,
    /// Whether a batch may be larger than the room: nothing was found so far.
    pub(crate) first: bool,
}

/// One partition of a Fetch.
pub(crate) struct Reading {
    index: i32,
    source: Result<Source, Fault>,
}

struct Source {
    partition: Arc<Partition>,
    watermarks: watch::Receiver<Watermarks>,
    /// The leader epoch that the client knows, or -1. Kafka takes every negative one for none here.
    epoch: i32,
    /// Where to read on.
    next: i64,
    /// Bytes that this partition may still take.
    room: usize,
    found: Vec<Bytes>,
    /// The aborted transactions that have records in what was found; none twice.
    aborted: Vec<Aborted>,
}

impl Reading {
    pub(crate) fn begin(node: &Node, topic: &str, asked: &FetchPartition) -> Self {
        let source = node.partition(topic, asked.partition).map(|partition| Source {
            watermarks: partition.watermarks(),
            partition,
            epoch: asked.current_leader_epoch.max(-1),
            next: asked.fetch_offset,
            room: usize::try_from(asked.partition_max_bytes).unwrap_or(0),
            found: Vec::new(),
            aborted: Vec::new(),
        });
        Self { index: asked.partition, source }
    }

    /// Whether reading on would find something, or an error.
    pub(crate) fn is_behind(&self, visible: Visible) -> bool {
        self.source
            .as_ref()
            .is_ok_and(|source| source.next < source.watermarks.borrow().end(visible))
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.source.is_err()
    }

    /// Bytes found so far.
    pub(crate) fn bytes(&self) -> usize {
        self.source.as_ref().map_or(0, |source| source.found.iter().map(Bytes::len).sum())
    }

    /// Reads on and says how many bytes that brought. Blocks on the disk if it [is
    /// behind](Self::is_behind).
    pub(crate) fn advance(&mut self, terms: Terms) -> usize {
        let Ok(source) = &mut self.source else { return 0 };
        match source.advance(terms) {
            Ok(bytes) => bytes,
            Err(fault) => {
                self.source = Err(fault);
                0
            }
        }
    }

    /// Waits until the partition's watermarks have moved since it was last read.
    pub(crate) async fn moved(&mut self) {
        match &mut self.source {
            // The sender lives as long as the partition, which is held here.
            Ok(source) => drop(source.watermarks.changed().await),
            Err(_) => std::future::pending().await,
        }
    }

    pub(crate) fn into_response(self, visible: Visible) -> PartitionData {
        match self.source {
            Ok(source) => source.into_response(self.index, visible),
            Err(fault) => PartitionData {
                partition_index: self.index,
                error_code: fault.code,
                high_watermark: -1,
                records: Some(Bytes::new()),
                ..Default::default()
            },
        }
    }
}

impl Source {
    fn advance(&mut self, terms: Terms) -> Result<usize, Fault> {
        let watermarks = *self.watermarks.borrow_and_update();
        self.check(watermarks)?;
        let room = self.room.min(terms.room);
        if self.next >= watermarks.end(terms.visible) || (room == 0 && !terms.first) {
            return Ok(0);
        }
        let found = self.read(room, terms)?;
        let read = found.len();
        if let Some(next) = next_offset(&found) {
            self.next = next;
            self.room = self.room.saturating_sub(read);
            self.found.push(found);
        }
        Ok(read)
    }

    fn read(&mut self, room: usize, terms: Terms) -> Result<Bytes, LogError> {
        if terms.visible != Visible::LastStable {
            return self.partition.read(self.next, room, terms.first, terms.visible);
        }
        let (found, aborted) = self.partition.read_committed(self.next, room, terms.first)?;
        for one in aborted {
            // One that reaches into what was read before is known already.
            if !self.aborted.contains(&one) {
                self.aborted.push(one);
            }
        }
        Ok(found)
    }

    /// The order of the checks is Kafka's: epoch, then offset.
    fn check(&self, watermarks: Watermarks) -> Result<(), Fault> {
        self.partition.check_leader_epoch(self.epoch)?;
        let Watermarks { log_start, log_end, state, .. } = watermarks;
        match state {
            PartitionState::Online | PartitionState::Poisoned => {}
            PartitionState::Offline => {
                let text = "the partition is offline";
                return Err(Fault::new(ErrorCode::KAFKA_STORAGE_ERROR, text));
            }
            // The client's next look at the metadata shows whether the topic is gone or the broker.
            PartitionState::Gone => {
                let text = "the partition is not here any more";
                return Err(Fault::new(ErrorCode::NOT_LEADER_OR_FOLLOWER, text));
            }
        }
        if (log_start..=log_end).contains(&self.next) {
            return Ok(());
        }
        Err(LogError::OffsetOutOfRange { offset: self.next, log_start, log_end }.into())
    }

    fn into_response(self, partition_index: i32, visible: Visible) -> PartitionData {
        let watermarks = *self.watermarks.borrow();
        PartitionData {
            partition_index,
            high_watermark: watermarks.high_watermark,
            last_stable_offset: watermarks.last_stable_offset,
            log_start_offset: watermarks.log_start,
            aborted_transactions: (visible == Visible::LastStable)
                .then(|| self.aborted.iter().map(of_wire).collect()),
            records: Some(joined(self.found)),
            ..Default::default()
        }
    }
}

fn of_wire(aborted: &Aborted) -> AbortedTransaction {
    AbortedTransaction { producer_id: aborted.producer_id, first_offset: aborted.first_offset }
}

fn joined(mut found: Vec<Bytes>) -> Bytes {
    match found.len() {
        0 | 1 => found.pop().unwrap_or_default(),
        _ => {
            let mut all = BytesMut::with_capacity(found.iter().map(Bytes::len).sum());
            found.iter().for_each(|batches| all.extend_from_slice(batches));
            all.freeze()
        }
    }
}

/// The offset after the last of `found`.
fn next_offset(found: &Bytes) -> Option<i64> {
    batches(found.clone()).filter_map(Result::ok).last().map(|batch| batch.header.next_offset())
}
