//! How the transaction of one transactional id stands, and what may become of it.
//!
//! The rules are those of Kafka's transactions before KIP-890's second part (TV1): a producer keeps its
//! epoch from one transaction to the next; an epoch is raised by InitProducerId, and by the coordinator when
//! it aborts what the producer left open. Nothing here is written anywhere: each step gives what would hold
//! next.

use std::collections::BTreeSet;

use highwater_protocol::{ErrorCode, TopicPartition};

/// The greatest epoch a producer is given. The one above is kept for fencing it.
const LAST_EPOCH: i16 = i16::MAX - 1;

/// Where Kafka's formats say that there is no epoch.
pub(crate) const NO_EPOCH: i16 = -1;

/// Where Kafka's formats say that there is no time.
pub(crate) const NO_TIME: i64 = -1;

/// A producer as it names itself in a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Producer {
    /// Its id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
}

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionResult {
    /// All of it counts.
    Commit,
    /// Nothing of it counts.
    Abort,
}

/// The states, by Kafka's names and numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionState {
    /// The producer has its epoch and began nothing with it.
    Empty = 0,
    /// A transaction is open.
    Ongoing = 1,
    /// It will be committed, whatever happens; markers are on their way.
    PrepareCommit = 2,
    /// It will be aborted, whatever happens; markers are on their way.
    PrepareAbort = 3,
    /// It is committed, and every partition knows.
    CompleteCommit = 4,
    /// It is aborted, and every partition knows.
    CompleteAbort = 5,
}

/// States that Apache Kafka knows by name and shows nobody.
const UNSEEN: [&str; 2] = ["Dead", "PrepareEpochFence"];

impl TransactionState {
    const ALL: [Self; 6] = [
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
    ];

    /// Kafka's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }

    /// Whether Kafka has a state of this name.
    pub(crate) fn is_known(name: &str) -> bool {
        UNSEEN.contains(&name) || Self::ALL.iter().any(|state| state.name() == name)
    }

    pub(crate) fn from_id(id: i8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as i8 == id)
    }

    /// What the markers say, while they are on their way.
    pub(crate) fn ending(self) -> Option<TransactionResult> {
        match self {
            Self::PrepareCommit => Some(TransactionResult::Commit),
            Self::PrepareAbort => Some(TransactionResult::Abort),
            _ => None,
        }
    }
}

/// What an InitProducerId asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Init {
    pub(crate) timeout_ms: i32,
    /// The producer that wants to go on after an error, under a higher epoch (KIP-360); None for one
    /// that starts, and fences whoever had the transactional id.
    pub(crate) resumes: Option<Producer>,
    pub(crate) now_ms: i64,
}

/// How a transactional id stands: what a record of `__transaction_state` says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionMetadata {
    /// Who has it.
    pub producer: Producer,
    /// Whose epochs were used up before this one's, else the same id, or -1.
    pub(crate) previous_id: i64,
    /// The epoch before, if a producer that raised its own may ask for it again; or -1. It is not stored:
    /// after a restart that request is refused, as by Apache Kafka.
    pub(crate) last_epoch: i16,
    /// How long a transaction may stay open, in milliseconds.
    pub timeout_ms: i32,
    /// The state.
    pub state: TransactionState,
    /// The partitions of the open transaction that have no marker yet.
    pub partitions: BTreeSet<TopicPartition>,
    /// When the newest transaction began, in milliseconds since 1970; or -1.
    pub start_ms: i64,
    /// When it changed last, in milliseconds since 1970.
    pub updated_ms: i64,
}

