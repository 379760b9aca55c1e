//! How far one Fetch has come in one partition.

use std::sync::Arc;

use highwater_log::{Aborted, LogError, Partition, PartitionState, Slice, Visible, Watermarks};
use highwater_protocol::{AbortedTransaction, ErrorCode, FetchPartition, PartitionData, Records};
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
    found: Vec<Slice>,
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
        self.source.as_ref().map_or(0, |source| bytes(&source.found))
    }

    /// Looks for more and says how many bytes that brought. Blocks on the disk if it [is
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

    /// The answer, and what was found for it.
    pub(crate) fn into_response(self, visible: Visible) -> (PartitionData, Vec<Slice>) {
        match self.source {
            Ok(source) => source.into_response(self.index, visible),
            Err(fault) => {
                let data = PartitionData {
                    partition_index: self.index,
                    error_code: fault.code,
                    high_watermark: -1,
                    records: Some(Records::default()),
                    ..Default::default()
                };
                (data, Vec::new())
            }
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
        let Some(found) = self.find(room, terms)? else { return Ok(0) };
        let len = usize::try_from(found.len()).unwrap_or(usize::MAX);
        self.next = found.next_offset();
        self.room = self.room.saturating_sub(len);
        self.found.push(found);
        Ok(len)
    }

    fn find(&mut self, room: usize, terms: Terms) -> Result<Option<Slice>, LogError> {
        if terms.visible != Visible::LastStable {
            return self.partition.slice(self.next, room, terms.first, terms.visible);
        }
        let found = self.partition.slice_committed(self.next, room, terms.first)?;
        let Some((found, aborted)) = found else { return Ok(None) };
        for one in aborted {
            // One that reaches into what was found before is known already.
            if !self.aborted.contains(&one) {
                self.aborted.push(one);
            }
        }
        Ok(Some(found))
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

    fn into_response(self, partition_index: i32, visible: Visible) -> (PartitionData, Vec<Slice>) {
        let watermarks = *self.watermarks.borrow();
        let data = PartitionData {
            partition_index,
            high_watermark: watermarks.high_watermark,
            last_stable_offset: watermarks.last_stable_offset,
            log_start_offset: watermarks.log_start,
            aborted_transactions: (visible == Visible::LastStable)
                .then(|| self.aborted.iter().map(of_wire).collect()),
            records: Some(match bytes(&self.found) {
                0 => Records::default(),
                len => Records::Apart(len),
            }),
            ..Default::default()
        };
        (data, self.found)
    }
}

fn of_wire(aborted: &Aborted) -> AbortedTransaction {
    AbortedTransaction { producer_id: aborted.producer_id, first_offset: aborted.first_offset }
}

fn bytes(found: &[Slice]) -> usize {
    let len = |slice: &Slice| usize::try_from(slice.len()).unwrap_or(usize::MAX);
    found.iter().map(len).sum()
}
