//! Edits of stored offsets that an operator asks for (rule P8, KIP-875).

use std::sync::Arc;

use futures_util::future::join_all;
use highwater_connector::{
    ConnectorError, OffsetChange, OffsetVerdict, SourceOffset, SourcePartition,
};
use highwater_kafka::OutgoingRecord;

use crate::exactly_once::Delivery;
use crate::herder::Herder;
use crate::keys;
use crate::looking::silent;
use crate::offsets::{self, StoredOffset};
use crate::pipeline::Pipeline;
use crate::plan::{Plan, TaskPlan};
use crate::rest_error::Refusal;
use crate::runner::Shared;
use crate::status::State;
use crate::target_state::TargetState;

/// One entry of a request: an offset to store, or `None` to reset.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) partition: SourcePartition,
    pub(crate) offset: Option<SourceOffset>,
}

/// How an edit was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    /// Whether skipping changes was asked for in so many words.
    pub(crate) allow_skip: bool,
    /// Why, kept beside the offset.
    pub(crate) reason: String,
}

impl Herder {
    /// Stored offsets of a connector, those of other partitions than its present one included.
    ///
    /// # Errors
    /// Not found, or the log fails.
    pub(crate) async fn offsets(&self, name: &str) -> Result<Vec<StoredOffset>, Refusal> {
        let properties = self.properties(name)?;
        if let Some(pipeline) = self.plan(name).ok().as_deref().and_then(Plan::sink) {
            return self.sink_offsets(pipeline).await;
        }
        // What it is given as may be a reference.
        let planned = self.plan(name).ok();
        let planned = planned.as_ref().map(|plan| plan.settings.offsets_topic.as_deref());
        let named = properties.get(keys::OFFSETS_TOPIC).map(|topic| topic.trim());
        let named = planned.unwrap_or(named.filter(|topic| !topic.is_empty()));
        self.shared.offsets.all(named, name).await.map_err(Refusal::Unread)
    }

    /// Stores or resets the offsets of the partitions given.
    ///
    /// # Errors
    /// Nothing has changed then, unless the log failed: not stopped, a partition or offset that
    /// does not fit, a refusal of the source.
    pub(crate) async fn alter_offsets(
        &self,
        name: &str,
        wanted: Vec<Wanted>,
        terms: &Terms,
    ) -> Result<(), Refusal> {
        let _turn = self.turn().await?;
        let plan = self.stopped(name)?;
        if let Some(pipeline) = plan.sink() {
            return self.alter_sink_offsets(pipeline, wanted).await;
        }
        self.fence(&plan).await?;
        let stored = self.offsets(name).await?;
        self.change(&plan, &stored, wanted, terms).await
    }

    /// Resets all offsets of a connector; without any, that is done.
    ///
    /// # Errors
    /// As [`Self::alter_offsets`].
    pub(crate) async fn reset_offsets(&self, name: &str, terms: &Terms) -> Result<(), Refusal> {
        let _turn = self.turn().await?;
        let plan = self.stopped(name)?;
        if let Some(pipeline) = plan.sink() {
            return self.reset_sink_offsets(pipeline).await;
        }
        self.fence(&plan).await?;
        let stored = self.offsets(name).await?;
        let wanted = stored
            .iter()
            .filter(|stored| {
                stored.offset.is_some() || stored.mark.is_some() || stored.damage.is_some()
            })
            .map(|stored| Wanted { partition: stored.partition.clone(), offset: None })
            .collect();
        self.change(&plan, &stored, wanted, terms).await
    }

    /// The plan of a connector whose offsets may be changed.
    pub(crate) fn stopped(&self, name: &str) -> Result<Arc<Plan>, Refusal> {
        self.properties(name)?;
        let ended =
            self.status(name)?.connector.state() == State::Stopped && !self.has_tasks_of(name);
        if self.configs().target(name) != TargetState::Stopped || !ended {
            return Err(Refusal::NotStopped(name.to_owned()));
        }
        self.plan(name).map_err(Refusal::Invalid)
    }

