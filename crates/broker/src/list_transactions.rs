//! ListTransactions: which transactional ids there are.

use highwater_coordinator::{TransactionFilter, TransactionState};
use highwater_protocol::{ListTransactionsRequest, ListTransactionsResponse, ListedTransaction};

use crate::node::Node;

pub(crate) async fn answer(
    node: &Node,
    request: ListTransactionsRequest,
) -> ListTransactionsResponse {
    let transactions = node.coordinator.transactions();
    transactions.loaded().await;
    let filter = TransactionFilter {
        states: request.state_filters.into_iter().collect(),
        producer_ids: request.producer_id_filters.into_iter().collect(),
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

fn listed(
    (transactional_id, producer_id, state): (String, i64, TransactionState),
) -> ListedTransaction {
    ListedTransaction { transactional_id, producer_id, transaction_state: state.name().to_owned() }
}
