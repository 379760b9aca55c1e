//! Keeps one connector as its operator wants it: as many tasks as its plan has, each with a runner,
//! and the connector's own standing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use highwater_connector::ConnectorError;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use crate::assignment::Work;
use crate::client_overrides::{self, WithoutEffect};
use crate::counters;
use crate::plan::{Plan, TaskPlan};
use crate::runner::{self, Line, Shared, TaskWish, failed};
use crate::standing::Portion;
use crate::status::{State, Status};

/// Pause before what could not be fenced is fenced again.
const FENCE_PAUSE: Duration = Duration::from_secs(1);

/// What a part says that was given away.
const LEFT: &str = "Its worker has ended it";

/// What is wanted of a connector, and which part of it is this worker's.
#[derive(Clone)]
pub(crate) enum ConnectorWish {
    /// Run its tasks.
    Run(Arc<Plan>, Portion),
    /// Drain its tasks, and keep them waiting.
    Pause(Arc<Plan>, Portion),
    /// Drain its tasks, and end them.
    Stop(Option<Arc<Plan>>, Portion),
    /// The configuration cannot be run, for this reason.
    Refuse(ConnectorError, Portion),
    /// Drain its tasks, and end all.
    Leave,
    /// The same, and remove all statuses.
    Vanish,
}

/// What of a connector is here.
#[derive(Clone, Default)]
pub(crate) struct Here {
    connector: bool,
    /// By their ids.
    tasks: BTreeMap<u32, Line>,
}

impl Here {
    /// Whether it is no more than `portion`.
    pub(crate) fn is_within(&self, portion: &Portion) -> bool {
        let tasks = self.tasks.keys().all(|id| portion.has_task(*id));
        tasks && (!self.connector || portion.has_connector())
    }

    /// Whether any task is here.
    pub(crate) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }
}

/// The worker's hold on a connector that is kept.
pub(crate) struct Handle {
    wish: watch::Sender<ConnectorWish>,
    status: watch::Receiver<Status>,
    here: watch::Receiver<Here>,
    ended: JoinHandle<()>,
}

impl Handle {
    /// Keeps connector `name`, once `predecessor` has ended.
    pub(crate) fn spawn(
        name: &str,
        wish: ConnectorWish,
        shared: Arc<Shared>,
        predecessor: Option<JoinHandle<()>>,
    ) -> Self {
        let (wish, wishes) = watch::channel(wish);
        let (status, shown) = watch::channel(Status::unassigned());
        let (seen, here) = watch::channel(Here::default());
        let runner = ConnectorRunner {
            name: name.to_owned(),
            version: None,
            without_effect: Vec::new(),
            wishes,
            status,
            here: seen,
            tasks: BTreeMap::new(),
            portion: Portion::none(),
            shared,
        };
        let span = tracing::error_span!("connector", connector = name);
        let life = async move {
            if let Some(predecessor) = predecessor {
                // Its panic, if it had one, is in the log already.
                drop(predecessor.await);
            }
            runner.run().await;
        };
        let ended = tokio::spawn(life.instrument(span));
        Self { wish, status: shown, here, ended }
    }

    /// Says what is wanted from now on.
    pub(crate) fn send(&self, wish: ConnectorWish) {
        self.wish.send_replace(wish);
    }

    /// Restarts these of its tasks, as far as they are here; whether any is.
    pub(crate) fn restart(&self, which: impl Fn(u32, &Status) -> bool) -> bool {
        let here = self.here.borrow();
        let tasks = here.tasks.iter().filter(|(id, line)| which(**id, &line.status()));
        tasks.map(|(_, line)| line.repeat()).count() > 0
    }

    /// How the connector itself stands.
    pub(crate) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// What its tasks that are here are doing.
    pub(crate) fn tasks(&self) -> BTreeMap<u32, Status> {
        self.here.borrow().tasks.iter().map(|(id, line)| (*id, line.status())).collect()
    }

    /// Sees what of it is here from now on.
    pub(crate) fn watch_here(&self) -> watch::Receiver<Here> {
        self.here.clone()
    }

    /// Sees how the connector itself stands from now on.
    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Tells it to end; the result ends when it has.
    pub(crate) fn leave(self) -> JoinHandle<()> {
        self.wish.send_replace(ConnectorWish::Leave);
        self.ended
    }

    /// Tells it to end and to leave no status; the result ends when it has.
    pub(crate) fn vanish(self) -> JoinHandle<()> {
        self.wish.send_replace(ConnectorWish::Vanish);
        self.ended
    }
}

