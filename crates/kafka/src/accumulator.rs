//! What the writers share: takes records in, and tells of acknowledgements.
//!
//! Records are encoded into their batch as they come, and a [`Sender`] sends the batches. Order in
//! the log must have no hole, even when a record fails: a reader that drops repeats by order (rule
//! P5) would drop the repeat of a record that lies behind a later one. So a failure that does not
//! pass breaks the writer as a whole, and the time-out is the writer's, not a record's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Failure};
use crate::connection::Limits;
use crate::delivery::{Book, Deliveries, State};
use crate::ledger::Bounds;
use crate::partitioner::partition_of;
use crate::sender::{PROPAGATION, Sender};
use crate::transaction_coordinator::TransactionCoordinator;
use crate::{Acknowledgement, KafkaError, OutgoingRecord, WriterSettings};

/// How long a full writer waits before it looks again, when nobody wakes it.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Bytes of a batch at most, unless one record has more: where more would not make it cheaper.
const BATCH_BYTES: usize = 512 << 10;

/// How old the knowledge of a topic's partitions may be, since partitions can be added.
const PARTITIONS_HOLD: Duration = Duration::from_secs(300);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER: usize = 16 << 20;

/// See the module's text.
pub(crate) struct Accumulator {
    deliveries: Arc<Deliveries>,
    cluster: Arc<Cluster>,
    sender: JoinHandle<()>,
    /// Partitions by topic, and when they were counted.
    partitions: HashMap<Arc<str>, (i32, Instant)>,
    delivery_timeout: Duration,
    max_request_bytes: usize,
}

/// The cluster, as a writer speaks to it.
pub(crate) fn cluster(settings: &WriterSettings) -> Arc<Cluster> {
    let limits = Limits {
        connect: CONNECT_TIMEOUT,
        request: REQUEST_TIMEOUT,
        max_frame: MAX_ANSWER,
        lease: settings.lease.clone(),
    };
    Arc::new(Cluster::new(settings.bootstrap.clone(), limits, settings.delivery_timeout))
}

impl Accumulator {
    /// Starts sending: in transactions, where there is a coordinator of them.
    pub(crate) fn start(
        settings: &WriterSettings,
        cluster: Arc<Cluster>,
        transactions: Option<Arc<TransactionCoordinator>>,
    ) -> Self {
        let bounds =
            Bounds { records: settings.max_in_flight_records, bytes: settings.max_in_flight_bytes };
        let batch = BATCH_BYTES.min(settings.max_request_bytes);
        let deliveries = Arc::new(Deliveries::new(bounds, batch, settings.lease.clone()));
        let sender = Sender::new(
            Arc::clone(&deliveries),
            Arc::clone(&cluster),
            transactions,
            settings.linger,
            settings.delivery_timeout,
        );
        Self {
            deliveries,
            cluster,
            sender: tokio::spawn(sender.run()),
            partitions: HashMap::new(),
            delivery_timeout: settings.delivery_timeout,
            max_request_bytes: settings.max_request_bytes,
        }
    }

