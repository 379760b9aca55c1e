//! Metadata: the one broker, and the topics.

use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_log::{PartitionState, TopicInfo, check_name};
use highwater_protocol::{
    ErrorCode, MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker,
    MetadataResponsePartition, MetadataResponseTopic,
};

use crate::config::AutoCreate;
use crate::creation;
use crate::fault::Fault;
use crate::internal_topic::is_internal;
use crate::node::Node;
use crate::once::once;

pub(crate) async fn answer(
    node: &Arc<Node>,
    version: i16,
    request: MetadataRequest,
) -> MetadataResponse {
    let asked = request.topics.filter(|topics| version > 0 || !topics.is_empty());
    let may_create =
        request.allow_auto_topic_creation && node.config.auto_create == AutoCreate::WhenAsked;
    let topics = match asked {
        None => node.log.topics().iter().map(|topic| described(node, topic)).collect(),
        Some(asked) => named(node, asked, may_create).await,
    };
    MetadataResponse {
        brokers: vec![broker(node)],
        cluster_id: Some(node.log.cluster_id().to_owned()),
        controller_id: node.config.node_id,
        topics,
        ..Default::default()
    }
}

fn broker(node: &Node) -> MetadataResponseBroker {
    MetadataResponseBroker {
        node_id: node.config.node_id,
        host: node.advertised.host.clone(),
        port: node.advertised.port.into(),
        rack: None,
    }
}

async fn named(
    node: &Arc<Node>,
    mut asked: Vec<MetadataRequestTopic>,
    may_create: bool,
) -> Vec<MetadataResponseTopic> {
    once(&mut asked, |topic| (topic.name.clone(), topic.topic_id));
    let mut topics = Vec::with_capacity(asked.len());
    for asked in asked {
        topics.push(match found(node, &asked, may_create).await {
            Ok(topic) => described(node, &topic),
            Err(error_code) => MetadataResponseTopic {
                error_code,
                name: asked.name,
                topic_id: asked.topic_id,
                ..Default::default()
            },
        });
    }
    topics
}

async fn found(
    node: &Arc<Node>,
    asked: &MetadataRequestTopic,
    may_create: bool,
) -> Result<TopicInfo, ErrorCode> {
    let Some(name) = &asked.name else {
        return node.log.topic_by_id(asked.topic_id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID);
    };
    match node.log.topic(name) {
        Some(topic) => Ok(topic),
        None if may_create => created(node, name).await,
        None => Err(check_name(name)
            .map_or_else(|error| error.kafka_code(), |()| ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)),
    }
}

/// Makes a topic that was named. Another request may have made it in the meantime.
async fn created(node: &Arc<Node>, name: &str) -> Result<TopicInfo, ErrorCode> {
    let (node, name) = (Arc::clone(node), name.to_owned());
    blocking(move || match creation::auto_create(&node, &name) {
        Err(Fault { code: ErrorCode::TOPIC_ALREADY_EXISTS, .. }) => {
            node.log.topic(&name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        }
        made => made.map_err(|fault| fault.code),
    })
    .await
}

fn described(node: &Node, topic: &TopicInfo) -> MetadataResponseTopic {
    MetadataResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: is_internal(&topic.name),
        partitions: (0..topic.partitions).map(|index| partition(node, topic, index)).collect(),
        ..Default::default()
    }
}

fn partition(node: &Node, topic: &TopicInfo, index: i32) -> MetadataResponsePartition {
    let me = node.config.node_id;
    let watermarks = node
        .log
        .partition(&topic.name, index)
        .map(|partition| partition.watermarks_now())
        .filter(|watermarks| watermarks.state != PartitionState::Offline);
    match watermarks {
        Some(watermarks) => MetadataResponsePartition {
            partition_index: index,
            leader_id: me,
            leader_epoch: watermarks.leader_epoch,
            replica_nodes: vec![me],
            isr_nodes: vec![me],
            ..Default::default()
        },
        None => MetadataResponsePartition {
            error_code: ErrorCode::LEADER_NOT_AVAILABLE,
            partition_index: index,
            leader_id: -1,
            replica_nodes: vec![me],
            offline_replicas: vec![me],
            ..Default::default()
        },
    }
}
