//! DescribeGroups.

use highwater_protocol::{DescribeGroupsRequest, DescribeGroupsResponse};

use crate::node::Node;

pub(crate) fn answer(
    node: &Node,
    version: i16,
    request: DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    let groups = node.coordinator.groups();
    let groups = request.groups.into_iter().map(|group_id| groups.describe(version, group_id));
    DescribeGroupsResponse { groups: groups.collect(), ..Default::default() }
}
