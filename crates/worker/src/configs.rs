//! Connector configurations and target states, in the format of Kafka Connect's
//! `config.storage.topic`.
//!
//! Keys `connector-NAME`, `task-NAME-N`, `commit-NAME` and `target-state-NAME`; values JSON
//! without schema; a tombstone deletes. `highwater-declared-NAME` is ours: the file that wants a
//! connector. Keys of other kinds are Kafka Connect's own and are left alone. What the tasks' records mean is in `task_configs`.

use std::collections::BTreeMap;

use highwater_kafka::OutgoingRecord;
use serde_json::{Value, json};

use crate::declared::Mark;
use crate::fencing::{self, FENCING};
use crate::journal::record;
use crate::pipeline::Properties;
use crate::task_configs::TaskConfigs;

const CONNECTOR: &str = "connector-";
const TASK: &str = "task-";
const COMMIT: &str = "commit-";
const TARGET: &str = "target-state-";
/// Ours; Kafka Connect leaves keys alone that it does not know.
const DECLARED: &str = "highwater-declared-";

/// What an operator wants of a connector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum TargetState {
    /// Run it.
    #[default]
    Started,
    /// Keep its task, but do not read.
    Paused,
    /// End its task; its offsets may be changed.
    Stopped,
}

impl TargetState {
    /// Reads a name as the REST API takes it, in any case (KIP-980).
    pub(crate) fn from_initial(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "RUNNING" => Some(Self::Started),
            "PAUSED" => Some(Self::Paused),
            "STOPPED" => Some(Self::Stopped),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Started => "STARTED",
            Self::Paused => "PAUSED",
            Self::Stopped => "STOPPED",
        }
    }

    fn from_name(text: &str) -> Option<Self> {
        [Self::Started, Self::Paused, Self::Stopped].into_iter().find(|state| state.name() == text)
    }

    /// Workers before KIP-875 know no STOPPED, so `state` says PAUSED for them.
    fn value(self) -> Value {
        let old = if self == Self::Stopped { Self::Paused } else { self };
        json!({ "state": old.name(), "state.v2": self.name() })
    }

    fn from_value(value: &Value) -> Option<Self> {
        let text = value.get("state.v2").or_else(|| value.get("state"))?;
        Self::from_name(text.as_str()?)
    }
}

/// All configurations, as the topic says them up to its end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ConfigState {
    properties: BTreeMap<String, Properties>,
    targets: BTreeMap<String, TargetState>,
    tasks: BTreeMap<String, TaskConfigs>,
    /// How many tasks were fenced last.
    fenced: BTreeMap<String, u32>,
    /// Connectors that files want.
    marks: BTreeMap<String, Mark>,
}

