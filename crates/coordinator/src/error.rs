//! Why a coordinator cannot do something.

use highwater_log::LogError;
use highwater_protocol::ErrorCode;

/// An error of a coordinator's own state. [`CoordinatorError::code`] is stable; the text is for people.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// The log did not take or give the records in which the state is kept.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The state is still being read back; clients ask again.
    #[error("the state in {topic} is still being read back; ask again")]
    Loading {
        /// The topic that is read.
        topic: &'static str,
    },
    /// A record of the state is broken where the log itself is whole.
    #[error(
        "{topic} holds at offset {offset} what is no state of a coordinator: {reason}; restore the topic from a backup, or delete its folder with the server stopped and lose what it holds"
    )]
    Unreadable {
        /// The topic that is read.
        topic: &'static str,
        /// Where in it.
        offset: i64,
        /// What is wrong there.
        reason: String,
    },
}

impl CoordinatorError {
    /// The stable code, to be used in scripts and in the documentation.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Log(error) => error.code(),
            Self::Loading { .. } => "COORDINATOR_LOADING",
            Self::Unreadable { .. } => "COORDINATOR_UNREADABLE",
        }
    }

    /// What a Kafka client is told: all but a batch that is too large is worth asking again.
    pub fn kafka_code(&self) -> ErrorCode {
        match self {
            Self::Log(LogError::RecordTooLarge { .. }) => ErrorCode::UNKNOWN_SERVER_ERROR,
            Self::Loading { .. } => ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
            Self::Log(_) | Self::Unreadable { .. } => ErrorCode::COORDINATOR_NOT_AVAILABLE,
        }
    }
}
