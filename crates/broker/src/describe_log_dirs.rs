//! DescribeLogDirs: what the data folder holds, for tools that show sizes (KIP-113, KIP-827).

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_log::PartitionState;
use highwater_protocol::{
    DescribableLogDirTopic, DescribeLogDirsPartition, DescribeLogDirsRequest,
    DescribeLogDirsResponse, DescribeLogDirsResult, DescribeLogDirsTopic,
};

use crate::node::Node;

pub(crate) async fn answer(
    node: &Arc<Node>,
    request: DescribeLogDirsRequest,
) -> DescribeLogDirsResponse {
    let node = Arc::clone(node);
    let folder = blocking(move || folder(&node, request.topics)).await;
    DescribeLogDirsResponse { results: vec![folder], ..Default::default() }
}

/// The one folder there is. What is not in it is left out, as Kafka does.
fn folder(node: &Node, asked: Option<Vec<DescribableLogDirTopic>>) -> DescribeLogDirsResult {
    let asked: Vec<(String, Vec<i32>)> = match asked {
        None => {
            let topics = node.log.topics().into_iter();
            topics.map(|topic| (topic.name, (0..topic.partitions).collect())).collect()
        }
        Some(topics) => topics.into_iter().map(|topic| (topic.topic, topic.partitions)).collect(),
    };
    let mut topics: BTreeMap<String, BTreeMap<i32, DescribeLogDirsPartition>> = BTreeMap::new();
    for (name, indexes) in asked {
        for index in indexes {
            if let Some(partition) = partition(node, &name, index) {
                topics.entry(name.clone()).or_default().insert(index, partition);
            }
        }
    }
    let volume = node.log.volume();
    let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    DescribeLogDirsResult {
        log_dir: node.log.dir().to_string_lossy().into_owned(),
        topics: topics.into_iter().map(topic).collect(),
        total_bytes: volume.map_or(-1, |volume| bytes(volume.total)),
        usable_bytes: volume.map_or(-1, |volume| bytes(volume.free)),
        ..Default::default()
    }
}

fn topic(
    (name, partitions): (String, BTreeMap<i32, DescribeLogDirsPartition>),
) -> DescribeLogDirsTopic {
    DescribeLogDirsTopic { name, partitions: partitions.into_values().collect() }
}

/// None for one that does not exist or could not be opened: nobody knows its size.
fn partition(node: &Node, topic: &str, index: i32) -> Option<DescribeLogDirsPartition> {
    let partition = node.log.partition(topic, index)?;
    let state = partition.watermarks_now().state;
    matches!(state, PartitionState::Online | PartitionState::Poisoned).then(|| {
        DescribeLogDirsPartition {
            partition_index: index,
            partition_size: i64::try_from(partition.size()).unwrap_or(i64::MAX),
            ..Default::default()
        }
    })
}
