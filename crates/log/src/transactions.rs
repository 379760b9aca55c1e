//! What a partition tells of its producers and their transactions.

use crate::partition::Partition;
use crate::{OpenTransaction, ProducerState};

impl Partition {
    /// What is known of each producer that numbers its batches, by producer id.
    pub fn producer_states(&self) -> Vec<ProducerState> {
        self.writer.lock().producers.states()
    }

    /// The oldest transaction that is open here: what holds readers at read_committed back, whose it is
    /// and since when (rule L8).
    pub fn oldest_open_transaction(&self) -> Option<OpenTransaction> {
        self.unsettled.lock().oldest_open()
    }

    /// Whether the producer has a transaction open here. What it appends next belongs to it; without one
    /// a transactional batch begins one, which its coordinator must know of first (KIP-890).
    pub fn is_in_transaction(&self, producer_id: i64) -> bool {
        self.writer.lock().producers.is_open(producer_id)
    }
}
