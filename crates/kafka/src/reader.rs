//! Reading partitions: many readers over few connections.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use highwater_protocol::{ErrorCode, frame};
use tokio::sync::watch;

use crate::cluster::{Cluster, Failure, refused};
use crate::connection::Limits;
use crate::watch::Watches;
use crate::{Bootstrap, KafkaError, fetch, offsets};

/// Which offset to look up (KIP-79, KIP-734 and their successors).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetSpec {
    /// The log start.
    Earliest,
    /// One past the last record that may be read: the last stable offset (rule L8).
    Latest,
    /// The record with the greatest timestamp.
    MaxTimestamp,
    /// The first record whose timestamp, in milliseconds, is this or later.
    Timestamp(i64),
}

/// Answer to an [`OffsetSpec`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedOffset {
    /// Offset.
    pub offset: i64,
    /// Timestamp in milliseconds; -1 for earliest and latest.
    pub timestamp: i64,
    /// Leader epoch, when the broker says it.
    pub leader_epoch: Option<i32>,
}

/// Where an epoch ended (KIP-101).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochEnd {
    /// The largest epoch not above the one asked for; -1 when there is none.
    pub leader_epoch: i32,
    /// The first offset after it; -1 when there is none.
    pub end_offset: i64,
}

/// One record of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadRecord {
    /// Offset.
    pub offset: i64,
    /// Timestamp in milliseconds.
    pub timestamp: i64,
    /// Leader epoch of its batch.
    pub leader_epoch: i32,
    /// Key.
    pub key: Option<Bytes>,
    /// Value.
    pub value: Option<Bytes>,
    /// Headers, in order.
    pub headers: Vec<(String, Bytes)>,
}

impl ReadRecord {
    /// The value of the first header of this name.
    pub fn header(&self, name: &str) -> Option<&Bytes> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value)
    }
}

/// What one fetch brought: only committed data records at or above the offset asked for.
#[derive(Clone, Debug, Default)]
pub struct Fetched {
    /// The records.
    pub records: Vec<ReadRecord>,
    /// Where to fetch next; above the last record when control batches or aborted records follow.
    pub next_offset: i64,
    /// The partition's edges when the broker answered.
    pub watermarks: Watermarks,
}

/// A partition's edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watermarks {
    /// First offset that is kept.
    pub log_start: i64,
    /// One past the last record that is safe.
    pub high_watermark: i64,
    /// One past the last record that may be read (read_committed).
    pub last_stable: i64,
}

/// Time-outs of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderSettings {
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a broker may take to answer.
    pub request_timeout: Duration,
    /// How long a call tries again, over lost connections and moved leaders, before it fails.
    pub retry_for: Duration,
}

impl Default for ReaderSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            retry_for: Duration::from_secs(15),
        }
    }
}

/// Reads a cluster. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Reader {
    cluster: Arc<Cluster>,
    watches: Arc<Watches>,
}

/// Bytes of one fetch of [`Reader::read_all`].
const READ_ALL_BYTES: u32 = 1 << 20;

impl Reader {
    /// A reader of the cluster at `bootstrap` (`host:port`, several separated by commas).
    /// Connects when first used.
    pub fn new(bootstrap: impl Into<Bootstrap>) -> Self {
        Self::with_settings(bootstrap, ReaderSettings::default())
    }

    /// As [`Self::new`], with other time-outs.
    pub fn with_settings(bootstrap: impl Into<Bootstrap>, settings: ReaderSettings) -> Self {
        let limits = Limits {
            connect: settings.connect_timeout,
            request: settings.request_timeout,
            max_frame: frame::DEFAULT_MAX,
            lease: None,
        };
        let cluster = Arc::new(Cluster::new(bootstrap.into(), limits, settings.retry_for));
        let watches = Arc::new(Watches::new(Arc::clone(&cluster)));
        Self { cluster, watches }
    }

    /// What it was made with.
    pub fn bootstrap(&self) -> &Bootstrap {
        self.cluster.bootstrap()
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) const fn shared_cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// Fetches committed records from `offset` on, without waiting; at most about `max_bytes`.
    ///
    /// # Errors
    /// `OFFSET_OUT_OF_RANGE` as [`KafkaError::Refused`] when the offset is outside the log.
    pub async fn fetch(
        &self,
        topic: &str,
        partition: i32,
        offset: i64,
        max_bytes: u32,
    ) -> Result<Fetched, KafkaError> {
        let cluster = &*self.cluster;
        cluster.persist(|| fetch::fetch(cluster, topic, partition, offset, max_bytes)).await
    }

