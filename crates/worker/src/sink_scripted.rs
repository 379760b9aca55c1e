//! Doubles for the tests of sink tasks: a sink whose store outlives it, and a log to read from.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use highwater_broker::{Broker, BrokerConfig, Coordinator, CoordinatorConfig, GroupSettings};
use highwater_connector::{
    Config, ConfigDef, ConnectorError, ErrorKind, SinkConnector, SinkContext, SinkOffsets,
    SinkRecord, SinkTask, TopicPartition, Value,
};
use highwater_kafka::{NewTopic, OutgoingRecord, WriterSettings, at_least_once};
use highwater_log::{Log, LogConfig, RealFileSystem};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::WorkerConfig;
use crate::cluster::Cluster;
use crate::meter::TaskMeter;
use crate::sink_opening::{self, SinkPipeline};
use crate::status::Status;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const TOPIC: &str = "orders";
/// The value of a record that the sink reports.
pub(crate) const BAD: &str = "bad";

/// What the next call of `put` does.
#[derive(Clone, Debug)]
pub(crate) enum Put {
    /// Takes at most so many.
    Take(usize),
    Fail(ConnectorError),
}

/// What a sink's system holds, and how it behaves.
#[derive(Default)]
pub(crate) struct Shelf {
    /// Offsets that are durable, as often as they were made so.
    pub(crate) durable: BTreeMap<TopicPartition, Vec<i64>>,
    /// Calls of `put` to come; then it takes everything.
    pub(crate) script: VecDeque<Put>,
    /// Nothing becomes durable while it is set.
    pub(crate) soft: bool,
    /// A rewind to ask for in the next `open`.
    pub(crate) rewind: Option<(TopicPartition, i64)>,
    /// Offsets that `put` was given, whatever became of them.
    pub(crate) given: Vec<i64>,
    /// The topics of the same, as transforms call them.
    pub(crate) topics: Vec<String>,
    /// How often it was asked what is durable.
    pub(crate) asked: usize,
    pub(crate) closed: usize,
    pub(crate) stopped: usize,
}

#[derive(Clone, Default)]
pub(crate) struct Shelves(pub(crate) Arc<Mutex<Shelf>>);

impl Shelves {
    pub(crate) fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many records are durable, counting each once.
    pub(crate) fn kept(&self) -> usize {
        self.shelf()
            .durable
            .values()
            .map(|offsets| offsets.iter().collect::<std::collections::BTreeSet<_>>().len())
            .sum()
    }
}

pub(crate) struct ShelfConnector {
    shelves: Shelves,
    config: ConfigDef,
}

impl SinkConnector for ShelfConnector {
    fn classes(&self) -> &'static [&'static str] {
        &["example.Shelf"]
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn config(&self) -> &ConfigDef {
        &self.config
    }

    fn task(&self, _config: &Config) -> Result<Box<dyn SinkTask>, ConnectorError> {
        let shelves = self.shelves.clone();
        Ok(Box::new(ShelfTask { shelves, context: None, staged: Vec::new() }))
    }
}

/// What is staged is lost with it.
struct ShelfTask {
    shelves: Shelves,
    context: Option<Arc<dyn SinkContext>>,
    staged: Vec<(TopicPartition, i64)>,
}

#[async_trait]
impl SinkTask for ShelfTask {
    async fn start(&mut self, context: Arc<dyn SinkContext>) -> Result<(), ConnectorError> {
        self.context = Some(context);
        Ok(())
    }

    async fn open(&mut self, _partitions: &SinkOffsets) -> Result<(), ConnectorError> {
        if let Some((partition, offset)) = self.shelves.shelf().rewind.take() {
            self.context.as_ref().unwrap().rewind(&partition, offset);
        }
        Ok(())
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<usize, ConnectorError> {
        let step = {
            let mut shelf = self.shelves.shelf();
            shelf.given.extend(records.iter().map(|record| record.original.offset));
            shelf.topics.extend(records.iter().map(|record| record.topic.to_string()));
            shelf.script.pop_front().unwrap_or(Put::Take(usize::MAX))
        };
        let taken = match step {
            Put::Take(most) => most.min(records.len()),
            Put::Fail(error) => return Err(error),
        };
        for record in &records[..taken] {
            if record.value.value == Value::text(BAD) {
                let error = ConnectorError::stop("SPOILT", ErrorKind::Data, "it is bad", "mend it");
                self.context.as_ref().unwrap().report(record, error).await?;
            } else {
                self.staged.push((record.original.from.clone(), record.original.offset));
            }
        }
        Ok(taken)
    }

    async fn pre_commit(&mut self, accepted: &SinkOffsets) -> Result<SinkOffsets, ConnectorError> {
        let mut shelf = self.shelves.shelf();
        shelf.asked += 1;
        if shelf.soft {
            return Ok(SinkOffsets::new());
        }
        for (partition, offset) in self.staged.drain(..) {
            shelf.durable.entry(partition).or_default().push(offset);
        }
        Ok(accepted.clone())
    }

    async fn close(&mut self, partitions: &[TopicPartition]) {
        self.staged.retain(|(partition, _)| !partitions.contains(partition));
        self.shelves.shelf().closed += partitions.len();
    }

    async fn stop(&mut self) {
        self.shelves.shelf().stopped += 1;
    }

    fn activity(&self) -> String {
        "Fills the shelf".to_owned()
    }
}

/// A log with a topic to read, and a sink for it.
pub(crate) struct Rig {
    pub(crate) cluster: Cluster,
    pub(crate) shelves: Shelves,
    bootstrap: String,
    config: WorkerConfig,
    broker: Option<Broker>,
    _dir: tempfile::TempDir,
}

impl Rig {
    pub(crate) async fn start(partitions: i32) -> Self {
        Self::start_with(partitions, 500).await
    }

