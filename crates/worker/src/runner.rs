//! Keeps one connector as its operator wants it: runs its task, restarts it with backoff, drains
//! it, and says what it is doing.

use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{ConnectorError, ErrorKind, Retry};
use highwater_kafka::Journal;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::cluster::Cluster;
use crate::counters;
use crate::looking::Looking;
use crate::offsets::Offsets;
use crate::opening;
use crate::pipeline::Pipeline;
use crate::status::{State, Status};
use crate::statuses;

/// What a runner is told. Sending the same again restarts.
#[derive(Clone)]
pub(crate) enum Wish {
    /// Run the task.
    Run(Arc<Pipeline>),
    /// Drain, and keep the task waiting.
    Pause(Option<Arc<Pipeline>>),
    /// Drain, and end the task.
    Stop(Option<Arc<Pipeline>>),
    /// The configuration cannot be run, for this reason.
    Refuse(ConnectorError),
    /// Drain, and end the runner.
    Leave,
}

/// How long a task may take, beyond its drain, before it is dropped.
const CUT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a status may take to be written; it can be read from the worker all the same.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// What all runners of a worker share.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    pub(crate) offsets: Offsets,
    pub(crate) journal: Journal,
    pub(crate) status_topic: String,
    pub(crate) worker_id: String,
    pub(crate) looking: Looking,
}

/// The worker's hold on a runner.
pub(crate) struct Handle {
    wish: watch::Sender<Wish>,
    status: watch::Receiver<Status>,
    ended: JoinHandle<()>,
}

impl Handle {
    /// Starts a runner for connector `name`, once `predecessor` has ended.
    pub(crate) fn spawn(
        name: &str,
        wish: Wish,
        shared: Arc<Shared>,
        predecessor: Option<JoinHandle<()>>,
    ) -> Self {
        let (wish, wishes) = watch::channel(wish);
        let (status, seen) = watch::channel(Status::unassigned());
        let name = name.to_owned();
        let runner = Runner { name, version: None, wishes, status, shared, trouble: None };
        // Of the least level that can be left out, so that no line goes without the name.
        let span = tracing::error_span!("connector", connector = runner.name);
        let life = async move {
            if let Some(predecessor) = predecessor {
                // Its panic, if it had one, is in the log already.
                drop(predecessor.await);
            }
            runner.run().await;
        };
        let ended = tokio::spawn(life.instrument(span));
        Self { wish, status: seen, ended }
    }

    /// Says what is wanted from now on.
    pub(crate) fn send(&self, wish: Wish) {
        self.wish.send_replace(wish);
    }

    /// What it is doing.
    pub(crate) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Sees what it is doing from now on.
    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Tells it to end; the result ends when it has.
    pub(crate) fn leave(self) -> JoinHandle<()> {
        self.wish.send_replace(Wish::Leave);
        self.ended
    }
}

struct Runner {
    name: String,
    version: Option<&'static str>,
    wishes: watch::Receiver<Wish>,
    status: watch::Sender<Status>,
    shared: Arc<Shared>,
    trouble: Option<Trouble>,
}

/// A task that fails again and again without making progress.
struct Trouble {
    since: Instant,
    attempts: u32,
}

impl Runner {
    async fn run(mut self) {
        loop {
            let wish = self.wishes.borrow_and_update().clone();
            match wish {
                Wish::Run(pipeline) => self.run_once(&pipeline).await,
                Wish::Pause(pipeline) => {
                    let activity = "Paused by its operator; the source is not read";
                    self.enter(State::Paused, Some(State::Paused), None, activity).await;
                    self.idle(pipeline).await;
                }
                Wish::Stop(pipeline) => {
                    let activity = "Stopped by its operator; the stored offset stays";
                    self.enter(State::Stopped, None, None, activity).await;
                    self.idle(pipeline).await;
                }
                Wish::Refuse(error) => {
                    let activity = failed(&error);
                    self.enter(State::Failed, None, Some(error), activity).await;
                    self.changed().await;
                }
                Wish::Leave => {
                    let task = self.status.borrow().task.map(|_| State::Unassigned);
                    self.enter(State::Unassigned, task, None, "Its worker shut down").await;
                    counters::gone(&self.name);
                    return;
                }
            }
        }
    }

    /// Waits for another wish; a worker that is gone counts as one to leave.
    async fn changed(&mut self) {
        if self.wishes.changed().await.is_err() {
            let (sender, wishes) = watch::channel(Wish::Leave);
            drop(sender);
            self.wishes = wishes;
        }
    }

    /// Waits for another wish; meanwhile what the source keeps is looked at.
    async fn idle(&mut self, pipeline: Option<Arc<Pipeline>>) {
        let looking = self.shared.looking.on(pipeline, self.status.clone());
        tokio::select! {
            () = self.changed() => {}
            never = looking => match never {},
        }
    }

    /// One run of the task, and the wait that its end asks for.
    async fn run_once(&mut self, pipeline: &Arc<Pipeline>) {
        self.version = Some(pipeline.connector.version());
        self.enter_opening().await;
        let before = self.status.borrow().last_record;
        let ended = self.until_ended(pipeline).await;
        if self.status.borrow().last_record != before {
            self.trouble = None;
        }
        match ended {
            Ok(()) => self.trouble = None,
            Err(error) => self.after_failure(pipeline, error.of(&self.name)).await,
        }
    }

