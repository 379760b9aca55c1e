//! Reads a compacted topic of state from its beginning, and later only what came since.
//!
//! What stands behind an open transaction of anybody cannot be read yet, be it committed or not: it is
//! waited for, or an older state would pass for the newest.

use std::time::Duration;

use futures_util::future::select_all;
use highwater_kafka::{Admin, ErrorCode, KafkaError, ReadRecord, Reader, Watermarks};
use tokio::sync::watch;
use tokio::time::Instant;

/// Bytes asked for at once.
const FETCH_BYTES: u32 = 1 << 20;

/// How long the transactions of others may hold back what is read. They are open for a moment each, and
/// after a crash for as long as they could be.
const HELD_TIMEOUT: Duration = Duration::from_secs(10);

/// How often what is held back is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Where the reading of each partition stands.
#[derive(Debug)]
pub(crate) struct Replay {
    reader: Reader,
    topic: String,
    next: Vec<Option<i64>>,
}

impl Replay {
    /// A replay of all partitions of `topic`, which must exist: Kafka Connect makes its offsets
    /// topic with 25, this worker with one.
    pub(crate) async fn open(
        reader: &Reader,
        admin: &Admin,
        topic: &str,
    ) -> Result<Self, KafkaError> {
        let found = admin.describe_topic(topic).await?;
        let partitions = found.map_or(0, |topic| topic.partitions);
        if partitions < 1 {
            return Err(KafkaError::UnknownPartition { topic: topic.to_owned(), partition: 0 });
        }
        let next = (0..partitions).map(|_| None).collect();
        Ok(Self { reader: reader.clone(), topic: topic.to_owned(), next })
    }

    /// Tells of what comes from now on.
    pub(crate) async fn news(&self) -> Result<News, KafkaError> {
        let mut edges = Vec::with_capacity(self.next.len());
        for (partition, _) in (0..).zip(&self.next) {
            edges.push(self.reader.watch(&self.topic, partition).await?);
        }
        Ok(News(edges))
    }

    /// Calls `each` for every record that came since the last call, in order within a partition.
    pub(crate) async fn catch_up(
        &mut self,
        each: &mut (dyn FnMut(ReadRecord) + Send),
    ) -> Result<(), KafkaError> {
        for (partition, next) in (0..).zip(&mut self.next) {
            let from = match *next {
                None => self.reader.read_all(&self.topic, partition, each).await?,
                Some(from) => from,
            };
            *next = Some(follow(&self.reader, &self.topic, partition, from, each).await?);
        }
        Ok(())
    }
}

/// The edges of a topic's partitions.
pub(crate) struct News(Vec<watch::Receiver<Watermarks>>);

impl News {
    /// Waits until there is something that was not there before; false once the topic is gone.
    pub(crate) async fn wait(&mut self) -> bool {
        let each = self.0.iter_mut().map(|edges| Box::pin(edges.changed()));
        select_all(each).await.0.is_ok()
    }
}

/// Reads to where the partition ended when it was asked first.
async fn follow(
    reader: &Reader,
    topic: &str,
    partition: i32,
    from: i64,
    each: &mut (dyn FnMut(ReadRecord) + Send),
) -> Result<i64, KafkaError> {
    let (mut next, mut goal) = (from, None);
    let deadline = Instant::now() + HELD_TIMEOUT;
    loop {
        let fetched = reader.fetch(topic, partition, next, FETCH_BYTES).await?;
        let goal = *goal.get_or_insert(fetched.watermarks.high_watermark);
        let moved = fetched.next_offset > next;
        next = next.max(fetched.next_offset);
        fetched.records.into_iter().for_each(&mut *each);
        if next >= goal {
            return Ok(next);
        }
        if !moved {
            if Instant::now() >= deadline {
                return Err(held_back(topic, partition, next));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

fn held_back(topic: &str, partition: i32, offset: i64) -> KafkaError {
    let code = ErrorCode::OFFSET_NOT_AVAILABLE;
    KafkaError::Refused {
        what: format!("read {topic}-{partition} beyond offset {offset}"),
        code: code.0,
        name: code.name().unwrap_or_default(),
        detail: format!(
            ": a transaction that is open has held it back for {} s; it ends with the next start of \
             who began it, or when it times out",
            HELD_TIMEOUT.as_secs()
        ),
    }
}