/// A task that is kept.
struct Kept {
    line: Line,
    plan: TaskPlan,
    paused: bool,
    ended: JoinHandle<()>,
}

impl Kept {
    /// Has it run what is wanted; what is wanted already goes on undisturbed.
    fn steer(&mut self, plan: &TaskPlan, paused: bool) {
        if self.paused == paused && self.plan.is(plan) {
            return;
        }
        (self.plan, self.paused) = (plan.clone(), paused);
        self.line.send(task_wish(plan, paused));
    }
}

fn task_wish(plan: &TaskPlan, paused: bool) -> TaskWish {
    if paused { TaskWish::Pause(plan.clone()) } else { TaskWish::Run(plan.clone()) }
}

struct ConnectorRunner {
    name: String,
    version: Option<&'static str>,
    /// What it has warned of.
    without_effect: Vec<WithoutEffect>,
    wishes: watch::Receiver<ConnectorWish>,
    status: watch::Sender<Status>,
    /// What others see of its part.
    here: watch::Sender<Here>,
    tasks: BTreeMap<u32, Kept>,
    /// Which part of the connector is here.
    portion: Portion,
    shared: Arc<Shared>,
}

impl ConnectorRunner {
    async fn run(mut self) {
        loop {
            let wish = self.wishes.borrow_and_update().clone();
            let at_rest = matches!(wish, ConnectorWish::Pause(..) | ConnectorWish::Stop(..));
            counters::wanted(&self.name, !at_rest);
            match wish {
                ConnectorWish::Run(plan, portion) => {
                    self.take(portion).await;
                    self.enter(&plan, State::Running, &tasks_run(plan.tasks.len())).await;
                    self.keep(&plan, false).await;
                    self.fence_or_change(&plan).await;
                }
                ConnectorWish::Pause(plan, portion) => {
                    self.take(portion).await;
                    let activity = "Paused by its operator; nothing is read";
                    self.enter(&plan, State::Paused, activity).await;
                    self.keep(&plan, true).await;
                    self.changed().await;
                }
                ConnectorWish::Stop(plan, portion) => {
                    self.take(portion).await;
                    self.stop(plan).await;
                }
                ConnectorWish::Refuse(error, portion) => {
                    self.take(portion).await;
                    self.end_all().await;
                    counters::running(&self.name, 0, false);
                    let activity = failed(&error);
                    self.stand(State::Failed, Some(error), &activity).await;
                    self.changed().await;
                }
                ConnectorWish::Leave => {
                    self.end_tasks(|_, _| true).await;
                    counters::connector_gone(&self.name);
                    self.stand(State::Unassigned, None, LEFT).await;
                    return;
                }
                ConnectorWish::Vanish => {
                    self.end_all().await;
                    counters::connector_gone(&self.name);
                    self.vanish().await;
                    return;
                }
            }
        }
    }

    /// Takes note of its part. The connector itself is given away with a word.
    async fn take(&mut self, portion: Portion) {
        if self.portion.has_connector() && !portion.has_connector() {
            self.stand(State::Unassigned, None, LEFT).await;
        }
        self.portion = portion;
        self.show();
    }

    /// What is left of a deleted connector is for the worker that had it to remove.
    async fn vanish(&self) {
        if !self.portion.has_connector() {
            return;
        }
        let part = Work::Connector(self.name.clone());
        let tombstone = part.status_tombstone(&self.shared.status_topic);
        self.shared.write_statuses(vec![tombstone]).await;
        self.shared.active_topics.forget(&self.name).await;
    }

    async fn stop(&mut self, plan: Option<Arc<Plan>>) {
        self.end_all().await;
        counters::running(&self.name, 0, false);
        let activity = "Stopped by its operator; the stored offset stays";
        self.stand(State::Stopped, None, activity).await;
        // What the source keeps meanwhile is looked at through any of the tasks.
        let pipeline = plan.and_then(|plan| plan.tasks.first()?.source().cloned());
        let looking = self.shared.looking.clone().on(pipeline, self.status.clone());
        tokio::select! {
            () = self.changed() => {}
            never = looking => match never {},
        }
    }

    /// Waits for another wish; a worker that is gone counts as one to leave.
    async fn changed(&mut self) {
        if self.wishes.changed().await.is_err() {
            let (sender, wishes) = watch::channel(ConnectorWish::Leave);
            drop(sender);
            self.wishes = wishes;
        }
    }

    async fn enter(&mut self, plan: &Plan, state: State, activity: &str) {
        self.version = plan.tasks.first().map(TaskPlan::version);
        self.warn_of(&plan.without_effect);
        self.stand(state, None, activity).await;
        // What was kept while it did not run is for its tasks to say from now on.
        self.status.send_modify(|status| status.held = None);
    }

