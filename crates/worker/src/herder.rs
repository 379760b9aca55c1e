//! Holds what operators want as the log says it, and keeps a runner for each connector of which this
//! worker has a part.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{ConnectorError, ErrorKind, Problem};
use highwater_kafka::{KafkaError, OutgoingRecord};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::WorkerConfig;
use crate::applier::Folder;
use crate::assignment::Work;
use crate::configs::{ConfigState, Effect};
use crate::connector_runner::ConnectorWish;
use crate::elsewhere::Elsewhere;
use crate::group::{Joined, Round};
use crate::keys;
use crate::pipeline::Properties;
use crate::plan;
use crate::plans::{Division, Planned, Plans};
use crate::plugins::{Plugin, Plugins};
use crate::replay::Replay;
use crate::rest_error::Refusal;
use crate::restore::{self, Restored};
use crate::runner::Shared;
use crate::runners::Runners;
use crate::standing::{Portion, Standing};
use crate::status::{ConnectorStatus, Seen, Status};
use crate::statuses::{self, StoredStatus};
use crate::target_state::TargetState;

/// How long between attempts to reach the log at start.
const START_RETRY: Duration = Duration::from_millis(200);

/// See the module's text. `connector_changes` and `offset_changes` change what is wanted, `following`
/// does what the log says, `group` shares the work with other workers.
pub(crate) struct Herder {
    pub(crate) config: WorkerConfig,
    pub(crate) plugins: Plugins,
    pub(crate) cluster_id: String,
    pub(crate) shared: Arc<Shared>,
    pub(crate) configs: watch::Sender<ConfigState>,
    pub(crate) plans: Plans,
    /// All work that there is, for the leader of a group to share out.
    pub(crate) wanted: watch::Sender<BTreeSet<Work>>,
    /// What the group was when this worker shared out last.
    pub(crate) round: watch::Sender<Round>,
    pub(crate) joined: tokio::sync::Mutex<Option<Joined>>,
    pub(crate) runners: Runners,
    /// The folder of connector files.
    pub(crate) folder: Folder,
    /// One change at a time, as with Kafka Connect's herder.
    pub(crate) turn: tokio::sync::Mutex<()>,
    pub(crate) config_tail: tokio::sync::Mutex<Replay>,
    /// What was read of configurations and is still to be done, in this order.
    pub(crate) undone: Mutex<VecDeque<Effect>>,
    /// Who does it: one at a time, while others read on.
    pub(crate) acting: tokio::sync::Mutex<()>,
    pub(crate) status_tail: tokio::sync::Mutex<Replay>,
    pub(crate) followers: Mutex<Vec<AbortHandle>>,
}

/// What the log says of a connector at one time.
struct Given {
    properties: Properties,
    revision: u64,
    tasks: Vec<Properties>,
}

impl Herder {
    /// Restores everything from the log and, where it shares its work with nobody, starts what shall
    /// run; tries again while the log cannot be reached, within the start time-out.
    pub(crate) async fn start(
        config: WorkerConfig,
        plugins: Plugins,
    ) -> Result<Arc<Self>, KafkaError> {
        let deadline = Instant::now() + config.start_timeout;
        loop {
            match Self::try_start(&config, &plugins).await {
                Ok(herder) => return Ok(herder),
                Err(error) if Instant::now() + START_RETRY >= deadline => return Err(error),
                Err(error) => tracing::warn!(%error, "the log cannot be used yet"),
            }
            tokio::time::sleep(START_RETRY).await;
        }
    }

    async fn try_start(config: &WorkerConfig, plugins: &Plugins) -> Result<Arc<Self>, KafkaError> {
        let restored = restore::restore(config, plugins).await?;
        let herder = Arc::new(Self::of(config.clone(), plugins.clone(), restored));
        herder.update_wanted();
        if herder.leads() {
            herder.lead().await?;
        }
        herder.tell_all();
        herder.follow();
        Ok(herder)
    }

