//! ListGroups.

use highwater_protocol::{ListGroupsRequest, ListGroupsResponse};

use crate::node::Node;

pub(crate) fn answer(node: &Node, request: &ListGroupsRequest) -> ListGroupsResponse {
    match node.coordinator.groups().list(request) {
        Ok(groups) => ListGroupsResponse { groups, ..Default::default() },
        Err(error_code) => ListGroupsResponse { error_code, ..Default::default() },
    }
}
