//! The two that are asked the same: a node of Apache Kafka, and our broker.

use std::fmt::Debug;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use highwater_broker::{Broker, BrokerConfig, Coordinator, CoordinatorConfig};
use highwater_log::{Log, LogConfig, RealFileSystem};
use highwater_protocol::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, ErrorCode, InitProducerIdRequest,
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic,
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::client::Client;

/// The node's id, the same on both sides.
pub(crate) const NODE: i32 = 1;

/// Settings of the node. Retention and compaction run often: rows of the table wait for them.
const SETTINGS: [&str; 7] = [
    "auto.create.topics.enable=false",
    "feature=transaction.version=1",
    "log.retention.check.interval.ms=500",
    "log.initial.task.delay.ms=100",
    "log.cleaner.backoff.ms=500",
    "transaction.max.timeout.ms=900000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
];

static CLUSTERS: LazyLock<RwLock<Clusters>> = LazyLock::new(|| RwLock::new(Clusters::start()));

/// Both, running.
pub(crate) struct Clusters {
    pub(crate) apache: Apache,
    pub(crate) ours: Ours,
}

/// For tests that only ask: both stay as long as the guard.
pub(crate) fn clusters() -> RwLockReadGuard<'static, Clusters> {
    CLUSTERS.read().unwrap_or_else(PoisonError::into_inner)
}

/// For what stops them: nobody else asks in the meantime.
pub(crate) fn clusters_alone() -> RwLockWriteGuard<'static, Clusters> {
    CLUSTERS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Asks both the same and gives the answer, which must be one.
pub(crate) fn both<T: Debug + PartialEq>(ask: impl Fn(&mut Side) -> T) -> T {
    let clusters = clusters();
    let theirs = ask(&mut clusters.apache.side());
    let ours = ask(&mut clusters.ours.side());
    assert_eq!(ours, theirs, "left: ours, right: Apache Kafka");
    theirs
}

impl Clusters {
    fn start() -> Self {
        Self { apache: Apache::start(), ours: Ours::start(tempfile::tempdir().unwrap()) }
    }
}

/// The node of Apache Kafka. It stops when this process ends, however it ends: its input closes.
pub(crate) struct Apache {
    _holder: Child,
    address: SocketAddr,
    pub(crate) dir: PathBuf,
}

impl Apache {
    fn start() -> Self {
        let mut holder = script()
            .arg("hold")
            .args(SETTINGS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, dir) = line.trim().split_once(' ').expect("kafka.sh says where the node is");
        let apache = Self { _holder: holder, address: address.parse().unwrap(), dir: dir.into() };
        apache.side().until("producer ids are given", |side| {
            side.client.call(1, &InitProducerIdRequest::default()).error_code.is_ok()
        });
        apache
    }

    pub(crate) fn side(&self) -> Side {
        Side::new("Apache Kafka", self.address)
    }

    /// Stops it in order, lets its files be changed, and starts it again.
    pub(crate) fn restart(&self, change: impl FnOnce(&Path)) {
        assert!(script().arg("pause").arg(&self.dir).status().unwrap().success());
        change(&self.dir.join("data"));
        let resumed = script().arg("resume").arg(&self.dir).stdout(Stdio::null()).status();
        assert!(resumed.unwrap().success());
    }
}

pub(crate) fn script() -> Command {
    Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/kafka/kafka.sh"))
}

struct Running {
    broker: Broker,
    coordinator: Coordinator,
    log: Log,
}

/// Our broker over a log in a folder of its own.
pub(crate) struct Ours {
    runtime: Runtime,
    running: Option<Running>,
    address: SocketAddr,
    dir: TempDir,
}

impl Ours {
    fn start(dir: TempDir) -> Self {
        let runtime = Runtime::new().unwrap();
        let running = runtime.block_on(serve(dir.path()));
        Self { runtime, address: running.broker.local_addr(), running: Some(running), dir }
    }

    /// Where its log lies.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn log(&self) -> &Log {
        &self.running.as_ref().unwrap().log
    }

    pub(crate) fn side(&self) -> Side {
        Side::new("ours", self.address)
    }

    /// Stops it in order, lets its files be changed, and starts it again.
    pub(crate) fn restart(&mut self, change: impl FnOnce(&Path)) {
        let Running { broker, coordinator, log } = self.running.take().unwrap();
        self.runtime.block_on(broker.shutdown());
        self.runtime.block_on(coordinator.shutdown());
        drop(coordinator);
        log.close().unwrap();
        drop(log);
        change(self.dir.path());
        let running = self.runtime.block_on(serve(self.dir.path()));
        self.address = running.broker.local_addr();
        self.running = Some(running);
    }
}