impl ConfigState {
    /// Names of all connectors, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.properties.keys().map(String::as_str)
    }

    /// A connector's properties; `None` when there is no such connector.
    pub(crate) fn properties(&self, name: &str) -> Option<&Properties> {
        self.properties.get(name)
    }

    /// What is wanted of a connector.
    pub(crate) fn target(&self, name: &str) -> TargetState {
        self.targets.get(name).copied().unwrap_or_default()
    }

    /// What the topic says of a connector's tasks.
    pub(crate) fn tasks(&self, name: &str) -> &TaskConfigs {
        const NONE: &TaskConfigs = &TaskConfigs::none();
        self.tasks.get(name).unwrap_or(NONE)
    }

    /// How many tasks each connector had when their producers were fenced last. It outlives the
    /// connector: one that is made anew under its name has the same transactional ids.
    pub(crate) const fn fenced(&self) -> &BTreeMap<String, u32> {
        &self.fenced
    }

    /// Which connectors files want.
    pub(crate) const fn marks(&self) -> &BTreeMap<String, Mark> {
        &self.marks
    }

    /// Which file wants a connector.
    pub(crate) fn mark(&self, name: &str) -> Option<&Mark> {
        self.marks.get(name)
    }

    /// Takes in one record of the topic; what cannot be read is left alone.
    pub(crate) fn apply(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        let Some(key) = key.and_then(|key| std::str::from_utf8(key).ok()) else { return };
        let read = if let Some(name) = key.strip_prefix(TARGET) {
            put(&mut self.targets, name, value, TargetState::from_value)
        } else if let Some(name) = key.strip_prefix(CONNECTOR) {
            put(&mut self.properties, name, value, properties_of)
        } else if let Some(task) = key.strip_prefix(TASK) {
            self.apply_task(task, value)
        } else if let Some(name) = key.strip_prefix(COMMIT) {
            self.apply_commit(name, value)
        } else if let Some(name) = key.strip_prefix(FENCING) {
            put(&mut self.fenced, name, value, fencing::tasks_of)
        } else if let Some(name) = key.strip_prefix(DECLARED) {
            put(&mut self.marks, name, value, Mark::from_value)
        } else {
            true
        };
        if !read {
            tracing::error!(
                key,
                "a record of the configuration topic cannot be read; it is left alone"
            );
        }
    }

    fn apply_task(&mut self, task: &str, value: Option<&[u8]>) -> bool {
        let Some((name, id)) = task.rsplit_once('-') else { return false };
        let Ok(id) = id.parse() else { return false };
        let Ok(properties) = read(value, properties_of) else { return false };
        self.change_tasks(name, |tasks| tasks.task(id, properties));
        true
    }

    fn apply_commit(&mut self, name: &str, value: Option<&[u8]>) -> bool {
        let count = |value: &Value| value.get("tasks")?.as_u64()?.try_into().ok();
        let Ok(count) = read(value, count) else { return false };
        self.change_tasks(name, |tasks| tasks.commit(count));
        true
    }

    fn change_tasks(&mut self, name: &str, change: impl FnOnce(&mut TaskConfigs)) {
        let tasks = self.tasks.entry(name.to_owned()).or_default();
        change(tasks);
        if *tasks == TaskConfigs::none() {
            self.tasks.remove(name);
        }
    }

    /// Takes in records that were just written.
    pub(crate) fn apply_written(&mut self, records: &[OutgoingRecord]) {
        for record in records {
            self.apply(record.key.as_deref(), record.value.as_deref());
        }
    }
}

/// Puts in what a record says; false when it cannot be read.
fn put<T>(
    map: &mut BTreeMap<String, T>,
    name: &str,
    value: Option<&[u8]>,
    of: impl FnOnce(&Value) -> Option<T>,
) -> bool {
    match read(value, of) {
        Ok(Some(value)) => drop(map.insert(name.to_owned(), value)),
        Ok(None) => drop(map.remove(name)),
        Err(Unreadable) => return false,
    }
    true
}

/// A value that says nothing, which is not the same as a tombstone.
struct Unreadable;

