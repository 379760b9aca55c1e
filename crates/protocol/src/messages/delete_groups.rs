//! Deleting groups.

use crate::ErrorCode;

schema! {
    /// Deletes groups with their offsets.
    struct DeleteGroupsRequest {
        /// The groups.
        groups_names: Vec<String>, 0..;
    }

    /// Answers a [`DeleteGroupsRequest`].
    struct DeleteGroupsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// The groups.
        results: Vec<DeletableGroupResult>, 0..;
    }

    /// A group that was deleted, or not.
    struct DeletableGroupResult {
        /// The group.
        group_id: String, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
    }
}