async fn serve(dir: &Path) -> Running {
    let log_config =
        LogConfig { retention_interval: Duration::from_millis(500), ..LogConfig::default() };
    let log = Log::open(Arc::new(RealFileSystem), dir, log_config).unwrap();
    let config = BrokerConfig { node_id: NODE, ..BrokerConfig::local() };
    let coordinator = Coordinator::start(&log, CoordinatorConfig::default());
    let broker = Broker::start(config, log.clone(), coordinator.clone()).await.unwrap();
    Running { broker, coordinator, log }
}

/// One of the two, and a connection to it.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    pub(crate) client: Client,
}

impl Side {
    fn new(name: &'static str, address: SocketAddr) -> Self {
        Self { name, client: Client::connect(address) }
    }

    /// Makes a topic of one partition that keeps its records, however old they say they are, and waits
    /// until it can be used.
    pub(crate) fn topic(&mut self, name: &str, settings: &[(&str, &str)]) {
        let setting = |(name, value): (&str, &str)| CreatableTopicConfig {
            name: name.to_owned(),
            value: Some(value.to_owned()),
        };
        let keep = ("retention.ms", "-1");
        let all = [keep].into_iter().chain(settings.iter().copied());
        let mut configs: Vec<CreatableTopicConfig> = Vec::new();
        for entry in all.map(setting) {
            configs.retain(|before| before.name != entry.name);
            configs.push(entry);
        }
        let topic = CreatableTopic {
            name: name.to_owned(),
            num_partitions: 1,
            replication_factor: 1,
            configs,
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
        let answer = self.client.call(7, &request);
        let made = &answer.topics[0];
        assert!(made.error_code.is_ok(), "{}: {name}: {:?}", self.name, made.error_message);
        self.until("the topic can be used", |side| side.list(11, name, -1).error_code.is_ok());
    }

    /// Appends to partition 0 and waits until it is safe; the first offset.
    pub(crate) fn produce(&mut self, topic: &str, records: Bytes) -> i64 {
        let appended = self.try_produce(topic, records);
        assert!(appended.error_code.is_ok(), "{}: {}", self.name, appended.error_code);
        appended.base_offset
    }

    pub(crate) fn try_produce(&mut self, topic: &str, records: Bytes) -> PartitionProduceResponse {
        let request = ProduceRequest {
            acks: -1,
            timeout_ms: 30_000,
            topic_data: vec![TopicProduceData {
                name: topic.to_owned(),
                partition_data: vec![PartitionProduceData { index: 0, records: Some(records) }],
            }],
            ..Default::default()
        };
        self.client.call(9, &request).responses.remove(0).partition_responses.remove(0)
    }

    /// Asks for one offset of partition 0.
    pub(crate) fn list(
        &mut self,
        version: i16,
        topic: &str,
        timestamp: i64,
    ) -> ListOffsetsPartitionResponse {
        self.list_as(version, topic, ListOffsetsPartition { timestamp, ..Default::default() }, 0)
    }

    /// The same, with all that can be said.
    pub(crate) fn list_as(
        &mut self,
        version: i16,
        topic: &str,
        asked: ListOffsetsPartition,
        isolation_level: i8,
    ) -> ListOffsetsPartitionResponse {
        let request = ListOffsetsRequest {
            isolation_level,
            topics: vec![ListOffsetsTopic { name: topic.to_owned(), partitions: vec![asked] }],
            timeout_ms: 30_000,
            ..Default::default()
        };
        self.client.call(version, &request).topics.remove(0).partitions.remove(0)
    }

    /// Asks until it is so.
    pub(crate) fn until(&mut self, what: &str, mut so: impl FnMut(&mut Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !so(self) {
            assert!(Instant::now() < end, "{}: not within 30 s: {what}", self.name);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Offset, timestamp and epoch of an answer; the error where there is one.
pub(crate) fn found(answer: &ListOffsetsPartitionResponse) -> Result<(i64, i64, i32), ErrorCode> {
    let found = (answer.offset, answer.timestamp, answer.leader_epoch);
    if answer.error_code.is_ok() {
        return Ok(found);
    }
    assert_eq!(found, (-1, -1, -1), "nothing beside an error");
    Err(answer.error_code)
}

/// A name that no other test has.
pub(crate) fn fresh(stem: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("{stem}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
