//! DescribeTransactions: how transactional ids stand.

use highwater_coordinator::TransactionMetadata;
use highwater_protocol::{
    DescribeTransactionsRequest, DescribeTransactionsResponse, DescribedTransaction,
    TransactionTopic,
};

use crate::node::Node;
use crate::once::once;

pub(crate) async fn answer(
    node: &Node,
    request: DescribeTransactionsRequest,
) -> DescribeTransactionsResponse {
    node.coordinator.transactions().loaded().await;
    let mut ids = request.transactional_ids;
    once(&mut ids, String::clone);
    let described = ids.into_iter().map(|id| describe(node, id));
    DescribeTransactionsResponse { transaction_states: described.collect(), ..Default::default() }
}

fn describe(node: &Node, transactional_id: String) -> DescribedTransaction {
    match node.coordinator.transactions().describe(&transactional_id) {
        Ok(stands) => DescribedTransaction {
            transactional_id,
            transaction_state: stands.state.name().to_owned(),
            transaction_timeout_ms: stands.timeout_ms,
            transaction_start_time_ms: stands.start_ms,
            producer_id: stands.producer.id,
            producer_epoch: stands.producer.epoch,
            topics: topics(&stands),
            ..Default::default()
        },
        Err(error_code) => {
            DescribedTransaction { error_code, transactional_id, ..Default::default() }
        }
    }
}

/// The partitions come sorted.
fn topics(stands: &TransactionMetadata) -> Vec<TransactionTopic> {
    let mut topics = Vec::<TransactionTopic>::new();
    for one in &stands.partitions {
        match topics.last_mut().filter(|last| *last.topic == *one.topic) {
            Some(last) => last.partitions.push(one.partition),
            None => topics.push(TransactionTopic {
                topic: one.topic.to_string(),
                partitions: vec![one.partition],
            }),
        }
    }
    topics
}
