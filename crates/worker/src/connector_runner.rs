//! Keeps one connector as its operator wants it: as many tasks as its plan has, each with a runner,
//! and the connector's own standing.

use std::sync::Arc;

use highwater_connector::{ConnectorError, SourcePartition};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use crate::counters;
use crate::plan::{Plan, TaskPlan};
use crate::runner::{self, Line, Shared, failed};
use crate::status::{ConnectorStatus, State, Status};
use crate::statuses::Part;

/// What is wanted of a connector. Sending the same again restarts its tasks.
#[derive(Clone)]
pub(crate) enum Wish {
    /// Run its tasks.
    Run(Arc<Plan>),
    /// Drain its tasks, and keep them waiting.
    Pause(Arc<Plan>),
    /// Drain its tasks, and end them.
    Stop(Option<Arc<Plan>>),
    /// The configuration cannot be run, for this reason.
    Refuse(ConnectorError),
    /// Drain its tasks, and end all.
    Leave,
    /// The same, and remove all statuses.
    Vanish,
}

/// The worker's hold on a connector that is kept.
pub(crate) struct Handle {
    wish: watch::Sender<Wish>,
    status: watch::Receiver<Status>,
    tasks: watch::Receiver<Vec<Line>>,
    ended: JoinHandle<()>,
}

impl Handle {
    /// Keeps connector `name`, once `predecessor` has ended.
    pub(crate) fn spawn(
        name: &str,
        wish: Wish,
        shared: Arc<Shared>,
        predecessor: Option<JoinHandle<()>>,
    ) -> Self {
        let (wish, wishes) = watch::channel(wish);
        let (status, seen) = watch::channel(Status::unassigned());
        let (lines, tasks) = watch::channel(Vec::new());
        let runner = ConnectorRunner {
            name: name.to_owned(),
            version: None,
            wishes,
            status,
            lines,
            tasks: Vec::new(),
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
        Self { wish, status: seen, tasks, ended }
    }

    /// Says what is wanted from now on.
    pub(crate) fn send(&self, wish: Wish) {
        self.wish.send_replace(wish);
    }

    /// Restarts these of its tasks.
    pub(crate) fn restart(&self, ids: &[usize]) {
        let tasks = self.tasks.borrow();
        ids.iter().filter_map(|id| tasks.get(*id)).for_each(Line::repeat);
    }

    /// What it and its tasks are doing.
    pub(crate) fn status(&self) -> ConnectorStatus {
        ConnectorStatus {
            connector: self.status.borrow().clone(),
            tasks: self.tasks.borrow().iter().map(Line::status).collect(),
        }
    }

    /// Sees how the connector itself stands from now on.
    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Tells it to end; the result ends when it has.
    pub(crate) fn leave(self) -> JoinHandle<()> {
        self.wish.send_replace(Wish::Leave);
        self.ended
    }

    /// Tells it to end and to leave no status; the result ends when it has.
    pub(crate) fn vanish(self) -> JoinHandle<()> {
        self.wish.send_replace(Wish::Vanish);
        self.ended
    }
}

/// A task that is kept.
struct Kept {
    line: Line,
    /// Where a source's task stores its offsets.
    partition: Option<SourcePartition>,
    ended: JoinHandle<()>,
}

struct ConnectorRunner {
    name: String,
    version: Option<&'static str>,
    wishes: watch::Receiver<Wish>,
    status: watch::Sender<Status>,
    /// What others see of `tasks`.
    lines: watch::Sender<Vec<Line>>,
    tasks: Vec<Kept>,
    shared: Arc<Shared>,
}

impl ConnectorRunner {
    async fn run(mut self) {
        loop {
            let wish = self.wishes.borrow_and_update().clone();
            match wish {
                Wish::Run(plan) => {
                    self.enter(&plan, State::Running, &tasks_run(plan.tasks.len())).await;
                    self.keep(&plan, runner::Wish::Run).await;
                    self.changed().await;
                }
                Wish::Pause(plan) => {
                    let activity = "Paused by its operator; nothing is read";
                    self.enter(&plan, State::Paused, activity).await;
                    self.keep(&plan, runner::Wish::Pause).await;
                    self.changed().await;
                }
                Wish::Stop(plan) => self.stop(plan).await,
                Wish::Refuse(error) => {
                    self.end_tasks().await;
                    self.forget_tasks().await;
                    counters::running(&self.name, 0, false);
                    let activity = failed(&error);
                    self.stand(State::Failed, Some(error), &activity).await;
                    self.changed().await;
                }
                Wish::Leave => {
                    self.end_tasks().await;
                    counters::gone(&self.name, 0);
                    self.stand(State::Unassigned, None, "Its worker has ended it").await;
                    return;
                }
                Wish::Vanish => {
                    self.end_tasks().await;
                    self.forget_tasks().await;
                    counters::gone(&self.name, 0);
                    let tombstone = Part::Connector(self.name.clone());
                    let tombstone = tombstone.tombstone(&self.shared.status_topic);
                    self.shared.write_statuses(vec![tombstone]).await;
                    self.shared.active_topics.forget(&self.name).await;
                    return;
                }
            }
        }
    }

