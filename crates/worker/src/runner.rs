//! Runs one task as it is wanted: restarts it with backoff, drains it, and says what it is doing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use highwater_connector::{ConnectorError, Retry, SourceOffset};
use highwater_kafka::{Journal, OutgoingRecord};
use jiff::Timestamp;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::WorkerConfig;
use crate::active_topics::ActiveTopics;
use crate::assignment::Work;
use crate::cluster::Cluster;
use crate::counters;
use crate::exactly_once::{Delivery, Overlong};
use crate::fencing::{self, Fences};
use crate::health::LogProbe;
use crate::isolation::isolated;
use crate::looking::Looking;
use crate::meter::TaskMeter;
use crate::meters::Meters;
use crate::offset_topics::OffsetTopics;
use crate::opening;
use crate::pipeline::Pipeline;
use crate::plan::TaskPlan;
use crate::sink_opening;
use crate::standing::Standing;
use crate::status::{State, Status};
use crate::statuses::{Book, Speaker};
use crate::task::StopSignal;

/// What a runner is told. Sending the same again restarts.
#[derive(Clone)]
pub(crate) enum TaskWish {
    /// Run the task.
    Run(TaskPlan),
    /// Read nothing: a source's task is drained and waits, a sink's stays in its group.
    Pause(TaskPlan),
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
    pub(crate) offsets: OffsetTopics,
    pub(crate) journal: Journal,
    pub(crate) active_topics: Arc<ActiveTopics>,
    pub(crate) status_topic: String,
    pub(crate) worker_id: String,
    /// What tasks are planned with once more when they start.
    pub(crate) worker: WorkerConfig,
    pub(crate) looking: Looking,
    pub(crate) fences: Fences,
    /// The topic of offsets was made anew at this start, beside connectors that were there.
    pub(crate) lost_offsets: bool,
    pub(crate) meters: Meters,
    pub(crate) probe: LogProbe,
    /// What of the work is this worker's.
    pub(crate) standing: watch::Sender<Standing>,
    /// How all parts stand, as the log says.
    pub(crate) statuses: watch::Sender<Book>,
}

impl Shared {
    /// Fences who ran the tasks of a source before.
    pub(crate) async fn pass_fence(self: &Arc<Self>, name: &str) -> Result<(), ConnectorError> {
        let (shared, connector) = (Arc::clone(self), name.to_owned());
        // Seen to its end though nobody waits for it any more: what is said of one fence while the next is
        // begun lets tasks start that the next cuts off.
        let passing = async move { shared.fences.pass(&connector, &shared).await };
        let passed = tokio::spawn(passing.in_current_span()).await;
        passed.unwrap_or_else(|_| Err(fencing::not_fenced(name)))
    }

    /// Says in the log how a part stands. That nobody runs it is not said over the word of another
    /// worker that has it since.
    pub(crate) async fn say(&self, part: Work, status: &Status, version: Option<&str>) {
        let Self { worker_id, status_topic, .. } = self;
        let generation = self.standing.borrow().generation();
        let is_others = self.statuses.borrow().get(&part).is_some_and(|said| {
            said.worker_id != *worker_id && said.generation > i64::from(generation)
        });
        if status.state == State::Unassigned && is_others {
            return;
        }
        let speaker = Speaker { worker_id, generation };
        let record = part.status_record(status_topic, status, speaker, version);
        self.write_statuses(vec![record]).await;
    }

    /// Writes records of the status topic, within a bound.
    pub(crate) async fn write_statuses(&self, records: Vec<OutgoingRecord>) {
        let written = tokio::time::timeout(STATUS_TIMEOUT, self.journal.write(records)).await;
        if !matches!(written, Ok(Ok(()))) {
            tracing::warn!("its status could not be written to the log");
        }
    }
}

/// What a task's runner is told and says. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Line {
    wish: watch::Sender<TaskWish>,
    status: watch::Receiver<Status>,
}

