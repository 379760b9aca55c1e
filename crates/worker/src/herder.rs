//! Changes what operators want: writes it to the log first, then tells the runners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use highwater_connector::{ConnectorError, ErrorKind, Problem, Retry, SourceConnector, Topics};
use highwater_kafka::{KafkaError, OutgoingRecord};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::WorkerConfig;
use crate::cluster::Cluster;
use crate::configs::{self, ConfigState, TargetState};
use crate::journal::journal;
use crate::keys;
use crate::looking::{Looking, silent};
use crate::offsets::Offsets;
use crate::pipeline::{self, Pipeline, Properties};
use crate::plugins::Plugins;
use crate::replay::Replay;
use crate::rest_error::Refusal;
use crate::runner::{Handle, Shared, Wish};
use crate::secrets;
use crate::status::Status;
use crate::statuses;
use crate::topics;

/// How long between attempts to reach the log at start.
const START_RETRY: Duration = Duration::from_millis(200);

/// How much longer than its drain a request waits for a connector to end.
const END_GRACE: Duration = Duration::from_secs(10);

/// How long it waits at most: what the source is asked then must fit into the 90 s of our own client.
const LONGEST_END: Duration = Duration::from_secs(50);

/// See the module's text.
pub(crate) struct Herder {
    pub(crate) config: WorkerConfig,
    pub(crate) plugins: Plugins,
    pub(crate) cluster_id: String,
    pub(crate) shared: Arc<Shared>,
    configs: watch::Sender<ConfigState>,
    runners: Mutex<BTreeMap<String, Handle>>,
    /// Runners of deleted connectors that have not ended.
    leaving: Mutex<BTreeMap<String, JoinHandle<()>>>,
    /// One change at a time, as with Kafka Connect's herder.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// Whether a configuration made a connector or changed one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Put {
    Created,
    Updated,
}

impl Herder {
    /// Restores everything from the log and starts what shall run; tries again while the log
    /// cannot be reached, within the start time-out.
    pub(crate) async fn start(config: WorkerConfig, plugins: Plugins) -> Result<Self, KafkaError> {
        let deadline = Instant::now() + config.start_timeout;
        loop {
            match Self::restore(&config, &plugins).await {
                Ok(herder) => return Ok(herder),
                Err(error) if Instant::now() + START_RETRY >= deadline => return Err(error),
                Err(error) => tracing::warn!(%error, "the log cannot be used yet"),
            }
            tokio::time::sleep(START_RETRY).await;
        }
    }

