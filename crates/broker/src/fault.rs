//! What a client is told when something fails.

use highwater_log::LogError;
use highwater_protocol::ErrorCode;

/// An error for a client: Kafka's code and a text, where the API carries one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) code: ErrorCode,
    pub(crate) text: String,
    /// Where the log begins that refused an append, or -1.
    pub(crate) log_start_offset: i64,
    /// The records to blame, by their place in a batch that was refused.
    pub(crate) records: Vec<i32>,
}

impl Fault {
    pub(crate) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), log_start_offset: -1, records: Vec::new() }
    }

    /// A topic or partition that does not exist.
    pub(crate) fn unknown_partition(topic: &str, index: i32) -> Self {
        let text = format!("there is no partition {index} of a topic {topic}");
        Self::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, text)
    }
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Self {
        Self::new(error.kafka_code(), format!("{}: {error}", error.code()))
    }
}
