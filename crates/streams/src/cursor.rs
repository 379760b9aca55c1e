//! Reading a trail on and on: waits while there is nothing, rides out a log that is away for a
//! moment, and tells a purge and a changed history apart from one.

use std::sync::Arc;
use std::time::Duration;

use highwater_kafka::{Fetched, KafkaError, OffsetSpec, ReadRecord, Watermarks};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use crate::config::Limits;
use crate::feed::View;
use crate::trail::{Log, OFFSET_OUT_OF_RANGE, TopicPartition};

/// Why reading cannot go on by itself.
#[derive(Clone, Debug)]
pub(crate) enum Interruption {
    /// The next records were purged; the oldest one kept has this offset.
    Purged { log_start: i64 },
    /// The log was cut below what was read, or made anew.
    HistoryChanged,
    /// The log did not answer for too long.
    Unavailable(KafkaError),
}

/// The last record that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LastRead {
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
}

/// One reader's place in a trail.
pub(crate) struct Cursor {
    log: Arc<dyn Log>,
    source: TopicPartition,
    topic_id: Uuid,
    limits: Limits,
    edges: watch::Receiver<Watermarks>,
    /// Next offset to read.
    next: i64,
    last: Option<LastRead>,
    /// When the topic was last known to be the one that was read; `None` when there is doubt.
    verified: Option<Instant>,
}

impl Cursor {
    /// A cursor that reads from `next` on.
    ///
    /// # Errors
    /// When the trail cannot be watched.
    pub(crate) async fn new(
        log: Arc<dyn Log>,
        view: &View,
        limits: Limits,
        next: i64,
        last: Option<LastRead>,
    ) -> Result<Self, Interruption> {
        let edges = log.watch(&view.source).await.map_err(Interruption::Unavailable)?;
        let View { source, topic_id, .. } = view.clone();
        let verified = Some(Instant::now());
        Ok(Self { log, source, topic_id, limits, edges, next, last, verified })
    }

    pub(crate) const fn next(&self) -> i64 {
        self.next
    }

    /// Whether nothing more was at hand when the log was last heard of.
    pub(crate) fn is_drained(&self) -> bool {
        self.edges.borrow().last_stable <= self.next
    }

    /// The edges, as they are kept up to date.
    pub(crate) fn edges(&self) -> watch::Receiver<Watermarks> {
        self.edges.clone()
    }

    /// Goes on behind a gap.
    pub(crate) const fn skip_to(&mut self, offset: i64) {
        self.next = offset;
    }

    /// The next records, at least one; waits until there are some.
    ///
    /// # Errors
    /// What the caller must decide.
    pub(crate) async fn read(&mut self) -> Result<Vec<ReadRecord>, Interruption> {
        loop {
            self.wait().await?;
            let fetched = self.fetch().await?;
            let moved = fetched.next_offset > self.next;
            self.next = self.next.max(fetched.next_offset);
            if let Some(ReadRecord { offset, leader_epoch, .. }) = fetched.records.last() {
                self.last = Some(LastRead { offset: *offset, leader_epoch: *leader_epoch });
                return Ok(fetched.records);
            }
            if !moved {
                // The watch is ahead of what can be fetched; the two come together by themselves.
                tokio::time::sleep(SHORT).await;
            }
        }
    }

    /// Waits until the log reaches beyond the cursor.
    async fn wait(&mut self) -> Result<(), Interruption> {
        loop {
            let edges = *self.edges.borrow_and_update();
            if edges.last_stable < self.next {
                self.verified = None;
            }
            self.settle_doubt().await?;
            if edges.last_stable > self.next {
                return Ok(());
            }
            if self.edges.changed().await.is_err() {
                self.edges = self.watch_again().await?;
                self.verified = None;
            }
        }
    }

    /// A fetch names its topic by name alone, so what may have become another topic while this
    /// reader was idle, or while the log was away, is asked for its id. What cannot be asked now
    /// is asked again when the log is back.
    async fn settle_doubt(&mut self) -> Result<(), Interruption> {
        if self.verified.is_some_and(|verified| verified.elapsed() < TRUST) {
            return Ok(());
        }
        match self.verify().await {
            Ok(()) => self.verified = Some(Instant::now()),
            Err(Interruption::Unavailable(_)) => self.verified = None,
            Err(other) => return Err(other),
        }
        Ok(())
    }