impl Line {
    /// Says what is wanted from now on.
    pub(crate) fn send(&self, wish: TaskWish) {
        self.wish.send_replace(wish);
    }

    /// Says once more what is wanted, which restarts the task.
    pub(crate) fn repeat(&self) {
        self.wish.send_modify(|_| {});
    }

    /// What it is doing.
    pub(crate) fn status(&self) -> Status {
        self.status.borrow().clone()
    }
}

/// Starts a runner for task `task` of connector `name`.
pub(crate) fn spawn(
    name: &str,
    task: u32,
    wish: TaskWish,
    shared: &Arc<Shared>,
) -> (Line, JoinHandle<()>) {
    let (wish, wishes) = watch::channel(wish);
    let (status, seen) = watch::channel(Status::unassigned());
    let runner = Runner {
        name: name.to_owned(),
        task,
        version: None,
        wishes,
        status,
        shared: Arc::clone(shared),
        trouble: None,
        overlong: Overlong::default(),
        meter: shared.meters.begin(name, task),
        paused: false,
    };
    // Of the least level that can be left out, so that no line goes without the name.
    let span = tracing::error_span!(parent: None, "connector", connector = name, task);
    let ended = tokio::spawn(runner.run().instrument(span));
    (Line { wish, status: seen }, ended)
}

