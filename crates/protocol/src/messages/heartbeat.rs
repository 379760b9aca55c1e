//! Signs of life of a group's member.

use crate::ErrorCode;

schema! {
    /// Says that a member lives.
    struct HeartbeatRequest {
        /// The group.
        group_id: String, 0..;
        /// The generation.
        generation_id: i32, 0..;
        /// The member id.
        member_id: String, 0..;
        /// The name of a static member.
        group_instance_id: Option<String>, 3.., null 3..;
    }

    /// Answers a [`HeartbeatRequest`].
    struct HeartbeatResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 1..;
        /// What went wrong; that the group rebalances is told here, too.
        error_code: ErrorCode, 0..;
    }
}
