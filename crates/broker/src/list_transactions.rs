//! ListTransactions: which transactional ids there are.

use highwater_coordinator::{TransactionFilter, TransactionMetadata};
use highwater_protocol::{ListTransactionsRequest, ListTransactionsResponse, ListedTransaction};

use crate::node::Node;

pub(crate) async fn answer(
    node: &Node,
    request: ListTransactionsRequest,
) -> ListTransactionsResponse {
    let transactions = node.coordinator.transactions();
    transactions.loaded().await;
    let filter = TransactionFilter {
        states: request.state_filters,
        producer_ids: request.producer_id_filters,
        running_longer_ms: request.duration_filter,
    };
    match transactions.list(&filter) {
        Ok(ids) => ListTransactionsResponse {
            unknown_state_filters: filter.unknown_states(),
            transaction_states: ids.into_iter().map(listed).collect(),
            ..Default::default()
        },
        Err(error_code) => ListTransactionsResponse { error_code, ..Default::default() },
    }
}

fn listed((transactional_id, stands): (String, TransactionMetadata)) -> ListedTransaction {
    ListedTransaction {
        transactional_id,
        producer_id: stands.producer.id,
        transaction_state: stands.state.name().to_owned(),
    }
}
