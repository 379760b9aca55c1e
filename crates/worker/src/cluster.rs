//! The log as a worker sees it: one reader and one admin for all, a writer a task.

use highwater_connector::{ConnectorError, ErrorKind};
use highwater_kafka::{
    Admin, ErrorCode, KafkaError, Lease, Reader, TransactionSettings, Writer, WriterSettings,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use crate::WorkerConfig;
use crate::settings::WriterFactory;

/// How a writer sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// Largest record, with key and headers.
    pub(crate) max_record_bytes: usize,
    /// How long a batch may wait to grow.
    pub(crate) linger: Duration,
    /// How long a record may stay unacknowledged.
    pub(crate) delivery_timeout: Duration,
}

impl Sending {
    /// Records up to this size, as it is sent where nobody says otherwise.
    pub(crate) const fn up_to(max_record_bytes: usize) -> Self {
        let (linger, delivery_timeout) = (Duration::from_millis(5), Duration::from_secs(120));
        Self { max_record_bytes, linger, delivery_timeout }
    }
}

/// Connections to the log.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) reader: Reader,
    pub(crate) admin: Admin,
    /// What transactional ids begin with.
    pub(crate) group_id: String,
    /// The worker's own topics, which no record of a connector goes to.
    pub(crate) own_topics: [String; 3],
    writers: WriterFactory,
    /// How long this worker may write, where it shares its work with others.
    lease: Arc<Mutex<Option<Lease>>>,
}

impl Cluster {
    pub(crate) fn new(config: &WorkerConfig) -> Self {
        let reader = Reader::new(&config.bootstrap);
        Self {
            admin: Admin::new(reader.clone()),
            group_id: config.group_id.clone(),
            reader,
            own_topics: [&config.configs_topic, &config.offsets_topic, &config.status_topic]
                .map(String::clone),
            writers: Arc::clone(&config.writers),
            lease: Arc::default(),
        }
    }

    /// Writers that are made from now on write as long as `lease` holds. Whether those of before write
    /// no more.
    pub(crate) fn write_under(&self, lease: Lease) -> bool {
        let before = self.lease.lock().replace(lease);
        before.is_some_and(|lease| !lease.holds())
    }

    /// A writer that sends so; with `transactions`, in these.
    pub(crate) fn writer(
        &self,
        sending: Sending,
        transactions: Option<TransactionSettings>,
    ) -> Result<Box<dyn Writer>, KafkaError> {
        let mut settings = WriterSettings::new(self.reader.bootstrap());
        (settings.linger, settings.delivery_timeout) = (sending.linger, sending.delivery_timeout);
        settings.transactions = transactions;
        settings.lease.clone_from(&self.lease.lock());
        settings.max_request_bytes = sending.max_record_bytes.saturating_add(REQUEST_OVERHEAD);
        settings.max_in_flight_bytes = settings.max_in_flight_bytes.max(settings.max_request_bytes);
        (self.writers)(&settings)
    }
}

/// What a produce request holds beside one record: its headers, the topic's name, the batch.
pub(crate) const REQUEST_OVERHEAD: usize = 1024;

/// Refusals that stay as they are until a person has acted.
const LASTING: [ErrorCode; 10] = [
    ErrorCode::SASL_AUTHENTICATION_FAILED,
    ErrorCode::INVALID_TOPIC_EXCEPTION,
    ErrorCode::TOPIC_AUTHORIZATION_FAILED,
    ErrorCode::CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode::INVALID_PARTITIONS,
    ErrorCode::INVALID_CONFIG,
    ErrorCode::POLICY_VIOLATION,
    ErrorCode::MESSAGE_TOO_LARGE,
    ErrorCode::RECORD_LIST_TOO_LARGE,
    ErrorCode::INVALID_RECORD,
];

/// Code of a transaction that was open for too long.
pub(crate) const TRANSACTION_TIMED_OUT: &str = "TRANSACTION_TIMED_OUT";

/// A partition without a leader may be one that is damaged, which no attempt mends.
const OFFLINE: &str = "the task tries again by itself; if it lasts, the partition is offline, and \
                       the log lines of the server that holds it name the file and what to do";

/// A failure of the log as a connector's error: tried again, since logs come back, unless the log
/// refuses for a lasting reason.
pub(crate) fn log_error(error: &KafkaError) -> ConnectorError {
    if let Some(stopped) = transaction_error(error) {
        return stopped;
    }
    let code = match error {
        KafkaError::Unreachable { .. } => "LOG_UNREACHABLE",
        KafkaError::CommitUnknown { .. } => "COMMIT_UNKNOWN",
        KafkaError::Write { .. } => "LOG_WRITE_FAILED",
        KafkaError::LeaseEnded => "WORKER_LEASE_ENDED",
        _ => "LOG_REFUSED",
    };
    if !LASTING.into_iter().any(|lasting| error.is(lasting)) {
        let mut passing = ConnectorError::again(code, ErrorKind::Log, error.to_string());
        if error.is(ErrorCode::LEADER_NOT_AVAILABLE) {
            OFFLINE.clone_into(&mut passing.remedy);
        }
        return passing;
    }
    ConnectorError::stop(code, ErrorKind::Log, error.to_string(), remedy(error))
}

