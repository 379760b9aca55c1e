//! Groups and their members.

use bytes::Bytes;

use crate::ErrorCode;

schema! {
    /// Asks what groups are.
    struct DescribeGroupsRequest {
        /// The groups.
        groups: Vec<String>, 0..;
        /// Whether to tell what the client may do with them.
        include_authorized_operations: bool, 3..;
    }

    /// Answers a [`DescribeGroupsRequest`].
    struct DescribeGroupsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 1..;
        /// The groups.
        groups: Vec<DescribedGroup>, 0..;
    }

    /// What a group is.
    struct DescribedGroup {
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// What went wrong, in words (KIP-1043).
        error_message: Option<String>, 6.., null 6..;
        /// The group.
        group_id: String, 0..;
        /// Its state.
        group_state: String, 0..;
        /// What kind of group it is.
        protocol_type: String, 0..;
        /// The protocol chosen, while it is stable.
        protocol_data: String, 0..;
        /// Its members.
        members: Vec<DescribedGroupMember>, 0..;
        /// What the client may do, a bit an operation; the least number if it did not ask.
        authorized_operations: i32 = i32::MIN, 3..;
    }

    /// A member of a group.
    struct DescribedGroupMember {
        /// Its member id.
        member_id: String, 0..;
        /// The name of a static member.
        group_instance_id: Option<String>, 4.., null 4..;
        /// The client's name for itself.
        client_id: String, 0..;
        /// From where it is connected.
        client_host: String, 0..;
        /// Its metadata under the protocol chosen, while the group is stable.
        member_metadata: Bytes, 0..;
        /// Its assignment, while the group is stable.
        member_assignment: Bytes, 0..;
    }
}
