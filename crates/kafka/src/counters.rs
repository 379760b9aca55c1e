//! What the client counts, through the `metrics` facade. Readers, writers and admins of a process are
//! counted together.

use metrics::{counter, describe_counter, describe_gauge, gauge};

use crate::connection::{CallError, Connection};

const CONNECTIONS: &str = "highwater_kafka_client_connections";
const CONNECTS: &str = "highwater_kafka_client_connects_total";
const UNANSWERED: &str = "highwater_kafka_client_unanswered_total";

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    describe_gauge!(
        CONNECTIONS,
        "Connections of the server's own parts to the Kafka that keeps the log, a cluster or the embedded one, that are open"
    );
    describe_counter!(
        CONNECTS,
        "Attempts of the server's own parts to connect to the Kafka that keeps the log, by outcome: done, lost (tried again), or denied (TLS or login: trying again does not help)"
    );
    describe_counter!(
        UNANSWERED,
        "Requests of the server's own parts that Kafka did not answer in time; each ends its connection"
    );
    // There from the start, so that the first of them is an increase.
    for outcome in ["done", "lost", "denied"] {
        counter!(CONNECTS, "outcome" => outcome).absolute(0);
    }
    counter!(UNANSWERED).absolute(0);
}

/// How an attempt to connect went.
pub(crate) fn connect(outcome: &Result<Connection, CallError>) {
    let outcome = match outcome {
        Ok(_) => "done",
        Err(CallError::Denied(_)) => "denied",
        Err(_) => "lost",
    };
    counter!(CONNECTS, "outcome" => outcome).increment(1);
}

/// A request had no answer in time.
pub(crate) fn unanswered() {
    counter!(UNANSWERED).increment(1);
}

/// A connection that is counted as open until dropped.
pub(crate) struct OpenConnection(());

impl OpenConnection {
    pub(crate) fn count() -> Self {
        gauge!(CONNECTIONS).increment(1);
        Self(())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        gauge!(CONNECTIONS).decrement(1);
    }
}
