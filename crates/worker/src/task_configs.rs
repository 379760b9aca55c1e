//! The tasks of one connector, as `config.storage.topic` says them.
//!
//! A task's configuration counts from the commit record behind it on. Compaction, or a writer that
//! died in between, can leave a commit without all of its tasks: Kafka Connect then calls the
//! connector inconsistent and runs none of its tasks until they are written anew.

use std::collections::BTreeMap;

use crate::pipeline::Properties;

const TASK_CLASS: &str = "task.class";

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TaskConfigs {
    committed: BTreeMap<u32, Properties>,
    /// Written behind the last commit.
    deferred: BTreeMap<u32, Properties>,
    /// Number of tasks that the last commit names.
    count: Option<u32>,
    /// Whether that commit had tasks missing.
    incomplete: bool,
}

impl TaskConfigs {
    /// Nothing is said.
    pub(crate) const fn none() -> Self {
        Self {
            committed: BTreeMap::new(),
            deferred: BTreeMap::new(),
            count: None,
            incomplete: false,
        }
    }

    /// A task's configuration was written, or its tombstone.
    pub(crate) fn task(&mut self, id: u32, properties: Option<Properties>) {
        match properties {
            Some(properties) => drop(self.deferred.insert(id, properties)),
            None => {
                self.committed.remove(&id);
                self.deferred.remove(&id);
            }
        }
    }

    /// A commit of `count` tasks was written, or its tombstone.
    pub(crate) fn commit(&mut self, count: Option<u32>) {
        self.count = count;
        let deferred = std::mem::take(&mut self.deferred);
        // More than these may be there: tasks of an earlier commit, which compaction has kept.
        self.incomplete = (0..count.unwrap_or(0)).any(|id| !deferred.contains_key(&id));
        if !self.incomplete {
            self.committed.extend(deferred);
        }
    }

    /// The configurations that count, in the order of the tasks' ids; `None` when some are missing.
    pub(crate) fn committed(&self) -> Option<Vec<&Properties>> {
        if self.incomplete {
            return None;
        }
        (0..self.count.unwrap_or(0)).map(|id| self.committed.get(&id)).collect()
    }

    /// Ids of all tasks of which there is a record.
    pub(crate) fn known(&self) -> impl Iterator<Item = u32> {
        let ids: std::collections::BTreeSet<_> =
            self.committed.keys().chain(self.deferred.keys()).copied().collect();
        ids.into_iter()
    }
}

/// A task's configuration as it is stored: with the task's class, as Kafka Connect's connectors name
/// it beside their own. A worker of Kafka Connect that comes after this one reads it.
pub(crate) fn stored(mut properties: Properties, classes: &[&str]) -> Properties {
    if let Some(class) = classes.first() {
        let stem = class.strip_suffix("Connector").unwrap_or(class);
        properties.insert(TASK_CLASS.to_owned(), format!("{stem}Task"));
    }
    properties
}

/// The same as the connector gave it.
pub(crate) fn given(stored: &Properties) -> Properties {
    let mut properties = stored.clone();
    properties.remove(TASK_CLASS);
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(file: &str) -> Properties {
        [("file".to_owned(), file.to_owned())].into()
    }

    fn files(tasks: &TaskConfigs) -> Option<Vec<&str>> {
        Some(tasks.committed()?.into_iter().map(|task| task["file"].as_str()).collect())
    }

    fn two() -> TaskConfigs {
        let mut tasks = TaskConfigs::none();
        tasks.task(0, Some(properties("a")));
        tasks.task(1, Some(properties("b")));
        tasks.commit(Some(2));
        tasks
    }

    #[test]
    fn a_configuration_counts_from_its_commit_on() {
        let mut tasks = two();
        assert_eq!(files(&tasks), Some(vec!["a", "b"]));
        tasks.task(0, Some(properties("c")));
        assert_eq!(files(&tasks), Some(vec!["a", "b"]), "it is not committed");
        tasks.commit(Some(1));
        assert_eq!(files(&tasks), Some(vec!["c"]));
        tasks.commit(Some(0));
        assert_eq!(files(&tasks), Some(vec![]));
    }

    #[test]
    fn a_commit_with_missing_tasks_counts_for_nothing_until_all_are_written() {
        let mut tasks = two();
        tasks.task(0, Some(properties("c")));
        tasks.commit(Some(2));
        assert_eq!(files(&tasks), None);
        tasks.task(0, Some(properties("c")));
        tasks.task(1, Some(properties("d")));
        assert_eq!(files(&tasks), None, "it is not committed");
        tasks.commit(Some(2));
        assert_eq!(files(&tasks), Some(vec!["c", "d"]));
    }

    #[test]
    fn a_stored_task_has_the_class_beside_its_connectors() {
        let stored = stored(properties("a"), &["org.example.FileConnector", "File"]);
        assert_eq!(stored["task.class"], "org.example.FileTask");
        assert_eq!(stored["file"], "a");
    }

    #[test]
    fn tasks_that_compaction_has_kept_do_no_harm() {
        let mut tasks = TaskConfigs::none();
        for (id, file) in [(2, "old"), (0, "a"), (1, "b")] {
            tasks.task(id, Some(properties(file)));
        }
        tasks.commit(Some(2));
        assert_eq!(files(&tasks), Some(vec!["a", "b"]));
        assert_eq!(tasks.known().collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn tombstones_take_everything_back() {
        let mut tasks = two();
        tasks.task(0, None);
        tasks.task(1, None);
        tasks.commit(None);
        assert_eq!(tasks, TaskConfigs::none());
    }
}
