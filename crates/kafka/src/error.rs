//! Errors of the client.

use highwater_protocol::ErrorCode;

/// What went wrong with a cluster.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KafkaError {
    /// No broker answered within the time-out.
    #[error("no broker at {bootstrap} answered: {detail}")]
    Unreachable {
        /// Address list that was tried.
        bootstrap: String,
        /// What the last attempt said.
        detail: String,
    },
    /// The cluster answered with an error code.
    #[error("{what}: {name} ({code}){detail}")]
    Refused {
        /// What was asked for, such as `fetch orders-0 at offset 17`.
        what: String,
        /// Kafka's error code.
        code: i16,
        /// Kafka's name of the code, such as `OFFSET_OUT_OF_RANGE`.
        name: &'static str,
        /// The broker's own message, with a leading separator, or empty.
        detail: String,
    },
    /// The topic or partition does not exist.
    #[error("topic {topic} partition {partition} does not exist")]
    UnknownPartition {
        /// Topic asked for.
        topic: String,
        /// Partition asked for.
        partition: i32,
    },
    /// The broker's answer, or data it holds, cannot be read.
    #[error("{what} cannot be read: {detail}")]
    Malformed {
        /// What was being read.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The broker lacks a version of an API that the question needs.
    #[error("the broker does not support {what}")]
    Unsupported {
        /// What was asked for.
        what: String,
    },
    /// A broker does not let us in, or is not whom it should be. Asking again does not help.
    #[error("authentication failed: {detail}")]
    Authentication {
        /// The broker, and what is wrong.
        detail: String,
    },
    /// A record could not be written, or its fate is unknown.
    #[error("writing to {topic} failed: {detail}")]
    Write {
        /// Topic written to.
        topic: String,
        /// Kafka's error code, when the cluster refused it.
        code: Option<i16>,
        /// Why, in words.
        detail: String,
        /// The writer is broken and must be made anew; otherwise it goes on without the record.
        fatal: bool,
    },
    /// Another producer has taken the transactional id.
    #[error("transactional id {transactional_id} is another producer's by now: {detail}")]
    Fenced {
        /// The id.
        transactional_id: String,
        /// What the cluster said.
        detail: String,
    },
    /// A transaction was open for longer than its time-out, and the cluster has aborted it, unless
    /// another producer took its transactional id.
    #[error(
        "a transaction of {transactional_id} was open for {open_ms} ms, longer than its time-out of \
         {timeout_ms} ms, and is aborted: {detail}"
    )]
    TransactionTimedOut {
        /// The transactional id.
        transactional_id: String,
        /// How long it was open.
        open_ms: u128,
        /// How long it could have been.
        timeout_ms: u128,
        /// What the cluster said.
        detail: String,
    },
    /// A writer's group has not been heard of for so long that what the writer works on may be
    /// another member's. Nothing more was sent.
    #[error("the lease of this member of the group has ended: nothing more is written")]
    LeaseEnded,
    /// Nobody answered whether a transaction is committed: it may be, or may not.
    #[error("whether a transaction of {transactional_id} is committed is not known: {detail}")]
    CommitUnknown {
        /// The transactional id.
        transactional_id: String,
        /// What was in the way.
        detail: String,
    },
}

impl KafkaError {
    /// Kafka's error code, when the cluster gave one.
    pub const fn code(&self) -> Option<i16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Write { code, .. } => *code,
            Self::Fenced { .. } => Some(ErrorCode::PRODUCER_FENCED.0),
            Self::Authentication { .. } => Some(ErrorCode::SASL_AUTHENTICATION_FAILED.0),
            _ => None,
        }
    }

    /// Whether the cluster answered with this error.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code() == Some(code.0)
    }
}

/// Letters of a broker's own text that are shown.
const LONGEST_SHOWN: usize = 1000;

/// What a broker says in its own words, fit for a line of a log or a terminal.
pub(crate) fn told(text: &str) -> String {
    let shown = text.chars().take(LONGEST_SHOWN);
    shown.map(|char| if char.is_control() { ' ' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_broker_says_is_one_line_of_bounded_length() {
        assert_eq!(told("no\r\nINFO all is well\x1b[2J"), "no  INFO all is well [2J");
        assert_eq!(told(&"\u{fc}".repeat(2000)).chars().count(), LONGEST_SHOWN);
    }
}
