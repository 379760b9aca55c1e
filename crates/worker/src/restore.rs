//! What a worker restores from the log when it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_kafka::{KafkaError, OutgoingRecord};

use crate::WorkerConfig;
use crate::active_topics::ActiveTopics;
use crate::cluster::Cluster;
use crate::configs::{self, ConfigState, TargetState};
use crate::fencing::Fences;
use crate::health::LogProbe;
use crate::herder::Planned;
use crate::journal::journal;
use crate::looking::Looking;
use crate::meters::Meters;
use crate::offset_topics::OffsetTopics;
use crate::pipeline::Properties;
use crate::plan;
use crate::plugins::Plugins;
use crate::replay::Replay;
use crate::runner::Shared;
use crate::statuses::{self, Part};
use crate::topics;

/// See the module's text.
pub(crate) struct Restored {
    pub(crate) cluster_id: String,
    pub(crate) configs: ConfigState,
    /// What follows from each connector's configuration.
    pub(crate) plans: BTreeMap<String, Planned>,
    pub(crate) shared: Shared,
}

/// Reads everything, and writes what is missing or too much of it.
///
/// # Errors
/// When the log cannot be used.
pub(crate) async fn restore(
    config: &WorkerConfig,
    plugins: &Plugins,
) -> Result<Restored, KafkaError> {
    let cluster = Cluster::new(config);
    for topic in [&config.configs_topic, &config.offsets_topic, &config.status_topic] {
        topics::ensure_internal(&cluster.admin, topic).await?;
    }
    let cluster_id = cluster.admin.cluster_id().await?;
    let mut configs = read_configs(&cluster, &config.configs_topic).await?;
    let plans = plans(&configs, plugins, config).await;
    let shared = Shared {
        offsets: OffsetTopics::open(&cluster, &config.offsets_topic).await?,
        journal: journal(&cluster),
        active_topics: Arc::new(ActiveTopics::open(&cluster, config).await?),
        status_topic: config.status_topic.clone(),
        worker_id: config.worker_id.clone(),
        worker: config.clone(),
        cluster: cluster.clone(),
        fences: Fences::new(&config.configs_topic, &config.group_id, configs.fenced().clone()),
        meters: Meters::default(),
        probe: LogProbe::default(),
        looking: Looking::new(config),
    };
    let mut records = changed_tasks(&config.configs_topic, &configs, &plans);
    configs.apply_written(&records);
    records.extend(stale_statuses(&cluster, &config.status_topic, &configs, &plans).await?);
    if !records.is_empty() {
        shared.journal.write(records).await?;
    }
    Ok(Restored { cluster_id, configs, plans, shared })
}

async fn plans(
    configs: &ConfigState,
    plugins: &Plugins,
    worker: &WorkerConfig,
) -> BTreeMap<String, Planned> {
    let mut plans = BTreeMap::new();
    for name in configs.names() {
        let properties = configs.properties(name).cloned().unwrap_or_default();
        let planned = plan::within_time(name, &properties, plugins, worker).await;
        plans.insert(name.to_owned(), planned);
    }
    plans
}

/// The tasks that a connector shall have now, as they are stored.
pub(crate) fn wanted_tasks(target: TargetState, plan: &plan::Plan) -> &[Properties] {
    match target {
        TargetState::Started | TargetState::Paused => &plan.stored,
        TargetState::Stopped => &[],
    }
}

/// Records for the tasks that are stored otherwise than they are run: this worker divides a
/// connector's work in another way than the one before, or not all of its tasks are stored.
fn changed_tasks(
    topic: &str,
    configs: &ConfigState,
    plans: &BTreeMap<String, Planned>,
) -> Vec<OutgoingRecord> {
    let plans = plans.iter().filter_map(|(name, plan)| Some((name, plan.as_ref().ok()?)));
    let changed = plans.filter_map(|(name, plan)| {
        let wanted = wanted_tasks(configs.target(name), plan);
        let stored = configs.tasks(name).committed();
        if stored.is_none() {
            tracing::warn!(
                connector = name,
                "not all of its tasks are stored; they are written anew"
            );
        }
        let same = stored.is_some_and(|stored| stored.into_iter().eq(wanted));
        (!same).then(|| configs::put_tasks(topic, name, wanted))
    });
    changed.flatten().collect()
}

async fn read_configs(cluster: &Cluster, topic: &str) -> Result<ConfigState, KafkaError> {
    let mut state = ConfigState::default();
    Replay::open(&cluster.reader, &cluster.admin, topic)
        .await?
        .catch_up(&mut |record| state.apply(record.key.as_deref(), record.value.as_deref()))
        .await?;
    Ok(state)
}

/// Tombstones for statuses of connectors and tasks that do not exist, left by a crash.
async fn stale_statuses(
    cluster: &Cluster,
    topic: &str,
    configs: &ConfigState,
    plans: &BTreeMap<String, Planned>,
) -> Result<Vec<OutgoingRecord>, KafkaError> {
    let mut parts = BTreeSet::new();
    Replay::open(&cluster.reader, &cluster.admin, topic)
        .await?
        .catch_up(&mut |record| {
            statuses::apply(&mut parts, record.key.as_deref(), record.value.as_deref());
        })
        .await?;
    let exists = |part: &Part| match part {
        Part::Connector(name) => plans.contains_key(name),
        Part::Task(name, id) => {
            plans.get(name).and_then(|plan| plan.as_ref().ok()).is_some_and(|plan| {
                (0..).zip(wanted_tasks(configs.target(name), plan)).any(|(own, _)| own == *id)
            })
        }
    };
    Ok(parts.iter().filter(|part| !exists(part)).map(|part| part.tombstone(topic)).collect())
}
