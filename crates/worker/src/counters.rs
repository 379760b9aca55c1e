//! What the worker counts, through the `metrics` facade.

use metrics::{describe_counter, describe_gauge};

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    describe_counter!(
        "highwater_source_records_total",
        "Records that the log has acknowledged, by connector"
    );
    describe_counter!(
        "highwater_task_failures_total",
        "Times that a task ended with an error, tried again or not, by connector"
    );
    describe_gauge!(
        RUNNING,
        "1 while the connector's task reads its source, 0 while it does not, by connector"
    );
}

const RUNNING: &str = "highwater_connector_running";

/// The connector is gone: NaN, which the server leaves out of what it shows, and which is not 0
/// either, so that no alert goes on about it.
pub(crate) fn gone(connector: &str) {
    metrics::gauge!(RUNNING, "connector" => connector.to_owned()).set(f64::NAN);
}

/// A connector's task reads its source, or does not.
pub(crate) fn running(connector: &str, running: bool) {
    let value = if running { 1.0 } else { 0.0 };
    metrics::gauge!(RUNNING, "connector" => connector.to_owned()).set(value);
}
