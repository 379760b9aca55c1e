//! InitProducerId: an id and an epoch for a producer; with a transactional id it fences the one before.

use highwater_coordinator::Producer;
use highwater_protocol::{ErrorCode, InitProducerIdRequest, InitProducerIdResponse};

use crate::node::Node;
use crate::producer_fenced;

/// The first version whose clients know PRODUCER_FENCED.
const FENCED_SINCE: i16 = 4;

/// What a producer that has no id or no epoch sends.
const NONE: i64 = -1;

pub(crate) async fn answer(
    node: &Node,
    version: i16,
    request: InitProducerIdRequest,
) -> InitProducerIdResponse {
    match init(node, request).await {
        Ok(producer) => InitProducerIdResponse {
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            ..Default::default()
        },
        Err(error) => InitProducerIdResponse {
            error_code: producer_fenced::as_known_to(version, FENCED_SINCE, error),
            producer_epoch: -1,
            ..Default::default()
        },
    }
}

async fn init(node: &Node, request: InitProducerIdRequest) -> Result<Producer, ErrorCode> {
    let resumes = resumed(request.producer_id, request.producer_epoch)?;
    let (id, timeout_ms) = (request.transactional_id, request.transaction_timeout_ms);
    node.coordinator.transactions().init_producer_id(id, timeout_ms, resumes).await
}

/// The producer that wants to go on under a higher epoch (KIP-360).
fn resumed(id: i64, epoch: i16) -> Result<Option<Producer>, ErrorCode> {
    match (id, i64::from(epoch)) {
        (NONE, NONE) => Ok(None),
        (NONE, _) | (_, NONE) => Err(ErrorCode::INVALID_REQUEST),
        _ => Ok(Some(Producer { id, epoch })),
    }
}
