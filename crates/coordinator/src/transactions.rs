//! The transaction coordinator: who has which transactional id, and how its transaction stands.
//!
//! What a client is answered stands in `__transaction_state` and is on disk. A transaction that is to end is
//! ended in every partition by a task of its own (see `completion.rs`), after a crash too.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use highwater_log::{Log, now_ms};
use highwater_protocol::{ErrorCode, TopicPartition};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::blocking::blocking;
use crate::state_topic::is_storable;
use crate::tasks::{Spawner, Tasks};
use crate::transaction::{
    Init, Producer, TransactionMetadata, TransactionResult, TransactionState,
};
use crate::transaction_log::{self, MAX_STATE_BYTES};
use crate::transactional_id::TransactionalId;
use crate::{CoordinatorError, Groups, StateRecord, StateTopic, Written, transaction_counters};

/// Where transactional ids stand.
pub const TRANSACTION_STATE: &str = "__transaction_state";

/// How long an EndTxn waits until every partition has its marker. It is answered then in any case: the end
/// is certain. Who is answered earlier would be told to come again with the next transaction.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// How long a request waits for the state to be read back at start; then it is told to come again.
const LOAD_PATIENCE: Duration = Duration::from_secs(1);

/// Bounds of transactions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionsConfig {
    /// The longest time that a producer may let a transaction be open: Kafka's
    /// `transaction.max.timeout.ms`.
    pub max_timeout: Duration,
    /// After which time without a change a transactional id is forgotten: Kafka's
    /// `transactional.id.expiration.ms`.
    pub id_expiration: Duration,
    /// How many transactional ids there may be at once.
    pub max_ids: usize,
    /// Bytes that they may take together, with the partitions of their transactions. Counted with each sweep.
    pub max_total_bytes: usize,
    /// How often transactions are looked at for being open too long, and ids for being idle.
    pub sweep_interval: Duration,
}

impl Default for TransactionsConfig {
    fn default() -> Self {
        Self {
            max_timeout: Duration::from_secs(15 * 60),
            id_expiration: Duration::from_secs(7 * 24 * 60 * 60),
            max_ids: 100_000,
            max_total_bytes: 256 << 20,
            sweep_interval: Duration::from_secs(1),
        }
    }
}

/// The transaction coordinator. Clones share it; its tasks end with the last one.
#[derive(Clone, Debug)]
pub struct Transactions {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tasks: Arc<Tasks>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) log: Log,
    pub(crate) groups: Arc<Groups>,
    pub(crate) topic: StateTopic,
    pub(crate) config: TransactionsConfig,
    pub(crate) spawner: Spawner,
    /// None as long as they are not read back.
    pub(crate) ids: Mutex<Option<Ids>>,
    /// True once they are.
    pub(crate) loaded: watch::Sender<bool>,
    /// What they take in memory, roughly, as of the last sweep.
    pub(crate) bytes: AtomicUsize,
}

pub(crate) type Ids = HashMap<String, Arc<Entry>>;

/// A transactional id in the list. Locks: the list before an entry.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) transactional_id: String,
    pub(crate) slot: Mutex<TransactionalId>,
    /// Woken when a transaction is complete.
    pub(crate) completed: Notify,
}

impl Entry {
    pub(crate) fn new(transactional_id: String, slot: TransactionalId) -> Arc<Self> {
        Arc::new(Self { transactional_id, slot: Mutex::new(slot), completed: Notify::new() })
    }
}

impl Transactions {
    /// Reads back how transactions stand, in the background, and ends those that were ending.
    pub(crate) fn start(log: Log, groups: Arc<Groups>, config: TransactionsConfig) -> Self {
        let tasks = Tasks::new();
        let shared = Arc::new(Shared {
            topic: StateTopic::new(log.clone(), TRANSACTION_STATE),
            log,
            groups,
            config,
            spawner: tasks.spawner(),
            ids: Mutex::new(None),
            loaded: watch::Sender::new(false),
            bytes: AtomicUsize::new(0),
        });
        shared.spawner.spawn(Arc::clone(&shared).run());
        Self { shared, tasks }
    }

    /// The bounds of transactions.
    pub fn config(&self) -> &TransactionsConfig {
        &self.shared.config
    }

