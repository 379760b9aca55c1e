//! Joining a group: the first half of a rebalance.

use bytes::Bytes;

use crate::ErrorCode;

schema! {
    /// Joins a group, or joins it again.
    struct JoinGroupRequest {
        /// The group.
        group_id: String, 0..;
        /// After how long a silence the member counts as dead, in milliseconds.
        session_timeout_ms: i32, 0..;
        /// How long a rebalance waits for the member; -1 stands for the session time-out.
        rebalance_timeout_ms: i32 = -1, 1..;
        /// The member id, empty if it has none yet.
        member_id: String, 0..;
        /// The name of a static member (KIP-345).
        group_instance_id: Option<String>, 5.., null 5..;
        /// What kind of group it is, `consumer` for consumers.
        protocol_type: String, 0..;
        /// The protocols that the member knows, the preferred one first.
        protocols: Vec<JoinGroupRequestProtocol>, 0..;
        /// Why it joins (KIP-800).
        reason: Option<String>, 8.., null 8..;
    }

    /// A protocol that a member knows.
    struct JoinGroupRequestProtocol {
        /// Its name; for consumers that of an assignor.
        name: String, 0..;
        /// What the leader is to know of the member.
        metadata: Bytes, 0..;
    }

    /// Answers a [`JoinGroupRequest`].
    struct JoinGroupResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 2..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// The generation.
        generation_id: i32 = -1, 0..;
        /// What kind of group it is.
        protocol_type: Option<String>, 7.., null 7..;
        /// The protocol chosen.
        protocol_name: Option<String> = Some(String::new()), 0.., null 7..;
        /// The leader's member id.
        leader: String, 0..;
        /// Whether the leader must not assign anything (KIP-814).
        skip_assignment: bool, 9..;
        /// The member id of who asked.
        member_id: String, 0..;
        /// To the leader: all members.
        members: Vec<JoinGroupResponseMember>, 0..;
    }

    /// A member, as its leader sees it.
    struct JoinGroupResponseMember {
        /// Its member id.
        member_id: String, 0..;
        /// The name of a static member.
        group_instance_id: Option<String>, 5.., null 5..;
        /// Its metadata under the protocol chosen.
        metadata: Bytes, 0..;
    }
}
