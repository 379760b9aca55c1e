//! Leaving a group.

use crate::ErrorCode;

schema! {
    /// Takes members out of a group.
    struct LeaveGroupRequest {
        /// The group.
        group_id: String, 0..;
        /// The member id, up to version 2.
        member_id: String, 0..=2;
        /// The members, from version 3.
        members: Vec<MemberIdentity>, 3..;
    }

    /// A member that leaves.
    struct MemberIdentity {
        /// Its member id; empty where the name of a static member is enough.
        member_id: String, 3..;
        /// The name of a static member.
        group_instance_id: Option<String>, 3.., null 3..;
        /// Why it leaves (KIP-800).
        reason: Option<String>, 5.., null 5..;
    }

    /// Answers a [`LeaveGroupRequest`].
    struct LeaveGroupResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 1..;
        /// What went wrong with all of it.
        error_code: ErrorCode, 0..;
        /// The members.
        members: Vec<MemberResponse>, 3..;
    }

    /// A member that has left, or not.
    struct MemberResponse {
        /// Its member id.
        member_id: String, 3..;
        /// The name of a static member.
        group_instance_id: Option<String>, 3.., null 3..;
        /// What went wrong.
        error_code: ErrorCode, 3..;
    }
}
