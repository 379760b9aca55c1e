//! Getting an assignment: the second half of a rebalance.

use bytes::Bytes;

use crate::ErrorCode;

schema! {
    /// Asks for the member's assignment; the leader's brings everybody's.
    struct SyncGroupRequest {
        /// The group.
        group_id: String, 0..;
        /// The generation.
        generation_id: i32, 0..;
        /// The member id.
        member_id: String, 0..;
        /// The name of a static member.
        group_instance_id: Option<String>, 3.., null 3..;
        /// What kind of group the member takes it for (KIP-559).
        protocol_type: Option<String>, 5.., null 5..;
        /// The protocol that the member takes for chosen.
        protocol_name: Option<String>, 5.., null 5..;
        /// From the leader: the assignments.
        assignments: Vec<SyncGroupRequestAssignment>, 0..;
    }

    /// What the leader assigns to a member.
    struct SyncGroupRequestAssignment {
        /// The member id.
        member_id: String, 0..;
        /// The assignment.
        assignment: Bytes, 0..;
    }

    /// Answers a [`SyncGroupRequest`].
    struct SyncGroupResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 1..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// What kind of group it is.
        protocol_type: Option<String>, 5.., null 5..;
        /// The protocol chosen.
        protocol_name: Option<String>, 5.., null 5..;
        /// The assignment.
        assignment: Bytes, 0..;
    }
}
