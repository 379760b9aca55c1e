//! LeaveGroup: of one member up to version 2, of several from version 3.

use highwater_protocol::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity};

use crate::node::Node;

/// The first version that names several members.
const BATCHED_SINCE: i16 = 3;

pub(crate) fn answer(
    node: &Node,
    version: i16,
    mut request: LeaveGroupRequest,
) -> LeaveGroupResponse {
    let groups = node.coordinator.groups();
    if version >= BATCHED_SINCE {
        return groups.leave(request);
    }
    let member_id = std::mem::take(&mut request.member_id);
    request.members = vec![MemberIdentity { member_id, ..Default::default() }];
    let mut answer = groups.leave(request);
    if let Some(member) = answer.members.pop().filter(|_| answer.error_code.is_ok()) {
        answer.error_code = member.error_code;
    }
    answer
}
