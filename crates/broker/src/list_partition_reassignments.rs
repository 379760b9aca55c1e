//! ListPartitionReassignments: one broker moves nothing to another.

use highwater_protocol::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse};

pub(crate) fn answer(_: &ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse::default()
}
