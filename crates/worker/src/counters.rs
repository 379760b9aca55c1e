//! What the worker shows through the `metrics` facade; the numbers of tasks are in `meters`.

use metrics::describe_gauge;

use crate::meters;

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    meters::describe();
    describe_gauge!(
        RUNNING,
        "1 while a task of the connector runs, 0 while it does not, by connector and task; task 0 of \
         one that has no task now"
    );
}

const RUNNING: &str = "highwater_connector_running";

/// The task is gone: NaN, which the server leaves out of what it shows, and which is not 0
/// either, so that no alert goes on about it.
pub(crate) fn gone(connector: &str, task: u32) {
    running_gauge(connector, task).set(f64::NAN);
}

/// A task runs, or does not.
pub(crate) fn running(connector: &str, task: u32, running: bool) {
    running_gauge(connector, task).set(if running { 1.0 } else { 0.0 });
}

fn running_gauge(connector: &str, task: u32) -> metrics::Gauge {
    metrics::gauge!(RUNNING, "connector" => connector.to_owned(), "task" => task.to_string())
}