    fn of(config: WorkerConfig, plugins: Plugins, restored: Restored) -> Self {
        let shared = Arc::new(restored.shared);
        Self {
            folder: Folder::new(config.connectors_dir.clone()),
            config,
            plugins,
            cluster_id: restored.cluster_id,
            runners: Runners::new(&shared),
            shared,
            configs: restored.configs,
            plans: restored.plans,
            wanted: watch::Sender::default(),
            round: watch::Sender::default(),
            joined: tokio::sync::Mutex::default(),
            turn: tokio::sync::Mutex::new(()),
            config_tail: tokio::sync::Mutex::new(restored.config_tail),
            undone: Mutex::default(),
            acting: tokio::sync::Mutex::default(),
            status_tail: tokio::sync::Mutex::new(restored.status_tail),
            followers: Mutex::default(),
        }
    }

    /// All configurations as they are now.
    pub(crate) fn configs(&self) -> watch::Ref<'_, ConfigState> {
        self.configs.borrow()
    }

    /// Names of all connectors.
    pub(crate) fn names(&self) -> Vec<String> {
        self.configs().names().map(str::to_owned).collect()
    }

    /// What of the work is this worker's.
    pub(crate) fn standing(&self) -> watch::Ref<'_, Standing> {
        self.shared.standing.borrow()
    }

    /// Whether it alone changes what operators want.
    pub(crate) fn leads(&self) -> bool {
        self.standing().leads()
    }

    /// A connector's properties.
    ///
    /// # Errors
    /// Not found.
    pub(crate) fn properties(&self, name: &str) -> Result<Properties, Refusal> {
        let properties = self.configs().properties(name).cloned();
        properties.ok_or_else(|| Refusal::NotFound(format!("Connector {name} not found")))
    }

    /// The plugin of a configuration, when this worker has it.
    pub(crate) fn plugin(&self, properties: &Properties) -> Option<&Plugin> {
        let class = properties.get(keys::CLASS)?;
        self.plugins.find(class)
    }

    /// What follows from a connector's configuration as it is stored.
    pub(crate) fn plan(&self, name: &str) -> Planned {
        self.plans.get(name)
    }

    /// What follows from a configuration, whether it is stored or not, with the tasks that are
    /// `stored`, if any are.
    pub(crate) async fn planned(
        &self,
        name: &str,
        properties: &Properties,
        stored: &[Properties],
    ) -> Planned {
        plan::within_time(name, properties, stored, &self.plugins, &self.config).await
    }

    /// What follows from a connector's configuration as the log says it. How the leader has divided its
    /// work counts for all.
    pub(crate) async fn replan(&self, name: &str) {
        let Some(given) = self.given(name) else { return };
        if !self.plans.fits(name, given.revision, &given.tasks) {
            self.plan_given(name, given).await;
        }
    }

    /// The same, whether there is a plan already or not: the one that there is counts until then.
    pub(crate) async fn plan_anew(&self, name: &str) {
        if let Some(given) = self.given(name) {
            self.plan_given(name, given).await;
        }
    }

    fn given(&self, name: &str) -> Option<Given> {
        let configs = self.configs();
        let properties = configs.properties(name)?.clone();
        let tasks = configs.tasks(name).committed().unwrap_or_default();
        let tasks = tasks.into_iter().cloned().collect();
        Some(Given { properties, revision: configs.revision(name), tasks })
    }

    async fn plan_given(&self, name: &str, given: Given) {
        let Given { properties, revision, tasks } = given;
        let own = self.planned(name, &properties, &[]).await;
        let differs = own.as_ref().is_ok_and(|plan| plan.stored != tasks) && !tasks.is_empty();
        let (planned, division) = if differs && !self.leads() {
            (self.planned(name, &properties, &tasks).await, Division::Stored)
        } else {
            (own, Division::Own)
        };
        // Kept until it is set: whoever deletes it next removes its plan.
        let configs = self.configs();
        // Else whoever changed or deleted it meanwhile has seen to its plan.
        if configs.revision(name) == revision {
            self.plans.set(name, revision, planned, division);
        }
    }

    /// What a connector is doing, as far as this worker knows.
    ///
    /// # Errors
    /// Not found.
    pub(crate) fn status(&self, name: &str) -> Result<ConnectorStatus, Refusal> {
        let whole = Work::Connector(name.to_owned());
        let (own, standing) = self.runners.statuses(name);
        let book = self.shared.statuses.borrow();
        let elsewhere = |said: &StoredStatus| {
            // Its own word of before, on what is not its any more.
            if said.worker_id == self.shared.worker_id {
                return Seen::Here(Status::let_go().into());
            }
            let worker = standing.whereabouts(&said.worker_id);
            Seen::Elsewhere(Elsewhere { said: said.clone(), worker })
        };
        let others = statuses::of_connector(&book, name)
            .filter(|(id, _)| !standing.has(&Work::Task(name.to_owned(), *id)));
        let mut tasks: BTreeMap<u32, Seen> =
            others.map(|(id, said)| (id, elsewhere(said))).collect();
        let (own, own_tasks) = own.unzip();
        let here = own.filter(|_| standing.has(&whole)).map(|own| Seen::Here(own.into()));
        let connector = here.or_else(|| book.get(&whole).map(elsewhere));
        // One that no worker was given yet exists all the same.
        let exists = self.configs().properties(name).is_some();
        let nobodys = || exists.then(|| Seen::Here(Status::unassigned().into()));
        let connector = connector.or_else(nobodys);
        let own_tasks = own_tasks.into_iter().flatten();
        tasks.extend(own_tasks.map(|(id, status)| (id, Seen::Here(status.into()))));
        match connector {
            Some(connector) => Ok(ConnectorStatus { connector, tasks }),
            None => Err(Refusal::NotFound(format!("No status found for connector {name}"))),
        }
    }

    /// Drains all tasks and ends them.
    pub(crate) async fn shutdown(&self) {
        let _turn = self.turn.lock().await;
        // First of all: nothing is given to it any more.
        let member = self.leave_off().await;
        self.followers.lock().drain(..).for_each(|follower| follower.abort());
        self.runners.end_all().await;
        if let Some(member) = member {
            member.leave().await;
        }
        // The log ends next, and its client would complain that it is gone.
        self.shared.journal.close().await;
        self.shared.active_topics.close().await;
    }

    /// Waits for its turn to change something.
    ///
    /// # Errors
    /// It is another worker that makes changes, since it waited.
    pub(crate) async fn turn(&self) -> Result<tokio::sync::MutexGuard<'_, ()>, Refusal> {
        let turn = self.turn.lock().await;
        if self.leads() { Ok(turn) } else { Err(Refusal::rebalancing()) }
    }

    /// Whether any worker may run a task of a connector.
    pub(crate) fn has_tasks_of(&self, name: &str) -> bool {
        self.runners.has_tasks_of(name) || self.round.borrow().has_tasks_of(name)
    }

    /// Writes records of the configs topic; on return what they say is done.
    pub(crate) async fn write(&self, records: Vec<OutgoingRecord>) -> Result<(), KafkaError> {
        self.shared.journal.write(records).await?;
        self.read_configs().await
    }

    /// Tells all runners what is wanted.
    pub(crate) fn tell_all(&self) {
        self.names().iter().for_each(|name| self.tell(name));
    }

    /// Tells a connector's runner what is wanted.
    pub(crate) fn tell(&self, name: &str) {
        self.runners.steer(name, |portion| self.wish(name, portion));
    }

    fn wish(&self, name: &str, portion: Portion) -> ConnectorWish {
        match (self.configs().target(name), self.plan(name)) {
            (TargetState::Stopped, plan) => ConnectorWish::Stop(plan.ok(), portion),
            (TargetState::Started, Ok(plan)) => ConnectorWish::Run(plan, portion),
            (TargetState::Paused, Ok(plan)) => ConnectorWish::Pause(plan, portion),
            (_, Err(problems)) => ConnectorWish::Refuse(unplannable(name, &problems), portion),
        }
    }
}

fn unplannable(name: &str, problems: &[Problem]) -> ConnectorError {
    let list: Vec<_> =
        problems.iter().map(|problem| format!("{} {}", problem.key, problem.message)).collect();
    ConnectorError::stop(
        "CONFIG_INVALID",
        ErrorKind::Configuration,
        format!("the stored configuration cannot be run: {}", list.join("; ")),
        format!(
            "highwater connector update {name} --file FILE with a configuration that fits, or highwater \
             connector patch {name} --unset KEY where one is to go"
        ),
    )
}
