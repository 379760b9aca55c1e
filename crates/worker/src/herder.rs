//! Holds what operators want as the log says it, and keeps a runner for each connector.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use highwater_connector::{ConnectorError, ErrorKind, Problem};
use highwater_kafka::{KafkaError, OutgoingRecord};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::WorkerConfig;
use crate::applier::Folder;
use crate::configs::{ConfigState, TargetState};
use crate::connector_runner::{Handle, Wish};
use crate::keys;
use crate::pipeline::Properties;
use crate::plan::{self, Plan};
use crate::plugins::{Plugin, Plugins};
use crate::rest_error::Refusal;
use crate::restore;
use crate::runner::Shared;
use crate::status::ConnectorStatus;

/// How long between attempts to reach the log at start.
const START_RETRY: Duration = Duration::from_millis(200);

/// A plan, or what is wrong with the configuration.
pub(crate) type Planned = Result<Arc<Plan>, Vec<Problem>>;

/// See the module's text. `connector_changes` and `offset_changes` change what is wanted.
pub(crate) struct Herder {
    pub(crate) config: WorkerConfig,
    pub(crate) plugins: Plugins,
    pub(crate) cluster_id: String,
    pub(crate) shared: Arc<Shared>,
    configs: watch::Sender<ConfigState>,
    /// What follows from each connector's configuration.
    plans: Mutex<BTreeMap<String, Planned>>,
    runners: Mutex<BTreeMap<String, Handle>>,
    /// Runners of deleted connectors that have not ended.
    leaving: Mutex<BTreeMap<String, JoinHandle<()>>>,
    /// The folder of connector files.
    pub(crate) folder: Folder,
    /// One change at a time, as with Kafka Connect's herder.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

impl Herder {
    /// Restores everything from the log and starts what shall run; tries again while the log
    /// cannot be reached, within the start time-out.
    pub(crate) async fn start(config: WorkerConfig, plugins: Plugins) -> Result<Self, KafkaError> {
        let deadline = Instant::now() + config.start_timeout;
        loop {
            match restore::restore(&config, &plugins).await {
                Ok(restored) => return Ok(Self::of(config, plugins, restored)),
                Err(error) if Instant::now() + START_RETRY >= deadline => return Err(error),
                Err(error) => tracing::warn!(%error, "the log cannot be used yet"),
            }
            tokio::time::sleep(START_RETRY).await;
        }
    }

    fn of(config: WorkerConfig, plugins: Plugins, restored: restore::Restored) -> Self {
        let names: Vec<String> = restored.configs.names().map(str::to_owned).collect();
        let herder = Self {
            folder: Folder::new(config.connectors_dir.clone()),
            config,
            plugins,
            cluster_id: restored.cluster_id,
            shared: Arc::new(restored.shared),
            configs: watch::Sender::new(restored.configs),
            plans: Mutex::new(restored.plans),
            runners: Mutex::default(),
            leaving: Mutex::default(),
            turn: tokio::sync::Mutex::new(()),
        };
        names.iter().for_each(|name| herder.tell(name));
        herder
    }

    /// All configurations as they are now.
    pub(crate) fn configs(&self) -> watch::Ref<'_, ConfigState> {
        self.configs.borrow()
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
        let plan = locked(&self.plans).get(name).cloned();
        plan.unwrap_or_else(|| Err(Vec::new()))
    }

    /// The plans of all connectors but `name` that can be run.
    pub(crate) fn other_plans(&self, name: &str) -> Vec<Arc<Plan>> {
        let plans = locked(&self.plans);
        let others = plans.iter().filter(|(other, _)| other.as_str() != name);
        others.filter_map(|(_, plan)| plan.as_ref().ok().cloned()).collect()
    }

    pub(crate) fn set_plan(&self, name: &str, plan: Planned) {
        locked(&self.plans).insert(name.to_owned(), plan);
    }

    /// What follows from a configuration, whether it is stored or not.
    pub(crate) async fn planned(&self, name: &str, properties: &Properties) -> Planned {
        plan::within_time(name, properties, &self.plugins, &self.config).await
    }

    /// What a connector is doing.
    ///
    /// # Errors
    /// Not found.
    pub(crate) fn status(&self, name: &str) -> Result<ConnectorStatus, Refusal> {
        let status = self.runners().get(name).map(Handle::status);
        status.ok_or_else(|| Refusal::NotFound(format!("No status found for connector {name}")))
    }

    /// Drains all tasks and ends them.
    pub(crate) async fn shutdown(&self) {
        let _turn = self.turn.lock().await;
        let handles = std::mem::take(&mut *self.runners());
        let mut ending: Vec<_> = handles.into_values().map(Handle::leave).collect();
        ending.extend(std::mem::take(&mut *locked(&self.leaving)).into_values());
        for ended in ending {
            drop(ended.await);
        }
        // The log ends next, and its client would complain that it is gone.
        self.shared.journal.close().await;
        self.shared.active_topics.close().await;
    }

    /// Writes records of the configs topic, then takes them in.
    pub(crate) async fn write(&self, records: Vec<OutgoingRecord>) -> Result<(), Refusal> {
        self.shared.journal.write(records.clone()).await.map_err(Refusal::Log)?;
        self.configs.send_modify(|configs| configs.apply_written(&records));
        Ok(())
    }

    /// Whether this worker is the one that follows the folder.
    #[expect(clippy::unused_self, reason = "of many workers it will be one")]
    pub(crate) const fn may_apply(&self) -> bool {
        true
    }

    /// Tells a connector's runner what is wanted, starting it where there is none.
    pub(crate) fn tell(&self, name: &str) {
        let wish = self.wish(name);
        let mut runners = self.runners();
        match runners.get(name) {
            Some(handle) => handle.send(wish),
            None => {
                let predecessor = locked(&self.leaving).remove(name);
                let handle = Handle::spawn(name, wish, Arc::clone(&self.shared), predecessor);
                runners.insert(name.to_owned(), handle);
            }
        }
    }

    fn wish(&self, name: &str) -> Wish {
        match (self.configs().target(name), self.plan(name)) {
            (TargetState::Stopped, plan) => Wish::Stop(plan.ok()),
            (TargetState::Started, Ok(plan)) => Wish::Run(plan),
            (TargetState::Paused, Ok(plan)) => Wish::Pause(plan),
            (_, Err(problems)) => Wish::Refuse(unplannable(name, &problems)),
        }
    }

    /// Takes the runner of a connector that is deleted, and forgets what is planned for it.
    pub(crate) fn take_runner(&self, name: &str) -> Option<Handle> {
        locked(&self.plans).remove(name);
        self.runners().remove(name)
    }

    /// Who is made under this name next waits until `ended` has.
    pub(crate) fn set_leaving(&self, name: &str, ended: JoinHandle<()>) {
        locked(&self.leaving).insert(name.to_owned(), ended);
    }

    pub(crate) fn runners(&self) -> MutexGuard<'_, BTreeMap<String, Handle>> {
        locked(&self.runners)
    }
}

/// The maps behind these locks are whole between any two statements, so a panic of another
/// holder leaves nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unplannable(name: &str, problems: &[Problem]) -> ConnectorError {
    let list: Vec<_> =
        problems.iter().map(|problem| format!("{} {}", problem.key, problem.message)).collect();
    ConnectorError::stop(
        "CONFIG_INVALID",
        ErrorKind::Configuration,
        format!("the stored configuration cannot be run: {}", list.join("; ")),
        format!("PUT /connectors/{name}/config with a configuration that fits"),
    )
}