impl TransactionMetadata {
    /// What it takes in memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let partitions = self.partitions.iter();
        let partitions = partitions.map(|one| one.topic.len() + 2 * size_of::<TopicPartition>());
        size_of::<Self>() + partitions.sum::<usize>()
    }

    /// How a transactional id stands once a producer has it that was never there.
    pub(crate) fn first(id: i64, init: Init) -> Self {
        Self {
            producer: Producer { id, epoch: 0 },
            previous_id: -1,
            last_epoch: NO_EPOCH,
            timeout_ms: init.timeout_ms,
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            start_ms: NO_TIME,
            updated_ms: init.now_ms,
        }
    }

    /// Gives the transactional id to a producer: `Empty` under its epoch, or, if a transaction is open,
    /// `PrepareAbort` under an epoch that nobody is told. `new_id` makes a producer id where the epochs of
    /// this one are used up.
    pub(crate) fn init(
        &self,
        init: Init,
        new_id: impl FnOnce() -> Result<i64, ErrorCode>,
    ) -> Result<Self, ErrorCode> {
        if init.resumes.is_some_and(|producer| !self.may_resume(producer)) {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        match self.state {
            TransactionState::PrepareCommit | TransactionState::PrepareAbort => {
                Err(ErrorCode::CONCURRENT_TRANSACTIONS)
            }
            TransactionState::Ongoing => Ok(self.fenced(init.now_ms)),
            TransactionState::Empty
            | TransactionState::CompleteCommit
            | TransactionState::CompleteAbort => self.given(init, new_id),
        }
    }

    /// The id before counts if its epochs were used up: the answer that named the new one was lost.
    fn may_resume(&self, producer: Producer) -> bool {
        producer.id == self.producer.id
            || (producer.id == self.previous_id && producer.epoch >= LAST_EPOCH)
    }

    fn given(
        &self,
        init: Init,
        new_id: impl FnOnce() -> Result<i64, ErrorCode>,
    ) -> Result<Self, ErrorCode> {
        let current = self.producer;
        let raised = self.clone().empty(init);
        let resumed = init.resumes.map(|producer| producer.epoch);
        if current.epoch >= LAST_EPOCH && resumed.is_none_or(|epoch| epoch == current.epoch) {
            return Ok(Self {
                producer: Producer { id: new_id()?, epoch: 0 },
                previous_id: current.id,
                last_epoch: resumed.unwrap_or(NO_EPOCH),
                ..raised
            });
        }
        let next = Producer { epoch: current.epoch.saturating_add(1), ..current };
        match resumed {
            None => Ok(Self { producer: next, last_epoch: NO_EPOCH, ..raised }),
            Some(epoch) if epoch == current.epoch => {
                Ok(Self { producer: next, last_epoch: epoch, ..raised })
            }
            // It was raised already, and the answer was lost.
            Some(epoch) if epoch == self.last_epoch => {
                Ok(Self { previous_id: self.previous_id, ..raised })
            }
            Some(_) => Err(ErrorCode::PRODUCER_FENCED),
        }
    }

    fn empty(self, init: Init) -> Self {
        Self {
            previous_id: self.producer.id,
            timeout_ms: init.timeout_ms,
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            start_ms: NO_TIME,
            updated_ms: init.now_ms,
            ..self
        }
    }

    /// The open transaction is to be aborted, and its producer to be heard no more.
    pub(crate) fn fenced(&self, now_ms: i64) -> Self {
        let epoch = self.producer.epoch.saturating_add(1);
        Self {
            producer: Producer { epoch, ..self.producer },
            last_epoch: NO_EPOCH,
            state: TransactionState::PrepareAbort,
            updated_ms: now_ms,
            ..self.clone()
        }
    }

    /// Whether the transactional id is this producer's.
    pub(crate) fn check_producer(&self, producer: Producer) -> Result<(), ErrorCode> {
        if producer.id != self.producer.id {
            return Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING);
        }
        if producer.epoch != self.producer.epoch {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        Ok(())
    }

    /// Partitions join the transaction, which begins if none is open. None: they are in it.
    pub(crate) fn add(
        &self,
        partitions: BTreeSet<TopicPartition>,
        now_ms: i64,
    ) -> Result<Option<Self>, ErrorCode> {
        match self.state {
            TransactionState::PrepareCommit | TransactionState::PrepareAbort => {
                Err(ErrorCode::CONCURRENT_TRANSACTIONS)
            }
            TransactionState::Ongoing if partitions.is_subset(&self.partitions) => Ok(None),
            TransactionState::Ongoing => {
                let mut next = Self { updated_ms: now_ms, ..self.clone() };
                next.partitions.extend(partitions);
                Ok(Some(next))
            }
            TransactionState::Empty
            | TransactionState::CompleteCommit
            | TransactionState::CompleteAbort => Ok(Some(Self {
                state: TransactionState::Ongoing,
                partitions,
                start_ms: now_ms,
                updated_ms: now_ms,
                ..self.clone()
            })),
        }
    }

    /// The transaction is to end. None: it ended so before, and its producer asks again.
    pub(crate) fn end(
        &self,
        result: TransactionResult,
        now_ms: i64,
    ) -> Result<Option<Self>, ErrorCode> {
        use TransactionResult::{Abort, Commit};
        use TransactionState as State;
        match (self.state, result) {
            (State::Ongoing, _) => {
                let state = match result {
                    Commit => State::PrepareCommit,
                    Abort => State::PrepareAbort,
                };
                Ok(Some(Self { state, updated_ms: now_ms, ..self.clone() }))
            }
            (State::CompleteCommit, Commit) | (State::CompleteAbort, Abort) => Ok(None),
            (State::PrepareCommit, Commit) | (State::PrepareAbort, Abort) => {
                Err(ErrorCode::CONCURRENT_TRANSACTIONS)
            }
            _ => Err(ErrorCode::INVALID_TXN_STATE),
        }
    }

    /// Every partition has its marker.
    pub(crate) fn complete(&self, now_ms: i64) -> Option<Self> {
        let state = match self.state.ending()? {
            TransactionResult::Commit => TransactionState::CompleteCommit,
            TransactionResult::Abort => TransactionState::CompleteAbort,
        };
        Some(Self { state, partitions: BTreeSet::new(), updated_ms: now_ms, ..self.clone() })
    }

    /// Whether the producer's transaction is open and has this partition (KIP-890, part 1).
    pub(crate) fn verify(
        &self,
        producer: Producer,
        partition: &TopicPartition,
    ) -> Result<(), ErrorCode> {
        self.check_producer(producer)?;
        if self.state.ending().is_some() {
            return Err(ErrorCode::CONCURRENT_TRANSACTIONS);
        }
        if self.partitions.contains(partition) {
            return Ok(());
        }
        Err(ErrorCode::TRANSACTION_ABORTABLE)
    }

    /// Whether a transaction is open for longer than its producer allowed.
    pub(crate) fn is_timed_out(&self, now_ms: i64) -> bool {
        let deadline = self.start_ms.saturating_add(self.timeout_ms.into());
        self.state == TransactionState::Ongoing && deadline < now_ms
    }

    /// Whether nothing happened for so long that the transactional id may be forgotten.
    pub(crate) fn is_idle(&self, since_ms: i64) -> bool {
        let at_rest = matches!(
            self.state,
            TransactionState::Empty
                | TransactionState::CompleteCommit
                | TransactionState::CompleteAbort
        );
        at_rest && self.updated_ms <= since_ms
    }
}
