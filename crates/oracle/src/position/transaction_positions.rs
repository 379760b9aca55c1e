//! The positions of a transaction's records, made cheaply and encoded only when one is stored.

use std::sync::Arc;

use highwater_connector::SourceOffset;

use super::{Acknowledged, Base, CommitPoint, Lanes, Position, ResumePoint};

/// The positions of the records of one transaction.
#[derive(Clone, Debug)]
pub struct TransactionPositions(Arc<Emitted>);

#[derive(Debug)]
pub(super) struct Emitted {
    pub(super) base: Arc<Base>,
    /// Behind the transaction.
    pub(super) lanes: Lanes,
    pub(super) commit: CommitPoint,
    /// From where the thread is read again when the transaction was acknowledged in part: all its
    /// rows are needed.
    pub(super) inside: ResumePoint,
    pub(super) size: u64,
}

impl TransactionPositions {
    pub(super) fn new(emitted: Emitted) -> Self {
        Self(Arc::new(emitted))
    }

    /// The position once the first `changes` of the transaction are acknowledged. The records of one
    /// change bear the position before it, save its last one, which bears that behind it.
    pub fn at(&self, changes: u64) -> Arc<dyn highwater_connector::Position> {
        Arc::new(RecordPosition { emitted: Arc::clone(&self.0), changes })
    }

    /// The position behind the transaction.
    pub fn last(&self) -> Arc<dyn highwater_connector::Position> {
        self.at(self.0.size)
    }
}

#[derive(Debug)]
struct RecordPosition {
    emitted: Arc<Emitted>,
    changes: u64,
}

impl highwater_connector::Position for RecordPosition {
    fn offset(&self) -> SourceOffset {
        let Emitted { base, lanes, commit, inside, size } = self.emitted.as_ref();
        let mut position = Position { base: Arc::clone(base), lanes: lanes.clone() };
        let is_inside = self.changes < *size;
        if let Some(lane) = position.lanes.get_mut(commit.at.thread).filter(|_| is_inside) {
            lane.resume = *inside;
            if let Some(mark) = &mut lane.mark {
                mark.acknowledged = Acknowledged::First { changes: self.changes, of: Some(*size) };
            }
        }
        position.write()
    }
}
