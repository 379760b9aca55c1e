//! Offsets of a sink connector, which are those of its consumer group: seen and edited in Kafka
//! Connect's form (KIP-875).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_connector::{ConnectorError, SourceOffset, SourcePartition, Tail, TopicPartition};
use highwater_kafka::{ErrorCode, GroupMemberDescription, KafkaError, TopicDescription};
use serde_json::{Map, Value, json};

use crate::herder::Herder;
use crate::isolation::isolated;
use crate::looking::silent;
use crate::offset_changes::Wanted;
use crate::offsets::StoredOffset;
use crate::rest_error::Refusal;
use crate::sink_opening::SinkPipeline;

const TOPIC: &str = "kafka_topic";
const PARTITION: &str = "kafka_partition";
const OFFSET: &str = "kafka_offset";

/// Offsets to store; `None` removes one.
type Wishes = BTreeMap<TopicPartition, Option<i64>>;

impl Herder {
    /// What the group has committed.
    ///
    /// # Errors
    /// When the log fails.
    pub(crate) async fn sink_offsets(
        &self,
        pipeline: &Arc<SinkPipeline>,
    ) -> Result<Vec<StoredOffset>, Refusal> {
        let group = &pipeline.sink.consumer.group;
        let offsets =
            self.shared.cluster.admin.group_offsets(group).await.map_err(Refusal::Unread)?;
        Ok(offsets.iter().map(|(partition, offset)| stored(partition, *offset)).collect())
    }

    /// Stores or removes the offsets of the partitions given.
    ///
    /// # Errors
    /// Nothing has changed then, unless the log failed: one that does not fit, a partition that is not
    /// there, a group with members, or a refusal of the sink.
    pub(crate) async fn alter_sink_offsets(
        &self,
        pipeline: &Arc<SinkPipeline>,
        wanted: Vec<Wanted>,
    ) -> Result<(), Refusal> {
        let wishes: Wishes = wanted.iter().map(wish).collect::<Result<_, _>>()?;
        self.check_partitions(pipeline, &wishes).await?;
        self.check_group(pipeline).await?;
        self.ask_sink(pipeline, &wishes).await?;
        let refused = |error| refusal(pipeline, error);
        let (admin, group) = (&self.shared.cluster.admin, &pipeline.sink.consumer.group);
        let removed: BTreeSet<_> = wishes
            .iter()
            .filter(|(_, offset)| offset.is_none())
            .map(|(at, _)| at.clone())
            .collect();
        if !removed.is_empty() {
            admin.delete_group_offsets(group, &removed).await.map_err(refused)?;
        }
        let set: BTreeMap<_, _> =
            wishes.into_iter().filter_map(|(at, offset)| Some((at, offset?))).collect();
        if set.is_empty() {
            return Ok(());
        }
        admin.alter_group_offsets(group, &set).await.map_err(refused)
    }

    /// Deletes the group; where there is none, that is done.
    ///
    /// # Errors
    /// As [`Self::alter_sink_offsets`].
    pub(crate) async fn reset_sink_offsets(
        &self,
        pipeline: &Arc<SinkPipeline>,
    ) -> Result<(), Refusal> {
        self.check_group(pipeline).await?;
        let (admin, group) = (&self.shared.cluster.admin, &pipeline.sink.consumer.group);
        let offsets = admin.group_offsets(group).await.map_err(Refusal::Unread)?;
        let wishes = offsets.into_keys().map(|partition| (partition, None)).collect();
        self.ask_sink(pipeline, &wishes).await?;
        let deleted = admin.delete_group(group).await;
        deleted.map(drop).map_err(|error| refusal(pipeline, error))
    }

    /// An offset is set where there is something to read. A broker would store the others and say of
    /// one that it is not.
    async fn check_partitions(
        &self,
        pipeline: &SinkPipeline,
        wishes: &Wishes,
    ) -> Result<(), Refusal> {
        if wishes.values().all(Option::is_none) {
            return Ok(());
        }
        let topics = self.shared.cluster.admin.topics().await.map_err(Refusal::Unread)?;
        let mut set = wishes.iter().filter(|(_, offset)| offset.is_some());
        match set.find_map(|(at, _)| missing(at, &topics)) {
            None => Ok(()),
            Some(missing) => Err(Refusal::BadRequest(format!(
                "The offsets of connector {} cannot be set so: {missing}",
                pipeline.name
            ))),
        }
    }