struct Runner {
    name: String,
    task: u32,
    version: Option<&'static str>,
    wishes: watch::Receiver<TaskWish>,
    status: watch::Sender<Status>,
    shared: Arc<Shared>,
    trouble: Option<Trouble>,
    overlong: Overlong,
    meter: Arc<TaskMeter>,
    /// Whether it was told last to pause.
    paused: bool,
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
            self.paused = matches!(wish, TaskWish::Pause(_));
            match wish {
                TaskWish::Run(plan) => self.run_once(&plan).await,
                TaskWish::Pause(TaskPlan::Source(pipeline)) => {
                    let activity = "Paused by its operator; the source is not read";
                    self.enter(State::Paused, None, activity).await;
                    self.idle(Some(pipeline)).await;
                }
                TaskWish::Pause(plan) => self.run_once(&plan).await,
                TaskWish::Leave => {
                    self.enter(State::Unassigned, None, "Its worker has ended it").await;
                    counters::gone(&self.name, self.task);
                    self.shared.meters.end(&self.name, self.task, &self.meter);
                    return;
                }
            }
        }
    }

    /// Waits for another wish; a worker that is gone counts as one to leave.
    async fn changed(&mut self) {
        if self.wishes.changed().await.is_err() {
            let (sender, wishes) = watch::channel(TaskWish::Leave);
            drop(sender);
            self.wishes = wishes;
        }
    }

    /// Waits for another wish; meanwhile what the source keeps is looked at.
    async fn idle(&mut self, pipeline: Option<Arc<Pipeline>>) {
        let looking = self.shared.looking.clone().on(pipeline, self.status.clone());
        tokio::select! {
            () = self.changed() => {}
            never = looking => match never {},
        }
    }

    /// One run of the task, and the wait that its end asks for.
    async fn run_once(&mut self, plan: &TaskPlan) {
        self.version = Some(plan.version());
        self.meter.is_sink.store(plan.source().is_none(), Ordering::Relaxed);
        self.enter_opening(plan).await;
        let before = self.reached(plan);
        let ended = self.until_ended(plan).await;
        self.meter.run_ended();
        if self.reached(plan) != before {
            self.trouble = None;
        }
        match ended {
            Ok(()) => self.trouble = None,
            Err(error) => self.after_failure(plan, error.of(&self.name)).await,
        }
    }

    /// How far the task got. In transactions what is acknowledged may be aborted: what is stored counts.
    fn reached(&self, plan: &TaskPlan) -> (Option<Timestamp>, Option<SourceOffset>) {
        let status = self.status.borrow();
        let is_source = plan.source().is_some();
        match plan.settings().delivery {
            Delivery::ExactlyOnce(_) if is_source => (None, status.position.clone()),
            _ => (status.last_record, None),
        }
    }

    /// RUNNING is said only of a task that reads; one that failed is RESTARTING until it does.
    async fn enter_opening(&self, plan: &TaskPlan) {
        let error = self.status.borrow().error.clone().filter(|_| self.trouble.is_some());
        let state = if error.is_some() { State::Restarting } else { State::Unassigned };
        let activity = match plan {
            TaskPlan::Source(_) => "Opens the source",
            TaskPlan::Sink(_) => "Opens the sink",
        };
        self.enter(state, error, activity).await;
    }

    /// Runs the task until it ends by itself, with its error, or because something else is wanted.
    async fn until_ended(&mut self, plan: &TaskPlan) -> Result<(), ConnectorError> {
        let (stop, stopped) = watch::channel(None);
        let (pause, is_paused) = watch::channel(self.paused);
        let (opened, mut is_open) = oneshot::channel();
        let drain = plan.settings().drain_timeout;
        let shown = (self.status.clone(), Arc::clone(&self.meter));
        let signals = Signals { opened, stopped, is_paused, shown };
        let life = live(plan.clone(), Arc::clone(&self.shared), signals);
        let mut task = tokio::spawn(life.in_current_span());
        loop {
            tokio::select! {
                ended = &mut task => return joined(ended),
                () = self.changed() => {
                    let Some(paused) = self.is_steered(plan) else { break };
                    self.paused = paused;
                    pause.send_replace(paused);
                    if is_open.is_terminated() {
                        self.enter_running(None).await;
                    }
                }
                Ok(activity) = &mut is_open, if !is_open.is_terminated() => {
                    self.enter_running(Some(activity)).await;
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

    /// Whether a sink's task that goes on shall be paused from now on; none where another run is
    /// wanted.
    fn is_steered(&self, plan: &TaskPlan) -> Option<bool> {
        if plan.source().is_some() {
            return None;
        }
        if self.is_just_paused(plan) {
            return Some(true);
        }
        match &*self.wishes.borrow() {
            TaskWish::Run(wanted) if wanted.is(plan) && self.paused => Some(false),
            _ => None,
        }
    }

    /// Whether nothing but a pause is new. The same once more is a restart, of one that is paused too.
    fn is_just_paused(&self, plan: &TaskPlan) -> bool {
        let wish = self.wishes.borrow();
        !self.paused && matches!(&*wish, TaskWish::Pause(wanted) if wanted.is(plan))
    }

    async fn enter_running(&self, activity: Option<String>) {
        if self.paused {
            let activity = "Paused by its operator; it stays in its group and reads nothing";
            self.enter(State::Paused, None, activity).await;
        } else {
            self.enter(State::Running, None, activity.unwrap_or_else(|| "Reads on".to_owned()))
                .await;
        }
    }

    /// A task that fails while it drains has ended all the same: what is wanted next counts.
    fn note_end(&self, ended: Result<(), ConnectorError>) {
        if let Err(error) = ended {
            tracing::warn!(%error, "the task failed while it was ending");
        }
    }

    async fn after_failure(&mut self, plan: &TaskPlan, error: ConnectorError) {
        self.meter.failures.one();
        let position = self.status.borrow().position.clone();
        let error = self.overlong.judged(error, position.as_ref(), &plan.settings().delivery);
        match self.delay(plan, &error) {
            Some(delay) => self.wait(delay, error).await,
            None => {
                let error = self.given_up(error);
                tracing::error!(%error, "the task failed");
                let activity = failed(&error);
                self.enter(State::Failed, Some(error), activity).await;
                self.stay_failed(plan).await;
                (self.trouble, self.overlong) = (None, Overlong::default());
            }
        }
    }

    /// What was tried again for as long as it may is tried no more.
    fn given_up(&self, error: ConnectorError) -> ConnectorError {
        if error.retry == Retry::Never || !error.remedy.starts_with(highwater_connector::BY_ITSELF)
        {
            return error;
        }
        let remedy = format!(
            "it is tried no more, since errors.retry.timeout is over: mend what it says, then highwater connector restart {}",
            self.name
        );
        ConnectorError { remedy, ..error }
    }

    /// Waits until the task shall be tried again. As with Kafka Connect, a pause leaves a failed task as
    /// it is, with what stopped it in sight.
    async fn stay_failed(&mut self, plan: &TaskPlan) {
        loop {
            self.idle(plan.source().cloned()).await;
            if !self.is_just_paused(plan) {
                return;
            }
            self.paused = true;
        }
    }

    fn delay(&mut self, plan: &TaskPlan, error: &ConnectorError) -> Option<Duration> {
        let now = Instant::now();
        let trouble = self.trouble.get_or_insert(Trouble { since: now, attempts: 0 });
        trouble.attempts = trouble.attempts.saturating_add(1);
        match error.retry {
            Retry::Never => None,
            Retry::Backoff => plan.settings().backoff.delay(
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
        self.enter(State::Restarting, Some(error), activity).await;
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.changed() => self.trouble = None,
        }
    }

    /// Moves to a state, here and in the status topic.
    async fn enter(
        &self,
        state: State,
        error: Option<ConnectorError>,
        activity: impl Into<String>,
    ) {
        counters::running(&self.name, self.task, state == State::Running);
        self.status.send_modify(|status| status.enter(state, error, activity));
        let status = self.status.borrow().clone();
        let part = Work::Task(self.name.clone(), self.task);
        self.shared.say(part, &status, self.version).await;
    }
}

/// What a running task is told, and tells.
struct Signals {
    opened: oneshot::Sender<String>,
    stopped: StopSignal,
    is_paused: watch::Receiver<bool>,
    shown: (watch::Sender<Status>, Arc<TaskMeter>),
}

/// A task from the look at its secrets to its end.
async fn live(plan: TaskPlan, shared: Arc<Shared>, signals: Signals) -> Result<(), ConnectorError> {
    let plan = isolated(plan.fresh(&shared.worker)).await?;
    let scrub = plan.scrub().clone();
    isolated(run(plan, shared, signals)).await.map_err(|error| scrub.error(error))
}

async fn run(plan: TaskPlan, shared: Arc<Shared>, signals: Signals) -> Result<(), ConnectorError> {
    let Shared { cluster, offsets, active_topics, .. } = shared.as_ref();
    let Signals { opened, stopped, is_paused, shown } = signals;
    // Nobody listens any more when the task shall stop already.
    match plan {
        TaskPlan::Source(pipeline) => {
            if let Delivery::ExactlyOnce(_) = pipeline.settings.delivery {
                shared.pass_fence(&pipeline.name).await?;
            }
            let used = active_topics.of_task(&pipeline.name, pipeline.task);
            let task = opening::open(&pipeline, cluster, offsets, used, stopped, shown).await?;
            let _ = opened.send(task.activity());
            task.run().await
        }
        TaskPlan::Sink(pipeline) => {
            let used = active_topics.of_task(&pipeline.name, pipeline.task);
            let task = sink_opening::open(&pipeline, cluster, stopped, is_paused, shown).await?;
            let _ = opened.send(task.activity());
            task.telling(used).run().await
        }
    }
}

/// What a part says that has failed.
pub(crate) fn failed(error: &ConnectorError) -> String {
    format!("Failed: {}", error.what)
}

/// A task that was cut has no more to say.
fn joined(
    ended: Result<Result<(), ConnectorError>, tokio::task::JoinError>,
) -> Result<(), ConnectorError> {
    ended.unwrap_or(Ok(()))
}