    /// A task that somebody runs still must not commit an offset over the one that is set (KIP-618).
    async fn fence(&self, plan: &Plan) -> Result<(), Refusal> {
        match plan.settings.delivery {
            Delivery::AtLeastOnce => Ok(()),
            Delivery::ExactlyOnce(_) => {
                let Shared { fences, cluster, .. } = self.shared.as_ref();
                fences.fence(&plan.name, &cluster.admin).await.map_err(Refusal::Log)
            }
        }
    }

    async fn change(
        &self,
        plan: &Plan,
        stored: &[StoredOffset],
        wanted: Vec<Wanted>,
        terms: &Terms,
    ) -> Result<(), Refusal> {
        // At once: others wait for the turn.
        let edits = wanted.into_iter().map(|wanted| self.edit(plan, stored, wanted, terms));
        let records: Vec<_> = join_all(edits).await.into_iter().collect::<Result<_, _>>()?;
        self.shared.journal.write(records.concat()).await.map_err(Refusal::Log)
    }

    /// The offset records of one entry, after the source has been asked.
    async fn edit(
        &self,
        plan: &Plan,
        stored: &[StoredOffset],
        wanted: Wanted,
        terms: &Terms,
    ) -> Result<Vec<OutgoingRecord>, Refusal> {
        let Wanted { partition, offset } = wanted;
        let current = stored.iter().find(|stored| stored.partition == partition);
        let own = sources(plan).find(|task| task.partition == partition);
        let offset = match (own, offset, current) {
            (Some(pipeline), wanted, _) => {
                let current = current.and_then(|stored| stored.offset.clone());
                let allow_skip = terms.allow_skip;
                self.ask(pipeline, OffsetChange { current, wanted, allow_skip }).await?
            }
            // A partition of an earlier configuration may be cleaned up.
            (None, None, Some(_)) => None,
            (None, ..) => return Err(foreign(plan, &partition)),
        };
        let key = offsets::key(&plan.name, &partition);
        let topics =
            self.shared.offsets.edited(plan.settings.offsets_topic.as_deref(), offset.as_ref());
        let record = |topic| offsets::edited_record(topic, &key, offset.as_ref(), &terms.reason);
        Ok(topics.into_iter().map(record).collect())
    }

    async fn ask(
        &self,
        planned: &Arc<Pipeline>,
        change: OffsetChange,
    ) -> Result<Option<SourceOffset>, Refusal> {
        let pipeline = planned.fresh(&self.config).await.map_err(Refusal::Connector)?;
        let asked = pipeline.connector.check_offset_change(&pipeline.config, &change);
        let asked = pipeline.scrubbed(asked);
        match tokio::time::timeout(self.config.source_timeout, asked).await {
            Ok(Ok(OffsetVerdict::Accepted(offset))) => Ok(offset),
            Ok(Ok(OffsetVerdict::Refused { what, remedy })) => {
                Err(Refusal::Connector(refused(what, remedy).of(&pipeline.name)))
            }
            Ok(Err(error)) => Err(Refusal::Source(error.of(&pipeline.name))),
            Err(_) => Err(Refusal::Source(
                silent("whether the offset may be changed", self.config.source_timeout)
                    .keeping("the stored offset; nothing was changed"),
            )),
        }
    }
}

fn refused(what: String, remedy: String) -> ConnectorError {
    ConnectorError::stop(
        "OFFSET_CHANGE_REFUSED",
        highwater_connector::ErrorKind::Position,
        what,
        remedy,
    )
    .keeping("the stored offset; nothing was changed")
}

fn sources(plan: &Plan) -> impl Iterator<Item = &Arc<Pipeline>> {
    plan.tasks.iter().filter_map(TaskPlan::source)
}

fn foreign(plan: &Plan, partition: &SourcePartition) -> Refusal {
    let text =
        |partition: &SourcePartition| serde_json::Value::from(partition.0.clone()).to_string();
    let own: Vec<_> = sources(plan).map(|task| text(&task.partition)).collect();
    Refusal::BadRequest(format!(
        "Partition {} is not one of connector {}, whose partition is {}",
        text(partition),
        plan.name,
        own.join(", ")
    ))
}
