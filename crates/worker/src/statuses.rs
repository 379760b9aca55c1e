//! Statuses, in the format of Kafka Connect's `status.storage.topic`: keys
//! `status-connector-NAME` and `status-task-NAME-N`, value
//! `{state, trace, worker_id, generation, version}`, tombstone = gone.

use std::collections::BTreeMap;

use highwater_kafka::OutgoingRecord;
use serde_json::{Value, json};

use crate::assignment::Work;
use crate::journal::record;
use crate::status::{State, Status};

const CONNECTOR: &str = "status-connector-";
const TASK: &str = "status-task-";

/// What the topic says of a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredStatus {
    pub(crate) state: State,
    pub(crate) trace: Option<String>,
    /// Who said so.
    pub(crate) worker_id: String,
    /// Generation of its group.
    pub(crate) generation: i64,
    pub(crate) version: Option<String>,
}

/// The statuses of all parts, as the topic says them up to its end.
pub(crate) type Book = BTreeMap<Work, StoredStatus>;

/// Who says something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speaker<'a> {
    pub(crate) worker_id: &'a str,
    pub(crate) generation: i32,
}

impl Work {
    fn status_key(&self) -> String {
        match self {
            Self::Connector(name) => format!("{CONNECTOR}{name}"),
            Self::Task(name, id) => format!("{TASK}{name}-{id}"),
        }
    }

    fn of_status_key(key: &str) -> Option<Self> {
        if let Some(name) = key.strip_prefix(CONNECTOR) {
            return Some(Self::Connector(name.to_owned()));
        }
        let (name, id) = key.strip_prefix(TASK)?.rsplit_once('-')?;
        Some(Self::Task(name.to_owned(), id.parse().ok()?))
    }

    /// The record that says `status` of it.
    pub(crate) fn status_record(
        &self,
        topic: &str,
        status: &Status,
        speaker: Speaker<'_>,
        version: Option<&str>,
    ) -> OutgoingRecord {
        let value = json!({
            "state": status.state.name(),
            "trace": status.trace(),
            "worker_id": speaker.worker_id,
            "generation": speaker.generation,
            "version": version,
        });
        record(topic, &self.status_key(), Some(&value))
    }

    /// The record that removes its status.
    pub(crate) fn status_tombstone(&self, topic: &str) -> OutgoingRecord {
        record(topic, &self.status_key(), None)
    }
}

/// Takes in one record of the topic; what cannot be read is left alone.
pub(crate) fn apply(book: &mut Book, key: Option<&[u8]>, value: Option<&[u8]>) {
    let key = key.and_then(|key| std::str::from_utf8(key).ok());
    let Some(part) = key.and_then(Work::of_status_key) else { return };
    match value.map(stored) {
        None => drop(book.remove(&part)),
        Some(Some(status)) => drop(book.insert(part, status)),
        Some(None) => tracing::warn!(key, "a record of the status topic cannot be read"),
    }
}

fn stored(value: &[u8]) -> Option<StoredStatus> {
    let value: Value = serde_json::from_slice(value).ok()?;
    let text = |key| value.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(StoredStatus {
        state: State::from_name(&text("state")?)?,
        trace: text("trace"),
        worker_id: text("worker_id").unwrap_or_default(),
        generation: value.get("generation").and_then(Value::as_i64).unwrap_or_default(),
        version: text("version"),
    })
}

/// The parts of a connector of which the book knows.
pub(crate) fn of_connector<'a>(
    book: &'a Book,
    name: &str,
) -> impl Iterator<Item = (u32, &'a StoredStatus)> {
    let (first, last) = (Work::Task(name.to_owned(), 0), Work::Task(name.to_owned(), u32::MAX));
    book.range(first..=last).filter_map(|(part, status)| match part {
        Work::Task(_, id) => Some((*id, status)),
        Work::Connector(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEAKER: Speaker<'_> = Speaker { worker_id: "w:1", generation: 7 };

    fn task(name: &str, id: u32) -> Work {
        Work::Task(name.to_owned(), id)
    }

    #[test]
    fn the_format_is_kafka_connects() {
        let mut status = Status::unassigned();
        status.enter(State::Running, None, "Reads");
        let record = task("a", 3).status_record("s", &status, SPEAKER, Some("0.1.0"));
        assert_eq!(record.key.as_deref(), Some(b"status-task-a-3".as_slice()));
        let value: Value = serde_json::from_slice(record.value.as_ref().unwrap()).unwrap();
        let expected = json!({
            "state": "RUNNING", "trace": null, "worker_id": "w:1", "generation": 7,
            "version": "0.1.0",
        });
        assert_eq!(value, expected);
        assert_eq!(task("a", 3).status_tombstone("s").value, None);
    }

    #[test]
    fn a_replay_knows_how_all_parts_stand() {
        let mut book = Book::new();
        let mut status = Status::unassigned();
        status.enter(State::Paused, None, "");
        let mut say = |record: OutgoingRecord| {
            apply(&mut book, record.key.as_deref(), record.value.as_deref());
        };
        let parts = [task("a", 0), task("b", 1), task("b", 12), task("b-1", 12), task("c", 0)];
        parts.iter().for_each(|part| say(part.status_record("s", &status, SPEAKER, None)));
        say(task("c", 0).status_tombstone("s"));
        for (key, value) in [
            ("status-task-b-x", "{}"),
            ("status-topic-t:connector-b", "{}"),
            ("status-task-a-0", "garbage"),
            ("status-task-a-0", r#"{"state":"ODD"}"#),
        ] {
            apply(&mut book, Some(key.as_bytes()), Some(value.as_bytes()));
        }
        assert_eq!(book.keys().collect::<Vec<_>>(), parts[..4].iter().collect::<Vec<_>>());
        let of_b: Vec<_> = of_connector(&book, "b").collect();
        assert_eq!(of_b.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 12]);
        let (state, worker) = (of_b[0].1.state, of_b[0].1.worker_id.as_str());
        assert_eq!((state, worker, of_b[0].1.generation), (State::Paused, "w:1", 7));
    }
}
