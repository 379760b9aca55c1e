//! Making topics: what the broker adds to what was asked, and what it refuses.

use highwater_log::{LogError, Overrides, TopicConfig, TopicInfo, check_name};
use highwater_protocol::{CreatableTopic, ErrorCode};

use crate::fault::Fault;
use crate::internal_topic::check_not_internal;
use crate::node::Node;

/// A topic that may be made.
pub(crate) struct Plan {
    name: String,
    pub(crate) partitions: i32,
    pub(crate) config: TopicConfig,
}

impl Plan {
    /// Makes the topic. Blocks on the disk.
    pub(crate) fn carry_out(self, node: &Node) -> Result<TopicInfo, Fault> {
        Ok(node.log.create_topic(&self.name, self.partitions, self.config)?)
    }
}

/// Makes a topic by the broker's defaults. Blocks on the disk.
pub(crate) fn auto_create(node: &Node, name: &str) -> Result<TopicInfo, Fault> {
    let asked = CreatableTopic {
        name: name.to_owned(),
        num_partitions: -1,
        replication_factor: -1,
        ..Default::default()
    };
    plan(node, &asked)?.carry_out(node)
}

/// What making a topic as asked would come to.
pub(crate) fn plan(node: &Node, asked: &CreatableTopic) -> Result<Plan, Fault> {
    check_name(&asked.name)?;
    check_not_internal(&asked.name)?;
    if node.log.topic(&asked.name).is_some() {
        return Err(LogError::TopicExists { name: asked.name.clone() }.into());
    }
    check_collision(node, &asked.name)?;
    let partitions = partitions(node, asked)?;
    let config = config(node, asked)?;
    Ok(Plan { name: asked.name.clone(), partitions, config })
}

/// Refuses a request that is to make more partitions than one topic may have, as Apache Kafka does. A number
/// that is refused by itself does not count.
pub(crate) fn check_together(node: &Node, counts: impl Iterator<Item = i32>) -> Result<(), Fault> {
    let most = node.config.limits.partitions_per_topic;
    let all: i64 = counts.filter(|count| (1..=most).contains(count)).map(i64::from).sum();
    if all <= most.into() {
        return Ok(());
    }
    let text = format!("a request makes at most {most} partitions, not {all}");
    Err(Fault::new(ErrorCode::POLICY_VIOLATION, text))
}

/// A dot and an underscore are one in the names of Kafka's metrics: no two topics may differ by it alone.
fn check_collision(node: &Node, name: &str) -> Result<(), Fault> {
    if !name.contains(['.', '_']) {
        return Ok(());
    }
    let written = |byte: u8| if byte == b'.' { b'_' } else { byte };
    let same = |other: &str| other.bytes().map(written).eq(name.bytes().map(written));
    let other = node.log.find_topic(|topic| same(&topic.name));
    other.map_or(Ok(()), |other| {
        let text =
            format!("{name} differs from topic {} by a dot or an underscore alone", other.name);
        Err(Fault::new(ErrorCode::INVALID_TOPIC_EXCEPTION, text))
    })
}

fn partitions(node: &Node, asked: &CreatableTopic) -> Result<i32, Fault> {
    if !asked.assignments.is_empty() {
        return assigned(node, asked);
    }
    if !matches!(asked.replication_factor, 1 | -1) {
        let text = format!("there is one broker, not {}", asked.replication_factor);
        return Err(Fault::new(ErrorCode::INVALID_REPLICATION_FACTOR, text));
    }
    let most = node.config.limits.partitions_per_topic;
    match asked.num_partitions {
        -1 => Ok(node.config.default_partitions),
        count if (1..=most).contains(&count) => Ok(count),
        asked => Err(LogError::InvalidPartitions { asked, most }.into()),
    }
}

/// An assignment by hand has to name this broker for the partitions from 0 on, each once.
fn assigned(node: &Node, asked: &CreatableTopic) -> Result<i32, Fault> {
    let refused = |text: &str| Err(Fault::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, text));
    if asked.num_partitions != -1 || asked.replication_factor != -1 {
        let text = "assignments stand in place of partition count and replication factor";
        return Err(Fault::new(ErrorCode::INVALID_REQUEST, text));
    }
    if asked.assignments.iter().any(|replica| replica.broker_ids != [node.config.node_id]) {
        return refused("every partition has the one broker as its one replica");
    }
    let count = i32::try_from(asked.assignments.len()).unwrap_or(i32::MAX);
    let mut indexes: Vec<_> = asked.assignments.iter().map(|one| one.partition_index).collect();
    indexes.sort_unstable();
    if !indexes.into_iter().eq(0..count) {
        return refused("partitions are numbered from 0 without gaps");
    }
    let most = node.config.limits.partitions_per_topic;
    if count > most {
        return Err(LogError::InvalidPartitions { asked: count, most }.into());
    }
    Ok(count)
}

fn config(node: &Node, asked: &CreatableTopic) -> Result<TopicConfig, Fault> {
    let mut overrides: Overrides = node.config.topic_defaults.clone();
    for entry in &asked.configs {
        let value = entry.value.clone().ok_or_else(|| {
            let text = format!("setting {} has no value", entry.name);
            Fault::new(ErrorCode::INVALID_CONFIG, text)
        })?;
        overrides.insert(entry.name.clone(), value);
    }
    Ok(TopicConfig::parse(overrides)?)
}
