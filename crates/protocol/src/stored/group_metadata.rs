//! A group in `__consumer_offsets`.

use bytes::Bytes;

schema! {
    /// Which group.
    struct GroupMetadataKey {
        /// The group.
        group: String, 2..;
    }

    /// A generation of a group, once its members have their assignments.
    struct GroupMetadataValue {
        /// What kind of group it is, `consumer` for consumers.
        protocol_type: String, 0..;
        /// The generation.
        generation: i32, 0..;
        /// The protocol chosen, null for a group without members.
        protocol: Option<String>, 0.., null 0..;
        /// The leader's member id, null for a group without members.
        leader: Option<String>, 0.., null 0..;
        /// Since when the group is in its state, in milliseconds since 1970, or -1.
        current_state_timestamp: i64 = -1, 2..;
        /// The members.
        members: Vec<MemberMetadata>, 0..;
    }

    /// A member of a stored group.
    struct MemberMetadata {
        /// Its member id.
        member_id: String, 0..;
        /// The name of a static member (KIP-345).
        group_instance_id: Option<String>, 3.., null 3..;
        /// The client's name for itself.
        client_id: String, 0..;
        /// From where it is connected.
        client_host: String, 0..;
        /// How long a rebalance waits for it, in milliseconds; -1 where the version lacks it.
        rebalance_timeout: i32 = -1, 1..;
        /// How long it may be silent, in milliseconds.
        session_timeout: i32, 0..;
        /// Its metadata under the protocol chosen.
        subscription: Bytes, 0..;
        /// What the leader assigned to it.
        assignment: Bytes, 0..;
    }
}
