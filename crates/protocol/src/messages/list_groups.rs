//! Which groups there are.

use crate::ErrorCode;

schema! {
    /// Asks which groups there are.
    struct ListGroupsRequest {
        /// Only those in these states; empty for all (KIP-518).
        states_filter: Vec<String>, 4..;
        /// Only those of these types; empty for all (KIP-848).
        types_filter: Vec<String>, 5..;
    }

    /// Answers a [`ListGroupsRequest`].
    struct ListGroupsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 1..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// The groups.
        groups: Vec<ListedGroup>, 0..;
    }

    /// A group.
    struct ListedGroup {
        /// Its name.
        group_id: String, 0..;
        /// What kind of group it is.
        protocol_type: String, 0..;
        /// Its state.
        group_state: String, 4..;
        /// Its type: `classic` here.
        group_type: String, 5..;
    }
}
