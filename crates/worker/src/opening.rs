//! What happens before a task reads: the stored offset is read and checked against the log, the
//! generation is decided and stored, the topics stand, the source opens.

use std::sync::Arc;

use highwater_connector::{
    ConnectorError, ErrorKind, Generation, GenerationMark, Routing, Start, TableDescription, Tail,
    TaskStore,
};
use highwater_kafka::{ReadRecord, Writer};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::active_topics::UsedTopics;
use crate::boundary::Boundaries;
use crate::cluster::{Cluster, log_error};
use crate::exactly_once::Delivery;
use crate::ledger::{Cover, Ledger};
use crate::meter::TaskMeter;
use crate::offset_topics::OffsetTopics;
use crate::offsets::{self, StoredOffset};
use crate::origin::{self, Known, Origin};
use crate::outbox::{Contract, OffsetSlot, Outbox, OutboxStore};
use crate::pipeline::Pipeline;
use crate::source_values::SourceValues;
use crate::status::Status;
use crate::task::{Running, StopSignal, Unreported};
use crate::task_topics::{self, TaskTopics};
use crate::tolerance::Tolerance;
use crate::{scrubbed, tail, topics};

/// Opens the source of `pipeline` where its stored offset says.
///
/// # Errors
/// When the log lost what the offset relies on, a topic is unfit, or the source cannot be opened.
pub(crate) async fn open(
    pipeline: &Pipeline,
    cluster: &Cluster,
    offsets: &OffsetTopics,
    used: UsedTopics,
    stop: StopSignal,
    shown: (watch::Sender<Status>, Arc<TaskMeter>),
) -> Result<Running, ConnectorError> {
    let (status, meter) = shown;
    // First of all, since it fences whoever runs the task still: what that one was committing is then
    // in the log, and the rest never will be.
    let writer = writer(pipeline, cluster).await?;
    let named = pipeline.settings.offsets_topic.as_deref();
    let stored = offsets
        .find(named, &pipeline.name, &pipeline.partition)
        .await
        .map_err(|error| log_error(&error))?
        .unwrap_or_else(|| nothing_stored(pipeline));
    let stored = undamaged(pipeline, stored)?;
    let routing = &pipeline.topics.routing;
    let may_hold_more = tail::check(&cluster.reader, &pipeline.name, routing, &stored.tail).await?;
    topics::ensure_connector(&cluster.admin, pipeline).await?;

    let tail = stored.tail.clone();
    let origin = decide(pipeline, stored, may_hold_more);
    status.send_modify(|status| {
        status.generation = Some(origin.mark.generation);
        status.position.clone_from(&origin.offset);
    });
    let slot = OffsetSlot {
        topic: offsets.written(named).to_owned(),
        key: offsets::key(&pipeline.name, &pipeline.partition),
        mark: origin.mark.clone(),
    };
    let mut outbox = outbox(pipeline, cluster, writer, tail, slot, used).await?.metered(&meter);
    if origin.must_store {
        outbox.store_explicit(origin.offset.clone().unwrap_or_default()).await?;
    }
    start(pipeline, cluster, origin, outbox, stop, (status, meter)).await
}

fn nothing_stored(pipeline: &Pipeline) -> StoredOffset {
    StoredOffset {
        last_change: None,
        partition: pipeline.partition.clone(),
        offset: None,
        mark: None,
        tail: Tail::default(),
        damage: None,
    }
}

/// A record that cannot be read hides a position: taking it for none would begin anew.
fn undamaged(pipeline: &Pipeline, stored: StoredOffset) -> Result<StoredOffset, ConnectorError> {
    let Some(damage) = stored.damage else { return Ok(stored) };
    let name = &pipeline.name;
    Err(ConnectorError::stop(
        "OFFSET_UNREADABLE",
        ErrorKind::Position,
        format!("the stored offset of connector {name} cannot be read: {damage}"),
        format!(
            "PUT /connectors/{name}/stop, PATCH /connectors/{name}/offsets with the position to go \
             on from, then PUT /connectors/{name}/resume"
        ),
    )
    .keeping("everything already in the log; nothing was read from the source"))
}

fn decide(pipeline: &Pipeline, stored: StoredOffset, may_hold_more: bool) -> Origin {
    let before_open_transaction = stored
        .offset
        .as_ref()
        .and_then(|offset| pipeline.connector.before_open_transaction(offset));
    let known =
        Known { offset: stored.offset, mark: stored.mark, before_open_transaction, may_hold_more };
    let minted = Generation::mint();
    let origin = origin::decide(known, &pipeline.fingerprint, minted);
    let GenerationMark { generation, .. } = origin.mark;
    tracing::info!(
        %generation,
        new_generation = generation == minted,
        offset = origin.offset.as_ref().map(ToString::to_string),
        "task starts"
    );
    origin
}

