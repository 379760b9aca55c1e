//! Connector configurations and target states, in the format of Kafka Connect's
//! `config.storage.topic`.
//!
//! Keys `connector-NAME`, `task-NAME-N`, `commit-NAME` and `target-state-NAME`; values JSON
//! without schema; a tombstone deletes. `restart-connector-NAME` and `logger-cluster-NAME` tell all workers
//! to do something. `highwater-declared-NAME` is ours: the file that wants a connector. Keys of other
//! kinds are Kafka Connect's own and are left alone. What the tasks' records mean is in `task_configs`;
//! `config_records` makes those that are written.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
use highwater_kafka::OutgoingRecord;
use serde_json::Value;

use crate::config_records::{COMMIT, CONNECTOR, DECLARED, LOGGER, RESTART, Restart, TARGET, TASK};
use crate::declared::Mark;
use crate::fencing::{self, FENCING};
use crate::pipeline::Properties;
use crate::target_state::TargetState;
use crate::task_configs::TaskConfigs;

/// What a worker does about a record besides keeping it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// A connector is as its operator wants it, its tasks with it, or is gone.
    Settled(String),
    /// A connector shall be started anew.
    Restart(String, Restart),
    /// A logger has another level.
    Level(String, String),
}

impl Effect {
    /// What it is about.
    pub(crate) fn name(&self) -> &str {
        let (Self::Settled(name) | Self::Restart(name, _) | Self::Level(name, _)) = self;
        name
    }
}

/// All configurations, as the topic says them up to its end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ConfigState {
    properties: BTreeMap<String, Properties>,
    /// Which of all that were given was each connector's last.
    revisions: BTreeMap<String, u64>,
    /// How many were given of all connectors. One that is made anew under a name has no revision that the
    /// deleted one had.
    given: u64,
    targets: BTreeMap<String, TargetState>,
    tasks: BTreeMap<String, TaskConfigs>,
    /// How many tasks were fenced last.
    fenced: BTreeMap<String, u32>,
    /// Connectors that files want.
    marks: BTreeMap<String, Mark>,
    /// Connectors whose tasks were set since, so that those before them are still to be fenced.
    unfenced: BTreeSet<String>,
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

    /// Says of a connector when it was given, by a count of this process which never comes to the same
    /// number twice; 0 when there is no such connector.
    pub(crate) fn revision(&self, name: &str) -> u64 {
        self.revisions.get(name).copied().unwrap_or(0)
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

    /// Whether the tasks before the present ones are still to be fenced.
    pub(crate) fn is_fence_due(&self, name: &str) -> bool {
        let tasks = self.tasks(name).committed().map_or(0, |tasks| tasks.len());
        let fenced = self.fenced.get(name).and_then(|fenced| usize::try_from(*fenced).ok());
        tasks > 0 && (self.unfenced.contains(name) || fenced != Some(tasks))
    }

    /// Whether nothing is left of any connector; how many were given is not forgotten.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self { given: self.given, ..Self::default() }
    }

    /// Takes in one record of the topic; what cannot be read is left alone.
    pub(crate) fn apply(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) -> Option<Effect> {
        let key = key.and_then(|key| std::str::from_utf8(key).ok())?;
        let read = if let Some(name) = key.strip_prefix(TARGET) {
            put(&mut self.targets, name, value, TargetState::from_value)
        } else if let Some(name) = key.strip_prefix(CONNECTOR) {
            self.apply_connector(name, value)
        } else if let Some(task) = key.strip_prefix(TASK) {
            self.apply_task(task, value)
        } else if let Some(name) = key.strip_prefix(COMMIT) {
            self.apply_commit(name, value)
        } else if let Some(name) = key.strip_prefix(FENCING) {
            self.unfenced.remove(name);
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
            return None;
        }
        change(key, value)
    }

    fn apply_connector(&mut self, name: &str, value: Option<&[u8]>) -> bool {
        let read = put(&mut self.properties, name, value, properties_of);
        match value {
            Some(_) if read => {
                self.given += 1;
                self.revisions.insert(name.to_owned(), self.given);
            }
            Some(_) => {}
            None => drop(self.revisions.remove(name)),
        }
        read
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
        match count {
            Some(1..) => drop(self.unfenced.insert(name.to_owned())),
            _ => drop(self.unfenced.remove(name)),
        }
        true
    }

    fn change_tasks(&mut self, name: &str, change: impl FnOnce(&mut TaskConfigs)) {
        let tasks = self.tasks.entry(name.to_owned()).or_default();
        change(tasks);
        if *tasks == TaskConfigs::none() {
            self.tasks.remove(name);
        }
    }

    /// Takes in records as they are written.
    #[cfg(test)]
    pub(crate) fn apply_written(&mut self, records: &[OutgoingRecord]) {
        for record in records {
            self.apply(record.key.as_deref(), record.value.as_deref());
        }
    }
}