    async fn stop(&mut self, plan: Option<Arc<Plan>>) {
        self.end_tasks().await;
        self.forget_tasks().await;
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
            let (sender, wishes) = watch::channel(Wish::Leave);
            drop(sender);
            self.wishes = wishes;
        }
    }

    async fn enter(&mut self, plan: &Plan, state: State, activity: &str) {
        self.version = plan.tasks.first().map(TaskPlan::version);
        self.stand(state, None, activity).await;
        // What was kept while it did not run is for its tasks to say from now on.
        self.status.send_modify(|status| status.held = None);
    }

    /// Has the tasks of `plan` and no others, and tells each what is wanted.
    async fn keep(&mut self, plan: &Plan, wish: fn(TaskPlan) -> runner::Wish) {
        // A partition that goes from one task to another must not be read by both for a moment.
        let wanted = plan.tasks.iter().map(TaskPlan::partition);
        let kept = self.tasks.iter().map(|kept| kept.partition.as_ref());
        if !self.tasks.is_empty() && !kept.eq(wanted) {
            self.end_tasks().await;
            self.forget_tasks_from(plan.tasks.len()).await;
        }
        for (at, task) in plan.tasks.iter().enumerate() {
            let wish = wish(task.clone());
            match self.tasks.get(at) {
                Some(kept) => kept.line.send(wish),
                None => {
                    let (line, ended) = runner::spawn(&self.name, task.id(), wish, &self.shared);
                    self.tasks.push(Kept { line, partition: task.partition().cloned(), ended });
                }
            }
        }
        self.show();
    }

    /// Drains all tasks at once, and waits until they have ended.
    async fn end_tasks(&mut self) {
        self.tasks.iter().for_each(|kept| kept.line.send(runner::Wish::Leave));
        for kept in &mut self.tasks {
            // Its panic, if it had one, is in the log already.
            drop((&mut kept.ended).await);
        }
    }

    async fn forget_tasks(&mut self) {
        self.forget_tasks_from(0).await;
    }

    /// Removes tasks that have ended, with the statuses of those from `first` on.
    async fn forget_tasks_from(&mut self, first: usize) {
        let topic = &self.shared.status_topic;
        let gone = (0..).zip(&self.tasks).skip(first);
        let gone: Vec<_> =
            gone.map(|(id, _)| Part::Task(self.name.clone(), id).tombstone(topic)).collect();
        self.tasks.clear();
        self.show();
        if !gone.is_empty() {
            self.shared.write_statuses(gone).await;
        }
    }

    fn show(&self) {
        self.lines.send_replace(self.tasks.iter().map(|kept| kept.line.clone()).collect());
    }

    /// Moves to a state, here and in the status topic.
    async fn stand(&self, state: State, error: Option<ConnectorError>, activity: &str) {
        self.status.send_modify(|status| status.enter(state, error, activity));
        let Shared { status_topic, worker_id, .. } = self.shared.as_ref();
        let status = self.status.borrow().clone();
        let part = Part::Connector(self.name.clone());
        let record = part.record(status_topic, &status, worker_id, self.version);
        self.shared.write_statuses(vec![record]).await;
    }
}

fn tasks_run(tasks: usize) -> String {
    match tasks {
        1 => "Runs one task".to_owned(),
        tasks => format!("Runs {tasks} tasks"),
    }
}
