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
    describe_gauge!(
        WANTED,
        "1 while the connector shall run, 0 while its operator has paused or stopped it, by connector"
    );
}

const RUNNING: &str = "highwater_connector_running";
const WANTED: &str = "highwater_connector_wanted";

/// The task is gone: NaN, which the server leaves out of what it shows, and which is not 0
/// either, so that no alert goes on about it.
pub(crate) fn gone(connector: &str, task: u32) {
    running_gauge(connector, task).set(f64::NAN);
}

/// The connector shall run, or shall not.
pub(crate) fn wanted(connector: &str, wanted: bool) {
    wanted_gauge(connector).set(if wanted { 1.0 } else { 0.0 });
}

/// The connector is gone from here, as a task is that is [`gone`].
pub(crate) fn connector_gone(connector: &str) {
    gone(connector, 0);
    wanted_gauge(connector).set(f64::NAN);
}

fn wanted_gauge(connector: &str) -> metrics::Gauge {
    metrics::gauge!(WANTED, "connector" => connector.to_owned())
}

/// A task runs, or does not.
pub(crate) fn running(connector: &str, task: u32, running: bool) {
    running_gauge(connector, task).set(if running { 1.0 } else { 0.0 });
}

fn running_gauge(connector: &str, task: u32) -> metrics::Gauge {
    metrics::gauge!(RUNNING, "connector" => connector.to_owned(), "task" => task.to_string())
}