/// A connector's tasks are written last, so that nothing is done by halves.
fn change(key: &str, value: Option<&[u8]>) -> Option<Effect> {
    if let Some(name) = key.strip_prefix(COMMIT) {
        return Some(Effect::Settled(name.to_owned()));
    }
    let value: Value = serde_json::from_slice(value?).ok()?;
    if let Some(name) = key.strip_prefix(RESTART) {
        let flag = |key| value.get(key).and_then(Value::as_bool);
        let restart = Restart { tasks: flag("include-tasks")?, only_failed: flag("only-failed")? };
        return Some(Effect::Restart(name.to_owned(), restart));
    }
    let (name, level) = (key.strip_prefix(LOGGER)?, value.get("level")?.as_str()?);
    Some(Effect::Level(name.to_owned(), level.to_owned()))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config_records::{delete, put_connector, put_target, restart};
    use crate::journal::record;

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
        let deleted = delete("c", "a-b", state.tasks("a-b"));
        assert_eq!(keys(&deleted)[2..4], ["task-a-b-0", "task-a-b-1"]);
        state.apply_written(&deleted);
        assert!(state.is_empty(), "{state:?}");
    }

    #[test]
    fn a_connector_that_is_made_anew_has_a_revision_that_none_had_before() {
        let mut state = ConfigState::default();
        let put = |name| put_connector("c", name, &properties(), TargetState::Stopped, &[]);
        let mut seen = BTreeSet::new();
        for name in ["a", "b", "a", "a"] {
            state.apply_written(&put(name));
            assert!(seen.insert(state.revision(name)), "{seen:?}");
            state.apply_written(&delete("c", name, state.tasks(name)));
            assert_eq!(state.revision(name), 0);
        }
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
    fn a_connector_is_settled_once_its_tasks_are() {
        let mut state = ConfigState::default();
        let mut changes = |records: &[OutgoingRecord]| -> Vec<Effect> {
            let apply = |record: &OutgoingRecord| {
                state.apply(record.key.as_deref(), record.value.as_deref())
            };
            records.iter().filter_map(apply).collect()
        };
        let settled = || vec![Effect::Settled("a".to_owned())];
        let put = put_connector("c", "a", &properties(), TargetState::Started, &[properties()]);
        assert_eq!(changes(&put), settled());
        assert_eq!(changes(&put_target("c", "a", TargetState::Stopped, &[])), settled());
        let wanted = Restart { tasks: true, only_failed: false };
        let told = restart("c", "a", wanted);
        assert_eq!(
            told.value.as_deref(),
            Some(&br#"{"include-tasks":true,"only-failed":false}"#[..])
        );
        assert_eq!(changes(&[told]), [Effect::Restart("a".to_owned(), wanted)]);
        let level = record("c", "logger-cluster-x", Some(&json!({ "level": "DEBUG" })));
        assert_eq!(changes(&[level]), [Effect::Level("x".to_owned(), "DEBUG".to_owned())]);
        let deleted = delete("c", "a", state.tasks("a"));
        let last = deleted.last().unwrap();
        assert_eq!(state.apply(last.key.as_deref(), None), Some(Effect::Settled("a".to_owned())));
    }

    #[test]
    fn those_before_are_fenced_once_a_set_of_tasks() {
        let mut state = ConfigState::default();
        let tasks = [properties()];
        let fenced = |state: &mut ConfigState| {
            state.apply(Some(b"tasks-fencing-a"), Some(br#"{"task-count":1}"#));
        };
        state.apply_written(&put_connector("c", "a", &properties(), TargetState::Started, &tasks));
        assert!(state.is_fence_due("a"));
        fenced(&mut state);
        assert!(!state.is_fence_due("a"));
        state.apply_written(&put_target("c", "a", TargetState::Stopped, &[]));
        assert!(!state.is_fence_due("a"), "nobody starts");
        state.apply_written(&put_target("c", "a", TargetState::Started, &tasks));
        assert!(state.is_fence_due("a"));
        fenced(&mut state);
        state.apply(Some(b"tasks-fencing-a"), Some(br#"{"task-count":3}"#));
        assert!(state.is_fence_due("a"), "others than these were fenced last");
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
