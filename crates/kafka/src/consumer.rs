//! A consumer: a member of a group that reads the partitions which the group gives it.

use std::sync::Arc;
use std::time::Duration;

use highwater_protocol::{ErrorCode, TopicPartition};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::cluster::refused;
use crate::coordinator::{Coordinator, KeyType};
use crate::group_offsets::{self, Commit, GroupOffsets};
use crate::member::{Assigned, GroupEvent, Member};
use crate::membership::Identity;
use crate::places::Places;
use crate::subscription::{Awaited, Subscribing, partitions};
use crate::{
    ConsumerSettings, KafkaError, OffsetReset, OffsetSpec, ReadRecord, Reader, Watermarks,
};

/// What [`Consumer::poll`] brings.
#[derive(Debug)]
pub enum Polled {
    /// Records, those of a partition in order; none when nothing came in time.
    Records(Vec<(TopicPartition, ReadRecord)>),
    /// These partitions are read from now on, from these offsets.
    Assigned(GroupOffsets),
    /// The group shares out anew. Until the next poll these partitions are still held and their
    /// offsets can be committed; that poll gives them away. The group waits for it for
    /// `max_poll_interval`.
    Revoking(Vec<TopicPartition>),
    /// These partitions may be somebody else's already, for this reason: nothing can be committed.
    Lost(Vec<TopicPartition>, String),
    /// The log no longer has, or does not have yet, where a partition was read, so that it is read
    /// elsewhere. What lies between is not given.
    Moved {
        /// Which.
        partition: TopicPartition,
        /// Where it should have been read.
        from: i64,
        /// Where it is read now.
        to: i64,
    },
}

/// Reads the partitions that its group gives it, read_committed. Offsets move by
/// [`Self::commit`] alone.
///
/// Dropping it ends its membership as a crash does; [`Self::leave`] tells the group.
#[derive(Debug)]
pub struct Consumer {
    reader: Reader,
    settings: ConsumerSettings,
    coordinator: Arc<Coordinator>,
    member: Member,
    phase: Phase,
    places: Places,
    paused: bool,
    awaited: Option<Awaited>,
}

/// Where a consumer stands with its group.
#[derive(Debug)]
enum Phase {
    /// Waits for its share.
    Joining,
    /// Has its share, but not yet where to begin.
    Assigned(Assigned),
    /// Reads.
    Holding(Identity),
    /// Has told that it lets go with the next poll.
    LettingGo(Identity),
    /// Has lost its share and told so.
    Lost,
    /// Has lost its share and not told so.
    Losing(String),
    /// Is out of the group for good.
    Failed(KafkaError),
}

impl Consumer {
    /// Joins a group on the cluster of `reader`. Inside a Tokio runtime: it lives in a task.
    pub fn start(reader: &Reader, settings: ConsumerSettings) -> Self {
        let cluster = reader.shared_cluster();
        let coordinator = Coordinator::new(Arc::clone(cluster), KeyType::Group, &settings.group);
        let coordinator = Arc::new(coordinator);
        let protocol = Subscribing::new(Arc::clone(cluster), settings.subscription.clone());
        let member = Member::start(Arc::clone(&coordinator), settings.member(), protocol);
        Self {
            reader: reader.clone(),
            settings,
            coordinator,
            member,
            phase: Phase::Joining,
            places: Places::default(),
            paused: false,
            awaited: None,
        }
    }

    /// The next thing that happens, within about `patience`. May be dropped at any time: what it
    /// would have brought is brought by the next.
    ///
    /// # Errors
    /// When the consumer is out of its group, or a partition cannot be read.
    pub async fn poll(&mut self, patience: Duration) -> Result<Polled, KafkaError> {
        let deadline = Instant::now() + patience;
        self.member.hear();
        if matches!(self.phase, Phase::LettingGo(_) | Phase::Lost) {
            self.places.clear();
            self.member.join().await;
            self.phase = Phase::Joining;
        }
        loop {
            if let Some(event) = self.member.try_event() {
                self.take(event);
            }
            if let Some(polled) = self.told()? {
                return Ok(polled);
            }
            let due = match &self.phase {
                Phase::Assigned(assigned) => {
                    let assigned = assigned.clone();
                    return self.assign(assigned).await.map(Polled::Assigned);
                }
                Phase::Holding(_) if !self.paused => self.read().await?,
                _ => None,
            };
            if let Some(polled) = due {
                return Ok(polled);
            }
            if Instant::now() >= deadline {
                // Who asks without patience, again and again, lets others run all the same.
                tokio::task::yield_now().await;
                return Ok(Polled::Records(Vec::new()));
            }
            self.wait(deadline).await;
        }
    }

