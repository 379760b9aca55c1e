//! Heartbeat.

use highwater_protocol::{HeartbeatRequest, HeartbeatResponse};

use crate::node::Node;

pub(crate) fn answer(node: &Node, request: &HeartbeatRequest) -> HeartbeatResponse {
    node.coordinator.groups().heartbeat(request)
}