/// What ends the transaction of an exactly-once task. Whoever tried again by itself once it is fenced
/// would take the transactional id from the one who has it now; one that was open for too long is
/// nobody's, and is begun again from the stored position.
fn transaction_error(error: &KafkaError) -> Option<ConnectorError> {
    let what = error.to_string();
    let ended = match error {
        KafkaError::Fenced { .. } => ConnectorError::stop(
            "PRODUCER_FENCED",
            ErrorKind::Log,
            what,
            "let one server alone run this connector: end the other one, or give it another \
             worker.group_id; then restart the connector",
        ),
        KafkaError::TransactionTimedOut { .. } => ConnectorError {
            remedy: "the task tries again by itself from its stored position; if it comes again, the log \
                     or the source is too slow for producer.override.transaction.timeout.ms: raise it"
                .to_owned(),
            ..ConnectorError::again(TRANSACTION_TIMED_OUT, ErrorKind::Log, what)
        },
        _ => return None,
    };
    Some(ended.keeping("the stored position; what was not committed is seen by nobody"))
}

/// What makes the log take what it refuses.
fn remedy(error: &KafkaError) -> &'static str {
    if error.is(ErrorCode::MESSAGE_TOO_LARGE) {
        "raise max.message.bytes of the topic, then restart the connector"
    } else if error.is(ErrorCode::RECORD_LIST_TOO_LARGE) {
        "raise segment.bytes of the topic, then restart the connector"
    } else if error.is(ErrorCode::TOPIC_AUTHORIZATION_FAILED) {
        "let this server's user write to the topic, then restart the connector"
    } else if error.is(ErrorCode::SASL_AUTHENTICATION_FAILED) {
        "correct the server's --kafka-config and start it again, or restart the connector"
    } else {
        "change what the log refuses, then restart the connector"
    }
}

#[cfg(test)]
mod tests {
    use highwater_connector::Retry;

    use super::*;

    #[test]
    fn a_write_that_is_refused_for_good_stops_and_one_that_is_late_is_tried_again() {
        let failed = |code: Option<ErrorCode>| {
            log_error(&KafkaError::Write {
                topic: "shop".to_owned(),
                code: code.map(|code| code.0),
                detail: "why".to_owned(),
                fatal: true,
            })
        };
        for code in [
            ErrorCode::TOPIC_AUTHORIZATION_FAILED,
            ErrorCode::MESSAGE_TOO_LARGE,
            ErrorCode::INVALID_RECORD,
        ] {
            let stopped = failed(Some(code));
            assert!(
                stopped.retry == Retry::Never && stopped.remedy.ends_with("restart the connector"),
                "{code}"
            );
            assert_eq!(stopped.code, "LOG_WRITE_FAILED");
        }
        assert!(failed(Some(ErrorCode::MESSAGE_TOO_LARGE)).remedy.contains("max.message.bytes"));
        for code in [None, Some(ErrorCode::INVALID_PRODUCER_EPOCH)] {
            assert_eq!(failed(code).retry, Retry::Backoff, "{code:?}");
        }
    }

    #[test]
    fn a_transaction_that_timed_out_is_begun_again_and_one_that_is_fenced_is_not() {
        let (transactional_id, detail) = ("highwater-shop-0".to_owned(), "why".to_owned());
        let (open_ms, timeout_ms) = (61_000, 60_000);
        let late = KafkaError::TransactionTimedOut {
            transactional_id: transactional_id.clone(),
            open_ms,
            timeout_ms,
            detail: detail.clone(),
        };
        assert_eq!(log_error(&late).retry, Retry::Backoff);
        let fenced = log_error(&KafkaError::Fenced { transactional_id, detail });
        assert_eq!((fenced.code, fenced.retry), ("PRODUCER_FENCED", Retry::Never));
    }

    #[test]
    fn a_partition_without_a_leader_is_not_only_waited_for() {
        let refused = |code: ErrorCode| {
            log_error(&KafkaError::Refused {
                what: "find the leader of shop-0".to_owned(),
                code: code.0,
                name: "",
                detail: String::new(),
            })
        };
        assert!(refused(ErrorCode::LEADER_NOT_AVAILABLE).remedy.contains("offline"));
        assert!(!refused(ErrorCode::NOT_LEADER_OR_FOLLOWER).remedy.contains("offline"));
    }
}
