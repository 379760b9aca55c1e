//! What a worker restores from the log when it starts.

use std::sync::Arc;

use futures_util::future::join_all;
use highwater_kafka::{KafkaError, OutgoingRecord};
use tokio::sync::watch;

use crate::WorkerConfig;
use crate::active_topics::ActiveTopics;
use crate::cluster::Cluster;
use crate::config_records;
use crate::configs::ConfigState;
use crate::fencing::Fences;
use crate::health::LogProbe;
use crate::journal::journal;
use crate::looking::Looking;
use crate::meters::Meters;
use crate::offset_topics::OffsetTopics;
use crate::pipeline::Properties;
use crate::plan;
use crate::plans::{Division, Planned, Plans};
use crate::plugins::Plugins;
use crate::replay::Replay;
use crate::runner::Shared;
use crate::standing::Standing;
use crate::statuses::{self, Book};
use crate::target_state::TargetState;
use crate::topics;

/// See the module's text.
pub(crate) struct Restored {
    pub(crate) cluster_id: String,
    pub(crate) configs: watch::Sender<ConfigState>,
    /// What follows from each connector's configuration.
    pub(crate) plans: Plans,
    pub(crate) shared: Shared,
    pub(crate) config_tail: Replay,
    pub(crate) status_tail: Replay,
}

/// Reads everything; writes nothing but the topics that are missing.
///
/// # Errors
/// When the log cannot be used.
pub(crate) async fn restore(
    config: &WorkerConfig,
    plugins: &Plugins,
) -> Result<Restored, KafkaError> {
    let cluster = Cluster::new(config);
    for topic in [&config.configs_topic, &config.status_topic] {
        topics::ensure_internal(&cluster.admin, topic).await?;
    }
    let cluster_id = cluster.admin.cluster_id().await?;
    let (configs, config_tail) = read_configs(&cluster, &config.configs_topic).await?;
    let is_begun = topics::ensure_internal(&cluster.admin, &config.offsets_topic).await?;
    let lost_offsets = is_begun && configs.names().next().is_some();
    if lost_offsets {
        let topic = &config.offsets_topic;
        tracing::error!(
            topic,
            "the topic of offsets was not there and connectors are: they begin anew"
        );
    }
    let active_topics = Arc::new(ActiveTopics::new(&cluster, config));
    let (book, status_tail) = read_statuses(&cluster, &config.status_topic, &active_topics).await?;
    let plans = plans(&configs, plugins, config).await;
    let (configs, seen) = watch::channel(configs);
    let standing = watch::Sender::new(match config.sharing {
        Some(_) => Standing::Out,
        None => Standing::Alone,
    });
    let (topic, group) = (&config.configs_topic, &config.group_id);
    let shared = Shared {
        offsets: OffsetTopics::open(&cluster, &config.offsets_topic).await?,
        journal: journal(&cluster),
        active_topics,
        status_topic: config.status_topic.clone(),
        worker_id: config.worker_id.clone(),
        worker: config.clone(),
        cluster: cluster.clone(),
        fences: Fences::new(topic, group, seen, standing.subscribe()),
        lost_offsets,
        probe: LogProbe::default(),
        looking: Looking::new(config),
        meters: Meters::default(),
        statuses: watch::Sender::new(book),
        standing,
    };
    Ok(Restored { cluster_id, configs, plans, shared, config_tail, status_tail })
}

async fn plans(configs: &ConfigState, plugins: &Plugins, worker: &WorkerConfig) -> Plans {
    let plans = Plans::default();
    let each = configs.names().map(async |name| {
        let properties = configs.properties(name).cloned().unwrap_or_default();
        let planned = plan::within_time(name, &properties, &[], plugins, worker).await;
        plans.set(name, configs.revision(name), planned, Division::Own);
    });
    // At once: one whose check hangs takes its time-out, and no more for all of them.
    join_all(each).await;
    plans
}

/// The tasks that a connector shall have now, as they are stored.
pub(crate) fn wanted_tasks(target: TargetState, plan: &plan::Plan) -> &[Properties] {
    match target {
        TargetState::Started | TargetState::Paused => &plan.stored,
        TargetState::Stopped => &[],
    }
}

/// Records for the tasks of a connector that are stored otherwise than they are run: this worker
/// divides its work in another way than the one before, or not all of its tasks are stored.
pub(crate) fn changed_tasks(
    topic: &str,
    name: &str,
    configs: &ConfigState,
    planned: &Planned,
) -> Vec<OutgoingRecord> {
    let Ok(plan) = planned else { return Vec::new() };
    let wanted = wanted_tasks(configs.target(name), plan);
    let stored = configs.tasks(name).committed();
    if stored.is_none() {
        tracing::warn!(connector = name, "not all of its tasks are stored; they are written anew");
    }
    let same = stored.is_some_and(|stored| stored.into_iter().eq(wanted));
    if same { Vec::new() } else { config_records::put_tasks(topic, name, wanted) }
}

async fn read_configs(cluster: &Cluster, topic: &str) -> Result<(ConfigState, Replay), KafkaError> {
    let mut state = ConfigState::default();
    let mut tail = Replay::open(&cluster.reader, &cluster.admin, topic).await?;
    tail.catch_up(&mut |record| {
        // What was asked for before this start is done.
        let _ = state.apply(record.key.as_deref(), record.value.as_deref());
    })
    .await?;
    Ok((state, tail))
}

async fn read_statuses(
    cluster: &Cluster,
    topic: &str,
    active_topics: &ActiveTopics,
) -> Result<(Book, Replay), KafkaError> {
    let mut book = Book::new();
    let mut tail = Replay::open(&cluster.reader, &cluster.admin, topic).await?;
    tail.catch_up(&mut |record| {
        statuses::apply(&mut book, record.key.as_deref(), record.value.as_deref());
        active_topics.apply(record.key.as_deref(), record.value.is_some());
    })
    .await?;
    Ok((book, tail))
}