fn read<T>(
    value: Option<&[u8]>,
    of: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, Unreadable> {
    let Some(value) = value else { return Ok(None) };
    let value = serde_json::from_slice(value).map_err(|_| Unreadable)?;
    of(&value).map(Some).ok_or(Unreadable)
}

fn properties_of(value: &Value) -> Option<Properties> {
    let properties = value.get("properties")?.as_object()?;
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    Some(properties.iter().filter_map(text).collect())
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

/// Records that delete a connector of which `state` knows.
pub(crate) fn delete(topic: &str, name: &str, state: &ConfigState) -> Vec<OutgoingRecord> {
    let tasks = state.tasks(name).known().map(|id| format!("{TASK}{name}-{id}"));
    [format!("{CONNECTOR}{name}"), format!("{TARGET}{name}")]
        .into_iter()
        .chain(tasks)
        .chain([format!("{COMMIT}{name}")])
        .map(|key| record(topic, &key, None))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties() -> Properties {
        [("connector.class", "fake"), ("topic.prefix", "shop")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    fn keys(records: &[OutgoingRecord]) -> Vec<String> {
        let key = |record: &OutgoingRecord| {
            String::from_utf8(record.key.clone().unwrap_or_default().to_vec()).unwrap()
        };
        records.iter().map(key).collect()
    }

    #[test]
    fn a_replay_restores_what_was_written() {
        let mut state = ConfigState::default();
        let tasks = [properties(), properties()];
        state.apply_written(&put_connector("c", "a-b", &properties(), TargetState::Paused, &tasks));
        assert_eq!(state.names().collect::<Vec<_>>(), ["a-b"]);
        assert_eq!(state.properties("a-b"), Some(&properties()));
        assert_eq!(state.target("a-b"), TargetState::Paused);
        assert_eq!(state.tasks("a-b").committed().unwrap().len(), 2);

        state.apply_written(&put_target("c", "a-b", TargetState::Stopped, &[]));
        assert_eq!(state.target("a-b"), TargetState::Stopped);
        assert_eq!(state.tasks("a-b").committed().unwrap().len(), 0);
        let deleted = delete("c", "a-b", &state);
        assert_eq!(keys(&deleted)[2..4], ["task-a-b-0", "task-a-b-1"]);
        state.apply_written(&deleted);
        assert_eq!(state, ConfigState::default());
    }

    #[test]
    fn the_format_is_kafka_connects() {
        let tasks = [properties()];
        let records = put_connector("c", "a", &properties(), TargetState::Started, &tasks);
        assert_eq!(keys(&records), ["target-state-a", "connector-a", "task-a-0", "commit-a"]);
        let text = |at: usize| String::from_utf8(records[at].value.clone().unwrap().to_vec());
        assert_eq!(text(0).unwrap(), r#"{"state":"STARTED","state.v2":"STARTED"}"#);
        assert_eq!(
            text(1).unwrap(),
            r#"{"properties":{"connector.class":"fake","topic.prefix":"shop"}}"#
        );
        assert_eq!(text(3).unwrap(), r#"{"tasks":1}"#);
    }

    #[test]
    fn a_stopped_connector_has_no_tasks_and_older_workers_see_it_paused() {
        let records = put_target("c", "a", TargetState::Stopped, &[]);
        assert_eq!(keys(&records), ["target-state-a", "commit-a"]);
        assert_eq!(
            records[0].value.as_deref(),
            Some(br#"{"state":"PAUSED","state.v2":"STOPPED"}"#.as_slice())
        );
    }

    #[test]
    fn a_state_of_an_older_worker_is_read() {
        let mut state = ConfigState::default();
        state.apply(Some(b"target-state-a"), Some(br#"{"state":"PAUSED"}"#));
        assert_eq!(state.target("a"), TargetState::Paused);
    }

    #[test]
    fn a_damaged_record_takes_nothing_away() {
        let mut state = ConfigState::default();
        let tasks = [properties()];
        state.apply_written(&put_connector("c", "a", &properties(), TargetState::Started, &tasks));
        let before = state.clone();
        for (key, value) in [
            (&b"connector-a"[..], &b"garbage"[..]),
            (b"connector-a", b"{}"),
            (b"target-state-a", b"garbage"),
            (b"target-state-a", br#"{"state":"NO SUCH"}"#),
            (b"task-a-0", b"garbage"),
            (b"task-a-x", b"{}"),
            (b"commit-a", br#"{"tasks":-1}"#),
        ] {
            state.apply(Some(key), Some(value));
            assert_eq!(state, before);
        }
    }

    #[test]
    fn damaged_records_are_left_alone() {
        let mut state = ConfigState::default();
        for (key, value) in [
            (Some(&b"connector-a"[..]), Some(&b"{"[..])),
            (Some(b"\xff"), Some(b"{}")),
            (None, None),
            (Some(b"session-key"), Some(b"{\"key\":\"x\"}")),
        ] {
            state.apply(key, value);
        }
        assert_eq!(state, ConfigState::default());
    }
}
