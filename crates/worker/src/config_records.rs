//! Records of the configuration topic that say what operators want: what `configs` reads.

use highwater_kafka::OutgoingRecord;
use serde_json::json;

use crate::declared::Mark;
use crate::journal::record;
use crate::pipeline::Properties;
use crate::target_state::TargetState;
use crate::task_configs::TaskConfigs;

pub(crate) const CONNECTOR: &str = "connector-";
pub(crate) const TASK: &str = "task-";
pub(crate) const COMMIT: &str = "commit-";
pub(crate) const TARGET: &str = "target-state-";
/// Ours; Kafka Connect leaves keys alone that it does not know.
pub(crate) const DECLARED: &str = "highwater-declared-";
pub(crate) const RESTART: &str = "restart-connector-";
/// How the keys begin of levels that all workers are told.
pub(crate) const LOGGER: &str = "logger-cluster-";

/// Which parts of a connector are started anew (KIP-745).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Restart {
    pub(crate) tasks: bool,
    pub(crate) only_failed: bool,
}

/// Records that set a configuration, its target state, and its tasks.
pub(crate) fn put_connector(
    topic: &str,
    name: &str,
    properties: &Properties,
    target: TargetState,
    tasks: &[Properties],
) -> Vec<OutgoingRecord> {
    let value = json!({ "properties": properties });
    // The state first: a reader that stops in between must not start what shall be stopped.
    let mut records = put_target(topic, name, target, tasks);
    records.insert(1, record(topic, &format!("{CONNECTOR}{name}"), Some(&value)));
    records
}

/// Records that set a target state, and the tasks that follow from it.
pub(crate) fn put_target(
    topic: &str,
    name: &str,
    target: TargetState,
    tasks: &[Properties],
) -> Vec<OutgoingRecord> {
    let mut records = vec![record(topic, &format!("{TARGET}{name}"), Some(&target.value()))];
    records.extend(put_tasks(topic, name, tasks));
    records
}

/// Records that set all tasks of a connector: their configurations count from the commit on.
pub(crate) fn put_tasks(topic: &str, name: &str, tasks: &[Properties]) -> Vec<OutgoingRecord> {
    let task = |(id, properties): (usize, &Properties)| {
        let value = json!({ "properties": properties });
        record(topic, &format!("{TASK}{name}-{id}"), Some(&value))
    };
    let mut records: Vec<_> = tasks.iter().enumerate().map(task).collect();
    let commit = json!({ "tasks": tasks.len() });
    records.push(record(topic, &format!("{COMMIT}{name}"), Some(&commit)));
    records
}

/// The record that says which file wants a connector, or that none does.
pub(crate) fn put_mark(topic: &str, name: &str, mark: Option<&Mark>) -> OutgoingRecord {
    record(topic, &format!("{DECLARED}{name}"), mark.map(Mark::value).as_ref())
}

/// The record that has all workers start a connector anew.
pub(crate) fn restart(topic: &str, name: &str, restart: Restart) -> OutgoingRecord {
    let Restart { tasks, only_failed } = restart;
    let value = json!({ "include-tasks": tasks, "only-failed": only_failed });
    record(topic, &format!("{RESTART}{name}"), Some(&value))
}

/// Records that delete a connector that has these tasks.
pub(crate) fn delete(topic: &str, name: &str, tasks: &TaskConfigs) -> Vec<OutgoingRecord> {
    let tasks = tasks.known().map(|id| format!("{TASK}{name}-{id}"));
    [format!("{CONNECTOR}{name}"), format!("{TARGET}{name}")]
        .into_iter()
        .chain(tasks)
        .chain([format!("{COMMIT}{name}")])
        .map(|key| record(topic, &key, None))
        .collect()
}