    /// Says once which keys of its configuration change nothing.
    fn warn_of(&mut self, without_effect: &[WithoutEffect]) {
        if !self.portion.has_connector() || self.without_effect == without_effect {
            return;
        }
        self.without_effect = without_effect.to_vec();
        if !without_effect.is_empty() {
            let keys = client_overrides::listed(without_effect);
            tracing::warn!("keys of its configuration have no effect: {keys}");
        }
    }

    /// Fences those who ran its tasks before, whether any of them is here or not, and waits for
    /// another wish. A worker that only prepares does it for others, which write in transactions already.
    async fn fence_or_change(&mut self, plan: &Plan) {
        let is_source = plan.tasks.first().and_then(TaskPlan::source).is_some();
        let support = self.shared.worker.exactly_once;
        let passes = is_source && support.passes_fences() && self.portion.has_connector();
        let (shared, name) = (Arc::clone(&self.shared), self.name.clone());
        let fencing = async move {
            if passes {
                while let Err(error) = shared.pass_fence(&name).await {
                    tracing::warn!(%error, "the tasks before are not fenced yet");
                    tokio::time::sleep(FENCE_PAUSE).await;
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.changed() => {}
            () = fencing => {}
        }
    }

    /// Has those tasks of `plan` that are this worker's, and no others.
    async fn keep(&mut self, plan: &Plan, paused: bool) {
        let own = plan.tasks.iter().filter(|task| self.portion.has_task(task.id()));
        let wanted: BTreeMap<u32, TaskPlan> = own.map(|task| (task.id(), task.clone())).collect();
        // A partition that goes from one task to another must not be read by both for a moment.
        let moved = |id: u32, kept: &Kept| {
            wanted.get(&id).is_none_or(|task| task.partition() != kept.plan.partition())
        };
        let ended = self.end_tasks(moved).await;
        let exists = |id: &u32| plan.tasks.iter().any(|task| task.id() == *id);
        self.forget(ended.into_iter().filter(|id| !exists(id))).await;
        for (id, task) in wanted {
            if let Some(kept) = self.tasks.get_mut(&id) {
                kept.steer(&task, paused);
                continue;
            }
            let wish = task_wish(&task, paused);
            let (line, ended) = runner::spawn(&self.name, id, wish, &self.shared);
            self.tasks.insert(id, Kept { line, plan: task, paused, ended });
        }
        self.show();
    }

    /// Ends all tasks, which are no more.
    async fn end_all(&mut self) {
        let ended = self.end_tasks(|_, _| true).await;
        self.forget(ended.into_iter()).await;
    }

    /// Drains these tasks at once, and waits until they have ended.
    async fn end_tasks(&mut self, which: impl Fn(u32, &Kept) -> bool) -> Vec<u32> {
        let leaving: Vec<u32> =
            self.tasks.iter().filter(|(id, kept)| which(**id, kept)).map(|(id, _)| *id).collect();
        for id in &leaving {
            if let Some(kept) = self.tasks.get(id) {
                kept.line.send(TaskWish::Leave);
            }
        }
        for id in &leaving {
            // It stays in sight until it has ended. Its panic, if it had one, is in the log already.
            if let Some(kept) = self.tasks.get_mut(id) {
                drop((&mut kept.ended).await);
            }
            self.tasks.remove(id);
        }
        self.show();
        leaving
    }

    /// Removes the statuses of tasks that are no more.
    async fn forget(&self, tasks: impl Iterator<Item = u32>) {
        let topic = &self.shared.status_topic;
        let gone = tasks.map(|id| Work::Task(self.name.clone(), id).status_tombstone(topic));
        let gone: Vec<_> = gone.collect();
        if !gone.is_empty() {
            self.shared.write_statuses(gone).await;
        }
    }

    fn show(&self) {
        let tasks = self.tasks.iter().map(|(id, kept)| (*id, kept.line.clone())).collect();
        self.here.send_replace(Here { connector: self.portion.has_connector(), tasks });
    }

    /// Moves to a state, here and in the status topic.
    async fn stand(&self, state: State, error: Option<ConnectorError>, activity: &str) {
        self.status.send_modify(|status| status.enter(state, error, activity));
        if self.portion.has_connector() {
            let status = self.status.borrow().clone();
            self.shared.say(Work::Connector(self.name.clone()), &status, self.version).await;
        }
    }
}

fn tasks_run(tasks: usize) -> String {
    match tasks {
        1 => "Runs one task".to_owned(),
        tasks => format!("Runs {tasks} tasks"),
    }
}