    async fn watch_again(&self) -> Result<watch::Receiver<Watermarks>, Interruption> {
        let mut patience = Patience::new(self.limits.log_patience);
        loop {
            match self.log.watch(&self.source).await {
                Ok(edges) => return Ok(edges),
                Err(error) => patience.pause(error).await?,
            }
        }
    }

    async fn fetch(&self) -> Result<Fetched, Interruption> {
        let mut patience = Patience::new(self.limits.log_patience);
        loop {
            match self.fetch_once(patience.was_tried()).await {
                Err(Interruption::Unavailable(error)) => patience.pause(error).await?,
                other => return other,
            }
        }
    }

    /// One try. After an outage the topic may be another one.
    async fn fetch_once(&self, after_outage: bool) -> Result<Fetched, Interruption> {
        if after_outage {
            self.verify().await?;
        }
        match self.log.fetch(&self.source, self.next, self.limits.fetch_bytes).await {
            Ok(fetched) => {
                self.check_epoch(&fetched).await?;
                Ok(fetched)
            }
            Err(error) if error.code() == Some(OFFSET_OUT_OF_RANGE) => {
                self.verify().await?;
                self.check_start().await?;
                Err(Interruption::Unavailable(error))
            }
            Err(error) => Err(Interruption::Unavailable(error)),
        }
    }

    /// Whether the log still begins at or below the cursor.
    async fn check_start(&self) -> Result<(), Interruption> {
        let listed = self.log.list_offset(&self.source, OffsetSpec::Earliest).await;
        match listed.map_err(Interruption::Unavailable)? {
            Some(earliest) if earliest.offset > self.next => {
                Err(Interruption::Purged { log_start: earliest.offset })
            }
            _ => Ok(()),
        }
    }

    /// Makes sure that this is still the topic, and that it still holds what was read.
    async fn verify(&self) -> Result<(), Interruption> {
        let topic = self.log.topic(&self.source.topic).await;
        let topic = topic.map_err(Interruption::Unavailable)?;
        if topic.is_none_or(|topic| topic.id != self.topic_id) {
            return Err(Interruption::HistoryChanged);
        }
        match self.last {
            Some(last) => self.check_reach(last).await,
            None => Ok(()),
        }
    }

    /// A batch of another epoch proves that the one before ended; it must not have ended below
    /// what was read of it.
    async fn check_epoch(&self, fetched: &Fetched) -> Result<(), Interruption> {
        match (self.last, fetched.records.first()) {
            (Some(last), Some(now)) if now.leader_epoch != last.leader_epoch => {
                self.check_reach(last).await
            }
            _ => Ok(()),
        }
    }

    async fn check_reach(&self, last: LastRead) -> Result<(), Interruption> {
        let end = self.log.epoch_end(&self.source, last.leader_epoch).await;
        let end = end.map_err(Interruption::Unavailable)?;
        // An epoch that retention has forgotten ended long above its purged records.
        let known = end.end_offset >= 0;
        let cut = end.leader_epoch != last.leader_epoch || end.end_offset <= last.offset;
        if known && cut { Err(Interruption::HistoryChanged) } else { Ok(()) }
    }
}

/// How long a topic is taken to be the same without asking.
const TRUST: Duration = Duration::from_secs(1);
const SHORT: Duration = Duration::from_millis(5);

/// Waiting longer and longer, up to a bound in all.
struct Patience {
    deadline: Instant,
    pause: Option<Duration>,
}

impl Patience {
    fn new(bound: Duration) -> Self {
        Self { deadline: Instant::now() + bound, pause: None }
    }

    const fn was_tried(&self) -> bool {
        self.pause.is_some()
    }

    async fn pause(&mut self, error: KafkaError) -> Result<(), Interruption> {
        if Instant::now() >= self.deadline {
            return Err(Interruption::Unavailable(error));
        }
        let pause = self.pause.map_or(SHORT, |pause| (pause * 2).min(Duration::from_secs(1)));
        self.pause = Some(pause);
        tokio::time::sleep(pause).await;
        Ok(())
    }
}