    async fn restore(config: &WorkerConfig, plugins: &Plugins) -> Result<Self, KafkaError> {
        let cluster = Cluster::new(config);
        for topic in [&config.configs_topic, &config.offsets_topic, &config.status_topic] {
            topics::ensure_internal(&cluster.admin, topic).await?;
        }
        let cluster_id = cluster.admin.cluster_id().await?;
        let state = read_configs(&cluster, &config.configs_topic).await?;
        let shared = Arc::new(Shared {
            offsets: Offsets::open(&cluster, &config.offsets_topic).await?,
            journal: journal(&cluster),
            status_topic: config.status_topic.clone(),
            worker_id: config.worker_id.clone(),
            cluster: cluster.clone(),
            looking: Looking { interval: config.hold_interval, timeout: config.source_timeout },
        });
        let stale = stale_statuses(&cluster, &config.status_topic, &state).await?;
        if !stale.is_empty() {
            shared.journal.write(stale).await?;
        }
        let herder = Self {
            config: config.clone(),
            plugins: plugins.clone(),
            cluster_id,
            shared,
            configs: watch::Sender::new(state),
            runners: Mutex::default(),
            leaving: Mutex::default(),
            turn: tokio::sync::Mutex::new(()),
        };
        let names: Vec<String> = herder.configs().names().map(str::to_owned).collect();
        names.iter().for_each(|name| herder.tell(name));
        Ok(herder)
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
    pub(crate) fn plugin(&self, properties: &Properties) -> Option<&dyn SourceConnector> {
        let class = properties.get(keys::CLASS)?;
        self.plugins.find(class).map(Arc::as_ref)
    }

    /// What a connector is doing.
    ///
    /// # Errors
    /// Not found.
    pub(crate) fn status(&self, name: &str) -> Result<Status, Refusal> {
        let status = self.runners().get(name).map(Handle::status);
        status.ok_or_else(|| Refusal::NotFound(format!("No status found for connector {name}")))
    }

    /// Makes a connector.
    ///
    /// # Errors
    /// When the name is taken, the configuration is invalid, or the log fails.
    pub(crate) async fn create(
        &self,
        name: &str,
        mut properties: Properties,
        target: TargetState,
    ) -> Result<(), Refusal> {
        let _turn = self.turn.lock().await;
        if self.configs().properties(name).is_some() {
            return Err(Refusal::Exists(format!("Connector {name} already exists")));
        }
        self.check(name, &mut properties)?;
        self.put(name, &properties, target).await
    }

    /// Sets a connector's whole configuration, making it where it does not exist.
    ///
    /// # Errors
    /// When the configuration is invalid or the log fails.
    pub(crate) async fn put_config(
        &self,
        name: &str,
        mut properties: Properties,
    ) -> Result<Put, Refusal> {
        let _turn = self.turn.lock().await;
        let put = match self.configs().properties(name) {
            Some(_) => Put::Updated,
            None => Put::Created,
        };
        self.check(name, &mut properties)?;
        let target = self.configs().target(name);
        self.put(name, &properties, target).await?;
        Ok(put)
    }

    /// Changes some keys of a connector's configuration; `None` removes a key (KIP-477).
    ///
    /// # Errors
    /// Not found, invalid, or the log fails.
    pub(crate) async fn patch_config(
        &self,
        name: &str,
        patch: BTreeMap<String, Option<String>>,
    ) -> Result<(), Refusal> {
        let _turn = self.turn.lock().await;
        let mut properties = self.properties(name)?;
        for (key, value) in patch {
            match value {
                Some(value) => drop(properties.insert(key, value)),
                None => drop(properties.remove(&key)),
            }
        }
        self.check(name, &mut properties)?;
        let target = self.configs().target(name);
        self.put(name, &properties, target).await
    }

    async fn put(
        &self,
        name: &str,
        properties: &Properties,
        target: TargetState,
    ) -> Result<(), Refusal> {
        let topic = &self.config.configs_topic;
        self.write(configs::put_connector(topic, name, properties, target)).await?;
        self.tell(name);
        Ok(())
    }

    /// Deletes a connector; its topics and offsets stay. Ends once its task has, within a bound.
    ///
    /// # Errors
    /// Not found, or the log fails.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), Refusal> {
        let turn = self.turn.lock().await;
        self.properties(name)?;
        let bound = self.end_bound(name);
        self.write(configs::delete(&self.config.configs_topic, name)).await?;
        let handle = self.runners().remove(name);
        let Some(handle) = handle else { return Ok(()) };
        let mut status = handle.watch();
        let ended = handle.leave();
        let shared = Arc::clone(&self.shared);
        let gone = statuses::delete(&self.config.status_topic, name);
        let cleanup = tokio::spawn(async move {
            drop(ended.await);
            if let Err(error) = shared.journal.write(gone).await {
                tracing::warn!(%error, "the status of a deleted connector stays in the log");
            }
        });
        locked(&self.leaving).insert(name.to_owned(), cleanup);
        drop(turn);
        // The runner drops its end of the status when it has ended.
        drop(tokio::time::timeout(bound, status.wait_for(|_| false)).await);
        Ok(())
    }

    /// Sets what is wanted of a connector. Stopping ends once the task has, within a bound, so
    /// that its offsets can be changed next.
    ///
    /// # Errors
    /// Not found, or the log fails.
    pub(crate) async fn set_target(&self, name: &str, target: TargetState) -> Result<(), Refusal> {
        let turn = self.turn.lock().await;
        let unknown = || Refusal::NotFound(format!("Unknown connector {name}"));
        let properties = self.properties(name).map_err(|_| unknown())?;
        if self.configs().target(name) != target {
            let topic = &self.config.configs_topic;
            self.write(configs::put_target(topic, name, &properties, target)).await?;
            self.tell(name);
        }
        drop(turn);
        if target == TargetState::Stopped {
            self.wait_until_stopped(name).await;
        }
        Ok(())
    }