    /// InitProducerId: gives a producer its id and epoch. With a transactional id, whoever had it before is
    /// fenced; while its transaction is being aborted the answer is to come again. `resumes` is a producer
    /// that goes on after an error (KIP-360).
    ///
    /// # Errors
    /// Kafka's own for this request.
    pub async fn init_producer_id(
        &self,
        transactional_id: Option<String>,
        timeout_ms: i32,
        resumes: Option<Producer>,
    ) -> Result<Producer, ErrorCode> {
        let shared = Arc::clone(&self.shared);
        let Some(id) = transactional_id else {
            let given = blocking(move || shared.new_producer_id()).await;
            return given.map(|id| Producer { id, epoch: 0 });
        };
        if id.is_empty() || !is_storable(&id) {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        self.shared.check_timeout(timeout_ms)?;
        self.loaded().await;
        let init = Init { timeout_ms, resumes, now_ms: now_ms() };
        self.finish(async move { shared.init(id, init).await }).await
    }

    /// AddPartitionsToTxn: the partitions join the producer's transaction, which begins if none is open.
    ///
    /// # Errors
    /// Kafka's own for this request. Whether the partitions exist is not asked here.
    pub async fn add_partitions(
        &self,
        transactional_id: &str,
        producer: Producer,
        partitions: BTreeSet<TopicPartition>,
    ) -> Result<(), ErrorCode> {
        self.loaded().await;
        let entry = self.shared.find(transactional_id)?;
        self.shared.check_room()?;
        let shared = Arc::clone(&self.shared);
        self.finish(async move {
            let plan = move |slot: &mut TransactionalId| slot.add(producer, partitions, now_ms());
            shared.change(entry, plan).await.map(|_| ())
        })
        .await
    }

    /// EndTxn: the producer's transaction is committed or aborted, whatever happens from here on.
    ///
    /// # Errors
    /// Kafka's own for this request.
    pub async fn end(
        &self,
        transactional_id: &str,
        producer: Producer,
        result: TransactionResult,
    ) -> Result<(), ErrorCode> {
        self.loaded().await;
        let entry = self.shared.find(transactional_id)?;
        let shared = Arc::clone(&self.shared);
        self.finish(async move {
            let plan = move |slot: &mut TransactionalId| slot.end(producer, result, now_ms());
            if shared.change(Arc::clone(&entry), plan).await?.is_some() {
                transaction_counters::ended(result);
                shared.complete_later(&entry);
                let _ = timeout(END_PATIENCE, entry.completion()).await;
            }
            Ok(())
        })
        .await
    }

    /// Whether the producer's transaction is open and has this partition: Produce asks it of the first batch
    /// that a partition is to take in a transaction (KIP-890, part 1).
    ///
    /// # Errors
    /// `TRANSACTION_ABORTABLE` if it has not, `PRODUCER_FENCED`, `INVALID_PRODUCER_ID_MAPPING`,
    /// `CONCURRENT_TRANSACTIONS` if it is ending, or of a coordinator that is not ready.
    pub fn verify(
        &self,
        transactional_id: &str,
        producer: Producer,
        topic: &str,
        partition: i32,
    ) -> Result<(), ErrorCode> {
        let partition = TopicPartition::new(topic, partition);
        let entry = self.shared.find(transactional_id)?;
        let slot = entry.slot.lock();
        slot.verify(producer, &partition)
    }

    /// Waits until transactional ids are read back, for a while: a start takes no longer, as long as nothing
    /// is broken.
    pub async fn loaded(&self) {
        let mut loaded = self.shared.loaded.subscribe();
        let _ = timeout(LOAD_PATIENCE, loaded.wait_for(|loaded| *loaded)).await;
    }

    async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ErrorCode>> + Send + 'static,
    ) -> Result<T, ErrorCode> {
        let done = self.shared.spawner.finish(work).await;
        done.unwrap_or(Err(ErrorCode::COORDINATOR_NOT_AVAILABLE))
    }
}

impl Entry {
    /// Waits until no transaction is ending.
    async fn completion(&self) {
        loop {
            // Made before the look, so that no wake is missed.
            let completed = self.completed.notified();
            let ending = |stands: &TransactionMetadata| stands.state.ending().is_some();
            if !self.slot.lock().stands().is_some_and(ending) {
                return;
            }
            completed.await;
        }
    }
}

impl Shared {
    fn check_timeout(&self, timeout_ms: i32) -> Result<(), ErrorCode> {
        let most = i64::try_from(self.config.max_timeout.as_millis()).unwrap_or(i64::MAX);
        if timeout_ms > 0 && i64::from(timeout_ms) <= most {
            return Ok(());
        }
        Err(ErrorCode::INVALID_TRANSACTION_TIMEOUT)
    }

    /// Blocks on the disk.
    fn new_producer_id(&self) -> Result<i64, ErrorCode> {
        self.log.next_producer_id().map_err(|error| refused(&error.into()))
    }

