//! OffsetDelete: answered once it is safe that they are gone.

use std::sync::Arc;

use highwater_protocol::{ErrorCode, OffsetDeleteRequest, OffsetDeleteResponse};

use crate::node::Node;

pub(crate) fn begin(
    node: &Arc<Node>,
    request: OffsetDeleteRequest,
) -> impl Future<Output = OffsetDeleteResponse> + Send + use<> {
    let waiting = node.coordinator.groups().delete_offsets(request);
    let error_code = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    let stopped = OffsetDeleteResponse { error_code, ..Default::default() };
    async move { waiting.answer().await.unwrap_or(stopped) }
}