/// A writer that is ready to write.
async fn writer(pipeline: &Pipeline, cluster: &Cluster) -> Result<Box<dyn Writer>, ConnectorError> {
    let transactions = match &pipeline.settings.delivery {
        Delivery::AtLeastOnce => None,
        Delivery::ExactlyOnce(own) => {
            Some(own.of_task(&cluster.group_id, &pipeline.name, pipeline.task))
        }
    };
    let writer = cluster.writer(pipeline.settings.sending, transactions);
    let mut writer = writer.map_err(|error| log_error(&error))?;
    writer.begin().await.map_err(|error| log_error(&error))?;
    Ok(writer)
}

async fn outbox(
    pipeline: &Pipeline,
    cluster: &Cluster,
    writer: Box<dyn Writer>,
    tail: Tail,
    slot: OffsetSlot,
    used: UsedTopics,
) -> Result<Outbox, ConnectorError> {
    let topics = task_topics(pipeline, cluster).await?.telling(used);
    let (contract, cover) = match &pipeline.settings.delivery {
        Delivery::AtLeastOnce => (Contract::AtLeastOnce, Cover::Acknowledged),
        Delivery::ExactlyOnce(own) => {
            let boundaries = Boundaries::new(own.boundary, own.timeout);
            (Contract::ExactlyOnce(boundaries), Cover::All)
        }
    };
    let ledger = Ledger::new(cover, tail, Instant::now().into());
    Ok(Outbox::new(writer, contract, ledger, slot, pipeline.settings.sending, topics))
}

async fn task_topics(pipeline: &Pipeline, cluster: &Cluster) -> Result<TaskTopics, ConnectorError> {
    let admin = &cluster.admin;
    let mut known = Vec::new();
    let side = pipeline.topics.side.iter().map(|side| &side.name);
    for topic in pipeline.topics.schema.iter().chain(side) {
        known.push((Arc::from(topic.as_str()), task_topics::facts(admin, topic).await?));
    }
    if let Routing::Trail(trail) = &pipeline.topics.routing {
        known.push((Arc::from(trail.as_str()), task_topics::facts(admin, trail).await?));
        return Ok(TaskTopics::fixed(known));
    }
    let creation = pipeline.settings.creation.clone();
    let own = cluster.own_topics.clone();
    Ok(TaskTopics::fixed(known).with_tables(admin.clone(), creation, own))
}

async fn start(
    pipeline: &Pipeline,
    cluster: &Cluster,
    origin: Origin,
    outbox: Outbox,
    stop: StopSignal,
    (status, meter): (watch::Sender<Status>, Arc<TaskMeter>),
) -> Result<Running, ConnectorError> {
    let tables = match &pipeline.topics.schema {
        Some(schema) => table_descriptions(cluster, schema).await?,
        None => Vec::new(),
    };
    let in_transaction = origin
        .offset
        .as_ref()
        .is_some_and(|offset| pipeline.connector.before_open_transaction(offset).is_some());
    let outbox = Arc::new(Mutex::new(outbox));
    let store: Arc<dyn TaskStore> =
        Arc::new(OutboxStore { outbox: Arc::clone(&outbox), reader: cluster.reader.clone() });
    let task = pipeline.connector.task(&pipeline.config)?;
    let mut task = scrubbed::source(task, &pipeline.scrub);
    let start = Start { offset: origin.offset, generation: origin.mark.generation, tables };
    if let Err(error) = task.start(start, store).await {
        task.stop().await;
        return Err(error);
    }
    let name = pipeline.name.clone();
    let values = pipeline.path.as_ref().map(|path| SourceValues {
        path: Arc::clone(path),
        tolerance: Tolerance::of(&pipeline.settings),
        meter: Arc::clone(&meter),
        task: pipeline.task,
    });
    Ok(Running {
        task,
        outbox,
        values,
        trouble: None,
        flush_interval: pipeline.settings.flush_interval,
        in_transaction,
        stop,
        status,
        meter,
        name,
        unreported: Unreported::default(),
    })
}

/// All descriptions of the schema topic, the newest of each key.
async fn table_descriptions(
    cluster: &Cluster,
    topic: &str,
) -> Result<Vec<TableDescription>, ConnectorError> {
    let mut found = std::collections::BTreeMap::new();
    let mut unreadable = None;
    let mut each = |record: ReadRecord| match record.value.as_deref() {
        None => {}
        Some(value) => match serde_json::from_slice::<TableDescription>(value) {
            Ok(table) => drop(found.insert(table.key(), table)),
            Err(error) => unreadable = Some((record.offset, error)),
        },
    };
    cluster.reader.read_all(topic, 0, &mut each).await.map_err(|error| log_error(&error))?;
    match unreadable {
        None => Ok(found.into_values().collect()),
        Some((offset, error)) => Err(ConnectorError::stop(
            "SCHEMA_UNREADABLE",
            ErrorKind::Log,
            format!("record {offset} of topic {topic} is no table description: {error}"),
            "write only table descriptions to that topic, or name another topic.prefix",
        )),
    }
}