    /// While a group has members, they alone may store its offsets. One that was killed is a member
    /// until its session has ended, and a static one that has stopped as well.
    async fn check_group(&self, pipeline: &SinkPipeline) -> Result<(), Refusal> {
        let described = self.shared.cluster.admin.describe_group(&pipeline.sink.consumer.group);
        let described = described.await.map_err(Refusal::Unread)?;
        let members = described.map(|group| group.members).unwrap_or_default();
        if members.is_empty() { Ok(()) } else { Err(in_use(pipeline, &members)) }
    }

    async fn ask_sink(&self, planned: &Arc<SinkPipeline>, wishes: &Wishes) -> Result<(), Refusal> {
        let limit = self.config.source_timeout;
        let pipeline = planned.fresh(&self.config).await.map_err(Refusal::Connector)?;
        let asked = isolated(pipeline.connector.alter_offsets(&pipeline.config, wishes));
        let failed = |error: ConnectorError| {
            let error = pipeline.scrub.error(error);
            Refusal::Connector(error.of(&pipeline.name).keeping("the offsets; nothing was changed"))
        };
        match tokio::time::timeout(limit, asked).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(failed(silent("whether its offsets may be changed", limit))),
        }
    }
}

/// What is not there of a partition.
fn missing(at: &TopicPartition, topics: &[TopicDescription]) -> Option<String> {
    let Some(topic) = topics.iter().find(|topic| *topic.name == *at.topic) else {
        return Some(format!("{TOPIC} {:?} does not exist", at.topic));
    };
    (at.partition >= topic.partitions).then(|| {
        format!(
            "{PARTITION} {} does not exist, since topic {} has {} of them, counted from 0",
            at.partition, topic.name, topic.partitions
        )
    })
}

/// Members of a group that are named, at most.
const NAMED: usize = 3;

fn in_use(pipeline: &SinkPipeline, members: &[GroupMemberDescription]) -> Refusal {
    let consumer = &pipeline.sink.consumer;
    // What a client calls itself may hold anything.
    let named = members.iter().take(NAMED).map(|member| match &member.instance_id {
        Some(instance) => format!("static member {instance:?} at {:?}", member.client_host),
        None => format!("{:?} at {:?}", member.client_id, member.client_host),
    });
    let mut named: Vec<_> = named.collect();
    if members.len() > NAMED {
        named.push(format!("{} more", members.len() - NAMED));
    }
    Refusal::GroupInUse {
        connector: pipeline.name.clone(),
        group: consumer.group.clone(),
        members: named.join(", "),
        session: consumer.session_timeout,
    }
}

/// What a failure to change a group's offsets means: one that has got members since is in use.
fn refusal(pipeline: &SinkPipeline, error: KafkaError) -> Refusal {
    let in_use_by_others = [ErrorCode::NON_EMPTY_GROUP, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC];
    if in_use_by_others.into_iter().any(|code| error.is(code)) {
        in_use(pipeline, &[])
    } else {
        Refusal::Log(error)
    }
}

fn stored(at: &TopicPartition, offset: i64) -> StoredOffset {
    let object = |pairs: &[(&str, Value)]| -> Map<String, Value> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    };
    let partition = object(&[(PARTITION, json!(at.partition)), (TOPIC, json!(at.topic.as_ref()))]);
    StoredOffset {
        partition: SourcePartition(partition),
        offset: Some(SourceOffset(object(&[(OFFSET, json!(offset))]))),
        mark: None,
        tail: Tail::default(),
        last_change: None,
        damage: None,
    }
}