    /// The state, with what is overdue counted as failed.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.deliveries.state();
        state.expire(Instant::now(), self.delivery_timeout);
        state
    }

    /// The failure, if there is one.
    pub(crate) fn check(&self) -> Result<(), KafkaError> {
        self.state().check()
    }

    async fn enqueue(&mut self, book: Book, record: &OutgoingRecord) -> Result<u64, KafkaError> {
        self.check_size(record)?;
        let partition = match record.partition {
            Some(partition) => partition,
            None => chosen(record.key.as_deref(), self.count(&record.topic).await?),
        };
        loop {
            if let Some(sequence) = self.try_enqueue(book, record, partition, Instant::now())? {
                return Ok(sequence);
            }
            self.deliveries.progress(LOOK_AGAIN).await;
        }
    }

    fn check_size(&self, record: &OutgoingRecord) -> Result<(), KafkaError> {
        let (size, most) = (record.size(), self.max_request_bytes);
        if size <= most {
            return Ok(());
        }
        let detail = format!("a record of {size} bytes is above the limit of {most}");
        let topic = record.topic.as_ref().to_owned();
        Err(KafkaError::Write { topic, code: None, detail, fatal: false })
    }

    /// The partition of a record, as far as it is known without asking.
    fn known_partition(&self, record: &OutgoingRecord, now: Instant) -> Option<i32> {
        record.partition.or_else(|| {
            let (count, at) = self.partitions.get(&record.topic)?;
            let known = now.saturating_duration_since(*at) < PARTITIONS_HOLD;
            known.then(|| chosen(record.key.as_deref(), *count))
        })
    }

    /// Puts a record into its batch; `None` while the bounds are reached.
    fn try_enqueue(
        &self,
        book: Book,
        record: &OutgoingRecord,
        partition: i32,
        now: Instant,
    ) -> Result<Option<u64>, KafkaError> {
        let mut state = self.deliveries.state();
        state.check()?;
        let entered = state.enter(book, record, partition, now);
        if entered.is_none() {
            state.expire(now, self.delivery_timeout);
        }
        drop(state);
        if entered.is_none_or(|(_, look)| look) {
            self.deliveries.work.notify_one();
        }
        Ok(entered.map(|(sequence, _)| sequence))
    }

    /// How many partitions a topic has.
    async fn count(&mut self, topic: &Arc<str>) -> Result<i32, KafkaError> {
        if let Some((count, at)) = self.partitions.get(topic)
            && at.elapsed() < PARTITIONS_HOLD
        {
            return Ok(*count);
        }
        let (cluster, began) = (&self.cluster, Instant::now());
        let count = cluster.persist(|| async {
            cluster.partition_count(topic).await.map_err(|failure| match failure {
                Failure::Final(unknown @ KafkaError::UnknownPartition { .. })
                    if began.elapsed() < PROPAGATION =>
                {
                    Failure::Transient(unknown)
                }
                other => other,
            })
        });
        let count = count.await?;
        self.partitions.insert(Arc::clone(topic), (count, Instant::now()));
        Ok(count)
    }

    /// See [`Writer::send`](crate::Writer::send).
    pub(crate) async fn send(&mut self, record: &OutgoingRecord) -> Result<u64, KafkaError> {
        self.enqueue(Book::Records, record).await
    }

    /// See [`Writer::try_send`](crate::Writer::try_send).
    pub(crate) fn try_send(&self, record: &OutgoingRecord) -> Result<Option<u64>, KafkaError> {
        self.check_size(record)?;
        // Read once for both: a record costs little else here.
        let now = Instant::now();
        match self.known_partition(record, now) {
            Some(partition) => self.try_enqueue(Book::Records, record, partition, now),
            None => Ok(None),
        }
    }

    /// See [`Writer::acknowledged`](crate::Writer::acknowledged).
    pub(crate) fn acknowledged(&self) -> Result<Vec<Acknowledgement>, KafkaError> {
        let reported = self.state().ledger(Book::Records).report();
        if reported.is_empty() {
            self.check()?;
        }
        Ok(reported)
    }

    /// See [`Writer::ready`](crate::Writer::ready).
    pub(crate) async fn ready(&self) -> Result<(), KafkaError> {
        loop {
            {
                let mut state = self.state();
                let records = state.ledger(Book::Records);
                if records.has_news() || records.is_settled() {
                    return Ok(());
                }
                state.check()?;
            }
            self.deliveries.progress(LOOK_AGAIN).await;
        }
    }

    /// See [`Writer::offsets`](crate::Writer::offsets).
    pub(crate) async fn offsets(&mut self, records: &[OutgoingRecord]) -> Result<(), KafkaError> {
        for record in records {
            self.enqueue(Book::Offsets, record).await?;
        }
        self.settle(Book::Offsets).await?;
        self.deliveries.state().ledger(Book::Offsets).report();
        Ok(())
    }

    /// Waits for news, for a while.
    pub(crate) async fn progress(&self) {
        self.deliveries.progress(LOOK_AGAIN).await;
    }

    /// Waits until everything in a book is safe.
    pub(crate) async fn settle(&self, book: Book) -> Result<(), KafkaError> {
        loop {
            {
                let mut state = self.state();
                state.check()?;
                if state.ledger(book).is_settled() {
                    return Ok(());
                }
                state.hurry();
            }
            self.deliveries.work.notify_one();
            self.deliveries.progress(LOOK_AGAIN).await;
        }
    }
}

/// The partition of a record that names none: its key chooses, or chance does.
fn chosen(key: Option<&[u8]>, count: i32) -> i32 {
    match key {
        Some(key) => partition_of(key, count),
        None => rand::random_range(0..count.max(1)),
    }
}

impl Drop for Accumulator {
    fn drop(&mut self) {
        self.sender.abort();
    }
}