    /// What the caller has to be told before anything else.
    fn told(&mut self) -> Result<Option<Polled>, KafkaError> {
        match &self.phase {
            Phase::LettingGo(_) => Ok(Some(Polled::Revoking(self.held()))),
            Phase::Losing(reason) => {
                let lost = Polled::Lost(self.held(), reason.clone());
                self.places.clear();
                self.phase = Phase::Lost;
                Ok(Some(lost))
            }
            Phase::Failed(error) => Err(error.clone()),
            _ => Ok(None),
        }
    }

    fn take(&mut self, event: GroupEvent) {
        let phase = std::mem::replace(&mut self.phase, Phase::Joining);
        self.phase = match (event, phase) {
            (GroupEvent::Assigned(assigned), _) => Phase::Assigned(assigned),
            // That was before it joined anew.
            (GroupEvent::Revoking | GroupEvent::Lost(_), Phase::Joining) => Phase::Joining,
            (GroupEvent::Revoking | GroupEvent::Lost(_), losing @ Phase::Losing(_)) => losing,
            (GroupEvent::Revoking, Phase::Holding(identity)) => Phase::LettingGo(identity),
            // Nobody was told of what was assigned: there is nothing to flush.
            (GroupEvent::Revoking, _) => Phase::Lost,
            (GroupEvent::Lost(reason), Phase::Holding(_) | Phase::LettingGo(_)) => {
                Phase::Losing(reason)
            }
            (GroupEvent::Lost(_), _) => Phase::Lost,
            (GroupEvent::Failed(error), _) => Phase::Failed(error),
        };
    }

    /// Finds where to begin in each partition of a new share.
    async fn assign(&mut self, assigned: Assigned) -> Result<GroupOffsets, KafkaError> {
        let wanted = partitions(assigned.assignment)?;
        let group = &self.settings.group;
        let committed = group_offsets::fetch(&self.coordinator, group, Some(&wanted)).await?;
        let awaited = self.settings.subscription.awaited(self.reader.shared_cluster(), &wanted);
        // It is only told of: the group's leader looks whether it is there.
        self.awaited = awaited.await.unwrap_or(None);
        let (mut places, mut begins) = (Places::default(), GroupOffsets::new());
        for partition in wanted {
            match self.begin(&partition, committed.get(&partition).copied()).await {
                Ok((offset, edges)) => {
                    places.insert(partition.clone(), offset, edges);
                    begins.insert(partition, offset);
                }
                Err(KafkaError::UnknownPartition { .. }) => {
                    tracing::warn!(%partition, "an assigned partition does not exist");
                }
                Err(error) => return Err(error),
            }
        }
        (self.places, self.phase) = (places, Phase::Holding(assigned.identity));
        Ok(begins)
    }

    /// Where to begin in a partition, and its edges from now on.
    async fn begin(
        &self,
        partition: &TopicPartition,
        committed: Option<i64>,
    ) -> Result<(i64, watch::Receiver<Watermarks>), KafkaError> {
        let offset = match committed {
            Some(offset) => offset,
            None => {
                self.reset(partition, || {
                    let what = format!("read {partition} for group {}", self.settings.group);
                    refused(what, ErrorCode::OFFSET_OUT_OF_RANGE, Some("no offset is committed"))
                })
                .await?
            }
        };
        let edges = self.reader.watch(&partition.topic, partition.partition).await?;
        Ok((offset, edges))
    }

    /// Where a partition is read that has no usable offset.
    async fn reset(
        &self,
        partition: &TopicPartition,
        otherwise: impl FnOnce() -> KafkaError,
    ) -> Result<i64, KafkaError> {
        let spec = match self.settings.reset {
            OffsetReset::Earliest => OffsetSpec::Earliest,
            OffsetReset::Latest => OffsetSpec::Latest,
            OffsetReset::None => return Err(otherwise()),
        };
        let (topic, index) = (&partition.topic, partition.partition);
        let found = self.reader.list_offset(topic, index, spec).await?;
        found.map(|found| found.offset).ok_or_else(otherwise)
    }