    /// Stops a connector and makes its source let go of what it keeps for it; says what that was.
    ///
    /// # Errors
    /// Not found, or the source refuses or cannot be asked: the connector is then stopped.
    pub(crate) async fn release(&self, name: &str) -> Result<Option<String>, Refusal> {
        self.set_target(name, TargetState::Stopped).await?;
        let _turn = self.turn.lock().await;
        let pipeline = self.stopped(name)?;
        let stored = self.offsets(name).await?;
        let offset = stored.into_iter().find(|stored| stored.partition == pipeline.partition);
        let offset = offset.and_then(|stored| stored.offset);
        let limit = self.config.source_timeout;
        let released = pipeline.connector.release(&pipeline.config, offset.as_ref());
        let failed = |error: ConnectorError| {
            let kept = "the connector, which is stopped now, its topics and its offset";
            error.of(name).keeping(kept)
        };
        match tokio::time::timeout(limit, released).await {
            Ok(Ok(released)) => Ok(released),
            Ok(Err(error)) if error.retry == Retry::Never => Err(Refusal::Connector(failed(error))),
            Ok(Err(mut error)) => {
                // The task is stopped: nothing tries again by itself.
                error.remedy = "ask for it once more when the source answers".to_owned();
                Err(Refusal::Source(failed(error)))
            }
            Err(_) => Err(Refusal::Source(failed(silent("letting go of what it keeps", limit)))),
        }
    }

    async fn wait_until_stopped(&self, name: &str) {
        let status = self.runners().get(name).map(Handle::watch);
        if let Some(mut status) = status {
            let stopped = status.wait_for(Status::is_stopped);
            drop(tokio::time::timeout(self.end_bound(name), stopped).await);
        }
    }

    /// How long a request waits for a connector to end, which may drain as long as it is configured.
    fn end_bound(&self, name: &str) -> Duration {
        let planned = self.plan(name).map(|pipeline| pipeline.settings.drain_timeout);
        end_bound(planned.unwrap_or(self.config.drain_timeout))
    }

    /// Starts a connector's task anew, after it was drained.
    ///
    /// # Errors
    /// Not found.
    pub(crate) async fn restart(&self, name: &str) -> Result<(), Refusal> {
        let _turn = self.turn.lock().await;
        self.properties(name)
            .map_err(|_| Refusal::NotFound(format!("Unknown connector: {name}")))?;
        self.tell(name);
        Ok(())
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
    }

    /// Writes records of the configs topic, then takes them in.
    async fn write(&self, records: Vec<OutgoingRecord>) -> Result<(), Refusal> {
        self.shared.journal.write(records.clone()).await.map_err(Refusal::Log)?;
        self.configs.send_modify(|configs| configs.apply_written(&records));
        Ok(())
    }

    /// Tells a connector's runner what is wanted, starting it where there is none.
    fn tell(&self, name: &str) {
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
        let planned = self.plan(name).map(Arc::new);
        match self.configs().target(name) {
            TargetState::Paused => Wish::Pause(planned.ok()),
            TargetState::Stopped => Wish::Stop(planned.ok()),
            TargetState::Started => match planned {
                Ok(pipeline) => Wish::Run(pipeline),
                Err(problems) => Wish::Refuse(unplannable(name, &problems)),
            },
        }
    }

    /// The pipeline of a connector as it is configured now.
    pub(crate) fn plan(&self, name: &str) -> Result<Pipeline, Vec<Problem>> {
        let properties = self.configs().properties(name).cloned().unwrap_or_default();
        Pipeline::plan(name, &properties, &self.plugins, &self.config)
    }

    /// Checks a configuration that somebody gives: its name, its secrets, its keys, its topics.
    fn check(&self, name: &str, properties: &mut Properties) -> Result<(), Refusal> {
        check_name(name)?;
        let named = properties.entry(keys::NAME.to_owned()).or_insert_with(|| name.to_owned());
        if named != name {
            return Err(Refusal::BadRequest(format!(
                "Connector name configuration ({named}) doesn't match connector name in the URL \
                 ({name})"
            )));
        }
        let stored = self.configs().properties(name).cloned();
        secrets::unmask(self.plugin(&properties.clone()), properties, stored.as_ref())
            .map_err(Refusal::Invalid)?;
        let pipeline = Pipeline::plan(name, properties, &self.plugins, &self.config)
            .map_err(Refusal::Invalid)?;
        self.check_owner(&pipeline).map_err(Refusal::Invalid)?;
        self.check_claims(&pipeline).map_err(Refusal::Invalid)
    }

