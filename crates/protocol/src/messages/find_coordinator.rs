//! Which broker coordinates a group or a transactional id.

use crate::ErrorCode;

schema! {
    /// Asks for a coordinator.
    struct FindCoordinatorRequest {
        /// The group or transactional id, up to version 3.
        key: String, 0..=3;
        /// 0 group, 1 transaction.
        key_type: i8, 1..;
        /// The groups or transactional ids, from version 4.
        coordinator_keys: Vec<String>, 4..;
    }

    /// Answers a [`FindCoordinatorRequest`]: up to version 3 in its own fields, from version 4 in
    /// `coordinators`.
    struct FindCoordinatorResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 1..;
        /// What went wrong.
        error_code: ErrorCode, 0..=3;
        /// What went wrong, in words.
        error_message: Option<String>, 1..=3, null 1..=3;
        /// The broker's id.
        node_id: i32, 0..=3;
        /// The broker's host name or address.
        host: String, 0..=3;
        /// The broker's port.
        port: i32, 0..=3;
        /// The coordinators, a key each.
        coordinators: Vec<Coordinator>, 4..;
    }

    /// The coordinator of one key.
    struct Coordinator {
        /// The group or transactional id.
        key: String, 4..;
        /// The broker's id.
        node_id: i32, 4..;
        /// The broker's host name or address.
        host: String, 4..;
        /// The broker's port.
        port: i32, 4..;
        /// What went wrong.
        error_code: ErrorCode, 4..;
        /// What went wrong, in words.
        error_message: Option<String>, 4.., null 4..;
    }
}
