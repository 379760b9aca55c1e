//! DeleteGroups: answered once it is safe that they are gone.

use std::sync::Arc;

use highwater_protocol::{
    DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse, ErrorCode,
};

use crate::node::Node;

pub(crate) fn begin(
    node: &Arc<Node>,
    request: DeleteGroupsRequest,
) -> impl Future<Output = DeleteGroupsResponse> + Send + use<> {
    let groups = node.coordinator.groups();
    let going = request.groups_names.into_iter();
    let going: Vec<_> = going.map(|group_id| (group_id.clone(), groups.delete(group_id))).collect();
    async move {
        let mut results = Vec::with_capacity(going.len());
        for (group_id, waiting) in going {
            let deleted = waiting.answer().await;
            let error_code = deleted.unwrap_or(ErrorCode::COORDINATOR_NOT_AVAILABLE);
            results.push(DeletableGroupResult { group_id, error_code });
        }
        DeleteGroupsResponse { results, ..Default::default() }
    }
}