    /// RUNNING is said only of a task that reads; one that failed is RESTARTING until it does.
    async fn enter_opening(&self) {
        let error = self.status.borrow().error.clone().filter(|_| self.trouble.is_some());
        let state = if error.is_some() { State::Restarting } else { State::Unassigned };
        self.enter(State::Running, Some(state), error, "Opens the source").await;
    }

    /// Runs the task until it ends by itself, with its error, or because something else is wanted.
    async fn until_ended(&mut self, pipeline: &Arc<Pipeline>) -> Result<(), ConnectorError> {
        let (stop, stopped) = watch::channel(None);
        let (opened, mut is_open) = oneshot::channel();
        let drain = pipeline.settings.drain_timeout;
        let (pipeline, shared) = (Arc::clone(pipeline), Arc::clone(&self.shared));
        let status = self.status.clone();
        let life = async move {
            let Shared { cluster, offsets, .. } = shared.as_ref();
            let task = opening::open(&pipeline, cluster, offsets, stopped, status).await?;
            // Nobody listens any more when the task shall stop already.
            let _ = opened.send(task.activity());
            task.run().await
        };
        let mut task = tokio::spawn(life.in_current_span());
        loop {
            tokio::select! {
                ended = &mut task => return joined(ended),
                () = self.changed() => break,
                Ok(activity) = &mut is_open, if !is_open.is_terminated() => {
                    self.enter(State::Running, Some(State::Running), None, activity).await;
                }
            }
        }
        stop.send_replace(Some(Instant::now() + drain));
        match tokio::time::timeout(drain + CUT_TIMEOUT, &mut task).await {
            Ok(ended) => self.note_end(joined(ended)),
            Err(_) => {
                task.abort();
                drop(task.await);
                tracing::warn!("the task did not end in time and was cut");
            }
        }
        Ok(())
    }

    /// A task that fails while it drains has ended all the same: what is wanted next counts.
    fn note_end(&self, ended: Result<(), ConnectorError>) {
        if let Err(error) = ended {
            tracing::warn!(%error, "the task failed while it was ending");
        }
    }

    async fn after_failure(&mut self, pipeline: &Arc<Pipeline>, error: ConnectorError) {
        metrics::counter!("highwater_task_failures_total", "connector" => self.name.clone())
            .increment(1);
        match self.delay(pipeline, &error) {
            Some(delay) => self.wait(delay, error).await,
            None => {
                tracing::error!(%error, "the task failed");
                let activity = failed(&error);
                self.enter(State::Running, Some(State::Failed), Some(error), activity).await;
                self.idle(Some(Arc::clone(pipeline))).await;
                self.trouble = None;
            }
        }
    }

    fn delay(&mut self, pipeline: &Pipeline, error: &ConnectorError) -> Option<Duration> {
        let now = Instant::now();
        let trouble = self.trouble.get_or_insert(Trouble { since: now, attempts: 0 });
        trouble.attempts = trouble.attempts.saturating_add(1);
        match error.retry {
            Retry::Never => None,
            Retry::Backoff => pipeline.settings.backoff.delay(
                trouble.attempts,
                now.duration_since(trouble.since),
                rand::random(),
            ),
        }
    }

    async fn wait(&mut self, delay: Duration, error: ConnectorError) {
        let attempt = self.trouble.as_ref().map_or(1, |trouble| trouble.attempts) + 1;
        let wait = format!("{:.1} s", delay.as_secs_f64());
        tracing::warn!(%error, wait, attempt, "the task is started again");
        let activity = format!("Waits {wait} before attempt {attempt}: {}", error.what);
        self.enter(State::Running, Some(State::Restarting), Some(error), activity).await;
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.changed() => self.trouble = None,
        }
    }

    /// Moves to a state, here and in the status topic.
    async fn enter(
        &self,
        connector: State,
        task: Option<State>,
        error: Option<ConnectorError>,
        activity: impl Into<String>,
    ) {
        counters::running(&self.name, task == Some(State::Running));
        self.status.send_modify(|status| status.enter(connector, task, error, activity));
        let Shared { journal, status_topic, worker_id, .. } = self.shared.as_ref();
        let status = self.status.borrow().clone();
        let records = statuses::records(status_topic, &self.name, &status, worker_id, self.version);
        let written = tokio::time::timeout(STATUS_TIMEOUT, journal.write(records)).await;
        if !matches!(written, Ok(Ok(()))) {
            tracing::warn!("its status could not be written to the log");
        }
    }
}

fn failed(error: &ConnectorError) -> String {
    format!("Failed: {}", error.what)
}

fn joined(
    ended: Result<Result<(), ConnectorError>, tokio::task::JoinError>,
) -> Result<(), ConnectorError> {
    ended.unwrap_or_else(|error| {
        Err(ConnectorError::stop(
            "TASK_PANICKED",
            ErrorKind::Source,
            format!("the task ended in a panic: {error}"),
            "restart the connector, and report this with the server's log",
        ))
    })
}
