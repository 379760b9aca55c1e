//! CreatePartitions: raises the number of a topic's partitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_log::LogError;
use highwater_protocol::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsResponse,
    CreatePartitionsTopic, CreatePartitionsTopicResult, ErrorCode,
};

use crate::creation::check_together;
use crate::fault::Fault;
use crate::internal_topic::check_not_internal;
use crate::node::Node;

pub(crate) async fn answer(
    node: &Arc<Node>,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let node = Arc::clone(node);
    let results = blocking(move || {
        let only_check = request.validate_only;
        let topics = once(request.topics);
        let new = topics.values().flatten().filter_map(|asked| {
            Some(asked.count.saturating_sub(node.log.topic(&asked.name)?.partitions))
        });
        let together = check_together(&node, new);
        let result = |(name, topic): (_, _)| result(&node, name, topic, &together, only_check);
        topics.into_iter().map(result).collect()
    });
    CreatePartitionsResponse { results: results.await, ..Default::default() }
}

/// The topics by name; nothing stands for one that is named twice.
fn once(topics: Vec<CreatePartitionsTopic>) -> BTreeMap<String, Option<CreatePartitionsTopic>> {
    let mut by_name = BTreeMap::new();
    for topic in topics {
        by_name.entry(topic.name.clone()).and_modify(|one| *one = None).or_insert(Some(topic));
    }
    by_name
}

fn result(
    node: &Node,
    name: String,
    asked: Option<CreatePartitionsTopic>,
    together: &Result<(), Fault>,
    only_check: bool,
) -> CreatePartitionsTopicResult {
    let twice = || Fault::new(ErrorCode::INVALID_REQUEST, "the request names this topic twice");
    let asked = together.clone().and_then(|()| asked.ok_or_else(twice));
    let fault = asked.and_then(|asked| raise(node, &asked, only_check)).err();
    CreatePartitionsTopicResult {
        name,
        error_code: fault.as_ref().map_or(ErrorCode::NONE, |fault| fault.code),
        error_message: fault.map(|fault| fault.text),
    }
}

fn raise(node: &Node, asked: &CreatePartitionsTopic, only_check: bool) -> Result<(), Fault> {
    let unknown = || {
        let text = format!("there is no topic {}", asked.name);
        Fault::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, text)
    };
    let topic = node.log.topic(&asked.name).ok_or_else(unknown)?;
    check_not_internal(&asked.name)?;
    let most = node.config.limits.partitions_per_topic;
    if asked.count <= topic.partitions {
        let text = format!("the topic has {} partitions, and none is taken away", topic.partitions);
        return Err(Fault::new(ErrorCode::INVALID_PARTITIONS, text));
    }
    if asked.count > most {
        return Err(LogError::InvalidPartitions { asked: asked.count, most }.into());
    }
    if let Some(assignments) = &asked.assignments {
        check_assignments(node, assignments, asked.count - topic.partitions)?;
    }
    if !only_check {
        node.log.add_partitions(&asked.name, asked.count)?;
    }
    Ok(())
}

/// An assignment by hand has to name this broker for each new partition.
fn check_assignments(
    node: &Node,
    assignments: &[CreatePartitionsAssignment],
    new: i32,
) -> Result<(), Fault> {
    let refused = |text: &str| Err(Fault::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, text));
    if i32::try_from(assignments.len()) != Ok(new) {
        return refused("there is not one assignment for each new partition");
    }
    if assignments.iter().any(|one| one.broker_ids != [node.config.node_id]) {
        return refused("every partition has the one broker as its one replica");
    }
    Ok(())
}