/// One entry of a request. Numbers may stand as text.
fn wish(wanted: &Wanted) -> Result<(TopicPartition, Option<i64>), Refusal> {
    let refused = |what: String| Refusal::BadRequest(what);
    let partition = &wanted.partition.0;
    let topic = partition.get(TOPIC).and_then(Value::as_str).filter(|topic| !topic.is_empty());
    let topic = topic
        .ok_or_else(|| refused(format!("The partition of a sink's offset needs a text {TOPIC}")))?;
    let index =
        partition.get(PARTITION).and_then(number).and_then(|index| i32::try_from(index).ok());
    let index = index.filter(|index| *index >= 0).ok_or_else(|| {
        refused(format!("The partition of a sink's offset needs a whole number {PARTITION}"))
    })?;
    let at = TopicPartition::new(topic, index);
    let stray = SourceOffset(partition.clone()).stray_field(&[TOPIC, PARTITION], None);
    if let Some(stray) = stray {
        return Err(refused(format!("The partition of a sink's offset: {stray}")));
    }
    let Some(offset) = &wanted.offset else { return Ok((at, None)) };
    if let Some(stray) = offset.stray_field(&[OFFSET], None) {
        return Err(refused(format!("The offset of {at}: {stray}")));
    }
    let offset = offset.0.get(OFFSET).and_then(number).filter(|offset| *offset >= 0);
    let offset = offset.ok_or_else(|| {
        refused(format!("The offset of {at} needs {OFFSET}, a whole number of 0 or more"))
    })?;
    Ok((at, Some(offset)))
}

fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(partition: Value, offset: Value) -> Result<(TopicPartition, Option<i64>), Refusal> {
        wish(&Wanted {
            partition: serde_json::from_value(partition).unwrap(),
            offset: serde_json::from_value(offset).unwrap(),
        })
    }

    #[test]
    fn a_partition_that_is_not_there_is_named() {
        let topic = |name: &str, partitions| TopicDescription {
            name: name.to_owned(),
            id: Default::default(),
            partitions,
            internal: false,
        };
        let topics = [topic("a", 1), topic("lines", 3)];
        let missing = |topic, index| missing(&TopicPartition::new(topic, index), &topics);
        assert_eq!((missing("lines", 0), missing("lines", 2)), (None, None));
        let said = missing("lines", 3).unwrap();
        assert!(said.contains("kafka_partition 3") && said.contains("has 3"), "{said}");
        assert!(missing("line", 0).unwrap().contains("kafka_topic \"line\""));
    }

    #[test]
    fn an_offset_is_read_back_as_it_is_shown() {
        let at = TopicPartition::new("lines", 3);
        let StoredOffset { partition, offset, .. } = stored(&at, 7);
        assert_eq!(wish(&Wanted { partition, offset }).unwrap(), (at, Some(7)));
    }

    #[test]
    fn numbers_may_stand_as_text_and_null_resets() {
        let at = || TopicPartition::new("lines", 3);
        let partition = json!({ "kafka_topic": "lines", "kafka_partition": "3" });
        let read_back = read(partition.clone(), json!({ "kafka_offset": "7" })).unwrap();
        assert_eq!(read_back, (at(), Some(7)));
        assert_eq!(read(partition, Value::Null).unwrap(), (at(), None));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_field() {
        let good = json!({ "kafka_topic": "lines", "kafka_partition": 3 });
        for (partition, offset, named) in [
            (json!({}), Value::Null, TOPIC),
            (json!({ "kafka_topic": null, "kafka_partition": 3 }), Value::Null, TOPIC),
            (json!({ "kafka_topic": "lines" }), Value::Null, PARTITION),
            (json!({ "kafka_topic": "lines", "kafka_partition": "x" }), Value::Null, PARTITION),
            (json!({ "kafka_topic": "lines", "kafka_partition": -1 }), Value::Null, PARTITION),
            (good.clone(), json!({}), OFFSET),
            (good.clone(), json!({ "kafka_offset": "x" }), OFFSET),
            (good.clone(), json!({ "kafka_offset": -1 }), OFFSET),
            (good, json!({ "kafka_offset": 1, "foo": 1 }), "foo"),
            (json!({ "kafka_topic": "lines", "kafka_partition": 3, "bar": 1 }), Value::Null, "bar"),
        ] {
            let Err(Refusal::BadRequest(why)) = read(partition, offset) else { panic!("{named}") };
            assert!(why.contains(named), "{why}");
        }
    }
}
