//! A transactional id as the coordinator holds it: how it stands on disk, and what is being written.
//!
//! One change at a time: what comes meanwhile is told to come again. A change holds once it is safe on disk
//! ([`TransactionalId::written`]), and never if it was not written ([`TransactionalId::lost`]).

use std::collections::BTreeSet;

use highwater_protocol::{ErrorCode, TopicPartition};

use crate::transaction::{
    Init, Producer, TransactionMetadata, TransactionResult, TransactionState,
};

/// What is being written.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Change {
    To(Box<TransactionMetadata>),
    Forget,
}

/// A transactional id.
#[derive(Default, Debug)]
pub(crate) struct TransactionalId {
    /// None as long as no producer has it.
    stands: Option<TransactionMetadata>,
    change: Option<Change>,
    forgotten: bool,
}

impl TransactionalId {
    /// As it was read back.
    pub(crate) fn stored(metadata: TransactionMetadata) -> Self {
        Self { stands: Some(metadata), ..Self::default() }
    }

    /// How it stands, if a producer has it.
    pub(crate) fn stands(&self) -> Option<&TransactionMetadata> {
        self.stands.as_ref()
    }

    /// What it takes in memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let planned = match &self.change {
            Some(Change::To(next)) => next.bytes(),
            Some(Change::Forget) | None => 0,
        };
        size_of::<Self>() + self.stands.as_ref().map_or(0, TransactionMetadata::bytes) + planned
    }

    /// Whether it was taken off the list; who holds it has to look it up again.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.forgotten
    }

    /// Whether nobody has it and nobody is about to.
    pub(crate) fn is_unused(&self) -> bool {
        self.stands.is_none() && self.change.is_none()
    }

    pub(crate) fn init(
        &mut self,
        init: Init,
        new_id: impl FnOnce() -> Result<i64, ErrorCode>,
    ) -> Result<TransactionMetadata, ErrorCode> {
        self.check_quiet()?;
        let next = match &self.stands {
            None => TransactionMetadata::first(new_id()?, init),
            Some(stands) => stands.init(init, new_id)?,
        };
        Ok(self.begin(next))
    }

    /// None: there is nothing to write.
    pub(crate) fn add(
        &mut self,
        producer: Producer,
        partitions: BTreeSet<TopicPartition>,
        now_ms: i64,
    ) -> Result<Option<TransactionMetadata>, ErrorCode> {
        let next = self.of(producer)?.add(partitions, now_ms)?;
        Ok(next.map(|next| self.begin(next)))
    }

    /// None: there is nothing to write.
    pub(crate) fn end(
        &mut self,
        producer: Producer,
        result: TransactionResult,
        now_ms: i64,
    ) -> Result<Option<TransactionMetadata>, ErrorCode> {
        let next = self.of(producer)?.end(result, now_ms)?;
        Ok(next.map(|next| self.begin(next)))
    }

    /// Aborts a transaction that is open for too long, and fences its producer.
    pub(crate) fn time_out(&mut self, now_ms: i64) -> Option<TransactionMetadata> {
        let stands = self.stands.as_ref().filter(|_| self.change.is_none())?;
        let next = stands.is_timed_out(now_ms).then(|| stands.fenced(now_ms))?;
        Some(self.begin(next))
    }

    /// Every partition has its marker.
    pub(crate) fn complete(&mut self, now_ms: i64) -> Option<TransactionMetadata> {
        let stands = self.stands.as_ref().filter(|_| self.change.is_none())?;
        let next = stands.complete(now_ms)?;
        Some(self.begin(next))
    }

    /// A partition has its marker, or is no more.
    pub(crate) fn marked(&mut self, partition: &TopicPartition) {
        if let Some(stands) = self.stands.as_mut().filter(|stands| stands.state.ending().is_some())
        {
            stands.partitions.remove(partition);
        }
    }

    /// Whether it is idle since then and will now be forgotten.
    pub(crate) fn expire(&mut self, since_ms: i64) -> bool {
        let idle = self.stands.as_ref().is_some_and(|stands| stands.is_idle(since_ms));
        if !idle || self.change.is_some() {
            return false;
        }
        self.change = Some(Change::Forget);
        true
    }

    /// The change is safe on disk.
    pub(crate) fn written(&mut self) {
        match self.change.take() {
            Some(Change::To(next)) => self.stands = Some(*next),
            Some(Change::Forget) => {
                self.stands = None;
                self.forgotten = true;
            }
            None => {}
        }
    }

    /// The change is not on disk, and will not be.
    pub(crate) fn lost(&mut self) {
        self.change = None;
    }

    /// Takes it off the list if nobody has it.
    pub(crate) fn forget_unused(&mut self) -> bool {
        self.forgotten |= self.is_unused();
        self.forgotten
    }

    /// Whether the producer's transaction is open and has this partition.
    pub(crate) fn verify(
        &self,
        producer: Producer,
        partition: &TopicPartition,
    ) -> Result<(), ErrorCode> {
        let stands = self.stands.as_ref().ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)?;
        stands.verify(producer, partition)
    }

    /// How it stands, if it is this producer's and nothing is being written.
    fn of(&self, producer: Producer) -> Result<&TransactionMetadata, ErrorCode> {
        let stands = self.stands.as_ref().ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)?;
        stands.check_producer(producer)?;
        self.check_quiet()?;
        Ok(stands)
    }

    fn check_quiet(&self) -> Result<(), ErrorCode> {
        match self.change {
            None => Ok(()),
            Some(_) => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
        }
    }

    fn begin(&mut self, next: TransactionMetadata) -> TransactionMetadata {
        self.change = Some(Change::To(Box::new(next.clone())));
        next
    }

    /// Whether a transaction is open, or on its way to its end.
    pub(crate) fn is_open(&self) -> bool {
        self.stands.as_ref().is_some_and(|stands| {
            stands.state == TransactionState::Ongoing || stands.state.ending().is_some()
        })
    }
}
