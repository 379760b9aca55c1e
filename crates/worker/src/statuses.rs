//! Statuses, in the format of Kafka Connect's `status.storage.topic`: keys
//! `status-connector-NAME` and `status-task-NAME-N`, value
//! `{state, trace, worker_id, generation, version}`, tombstone = gone.

use std::collections::BTreeSet;

use highwater_kafka::OutgoingRecord;
use serde_json::{Value, json};

use crate::journal::record;
use crate::status::{State, Status};

const CONNECTOR: &str = "status-connector-";

/// Kafka Connect's group generation; a worker without a group has one.
const GROUP_GENERATION: u32 = 1;

/// The records that say `status`.
pub(crate) fn records(
    topic: &str,
    connector: &str,
    status: &Status,
    worker_id: &str,
    version: Option<&str>,
) -> Vec<OutgoingRecord> {
    let value = |state: State| {
        json!({
            "state": state.name(),
            "trace": status.trace(state),
            "worker_id": worker_id,
            "generation": GROUP_GENERATION,
            "version": version,
        })
    };
    let task: Option<Value> = status.task.map(value);
    vec![
        record(topic, &connector_key(connector), Some(&value(status.connector))),
        record(topic, &task_key(connector), task.as_ref()),
    ]
}

/// The records that remove a connector's status.
pub(crate) fn delete(topic: &str, connector: &str) -> Vec<OutgoingRecord> {
    vec![record(topic, &connector_key(connector), None), record(topic, &task_key(connector), None)]
}

fn connector_key(connector: &str) -> String {
    format!("{CONNECTOR}{connector}")
}

fn task_key(connector: &str) -> String {
    format!("status-task-{connector}-0")
}

/// Takes in one record of the topic: the names of connectors that have a status.
pub(crate) fn apply(names: &mut BTreeSet<String>, key: Option<&[u8]>, value: Option<&[u8]>) {
    let key = key.and_then(|key| std::str::from_utf8(key).ok());
    let Some(name) = key.and_then(|key| key.strip_prefix(CONNECTOR)) else { return };
    if value.is_some() {
        names.insert(name.to_owned());
    } else {
        names.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_kafka_connects() {
        let mut status = Status::unassigned();
        status.enter(State::Running, Some(State::Running), None, "Reads");
        let records = records("s", "a", &status, "w:1", Some("0.1.0"));
        assert_eq!(records[1].key.as_deref(), Some(b"status-task-a-0".as_slice()));
        let value: Value = serde_json::from_slice(records[1].value.as_ref().unwrap()).unwrap();
        let expected = json!({
            "state": "RUNNING", "trace": null, "worker_id": "w:1", "generation": 1,
            "version": "0.1.0",
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_connector_without_task_removes_the_tasks_status() {
        let mut status = Status::unassigned();
        status.enter(State::Stopped, None, None, "Stopped");
        assert_eq!(records("s", "a", &status, "w", None)[1].value, None);
    }

    #[test]
    fn a_replay_knows_who_has_a_status() {
        let mut names = BTreeSet::new();
        apply(&mut names, Some(b"status-connector-a"), Some(b"{}"));
        apply(&mut names, Some(b"status-connector-b"), Some(b"{}"));
        apply(&mut names, Some(b"status-task-b-0"), Some(b"{}"));
        apply(&mut names, Some(b"status-connector-a"), None);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["b"]);
    }
}
