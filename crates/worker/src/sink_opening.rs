//! Opens a sink task: its configuration, its group, its dead letters.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use highwater_connector::{Config, ConnectorError, Problem, SinkConnector};
use highwater_kafka::Consumer;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::WorkerConfig;
use crate::client_overrides::{self, without_overrides};
use crate::cluster::Cluster;
use crate::dead_letters::DeadLetters;
use crate::keys;
use crate::meter::TaskMeter;
use crate::pipeline::Properties;
use crate::record_keys::{record_keys, without_parts};
use crate::record_path::RecordPath;
use crate::scrub::Scrub;
use crate::scrubbed;
use crate::secret_providers::Resolved;
use crate::sink_batch::SinkBatch;
use crate::sink_desk::Desk;
use crate::sink_keys::{SinkSettings, sink_keys};
use crate::sink_task::RunningSink;
use crate::status::Status;
use crate::task::StopSignal;
use crate::task_settings::TaskSettings;
use crate::tolerance::Tolerance;

/// What a dead letter's headers may add to its record.
const LETTER_HEADERS: usize = 64 << 10;

/// A sink task's configuration, checked and resolved: what a run needs to know.
pub(crate) struct SinkPipeline {
    pub(crate) name: String,
    /// Id of the task.
    pub(crate) task: u32,
    pub(crate) connector: Arc<dyn SinkConnector>,
    pub(crate) config: Config,
    pub(crate) settings: TaskSettings,
    pub(crate) sink: SinkSettings,
    /// What lies between the log and the sink.
    pub(crate) path: Arc<RecordPath>,
    /// Its properties as they are stored, with references.
    pub(crate) given: Properties,
    /// Takes what they refer to out of texts.
    pub(crate) scrub: Scrub,
}

impl SinkPipeline {
    /// Checks the properties of task `task` of connector `name`.
    ///
    /// # Errors
    /// All problems at once.
    pub(crate) fn plan(
        name: &str,
        task: u32,
        connector: &Arc<dyn SinkConnector>,
        given: &Properties,
        worker: &WorkerConfig,
    ) -> Result<Self, Vec<Problem>> {
        let Resolved { properties, scrub } = worker.secrets.resolve(given)?;
        let path = RecordPath::new(&properties, &worker.converters, &scrub);
        let read = Self::read(name, task, connector.as_ref(), &properties, worker);
        let ((config, settings, sink), path) = match (read, path) {
            (Ok(read), Ok(path)) => (read, Arc::new(path)),
            (read, path) => {
                let mut problems = read.err().unwrap_or_default();
                problems.extend(path.err().unwrap_or_default());
                return Err(scrub.problems(problems, given));
            }
        };
        let problems = connector.problems(&config);
        if !problems.is_empty() {
            return Err(scrub.problems(problems, given));
        }
        // The task is made to see whether the values fit each other, and dropped again.
        connector.task(&config).map_err(|error| {
            vec![Problem { key: "configuration:".to_owned(), message: scrub.text(&error.what) }]
        })?;
        let (name, connector, given) = (name.to_owned(), Arc::clone(connector), given.clone());
        Ok(Self { name, task, connector, config, settings, sink, path, given, scrub })
    }

    fn read(
        name: &str,
        task: u32,
        connector: &dyn SinkConnector,
        properties: &Properties,
        worker: &WorkerConfig,
    ) -> Result<(Config, TaskSettings, SinkSettings), Vec<Problem>> {
        let mut problems = Vec::new();
        let mut keep = |found: Vec<Problem>| problems.extend(found);
        let mut also = keys::worker_keys();
        also.extend(record_keys());
        also.extend(sink_keys());
        let others = without_overrides(&without_parts(properties), connector.config());
        let config = connector.config().parse(&others, &also).map_err(&mut keep).ok();
        let settings = TaskSettings::read(properties, worker).map_err(&mut keep).ok();
        let sink = SinkSettings::read(name, task, properties).map_err(&mut keep).ok();
        keep(client_overrides::problems(properties, &also));
        match (config, settings, sink) {
            (Some(config), Some(settings), Some(sink)) if problems.is_empty() => {
                Ok((config, settings, sink))
            }
            _ => Err(problems),
        }
    }
}

/// Opens a sink task, which joins its group at once. Must be [`RunningSink::run`] to read.
///
/// # Errors
/// When the sink cannot be made, or the topic of its dead letters.
pub(crate) async fn open(
    pipeline: &SinkPipeline,
    cluster: &Cluster,
    stop: StopSignal,
    paused: watch::Receiver<bool>,
    (status, meter): (watch::Sender<Status>, Arc<TaskMeter>),
) -> Result<RunningSink, ConnectorError> {
    let SinkPipeline { name, task, connector, config, settings, sink, path, scrub, .. } = pipeline;
    let sink_task = scrubbed::sink(connector.task(config)?, scrub);
    let tolerance = Tolerance::of(settings);
    let dead_letters = match &sink.dead_letters {
        Some(wanted) if tolerance.skips => {
            let mut sending = settings.sending;
            sending.max_record_bytes = sending.max_record_bytes.saturating_add(LETTER_HEADERS);
            Some(Mutex::new(DeadLetters::open(wanted.clone(), cluster, sending).await?))
        }
        _ => None,
    };
    let desk = Desk {
        connector: name.clone(),
        task: *task,
        class: connector.classes().first().copied().unwrap_or_default(),
        tolerance,
        dead_letters,
        ledger: Default::default(),
        rewinds: Default::default(),
        commit_asked: AtomicBool::new(false),
        meter,
    };
    Ok(RunningSink {
        task: sink_task,
        consumer: Consumer::start(&cluster.reader, sink.consumer.clone()),
        desk: Arc::new(desk),
        path: Arc::clone(path),
        group: sink.consumer.group.clone(),
        flush_interval: settings.flush_interval,
        flush_timeout: flush_timeout(sink.consumer.max_poll_interval),
        stop,
        paused,
        status,
        batch: SinkBatch::default(),
        flushed: Instant::now(),
        reported: Instant::now(),
        trouble: None,
        used: None,
    })
}

/// Others wait as long for partitions to be let go, and no longer.
fn flush_timeout(max_poll_interval: Duration) -> Duration {
    max_poll_interval / 2
}
