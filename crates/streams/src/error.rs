//! Errors of starting the service.

use highwater_kafka::KafkaError;

/// Why the streams service could not start.
#[derive(Debug, thiserror::Error)]
pub enum StreamsError {
    /// The topic of the stream resources cannot be made or read.
    #[error(
        "STREAMS_STATE_UNREACHABLE: the topic {topic} with the stream resources cannot be used: \
         {source}. Kept: everything in the log. Do: see that the log is running, then start again."
    )]
    State {
        /// The state topic.
        topic: String,
        /// What the log said.
        source: KafkaError,
    },
    /// A stored resource cannot be read by this release.
    #[error(
        "STREAMS_STATE_UNREADABLE: stream {stream} in topic {topic} at offset {offset} cannot be \
         read: {detail}. Kept: the stored resource, unchanged. Do: start the release that wrote it, \
         or delete the stream with it."
    )]
    Unreadable {
        /// The state topic.
        topic: String,
        /// Name of the stream.
        stream: String,
        /// Offset of the stored resource.
        offset: i64,
        /// What is wrong.
        detail: String,
    },
}
