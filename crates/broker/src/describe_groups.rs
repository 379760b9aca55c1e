//! DescribeGroups.

use highwater_protocol::{DescribeGroupsRequest, DescribeGroupsResponse};

use crate::node::Node;
use crate::once::once;

pub(crate) fn answer(
    node: &Node,
    version: i16,
    request: DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    let groups = node.coordinator.groups();
    let mut ids = request.groups;
    once(&mut ids, String::clone);
    let groups = ids.into_iter().map(|group_id| groups.describe(version, group_id));
    DescribeGroupsResponse { groups: groups.collect(), ..Default::default() }
}
