//! Fencing before a new generation of tasks starts (KIP-618): whoever runs tasks of the connector still,
//! on a server that was cut off or is slow to die, gets nothing more into the log.
//!
//! How many tasks there were is kept in the configuration topic, under `tasks-fencing-NAME`, in Kafka
//! Connect's format.

use std::collections::BTreeMap;

use highwater_connector::ConnectorError;
use highwater_kafka::{Admin, Journal, KafkaError, OutgoingRecord};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::cluster::log_error;
use crate::exactly_once::transactional_id;
use crate::journal::record;

/// How the keys of these records begin.
pub(crate) const FENCING: &str = "tasks-fencing-";

/// One generation of a connector's tasks, and whether those before it are fenced.
#[derive(Debug)]
pub(crate) struct Fence {
    /// Number of its tasks.
    tasks: u32,
    passed: OnceCell<()>,
}

impl Fence {
    /// The fence before a generation of so many tasks.
    pub(crate) fn before(tasks: usize) -> Self {
        Self { tasks: u32::try_from(tasks).unwrap_or(u32::MAX), passed: OnceCell::new() }
    }
}

/// How many tasks each connector had when producers were fenced last.
#[derive(Debug)]
pub(crate) struct Fences {
    topic: String,
    group: String,
    tasks: Mutex<BTreeMap<String, u32>>,
}

impl Fences {
    pub(crate) fn new(topic: &str, group: &str, tasks: BTreeMap<String, u32>) -> Self {
        Self { topic: topic.to_owned(), group: group.to_owned(), tasks: Mutex::new(tasks) }
    }

    /// Fences the tasks before a generation, once for all of it.
    ///
    /// # Errors
    /// When the log cannot be asked; no task of the generation may start then.
    pub(crate) async fn pass(
        &self,
        fence: &Fence,
        connector: &str,
        admin: &Admin,
        journal: &Journal,
    ) -> Result<(), ConnectorError> {
        let passed = fence.passed.get_or_try_init(|| async {
            self.fence(connector, admin).await?;
            journal.write(vec![put(&self.topic, connector, fence.tasks)]).await?;
            self.tasks.lock().insert(connector.to_owned(), fence.tasks);
            Ok(())
        });
        passed.await.copied().map_err(|error: KafkaError| log_error(&error))
    }

    /// Fences all tasks that a connector had.
    ///
    /// # Errors
    /// When the log cannot be asked.
    pub(crate) async fn fence(&self, connector: &str, admin: &Admin) -> Result<(), KafkaError> {
        let tasks = self.tasks.lock().get(connector).copied().unwrap_or(0);
        let id = |task| transactional_id(&self.group, connector, task);
        admin.fence_producers(&(0..tasks).map(id).collect::<Vec<_>>()).await
    }
}

/// Most tasks that a record is believed: more would be asked for one by one.
const MOST_TASKS: u64 = 10_000;

/// The number of tasks that a record of the topic says.
pub(crate) fn tasks_of(value: &Value) -> Option<u32> {
    let tasks = value.get("task-count")?.as_u64()?;
    u32::try_from(tasks.min(MOST_TASKS)).ok()
}

fn put(topic: &str, connector: &str, tasks: u32) -> OutgoingRecord {
    record(topic, &format!("{FENCING}{connector}"), Some(&json!({ "task-count": tasks })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_kafka_connects() {
        let record = put("configs", "shop", 3);
        assert_eq!(record.key.as_deref(), Some(&b"tasks-fencing-shop"[..]));
        assert_eq!(record.value.as_deref(), Some(&br#"{"task-count":3}"#[..]));
        assert_eq!(tasks_of(&json!({ "task-count": 3 })), Some(3));
        assert_eq!(tasks_of(&json!({ "task-count": u64::MAX })), Some(10_000));
        assert_eq!(tasks_of(&json!({ "tasks": 3 })), None);
    }
}
