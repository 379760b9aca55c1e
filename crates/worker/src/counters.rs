//! What the worker counts, through the `metrics` facade.

use metrics::{describe_counter, describe_gauge};

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    describe_counter!(
        "highwater_source_records_total",
        "Records that the log has acknowledged, by connector"
    );
    describe_counter!(ACCEPTED, "Records that a sink has accepted, by connector");
    describe_counter!(SKIPPED, "Bad records that a sink went on without, by connector");
    describe_counter!(
        MOVES,
        "Times that the log no longer had where a sink was to read on, by connector"
    );
    describe_counter!(
        FAILURES,
        "Times that a task ended with an error, tried again or not, by connector and task"
    );
    describe_gauge!(
        RUNNING,
        "1 while a task of the connector runs, 0 while it does not, by connector and task; task 0 of \
         one that has no task now"
    );
}

const RUNNING: &str = "highwater_connector_running";
const FAILURES: &str = "highwater_task_failures_total";
const ACCEPTED: &str = "highwater_sink_records_total";
const SKIPPED: &str = "highwater_sink_records_skipped_total";
const MOVES: &str = "highwater_sink_moves_total";

/// The task is gone: NaN, which the server leaves out of what it shows, and which is not 0
/// either, so that no alert goes on about it.
pub(crate) fn gone(connector: &str, task: u32) {
    running_gauge(connector, task).set(f64::NAN);
}

/// A task runs, or does not.
pub(crate) fn running(connector: &str, task: u32, running: bool) {
    running_gauge(connector, task).set(if running { 1.0 } else { 0.0 });
}

/// A task ended with an error.
pub(crate) fn failed(connector: &str, task: u32) {
    let (connector, task) = (connector.to_owned(), task.to_string());
    metrics::counter!(FAILURES, "connector" => connector, "task" => task).increment(1);
}

/// A sink has accepted records.
pub(crate) fn accepted(connector: &str, count: usize) {
    metrics::counter!(ACCEPTED, "connector" => connector.to_owned()).increment(count as u64);
}

/// A sink goes on without a bad record.
pub(crate) fn skipped(connector: &str) {
    metrics::counter!(SKIPPED, "connector" => connector.to_owned()).increment(1);
}

/// A sink reads on elsewhere, since the log lacks the offset.
pub(crate) fn moved(connector: &str) {
    metrics::counter!(MOVES, "connector" => connector.to_owned()).increment(1);
}

fn running_gauge(connector: &str, task: u32) -> metrics::Gauge {
    metrics::gauge!(RUNNING, "connector" => connector.to_owned(), "task" => task.to_string())
}