    /// A transactional id that somebody has or had.
    pub(crate) fn find(&self, transactional_id: &str) -> Result<Arc<Entry>, ErrorCode> {
        if transactional_id.is_empty() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        let ids = self.ids.lock();
        let ids = ids.as_ref().ok_or(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)?;
        ids.get(transactional_id).cloned().ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)
    }

    /// Whether there is room for one more id, or for more partitions of a transaction.
    fn check_room(&self) -> Result<(), ErrorCode> {
        let most = self.config.max_total_bytes;
        if self.bytes.load(Ordering::Relaxed) <= most {
            return Ok(());
        }
        tracing::error!(most, "transactions take as many bytes as they may: nothing joins them");
        Err(ErrorCode::POLICY_VIOLATION)
    }

    fn find_or_make(&self, transactional_id: &str) -> Result<Arc<Entry>, ErrorCode> {
        let mut ids = self.ids.lock();
        let ids = ids.as_mut().ok_or(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)?;
        if let Some(entry) = ids.get(transactional_id) {
            return Ok(Arc::clone(entry));
        }
        self.check_room()?;
        if ids.len() >= self.config.max_ids {
            tracing::error!(
                transactional_id,
                most = self.config.max_ids,
                "there are as many transactional ids as there may be: a new one is refused"
            );
            return Err(ErrorCode::POLICY_VIOLATION);
        }
        let entry = Entry::new(transactional_id.to_owned(), TransactionalId::default());
        ids.insert(transactional_id.to_owned(), Arc::clone(&entry));
        Ok(entry)
    }

    async fn init(self: Arc<Self>, id: String, init: Init) -> Result<Producer, ErrorCode> {
        loop {
            let entry = self.find_or_make(&id)?;
            let ids = Arc::clone(&self);
            let plan = move |slot: &mut TransactionalId| {
                if slot.is_forgotten() {
                    return Ok(None);
                }
                slot.init(init, || ids.new_producer_id()).map(Some)
            };
            let written = self.change(Arc::clone(&entry), plan).await;
            self.drop_unused(&entry);
            // It was taken off the list after it was found there.
            let Some(stands) = written? else { continue };
            if stands.state == TransactionState::Empty {
                return Ok(stands.producer);
            }
            transaction_counters::fenced();
            self.complete_later(&entry);
            return Err(ErrorCode::CONCURRENT_TRANSACTIONS);
        }
    }

    /// Takes an id off the list that nobody came to have.
    fn drop_unused(&self, entry: &Arc<Entry>) {
        let mut ids = self.ids.lock();
        if let Some(ids) = ids.as_mut()
            && entry.slot.lock().forget_unused()
            && ids.get(&entry.transactional_id).is_some_and(|known| Arc::ptr_eq(known, entry))
        {
            ids.remove(&entry.transactional_id);
        }
    }

    /// Plans a change, writes it and, once it is safe on disk, takes it up. None: there is nothing to write.
    pub(crate) async fn change(
        self: &Arc<Self>,
        entry: Arc<Entry>,
        plan: impl FnOnce(&mut TransactionalId) -> Result<Option<TransactionMetadata>, ErrorCode>
        + Send
        + 'static,
    ) -> Result<Option<TransactionMetadata>, ErrorCode> {
        let shared = Arc::clone(self);
        let planned = Arc::clone(&entry);
        let written = blocking(move || shared.plan_and_append(&planned, plan)).await?;
        let Some((next, written)) = written else { return Ok(None) };
        let durable = written.durable().await;
        let mut slot = entry.slot.lock();
        let was_open = slot.is_open();
        match durable {
            Ok(()) => slot.written(),
            Err(error) => {
                slot.lost();
                return Err(refused(&error));
            }
        }
        transaction_counters::moved(was_open, slot.is_open());
        Ok(Some(next))
    }

    pub(crate) fn plan_and_append(
        &self,
        entry: &Entry,
        plan: impl FnOnce(&mut TransactionalId) -> Result<Option<TransactionMetadata>, ErrorCode>,
    ) -> Result<Option<(TransactionMetadata, Written)>, ErrorCode> {
        let Some(next) = plan(&mut entry.slot.lock())? else { return Ok(None) };
        match self.append(transaction_log::record(&entry.transactional_id, &next)) {
            Ok(written) => Ok(Some((next, written))),
            Err(error) => {
                entry.slot.lock().lost();
                Err(error)
            }
        }
    }

    /// Blocks on the disk.
    pub(crate) fn append(&self, record: StateRecord) -> Result<Written, ErrorCode> {
        if record.value.as_ref().is_some_and(|value| value.len() > MAX_STATE_BYTES) {
            return Err(ErrorCode::POLICY_VIOLATION);
        }
        self.topic.append(&[record], None, now_ms()).map_err(|error| refused(&error))
    }
}

/// Says in the log what a client is only told by a code.
pub(crate) fn refused(error: &CoordinatorError) -> ErrorCode {
    tracing::error!(code = error.code(), %error, "a change of a transaction could not be stored");
    error.kafka_code()
}
