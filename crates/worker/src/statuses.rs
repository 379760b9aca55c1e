//! Statuses, in the format of Kafka Connect's `status.storage.topic`: keys
//! `status-connector-NAME` and `status-task-NAME-N`, value
//! `{state, trace, worker_id, generation, version}`, tombstone = gone.

use std::collections::BTreeSet;

use highwater_kafka::OutgoingRecord;
use serde_json::json;

use crate::journal::record;
use crate::status::Status;

const CONNECTOR: &str = "status-connector-";
const TASK: &str = "status-task-";

/// Kafka Connect's group generation; a worker without a group has one.
const GROUP_GENERATION: u32 = 1;

/// Whose status a record holds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Part {
    /// The connector of this name.
    Connector(String),
    /// The task of this connector and id.
    Task(String, u32),
}

impl Part {
    fn key(&self) -> String {
        match self {
            Self::Connector(name) => format!("{CONNECTOR}{name}"),
            Self::Task(name, id) => format!("{TASK}{name}-{id}"),
        }
    }

    fn of(key: &str) -> Option<Self> {
        if let Some(name) = key.strip_prefix(CONNECTOR) {
            return Some(Self::Connector(name.to_owned()));
        }
        let (name, id) = key.strip_prefix(TASK)?.rsplit_once('-')?;
        Some(Self::Task(name.to_owned(), id.parse().ok()?))
    }

    /// The record that says `status`.
    pub(crate) fn record(
        &self,
        topic: &str,
        status: &Status,
        worker_id: &str,
        version: Option<&str>,
    ) -> OutgoingRecord {
        let value = json!({
            "state": status.state.name(),
            "trace": status.trace(),
            "worker_id": worker_id,
            "generation": GROUP_GENERATION,
            "version": version,
        });
        record(topic, &self.key(), Some(&value))
    }

    /// The record that removes its status.
    pub(crate) fn tombstone(&self, topic: &str) -> OutgoingRecord {
        record(topic, &self.key(), None)
    }
}

/// Takes in one record of the topic: the parts that have a status.
pub(crate) fn apply(parts: &mut BTreeSet<Part>, key: Option<&[u8]>, value: Option<&[u8]>) {
    let key = key.and_then(|key| std::str::from_utf8(key).ok());
    let Some(part) = key.and_then(Part::of) else { return };
    if value.is_some() {
        parts.insert(part);
    } else {
        parts.remove(&part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::State;
    use serde_json::Value;

    fn task(name: &str, id: u32) -> Part {
        Part::Task(name.to_owned(), id)
    }

    #[test]
    fn the_format_is_kafka_connects() {
        let mut status = Status::unassigned();
        status.enter(State::Running, None, "Reads");
        let record = task("a", 3).record("s", &status, "w:1", Some("0.1.0"));
        assert_eq!(record.key.as_deref(), Some(b"status-task-a-3".as_slice()));
        let value: Value = serde_json::from_slice(record.value.as_ref().unwrap()).unwrap();
        let expected = json!({
            "state": "RUNNING", "trace": null, "worker_id": "w:1", "generation": 1,
            "version": "0.1.0",
        });
        assert_eq!(value, expected);
        assert_eq!(task("a", 3).tombstone("s").value, None);
    }

    #[test]
    fn a_replay_knows_who_has_a_status() {
        let mut parts = BTreeSet::new();
        for key in ["status-connector-a", "status-connector-b", "status-task-b-1-12"] {
            apply(&mut parts, Some(key.as_bytes()), Some(b"{}"));
        }
        apply(&mut parts, Some(b"status-task-b-x"), Some(b"{}"));
        apply(&mut parts, Some(b"status-topic-t:connector-b"), Some(b"{}"));
        apply(&mut parts, Some(b"status-connector-a"), None);
        let expected = [Part::Connector("b".to_owned()), task("b-1", 12)];
        assert_eq!(parts.into_iter().collect::<Vec<_>>(), expected);
    }
}
