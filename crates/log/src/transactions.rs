//! What a partition tells of its producers and their transactions.

use highwater_protocol::records::BatchHeader;

use crate::partition::Partition;
use crate::producer::Sequenced;
use crate::{LogError, OpenTransaction, Origin, ProducerState};

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

    /// Refuses a producer of which a newer epoch has written here, or was fenced here.
    ///
    /// # Errors
    /// [`LogError::InvalidProducerEpoch`].
    pub fn check_producer_epoch(&self, producer_id: i64, epoch: i16) -> Result<(), LogError> {
        self.writer.lock().producers.check_epoch(producer_id, epoch)
    }

    /// Says how a transactional batch is to be appended once its coordinator has said that it belongs to an open
    /// transaction. Until it is appended, none of its producer with a higher sequence number is (KIP-890).
    ///
    /// # Errors
    /// [`LogError::InvalidProducerEpoch`] where a newer epoch of the producer is known.
    pub fn begin_verification(
        &self,
        header: &BatchHeader,
        now_ms: i64,
    ) -> Result<Origin, LogError> {
        let mut writer = self.writer.lock();
        if let Some(batch) = Sequenced::of(header) {
            writer.producers.begin_verification(&batch, now_ms)?;
        }
        Ok(Origin::Verified { at: self.marks().log_end.offset })
    }
}
