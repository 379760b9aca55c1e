//! FindCoordinator: the one broker coordinates every group and every transactional id.

use highwater_protocol::{Coordinator, ErrorCode, FindCoordinatorRequest, FindCoordinatorResponse};

use crate::node::Node;
use crate::once::once;

/// The first version that asks for several keys at once.
const BATCHED_SINCE: i16 = 4;

/// Kinds of keys: groups, and transactional ids.
const GROUP: i8 = 0;
pub(crate) const TRANSACTION: i8 = 1;

pub(crate) fn answer(
    node: &Node,
    version: i16,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let key_type = request.key_type;
    if version >= BATCHED_SINCE {
        let mut keys = request.coordinator_keys;
        once(&mut keys, String::clone);
        let found = keys.into_iter().map(|key| find(node, key_type, key));
        return FindCoordinatorResponse { coordinators: found.collect(), ..Default::default() };
    }
    let found = find(node, key_type, request.key);
    FindCoordinatorResponse {
        error_code: found.error_code,
        error_message: found.error_message,
        node_id: found.node_id,
        host: found.host,
        port: found.port,
        ..Default::default()
    }
}

fn find(node: &Node, key_type: i8, key: String) -> Coordinator {
    if !matches!(key_type, GROUP | TRANSACTION) {
        return Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: ErrorCode::INVALID_REQUEST,
            error_message: Some(format!("there is no coordinator of kind {key_type}")),
            ..Default::default()
        };
    }
    Coordinator {
        key,
        node_id: node.config.node_id,
        host: node.advertised.host.clone(),
        port: node.advertised.port.into(),
        ..Default::default()
    }
}
