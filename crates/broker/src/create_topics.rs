//! CreateTopics.

use std::collections::HashMap;
use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_log::TopicConfig;
use highwater_protocol::{
    CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreateTopicsRequest,
    CreateTopicsResponse, ErrorCode,
};
use uuid::Uuid;

use crate::config_source;
use crate::creation::{self, check_together};
use crate::fault::Fault;
use crate::node::Node;

pub(crate) async fn answer(node: &Arc<Node>, request: CreateTopicsRequest) -> CreateTopicsResponse {
    let node = Arc::clone(node);
    let topics = blocking(move || {
        let topics = once(request.topics);
        let together =
            check_together(&node, topics.iter().map(|(topic, _)| partitions(&node, topic)));
        let create = |(topic, twice): &(_, _)| match &together {
            Ok(()) => create(&node, topic, request.validate_only, *twice),
            Err(fault) => refused(topic, fault.clone()),
        };
        topics.iter().map(create).collect()
    });
    CreateTopicsResponse { topics: topics.await, ..Default::default() }
}

/// Each topic once, and whether the request names it twice.
fn once(topics: Vec<CreatableTopic>) -> Vec<(CreatableTopic, bool)> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut all: Vec<(CreatableTopic, bool)> = Vec::with_capacity(topics.len());
    for topic in topics {
        match places.get(&topic.name).and_then(|at| all.get_mut(*at)) {
            Some((_, twice)) => *twice = true,
            None => {
                places.insert(topic.name.clone(), all.len());
                all.push((topic, false));
            }
        }
    }
    all
}

fn create(
    node: &Node,
    asked: &CreatableTopic,
    validate_only: bool,
    twice: bool,
) -> CreatableTopicResult {
    let made = if twice {
        Err(Fault::new(ErrorCode::INVALID_REQUEST, "the request names this topic twice"))
    } else {
        made(node, asked, validate_only)
    };
    made.unwrap_or_else(|fault| refused(asked, fault))
}

fn refused(asked: &CreatableTopic, fault: Fault) -> CreatableTopicResult {
    CreatableTopicResult {
        name: asked.name.clone(),
        error_code: fault.code,
        error_message: Some(fault.text),
        ..Default::default()
    }
}

/// So many partitions are asked for.
fn partitions(node: &Node, asked: &CreatableTopic) -> i32 {
    match (asked.assignments.len(), asked.num_partitions) {
        (0, -1) => node.config.default_partitions,
        (0, count) => count,
        (assigned, _) => i32::try_from(assigned).unwrap_or(i32::MAX),
    }
}

fn made(
    node: &Node,
    asked: &CreatableTopic,
    validate_only: bool,
) -> Result<CreatableTopicResult, Fault> {
    let plan = creation::plan(node, asked)?;
    let (partitions, configs) = (plan.partitions, configs(&plan.config));
    // Kafka shows an id also where nothing is made.
    let topic_id = if validate_only { Uuid::new_v4() } else { plan.carry_out(node)?.id };
    Ok(CreatableTopicResult {
        name: asked.name.clone(),
        topic_id,
        num_partitions: partitions,
        replication_factor: 1,
        configs: Some(configs),
        ..Default::default()
    })
}

fn configs(config: &TopicConfig) -> Vec<CreatableTopicConfigs> {
    let entry = |entry: highwater_log::ConfigEntry| CreatableTopicConfigs {
        config_source: config_source::of_topic(&entry),
        name: entry.name,
        value: Some(entry.value),
        read_only: false,
        is_sensitive: false,
    };
    config.entries().into_iter().map(entry).collect()
}