    /// The partition's edges, kept up to date by one long poll that all watchers share. It ends
    /// when the last receiver is dropped, and survives broker restarts. The channel closes when
    /// the partition is deleted.
    ///
    /// # Errors
    /// When the partition does not exist or the cluster cannot be reached now.
    pub async fn watch(
        &self,
        topic: &str,
        partition: i32,
    ) -> Result<watch::Receiver<Watermarks>, KafkaError> {
        self.watches.watch(topic, partition).await
    }

    /// Looks up an offset at isolation read_committed; `None` when no record answers.
    ///
    /// # Errors
    /// When the cluster refuses or is too old for the question.
    pub async fn list_offset(
        &self,
        topic: &str,
        partition: i32,
        spec: OffsetSpec,
    ) -> Result<Option<ListedOffset>, KafkaError> {
        let cluster = &*self.cluster;
        cluster.persist(|| offsets::list(cluster, topic, partition, spec)).await
    }

    /// Where an epoch ended.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn epoch_end(
        &self,
        topic: &str,
        partition: i32,
        leader_epoch: i32,
    ) -> Result<EpochEnd, KafkaError> {
        let cluster = &*self.cluster;
        cluster.persist(|| offsets::epoch_end(cluster, topic, partition, leader_epoch)).await
    }

    /// Reads a whole partition from the log start to the last stable offset, calling `each` for
    /// every record: for compacted topics of state. Returns the offset to go on from.
    ///
    /// # Errors
    /// When the partition cannot be read.
    pub async fn read_all(
        &self,
        topic: &str,
        partition: i32,
        each: &mut (dyn FnMut(ReadRecord) + Send),
    ) -> Result<i64, KafkaError> {
        let end = self.edge(topic, partition, OffsetSpec::Latest).await?;
        let mut offset = self.edge(topic, partition, OffsetSpec::Earliest).await?;
        while offset < end {
            let fetched = match self.fetch_towards(topic, partition, offset, end).await {
                // Retention has moved the log start past us; what is gone is gone.
                Err(error) if error.is(ErrorCode::OFFSET_OUT_OF_RANGE) => {
                    offset = self.start_above(topic, partition, offset, error).await?;
                    continue;
                }
                fetched => fetched?,
            };
            if fetched.next_offset == offset {
                // Compaction has left nothing from here to the end.
                break;
            }
            offset = fetched.next_offset;
            fetched.records.into_iter().for_each(&mut *each);
        }
        Ok(offset.max(end))
    }

    /// Fetches the next records below `end`. A broker that has just come back may show less than
    /// before for a moment; that is not the end of the log.
    async fn fetch_towards(
        &self,
        topic: &str,
        partition: i32,
        offset: i64,
        end: i64,
    ) -> Result<Fetched, KafkaError> {
        let cluster = &*self.cluster;
        let attempt = || async move {
            let fetched = fetch::fetch(cluster, topic, partition, offset, READ_ALL_BYTES).await?;
            if fetched.next_offset == offset && fetched.watermarks.last_stable < end {
                let what = format!("read {topic}-{partition} from offset {offset} to {end}");
                return Err(Failure::Transient(refused(
                    what,
                    ErrorCode::OFFSET_NOT_AVAILABLE,
                    None,
                )));
            }
            Ok(fetched)
        };
        cluster.persist(attempt).await
    }

    async fn edge(&self, topic: &str, partition: i32, spec: OffsetSpec) -> Result<i64, KafkaError> {
        let found = self.list_offset(topic, partition, spec).await?;
        found.map(|found| found.offset).ok_or_else(|| KafkaError::Malformed {
            what: format!("the answer to ListOffsets of {topic}-{partition}"),
            detail: format!("it has no offset for {spec:?}"),
        })
    }

    /// The log start, if it lies above `offset`; else `error`.
    async fn start_above(
        &self,
        topic: &str,
        partition: i32,
        offset: i64,
        error: KafkaError,
    ) -> Result<i64, KafkaError> {
        let start = self.edge(topic, partition, OffsetSpec::Earliest).await?;
        if start > offset { Ok(start) } else { Err(error) }
    }
}
