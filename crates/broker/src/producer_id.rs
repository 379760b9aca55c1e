//! InitProducerId: an id for an idempotent producer.

use std::sync::Arc;

use highwater_protocol::{ErrorCode, InitProducerIdRequest, InitProducerIdResponse};

use crate::blocking::blocking;
use crate::fault::Fault;
use crate::node::Node;

pub(crate) async fn answer(
    node: &Arc<Node>,
    request: InitProducerIdRequest,
) -> InitProducerIdResponse {
    match next(node, request.transactional_id).await {
        Ok(producer_id) => InitProducerIdResponse { producer_id, ..Default::default() },
        Err(error_code) => {
            InitProducerIdResponse { error_code, producer_epoch: -1, ..Default::default() }
        }
    }
}

/// Every idempotent producer gets an id of its own, at epoch 0, whatever it had before.
async fn next(node: &Node, transactional_id: Option<String>) -> Result<i64, ErrorCode> {
    if transactional_id.is_some() {
        // Clients give up on this one at once and say that the broker is too old for transactions.
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    let log = node.log.clone();
    blocking(move || log.next_producer_id()).await.map_err(|error| Fault::from(error).code)
}