    /// What a connector claims is nobody else's.
    fn check_claims(&self, pipeline: &Pipeline) -> Result<(), Vec<Problem>> {
        let configs = self.configs().clone();
        let others = configs
            .names()
            .filter(|name| *name != pipeline.name)
            .filter_map(|name| Some((name, self.plan(name).ok()?.claims)));
        match pipeline::claimed(&pipeline.claims, others) {
            None => Ok(()),
            Some((owner, claim)) => Err(vec![Problem {
                key: claim.key.to_owned(),
                message: format!(
                    "leads to {}, which connector {owner} uses; two connectors cannot share it",
                    claim.what
                ),
            }]),
        }
    }

    /// Rule R2: a topic has one owner.
    fn check_owner(&self, pipeline: &Pipeline) -> Result<(), Vec<Problem>> {
        if let Some(topic) = pipeline::internal(&pipeline.topics) {
            let message = format!(
                "leads to topic {topic}; names that begin with highwater. are for the server's own topics"
            );
            return Err(vec![Problem { key: "topic.prefix".to_owned(), message }]);
        }
        let configs = self.configs().clone();
        let others = configs
            .names()
            .filter(|name| *name != pipeline.name)
            .filter_map(|name| Some((name, self.topics_of(name, configs.properties(name)?)?)));
        match pipeline::owner(&pipeline.topics, others) {
            None => Ok(()),
            Some((owner, topic)) => Err(vec![Problem {
                key: "topic.prefix".to_owned(),
                message: format!(
                    "leads to topic {topic}, which connector {owner} owns; a topic has one owner"
                ),
            }]),
        }
    }

    fn topics_of(&self, name: &str, properties: &Properties) -> Option<Topics> {
        let pipeline = Pipeline::plan(name, properties, &self.plugins, &self.config).ok()?;
        Some(pipeline.topics)
    }

    fn runners(&self) -> MutexGuard<'_, BTreeMap<String, Handle>> {
        locked(&self.runners)
    }
}

/// The maps behind these locks are whole between any two statements, so a panic of another
/// holder leaves nothing half done.
fn end_bound(drain: Duration) -> Duration {
    (drain + END_GRACE).min(LONGEST_END)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Longest name of a connector, in bytes.
const MAX_NAME: usize = 255;

fn check_name(name: &str) -> Result<(), Refusal> {
    let message = if name.is_empty() {
        "must not be empty".to_owned()
    } else if name.len() > MAX_NAME {
        format!("must not be longer than {MAX_NAME} bytes")
    } else if name.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::Invalid(vec![Problem { key: keys::NAME.to_owned(), message }]))
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

async fn read_configs(cluster: &Cluster, topic: &str) -> Result<ConfigState, KafkaError> {
    let mut state = ConfigState::default();
    Replay::open(&cluster.reader, &cluster.admin, topic)
        .await?
        .catch_up(&mut |record| state.apply(record.key.as_deref(), record.value.as_deref()))
        .await?;
    Ok(state)
}

/// Tombstones for statuses of connectors that do not exist, left by a crash inside a delete.
async fn stale_statuses(
    cluster: &Cluster,
    topic: &str,
    configs: &ConfigState,
) -> Result<Vec<OutgoingRecord>, KafkaError> {
    let mut names = BTreeSet::new();
    Replay::open(&cluster.reader, &cluster.admin, topic)
        .await?
        .catch_up(&mut |record| {
            statuses::apply(&mut names, record.key.as_deref(), record.value.as_deref());
        })
        .await?;
    let stale = names.iter().filter(|name| configs.properties(name).is_none());
    Ok(stale.flat_map(|name| statuses::delete(topic, name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_awaited_for_longer_than_its_drain_as_far_as_a_request_may_take() {
        let bound = |seconds| end_bound(Duration::from_secs(seconds)).as_secs();
        assert_eq!([5, 30, 600].map(bound), [15, 40, 50]);
    }
}
