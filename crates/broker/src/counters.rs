//! What the broker counts, through the `metrics` facade.

use std::time::Instant;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    highwater_coordinator::describe_metrics();
    describe_gauge!("highwater_kafka_connections", "Connections that are open");
    describe_counter!("highwater_kafka_connections_total", "Connections served so far");
    describe_counter!(
        "highwater_kafka_connections_refused_total",
        "Connections turned away because as many were open as may be"
    );
    describe_counter!(
        "highwater_kafka_connections_closed_total",
        "Connections closed because of what the peer sent, or did not do in time"
    );
    describe_counter!(
        "highwater_kafka_connections_replaced_total",
        "Connections closed before their first request to make room for new ones"
    );
    describe_counter!(
        "highwater_kafka_logins_total",
        "Logins, by mechanism and outcome: done, failed, or throttled because too many of the address failed"
    );
    describe_counter!("highwater_kafka_received_bytes_total", "Bytes of requests");
    describe_counter!("highwater_kafka_sent_bytes_total", "Bytes of responses");
    describe_counter!("highwater_kafka_requests_total", "Requests answered, by API");
    describe_counter!("highwater_kafka_errors_total", "Errors in answers, by API and error code");
    describe_histogram!(
        "highwater_kafka_request_seconds",
        metrics::Unit::Seconds,
        "Time from a request to its answer, by API; a Fetch waits for data within it"
    );
    // There from the start, so that the first of them is an increase.
    for counter in ["refused", "closed", "replaced"] {
        counter!(format!("highwater_kafka_connections_{counter}_total")).absolute(0);
    }
}

/// A connection that is counted as open until dropped.
pub(crate) struct OpenConnection(());

impl OpenConnection {
    pub(crate) fn count() -> Self {
        counter!("highwater_kafka_connections_total").increment(1);
        gauge!("highwater_kafka_connections").increment(1.0);
        Self(())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        gauge!("highwater_kafka_connections").decrement(1.0);
    }
}

/// A connection was turned away because as many are open as may be.
pub(crate) fn turned_away() {
    counter!("highwater_kafka_connections_refused_total").increment(1);
}

/// A connection without a request made room for a new one.
pub(crate) fn replaced() {
    counter!("highwater_kafka_connections_replaced_total").increment(1);
}

/// A login came to an end.
pub(crate) fn login(mechanism: &'static str, outcome: &'static str) {
    counter!("highwater_kafka_logins_total", "mechanism" => mechanism, "outcome" => outcome)
        .increment(1);
}

/// A connection was closed because of what its peer sent or did not do.
pub(crate) fn closed_for_cause() {
    counter!("highwater_kafka_connections_closed_total").increment(1);
}

/// A request came, its length field left out.
pub(crate) fn received(bytes: usize) {
    counter!("highwater_kafka_received_bytes_total").increment(bytes as u64);
}

/// A response goes out, its length field included.
pub(crate) fn sent(bytes: usize) {
    counter!("highwater_kafka_sent_bytes_total").increment(bytes as u64);
}

/// A request of an API was answered; `began` is when it was read.
pub(crate) fn answered(api: &'static str, began: Instant) {
    counter!("highwater_kafka_requests_total", "api" => api).increment(1);
    histogram!("highwater_kafka_request_seconds", "api" => api).record(began.elapsed());
}

/// An answer of an API holds an error.
pub(crate) fn failed(api: &'static str, error: &'static str) {
    counter!("highwater_kafka_errors_total", "api" => api, "error" => error).increment(1);
}
