//! DescribeProducers: who writes to a partition with sequence numbers, and which transactions are open there.

use std::collections::HashSet;
use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_log::{ProducerState, check_name};
use highwater_protocol::{
    ActiveProducer, DescribeProducersRequest, DescribeProducersResponse, DescribeProducersTopic,
    DescribedProducersPartition, DescribedProducersTopic,
};

use crate::fault::Fault;
use crate::node::Node;

pub(crate) async fn answer(
    node: &Arc<Node>,
    request: DescribeProducersRequest,
) -> DescribeProducersResponse {
    let node = Arc::clone(node);
    let mut topics = request.topics;
    let mut named = HashSet::new();
    for DescribeProducersTopic { name, partition_indexes } in &mut topics {
        partition_indexes.retain(|index| named.insert((name.clone(), *index)));
    }
    // A partition that is being written to is waited for.
    let topics = blocking(move || topics.into_iter().map(|topic| of_topic(&node, topic)).collect());
    DescribeProducersResponse { topics: topics.await, ..Default::default() }
}

fn of_topic(node: &Node, asked: DescribeProducersTopic) -> DescribedProducersTopic {
    let of_partition = |index: i32| match producers(node, &asked.name, index) {
        Ok(active_producers) => DescribedProducersPartition {
            partition_index: index,
            active_producers,
            ..Default::default()
        },
        Err(fault) => DescribedProducersPartition {
            partition_index: index,
            error_code: fault.code,
            error_message: Some(fault.text),
            ..Default::default()
        },
    };
    let partitions = asked.partition_indexes.iter().copied().map(of_partition).collect();
    DescribedProducersTopic { name: asked.name, partitions }
}

fn producers(node: &Node, topic: &str, index: i32) -> Result<Vec<ActiveProducer>, Fault> {
    check_name(topic)?;
    let partition = node.partition(topic, index)?;
    if let Some(error) = partition.fault() {
        return Err(error.into());
    }
    Ok(partition.producer_states().into_iter().map(active).collect())
}

fn active(state: ProducerState) -> ActiveProducer {
    ActiveProducer {
        producer_id: state.producer_id,
        producer_epoch: state.producer_epoch.into(),
        last_sequence: state.last_sequence,
        last_timestamp: state.last_timestamp_ms,
        coordinator_epoch: state.coordinator_epoch,
        current_txn_start_offset: state.transaction_start.unwrap_or(-1),
    }
}
