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
}
