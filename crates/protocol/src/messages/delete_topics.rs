//! Deleting topics.

use uuid::Uuid;

use crate::ErrorCode;

schema! {
    /// Deletes topics.
    struct DeleteTopicsRequest {
        /// The topics, by name or id, from version 6.
        topics: Vec<DeleteTopicState>, 6..;
        /// The topics, by name, up to version 5.
        topic_names: Vec<String>, 1..=5;
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32, 1..;
    }

    /// A topic to delete.
    struct DeleteTopicState {
        /// Its name, or null if it is given by id.
        name: Option<String>, 6.., null 6..;
        /// Its id, or zero if it is given by name.
        topic_id: Uuid, 6..;
    }

    /// Answers a [`DeleteTopicsRequest`].
    struct DeleteTopicsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 1..;
        /// The topics.
        responses: Vec<DeletableTopicResult>, 1..;
    }

    /// A topic that was deleted, or not.
    struct DeletableTopicResult {
        /// Its name; null if it was given by an id that does not exist.
        name: Option<String>, 1.., null 6..;
        /// Its id.
        topic_id: Uuid, 6..;
        /// What went wrong.
        error_code: ErrorCode, 1..;
        /// What went wrong, in words.
        error_message: Option<String>, 5.., null 5..;
    }
}
