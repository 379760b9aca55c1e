//! JoinGroup: answered once all members of the group have joined.

use std::sync::Arc;

use highwater_coordinator::Caller;
use highwater_protocol::{ErrorCode, JoinGroupRequest, JoinGroupResponse};

use crate::awaited::awaited;
use crate::node::Node;

pub(crate) fn begin(
    node: &Arc<Node>,
    caller: Caller,
    version: i16,
    request: JoinGroupRequest,
) -> impl Future<Output = JoinGroupResponse> + Send + use<> {
    let stopped = JoinGroupResponse {
        error_code: ErrorCode::COORDINATOR_NOT_AVAILABLE,
        member_id: request.member_id.clone(),
        protocol_name: None,
        ..Default::default()
    };
    let waiting = node.coordinator.groups().join(caller, version, request);
    awaited(Arc::clone(node), waiting, stopped)
}