    /// With a broker that takes no session time-out below so many milliseconds.
    pub(crate) async fn start_with(partitions: i32, min_session_timeout_ms: i32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fs = Arc::new(RealFileSystem);
        let log = Log::open(fs, dir.path(), LogConfig::default()).unwrap();
        let groups = GroupSettings { min_session_timeout_ms, ..GroupSettings::default() };
        let coordinator = CoordinatorConfig { groups, ..CoordinatorConfig::default() };
        let coordinator = Coordinator::start(&log, coordinator);
        let broker = Broker::start(BrokerConfig::local(), log, coordinator).await.unwrap();
        let bootstrap = broker.local_addr().to_string();
        let config = WorkerConfig::new(bootstrap.as_str(), "w");
        let cluster = Cluster::new(&config);
        let topic = NewTopic { partitions, ..NewTopic::of_one(TOPIC) };
        cluster.admin.create_topic(&topic).await.unwrap();
        let (shelves, broker) = (Shelves::default(), Some(broker));
        Self { cluster, shelves, bootstrap, config, broker, _dir: dir }
    }

    pub(crate) async fn write(&self, partition: i32, values: &[&str]) {
        let mut writer = at_least_once(&WriterSettings::new(self.bootstrap.as_str())).unwrap();
        for value in values {
            let record = OutgoingRecord {
                topic: TOPIC.into(),
                partition: Some(partition),
                key: None,
                value: Some(Bytes::copy_from_slice(value.as_bytes())),
                headers: vec![("own".into(), "1".into())],
            };
            writer.send(record).await.unwrap();
        }
        writer.commit().await.unwrap();
    }

    /// Runs task `task` with these properties beside those that make tests quick.
    pub(crate) async fn run(&self, task: u32, properties: &[(&str, &str)]) -> Running {
        let quick = [
            ("connector.class", "example.Shelf"),
            ("topics", TOPIC),
            ("value.converter", "StringConverter"),
            ("offset.flush.interval.ms", "20"),
            ("errors.retry.delay.max.ms", "50"),
            ("consumer.override.session.timeout.ms", "1000"),
            ("consumer.override.heartbeat.interval.ms", "100"),
        ];
        let all = quick.iter().chain(properties);
        let properties = all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let shelf =
            ShelfConnector { shelves: self.shelves.clone(), config: ConfigDef::new(vec![]) };
        let connector: Arc<dyn SinkConnector> = Arc::new(shelf);
        let planned = SinkPipeline::plan("shelf", task, &connector, &properties, &self.config);
        let Ok(pipeline) = planned else { panic!("{:?}", planned.err()) };
        let (stop, stopped) = watch::channel(None);
        let (paused, is_paused) = watch::channel(false);
        let (status, seen) = watch::channel(Status::unassigned());
        let meter = Arc::default();
        let shown = (status, Arc::clone(&meter));
        let opened = sink_opening::open(&pipeline, &self.cluster, stopped, is_paused, shown).await;
        let task = tokio::spawn(opened.unwrap().run());
        Running { task, stop, paused, status: seen, meter }
    }

    pub(crate) async fn committed(&self, partition: i32) -> Option<i64> {
        let offsets = self.cluster.admin.group_offsets("connect-shelf").await.unwrap();
        offsets.get(&TopicPartition::new(TOPIC, partition)).copied()
    }

    pub(crate) async fn until(&self, what: &str, mut done: impl AsyncFnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done(self).await {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.shelves.shelf().durable);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn until_kept(&self, count: usize) {
        self.until("kept", async |rig| rig.shelves.kept() >= count).await;
    }

    pub(crate) async fn until_committed(&self, partition: i32, offset: i64) {
        self.until("committed", async |rig| rig.committed(partition).await == Some(offset)).await;
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(self.broker.take());
    }
}

/// A sink task that runs.
pub(crate) struct Running {
    pub(crate) task: JoinHandle<Result<(), ConnectorError>>,
    pub(crate) stop: watch::Sender<Option<tokio::time::Instant>>,
    pub(crate) paused: watch::Sender<bool>,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) meter: Arc<TaskMeter>,
}

impl Running {
    pub(crate) async fn stop(self) {
        self.stop.send_replace(Some(tokio::time::Instant::now()));
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap();
    }

    /// Waits until the status says this.
    pub(crate) async fn until_says(&mut self, activity: &str) {
        let says = |status: &Status| status.activity == activity;
        let said = tokio::time::timeout(PATIENCE, self.status.wait_for(says)).await.is_ok();
        assert!(said, "{activity}: {}", self.status.borrow().activity);
    }

    /// Ends it as a crash does: nothing more is said to anybody.
    pub(crate) async fn kill(self) {
        self.task.abort();
        drop(self.task.await);
    }

    pub(crate) async fn failed(self) -> ConnectorError {
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap_err()
    }
}
