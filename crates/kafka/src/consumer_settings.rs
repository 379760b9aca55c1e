//! What a consumer runs with.

use std::time::Duration;

use crate::Subscription;
use crate::member::MemberSettings;

/// Where reading begins at a partition whose group has no offset, or one that the log lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetReset {
    /// At the log start.
    Earliest,
    /// Behind the last record.
    Latest,
    /// Nowhere: that is an error.
    None,
}

/// Bounds of a consumer; the defaults are those of Kafka's own.
#[derive(Clone, Debug)]
pub struct ConsumerSettings {
    /// `group.id`.
    pub group: String,
    /// `group.instance.id`: a static member, which finds its partitions again when it is back within
    /// its session time-out (KIP-345).
    pub instance_id: Option<String>,
    /// Which topics.
    pub subscription: Subscription,
    /// `auto.offset.reset`.
    pub reset: OffsetReset,
    /// `session.timeout.ms`: after how long a silence others get the partitions.
    pub session_timeout: Duration,
    /// `heartbeat.interval.ms`.
    pub heartbeat_interval: Duration,
    /// `max.poll.interval.ms`: how long the group waits for the consumer to let go of partitions, and
    /// how long the consumer may not be polled.
    pub max_poll_interval: Duration,
    /// `metadata.max.age.ms`: how often it is looked for new topics and partitions.
    pub metadata_max_age: Duration,
    /// `max.poll.records`: of one poll.
    pub max_poll_records: usize,
    /// `fetch.max.bytes`: about how many bytes of records a poll gives at most, and how many are
    /// fetched and not given.
    pub max_poll_bytes: usize,
    /// `max.partition.fetch.bytes`: of one fetch.
    pub max_fetch_bytes: u32,
    /// How long joining goes on while the cluster does not answer.
    pub join_timeout: Duration,
}

impl ConsumerSettings {
    /// The defaults for a member of `group`.
    pub fn new(group: &str, subscription: Subscription) -> Self {
        Self {
            group: group.to_owned(),
            instance_id: None,
            subscription,
            reset: OffsetReset::Latest,
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            max_poll_interval: Duration::from_secs(300),
            metadata_max_age: Duration::from_secs(300),
            max_poll_records: 500,
            max_poll_bytes: 50 << 20,
            max_fetch_bytes: 1 << 20,
            join_timeout: Duration::from_secs(60),
        }
    }

    pub(crate) fn member(&self) -> MemberSettings {
        MemberSettings {
            group: self.group.clone(),
            instance_id: self.instance_id.clone(),
            session_timeout: self.session_timeout,
            heartbeat_interval: self.heartbeat_interval,
            rebalance_timeout: self.max_poll_interval,
            refresh_interval: self.metadata_max_age,
            join_timeout: self.join_timeout,
        }
    }
}
