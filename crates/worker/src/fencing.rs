//! Fencing before a new generation of tasks starts (KIP-618): whoever runs tasks of the connector still,
//! on a server that was cut off or is slow to die, gets nothing more into the log.
//!
//! How many tasks there were is kept in the configuration topic, under `tasks-fencing-NAME`, in Kafka
//! Connect's format.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use highwater_connector::{ConnectorError, ErrorKind};
use highwater_kafka::{Admin, Journal, KafkaError, OutgoingRecord};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::assignment::Work;
use crate::cluster::log_error;
use crate::configs::ConfigState;
use crate::exactly_once::transactional_id;
use crate::journal::record;
use crate::runner::Shared;
use crate::standing::Standing;

/// How the keys of these records begin.
pub(crate) const FENCING: &str = "tasks-fencing-";

/// How long a task waits for the worker that has the connector to fence those before it.
const FENCE_TIMEOUT: Duration = Duration::from_secs(10);

type Turn = tokio::sync::Mutex<()>;

/// Fences the tasks before a set of tasks: once for all of them, by the worker that has the connector.
/// Who came later would else cut off tasks that run already.
pub(crate) struct Fences {
    topic: String,
    group: String,
    configs: watch::Receiver<ConfigState>,
    standing: watch::Receiver<Standing>,
    /// One at a time of each connector, as long as anybody has it or waits for it.
    turns: Mutex<BTreeMap<String, Weak<Turn>>>,
}

impl Fences {
    pub(crate) fn new(
        topic: &str,
        group: &str,
        configs: watch::Receiver<ConfigState>,
        standing: watch::Receiver<Standing>,
    ) -> Self {
        let (topic, group) = (topic.to_owned(), group.to_owned());
        Self { topic, group, configs, standing, turns: Mutex::default() }
    }

    /// Returns once the tasks before the present ones are fenced.
    ///
    /// # Errors
    /// When the log cannot be asked, or the worker that has the connector has not done it in time; no
    /// task may start then.
    pub(crate) async fn pass(
        &self,
        connector: &str,
        shared: &Shared,
    ) -> Result<(), ConnectorError> {
        let turn = self.turn(connector).lock_owned().await;
        if !self.is_due(connector) {
            return Ok(());
        }
        let own = Work::Connector(connector.to_owned());
        // Kept until what was said is read back: who came next would else fence once more, and with it
        // tasks of other workers, which have read it already.
        let _turn = if self.standing.borrow().has(&own) {
            let fenced =
                self.fence_and_say(connector, &shared.cluster.admin, &shared.journal).await;
            fenced.map_err(|error| log_error(&error))?;
            Some(turn)
        } else {
            // Another worker's fence may need a turn that waits for one of ours.
            drop(turn);
            None
        };
        let mut configs = self.configs.clone();
        let passed = configs.wait_for(|configs| !configs.is_fence_due(connector));
        match timeout(FENCE_TIMEOUT, passed).await {
            Ok(_) => Ok(()),
            Err(_) => Err(not_fenced(connector)),
        }
    }

    fn turn(&self, connector: &str) -> Arc<Turn> {
        let mut turns = self.turns.lock();
        if let Some(turn) = turns.get(connector).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(Turn::default());
        turns.insert(connector.to_owned(), Arc::downgrade(&turn));
        turn
    }

    fn is_due(&self, connector: &str) -> bool {
        self.configs.borrow().is_fence_due(connector)
    }

    async fn fence_and_say(
        &self,
        connector: &str,
        admin: &Admin,
        journal: &Journal,
    ) -> Result<(), KafkaError> {
        self.fence(connector, admin).await?;
        let tasks =
            self.configs.borrow().tasks(connector).committed().map_or(0, |tasks| tasks.len());
        journal.write(vec![put(&self.topic, connector, tasks)]).await
    }

    /// Fences all tasks that a connector had.
    ///
    /// # Errors
    /// When the log cannot be asked.
    pub(crate) async fn fence(&self, connector: &str, admin: &Admin) -> Result<(), KafkaError> {
        let tasks = self.configs.borrow().fenced().get(connector).copied().unwrap_or(0);
        let id = |task| transactional_id(&self.group, connector, task);
        admin.fence_producers(&(0..tasks).map(id).collect::<Vec<_>>()).await
    }
}

/// The fence was not passed in time.
pub(crate) fn not_fenced(connector: &str) -> ConnectorError {
    let waited = FENCE_TIMEOUT.as_secs();
    let what = format!(
        "the worker that has connector {connector} has not fenced the tasks before these within \
         {waited} s"
    );
    ConnectorError::again("TASKS_NOT_FENCED", ErrorKind::Log, what)
}

/// Most tasks that a record is believed: more would be asked for one by one.
const MOST_TASKS: u64 = 10_000;

/// The number of tasks that a record of the topic says.
pub(crate) fn tasks_of(value: &Value) -> Option<u32> {
    let tasks = value.get("task-count")?.as_u64()?;
    u32::try_from(tasks.min(MOST_TASKS)).ok()
}

fn put(topic: &str, connector: &str, tasks: usize) -> OutgoingRecord {
    record(topic, &format!("{FENCING}{connector}"), Some(&json!({ "task-count": tasks })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_waits_for_those_of_its_own_connector_alone() {
        let (configs, standing) = (watch::Sender::default(), watch::Sender::default());
        let fences = Fences::new("c", "g", configs.subscribe(), standing.subscribe());
        let turn = |connector: &str| fences.turn(connector).try_lock_owned();
        let first = turn("a").unwrap();
        assert!(turn("a").is_err());
        let second = turn("b").unwrap();
        drop((first, second));
        let _third = turn("c").unwrap();
        assert_eq!(
            fences.turns.lock().keys().collect::<Vec<_>>(),
            ["c"],
            "who is done is forgotten"
        );
    }

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
