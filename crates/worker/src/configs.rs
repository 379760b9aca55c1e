//! Connector configurations and target states, in the format of Kafka Connect's
//! `config.storage.topic`.
//!
//! Keys `connector-NAME`, `task-NAME-N`, `commit-NAME` and `target-state-NAME`; values JSON
//! without schema; a tombstone deletes. Keys of other kinds are Kafka Connect's own and are left
//! alone.

use std::collections::BTreeMap;

use highwater_kafka::OutgoingRecord;
use serde_json::{Value, json};

use crate::journal::record;
use crate::keys::CLASS;
use crate::pipeline::Properties;

const CONNECTOR: &str = "connector-";
const COMMIT: &str = "commit-";
const TARGET: &str = "target-state-";

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

    /// Number of tasks that a connector of this state has; a source of this release has one.
    pub(crate) const fn tasks(self) -> u32 {
        match self {
            Self::Started | Self::Paused => 1,
            Self::Stopped => 0,
        }
    }
}

/// All configurations, as the topic says them up to its end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ConfigState {
    properties: BTreeMap<String, Properties>,
    targets: BTreeMap<String, TargetState>,
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

    /// Takes in one record of the topic; what cannot be read is left alone.
    pub(crate) fn apply(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        let Some(key) = key.and_then(|key| std::str::from_utf8(key).ok()) else { return };
        let read = if let Some(name) = key.strip_prefix(TARGET) {
            put(&mut self.targets, name, value, TargetState::from_value)
        } else if let Some(name) = key.strip_prefix(CONNECTOR) {
            put(&mut self.properties, name, value, properties_of)
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

    /// Takes in records that were just written.
    pub(crate) fn apply_written(&mut self, records: &[OutgoingRecord]) {
        for record in records {
            self.apply(record.key.as_deref(), record.value.as_deref());
        }
    }
}

/// Puts in what a record says; false when it cannot be read, which is not the same as a tombstone.
fn put<T>(
    map: &mut BTreeMap<String, T>,
    name: &str,
    value: Option<&[u8]>,
    read: fn(&Value) -> Option<T>,
) -> bool {
    let Some(value) = value else {
        map.remove(name);
        return true;
    };
    let Some(value) = serde_json::from_slice(value).ok().as_ref().and_then(read) else {
        return false;
    };
    map.insert(name.to_owned(), value);
    true
}

fn properties_of(value: &Value) -> Option<Properties> {
    let properties = value.get("properties")?.as_object()?;
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    Some(properties.iter().filter_map(text).collect())
}

/// Records that set a configuration, and a target state where one is given.
pub(crate) fn put_connector(
    topic: &str,
    name: &str,
    properties: &Properties,
    target: TargetState,
) -> Vec<OutgoingRecord> {
    let value = json!({ "properties": properties });
    let mut records = vec![
        // The state first: a reader that stops in between must not start what shall be stopped.
        record(topic, &format!("{TARGET}{name}"), Some(&target.value())),
        record(topic, &format!("{CONNECTOR}{name}"), Some(&value)),
    ];
    records.extend(put_tasks(topic, name, properties, target));
    records
}

/// Records that set a target state.
pub(crate) fn put_target(
    topic: &str,
    name: &str,
    properties: &Properties,
    target: TargetState,
) -> Vec<OutgoingRecord> {
    let mut records = vec![record(topic, &format!("{TARGET}{name}"), Some(&target.value()))];
    records.extend(put_tasks(topic, name, properties, target));
    records
}

/// Task configurations count from their commit record on.
fn put_tasks(
    topic: &str,
    name: &str,
    properties: &Properties,
    target: TargetState,
) -> Vec<OutgoingRecord> {
    let commit = json!({ "tasks": target.tasks() });
    let task = json!({ "properties": task_properties(properties) });
    let mut records = Vec::new();
    if target.tasks() > 0 {
        records.push(record(topic, &format!("task-{name}-0"), Some(&task)));
    }
    records.push(record(topic, &format!("{COMMIT}{name}"), Some(&commit)));
    records
}

/// A task's configuration: its connector's, with the task's class as Kafka Connect names it.
pub(crate) fn task_properties(properties: &Properties) -> Properties {
    let mut task = properties.clone();
    if let Some(class) = properties.get(CLASS) {
        task.insert("task.class".to_owned(), class.clone());
    }
    task
}

/// Records that delete a connector.
pub(crate) fn delete(topic: &str, name: &str) -> Vec<OutgoingRecord> {
    [
        format!("{CONNECTOR}{name}"),
        format!("{TARGET}{name}"),
        format!("task-{name}-0"),
        format!("{COMMIT}{name}"),
    ]
    .iter()
    .map(|key| record(topic, key, None))
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
        state.apply_written(&put_connector("c", "a-b", &properties(), TargetState::Paused));
        assert_eq!(state.names().collect::<Vec<_>>(), ["a-b"]);
        assert_eq!(state.properties("a-b"), Some(&properties()));
        assert_eq!(state.target("a-b"), TargetState::Paused);

        state.apply_written(&put_target("c", "a-b", &properties(), TargetState::Stopped));
        assert_eq!(state.target("a-b"), TargetState::Stopped);
        state.apply_written(&delete("c", "a-b"));
        assert_eq!(state, ConfigState::default());
    }

    #[test]
    fn the_format_is_kafka_connects() {
        let records = put_connector("c", "a", &properties(), TargetState::Started);
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
        let records = put_target("c", "a", &properties(), TargetState::Stopped);
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
        state.apply_written(&put_connector("c", "a", &properties(), TargetState::Stopped));
        let before = state.clone();
        for (key, value) in [
            (&b"connector-a"[..], &b"garbage"[..]),
            (b"connector-a", b"{}"),
            (b"target-state-a", b"garbage"),
            (b"target-state-a", br#"{"state":"NO SUCH"}"#),
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