    /// Gives what has been fetched, having fetched what may be; `None` when nothing is there, or the
    /// group has news.
    async fn read(&mut self) -> Result<Option<Polled>, KafkaError> {
        let ConsumerSettings { max_poll_records, max_poll_bytes, max_fetch_bytes, .. } =
            self.settings;
        while let Some((partition, offset)) = self.places.to_fetch(max_poll_records, max_poll_bytes)
        {
            let (topic, index) = (&partition.topic, partition.partition);
            let fetched = tokio::select! {
                event = self.member.event() => {
                    self.take(event);
                    return Ok(None);
                }
                fetched = self.reader.fetch(topic, index, offset, max_fetch_bytes) => fetched,
            };
            match fetched {
                Ok(fetched) => self.places.fetched(&partition, fetched),
                Err(error) if error.is(ErrorCode::OFFSET_OUT_OF_RANGE) => {
                    return self.move_on(partition, offset, error).await.map(Some);
                }
                // Its watch ends, and the group's leader shares out anew.
                Err(KafkaError::UnknownPartition { .. }) => self.places.drop_out(&partition),
                Err(error) => return Err(error),
            }
        }
        let given = self.places.give(max_poll_records, max_poll_bytes);
        Ok((!given.is_empty()).then_some(Polled::Records(given)))
    }

    /// Reads a partition on where the log has records, as the settings say.
    async fn move_on(
        &mut self,
        partition: TopicPartition,
        from: i64,
        error: KafkaError,
    ) -> Result<Polled, KafkaError> {
        let to = self.reset(&partition, || error).await?;
        self.places.seek(&partition, to);
        Ok(Polled::Moved { partition, from, to })
    }

    /// Waits for news of the group or the partitions.
    async fn wait(&mut self, deadline: Instant) {
        let reads = matches!(self.phase, Phase::Holding(_)) && !self.paused;
        tokio::select! {
            event = self.member.event() => self.take(event),
            () = self.places.changed(), if reads => {}
            () = sleep_until(deadline) => {}
        }
    }

    fn held(&self) -> Vec<TopicPartition> {
        self.places.partitions().cloned().collect()
    }

    /// The next offset that a poll would give of a partition; `None` when it is not held.
    pub fn position(&self, partition: &TopicPartition) -> Option<i64> {
        self.places.position(partition)
    }

    /// Offsets between what the next polls would give and the ends of the partitions that it holds, as
    /// they were seen last; `None` before it has its share.
    pub fn lag(&self) -> Option<i64> {
        self.is_assigned().then(|| self.places.lag())
    }

    /// Reads a partition on from `offset`; false when it is not held.
    pub fn seek(&mut self, partition: &TopicPartition, offset: i64) -> bool {
        self.places.seek(partition, offset)
    }

    /// Gives no records until [`Self::resume`]. It stays in its group and must be polled as before.
    pub const fn pause(&mut self) {
        self.paused = true;
    }

    /// Gives records again.
    pub const fn resume(&mut self) {
        self.paused = false;
    }

    /// What it waited for when it got its share; it gets another one once that exists.
    pub const fn awaited(&self) -> Option<&Awaited> {
        self.awaited.as_ref()
    }

    /// Whether it has its share of the group.
    pub const fn is_assigned(&self) -> bool {
        matches!(self.phase, Phase::Holding(_) | Phase::LettingGo(_))
    }

    /// Stores offsets of partitions that it holds. Once they are lost, nothing is stored.
    ///
    /// # Errors
    /// When the cluster refuses or does not answer; they may be stored all the same.
    pub async fn commit(&mut self, offsets: &GroupOffsets) -> Result<Commit, KafkaError> {
        self.member.hear();
        let (Phase::Holding(identity) | Phase::LettingGo(identity)) = &self.phase else {
            return Ok(Commit::Lost);
        };
        if offsets.is_empty() {
            return Ok(Commit::Stored);
        }
        let group = &self.settings.group;
        let committed = group_offsets::commit(&self.coordinator, group, identity, offsets).await?;
        if committed == Commit::Lost {
            self.phase = Phase::Losing("the group refused its offsets".to_owned());
        }
        Ok(committed)
    }

    /// Leaves the group, which then shares out anew without it. What was not committed is read again
    /// by the others.
    pub async fn leave(self) {
        self.member.leave().await;
    }
}
