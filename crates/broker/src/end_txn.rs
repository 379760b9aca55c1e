//! EndTxn: commits or aborts a transaction.

use highwater_coordinator::{Producer, TransactionResult};
use highwater_protocol::{EndTxnRequest, EndTxnResponse};

use crate::node::Node;
use crate::producer_fenced;

/// The first version whose clients know PRODUCER_FENCED.
const FENCED_SINCE: i16 = 2;

pub(crate) async fn answer(node: &Node, version: i16, request: EndTxnRequest) -> EndTxnResponse {
    let producer = Producer { id: request.producer_id, epoch: request.producer_epoch };
    let result =
        if request.committed { TransactionResult::Commit } else { TransactionResult::Abort };
    let ended = node.coordinator.transactions().end(&request.transactional_id, producer, result);
    let error = ended.await.err().unwrap_or_default();
    let error_code = producer_fenced::as_known_to(version, FENCED_SINCE, error);
    EndTxnResponse { error_code, ..Default::default() }
}
