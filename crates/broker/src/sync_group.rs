//! SyncGroup: answered once the leader's assignment is safe.

use std::sync::Arc;

use highwater_protocol::{ErrorCode, SyncGroupRequest, SyncGroupResponse};

use crate::awaited::awaited;
use crate::node::Node;

pub(crate) fn begin(
    node: &Arc<Node>,
    version: i16,
    request: SyncGroupRequest,
) -> impl Future<Output = SyncGroupResponse> + Send + use<> {
    let error_code = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    let stopped = SyncGroupResponse { error_code, ..Default::default() };
    let waiting = node.coordinator.groups().sync(version, request);
    awaited(Arc::clone(node), waiting, stopped)
}
