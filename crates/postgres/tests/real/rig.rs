//! A database, a connector over it, and a worker that keeps everything in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use highwater_connector::{
    Config, ConnectorError, ErrorKind, Finding, Generation, Hold, Hw, OffsetChange, OffsetVerdict,
    OtherKey, OwnRecord, Position, RecordKind, SourceConnector as _, SourceItem, SourceOffset,
    SourceTask, Start, TableDescription, TaskStore,
};
use highwater_postgres::{Lsn, PostgresConnector};
use serde_json::Value;
use tokio_postgres::Client;

use crate::server::{Server, server};

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What the log would hold of a record.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) topic: String,
    pub(crate) key: Option<Value>,
    /// The key as it is in the log.
    pub(crate) key_bytes: Option<Bytes>,
    /// Null in a tombstone.
    pub(crate) value: Value,
    pub(crate) other_key: Option<OtherKey>,
    pub(crate) hw: Hw,
    pub(crate) unchanged: Vec<String>,
    pub(crate) boundary: bool,
    pub(crate) offset: SourceOffset,
}

impl Event {
    /// The envelope, without the schema that may stand around it.
    pub(crate) fn payload(&self) -> &Value {
        self.value.get("payload").unwrap_or(&self.value)
    }

    pub(crate) fn op(&self) -> &str {
        self.payload()["op"].as_str().unwrap_or("tombstone")
    }

    /// The table, by the record or, in a tombstone, by the topic.
    pub(crate) fn table(&self) -> &str {
        let named = self.payload()["source"]["table"].as_str();
        named.unwrap_or_else(|| self.topic.rsplit('.').next().unwrap_or_default())
    }

    /// The event in one line: operation, images as JSON.
    pub(crate) fn line(&self) -> String {
        let mut line = self.op().to_owned();
        for image in ["before", "after"] {
            if !self.value[image].is_null() {
                line = format!(
                    "{line} {}{}",
                    if image == "before" { "-" } else { "+" },
                    self.value[image]
                );
            }
        }
        line
    }
}

/// The offset as the log has it, and how many more offsets the log takes before it fails.
#[derive(Default)]
pub(crate) struct Stored(pub(crate) Mutex<Vec<SourceOffset>>, pub(crate) Mutex<Option<u32>>);

impl Stored {
    pub(crate) fn last(&self) -> Option<SourceOffset> {
        self.0.lock().unwrap().last().cloned()
    }

    pub(crate) fn put(&self, offset: SourceOffset) {
        self.0.lock().unwrap().push(offset);
    }
}

#[async_trait]
impl TaskStore for Stored {
    async fn store(&self, offset: &SourceOffset) -> Result<(), ConnectorError> {
        if let Some(left) = &mut *self.1.lock().unwrap() {
            *left = left.checked_sub(1).ok_or_else(|| {
                ConnectorError::again("LOG_AWAY", ErrorKind::Log, "the log does not answer")
            })?;
        }
        self.put(offset.clone());
        Ok(())
    }

    async fn read_back(
        &self,
        topic: &str,
        _: &mut (dyn FnMut(OwnRecord) + Send),
    ) -> Result<(), ConnectorError> {
        panic!("the source has no topic {topic}")
    }
}

/// See the module.
pub(crate) struct Rig {
    pub(crate) db: Client,
    pub(crate) database: String,
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) stored: Arc<Stored>,
    pub(crate) descriptions: Vec<TableDescription>,
    /// Everything that was ever written to the trail.
    pub(crate) trail: Vec<Event>,
    /// Whether what is written is acknowledged and stored at once.
    pub(crate) acknowledge: bool,
    pub(crate) task: Option<Box<dyn SourceTask>>,
    marks: u32,
}

impl Rig {
    /// A rig over a new database with these tables.
    pub(crate) async fn new(schema: &str) -> Self {
        Self::on(server(), schema).await
    }

    /// The same on a server of its own.
    pub(crate) async fn on(server: &Server, schema: &str) -> Self {
        let (database, db) = server.database().await;
        db.batch_execute("CREATE TABLE hw_mark (n int PRIMARY KEY)").await.unwrap();
        db.batch_execute(schema).await.unwrap();
        let values = [
            ("database.hostname", "127.0.0.1".to_owned()),
            ("database.port", server.port.to_string()),
            ("database.user", "postgres".to_owned()),
            ("database.password", "secret".to_owned()),
            ("database.dbname", database.clone()),
            ("topic.prefix", "shop".to_owned()),
            ("slot.name", format!("slot_{database}")),
            ("status.update.interval.ms", "200".to_owned()),
            ("slot.create.timeout.ms", "20000".to_owned()),
        ];
        Self {
            db,
            database,
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            stored: Arc::default(),
            descriptions: Vec::new(),
            trail: Vec::new(),
            acknowledge: true,
            task: None,
            marks: 0,
        }
    }

    /// Sets a key of the configuration.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> &mut Self {
        self.values.insert(key.to_owned(), value.to_owned());
        self
    }

    pub(crate) async fn sql(&self, sql: &str) {
        self.db.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// One text value.
    pub(crate) async fn ask(&self, sql: &str) -> Option<String> {
        self.db.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }

    pub(crate) fn slot(&self) -> &str {
        &self.values["slot.name"]
    }

    /// The slot's confirmed position.
    pub(crate) async fn confirmed(&self) -> Lsn {
        let sql = format!(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '{}'",
            self.slot()
        );
        self.ask(&sql).await.unwrap().parse().unwrap()
    }

    /// Polls until the slot's confirmed position is beyond `lsn`.
    pub(crate) async fn told(&mut self, lsn: Lsn) {
        let begun = Instant::now();
        while self.confirmed().await <= lsn {
            assert!(begun.elapsed() < PATIENCE, "the slot stays at {}", self.confirmed().await);
            self.poll().await.unwrap();
        }
    }

    pub(crate) fn config(&self) -> Config {
        PostgresConnector::new().config().parse(&self.values, &[]).unwrap()
    }

    /// Starts the task at the stored offset.
    pub(crate) async fn start(&mut self) -> Result<(), ConnectorError> {
        let start = Start {
            offset: self.stored.last(),
            generation: Generation::from_bits(7),
            tables: self.descriptions.clone(),
        };
        let mut task = PostgresConnector::new().task(&self.config())?;
        task.start(start, Arc::<Stored>::clone(&self.stored)).await?;
        self.task = Some(task);
        Ok(())
    }

    /// Starts, and tries again as a worker would while that can help.
    pub(crate) async fn started(&mut self) {
        let begun = Instant::now();
        while let Err(error) = self.start().await {
            let again = error.retry == highwater_connector::Retry::Backoff;
            assert!(again && begun.elapsed() < PATIENCE, "{error}");
        }
    }

    /// Starts and must be refused.
    pub(crate) async fn refused(&mut self) -> ConnectorError {
        match self.start().await {
            Err(error) => error,
            Ok(()) => panic!("the start was not refused"),
        }
    }

    /// What the running task says that the server keeps.
    pub(crate) fn held(&self) -> Option<Hold> {
        self.task.as_ref()?.hold()
    }

    /// What the server keeps, asked while no task runs.
    pub(crate) async fn idle_hold(&self) -> Option<Hold> {
        PostgresConnector::new().hold(&self.config()).await.unwrap()
    }

    /// What the doctor finds.
    pub(crate) async fn examine(&self) -> Result<Vec<Finding>, ConnectorError> {
        let offset = self.stored.last();
        PostgresConnector::new().examine(&self.config(), offset.as_ref()).await
    }

    /// Lets go of the slot for good.
    pub(crate) async fn release(
        &self,
        offset: Option<SourceOffset>,
    ) -> Result<Option<String>, ConnectorError> {
        PostgresConnector::new().release(&self.config(), offset.as_ref()).await
    }

    /// Drops the task where it stands: nothing is stored, nothing told.
    pub(crate) fn crash(&mut self) {
        self.task = None;
    }

    /// One poll, written and, where it is to be, stored.
    pub(crate) async fn poll(&mut self) -> Result<usize, ConnectorError> {
        let task = self.task.as_mut().expect("a task");
        let items = task.poll().await?;
        let mut position: Option<Arc<dyn Position>> = None;
        let count = items.len();
        for item in items {
            match item {
                // Behind records of the same poll it is their newest position.
                SourceItem::Idle(idle) if position.is_some() => position = Some(idle),
                SourceItem::Idle(idle) => {
                    // An idle position is only given when everything else is stored.
                    self.stored.put(idle.offset());
                    task.committed(idle.as_ref()).await?;
                }
                SourceItem::Values(record) => panic!("a change is bytes: {record:?}"),
                SourceItem::Record(record) => {
                    position = Some(Arc::clone(&record.position));
                    let value = record.value.as_deref().unwrap_or(b"null");
                    let value: Value = serde_json::from_slice(value).unwrap();
                    if record.kind == RecordKind::TableDescription {
                        self.descriptions.push(serde_json::from_value(value).unwrap());
                        continue;
                    }
                    self.trail.push(Event {
                        topic: record.topic.to_string(),
                        key: record.key.as_deref().map(|key| serde_json::from_slice(key).unwrap()),
                        key_bytes: record.key,
                        value,
                        other_key: record.other_key,
                        hw: record.hw.unwrap(),
                        unchanged: record.states.unchanged,
                        boundary: record.boundary,
                        offset: record.position.offset(),
                    });
                }
            }
        }
        if let Some(position) = position.filter(|_| self.acknowledge) {
            self.stored.put(position.offset());
            task.committed(position.as_ref()).await?;
        }
        Ok(count)
    }

    /// Polls until something holds.
    pub(crate) async fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
            self.poll().await.unwrap_or_else(|error| panic!("waiting for {what}: {error}"));
        }
    }

    /// Commits a mark and polls until it has come: everything before it has come too.
    pub(crate) async fn settle(&mut self) {
        self.marks += 1;
        let mark = self.marks;
        self.sql(&format!("INSERT INTO public.hw_mark VALUES ({mark})")).await;
        self.until("the mark", |rig| {
            rig.trail
                .iter()
                .rev()
                .any(|event| event.table() == "hw_mark" && event.payload()["after"]["n"] == mark)
        })
        .await;
    }

    /// Polls until an error comes.
    pub(crate) async fn fails(&mut self) -> ConnectorError {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "no error came");
            if let Err(error) = self.poll().await {
                return error;
            }
        }
    }

    /// Events but those of the mark, as lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.events().map(Event::line).collect()
    }

    /// Events but those of the mark.
    pub(crate) fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.trail.iter().filter(|event| event.table() != "hw_mark")
    }

    /// Starts with no snapshot, runs some SQL, and gives its events.
    pub(crate) async fn stream(&mut self, sql: &str) -> Vec<String> {
        if self.task.is_none() {
            self.set("snapshot.mode", "no_data");
            self.started().await;
        }
        let before = self.events().count();
        // Statement by statement: a batch would be one transaction.
        for statement in sql.split(";;").map(str::trim).filter(|statement| !statement.is_empty()) {
            self.sql(statement).await;
        }
        self.settle().await;
        self.events().skip(before).map(Event::line).collect()
    }

    /// Asks whether the stored offset may be changed to this.
    pub(crate) async fn edit(&self, wanted: &str, allow_skip: bool) -> OffsetVerdict {
        let change = OffsetChange {
            current: self.stored.last(),
            wanted: Some(serde_json::from_str(wanted).unwrap()),
            allow_skip,
        };
        let connector = PostgresConnector::new();
        connector.check_offset_change(&self.config(), &change).await.unwrap()
    }
}

/// The rows that a table has after these events: what a consumer would hold.
pub(crate) fn replayed<'a>(events: impl Iterator<Item = &'a Event>) -> BTreeMap<String, Value> {
    let mut rows = BTreeMap::new();
    for event in events {
        let key = event.key.as_ref().map(ToString::to_string).unwrap_or_default();
        match event.op() {
            // A new beginning voids what came of the table since the last one.
            "snapshot_begin" | "t" => rows.clear(),
            "d" => drop(rows.remove(&key)),
            "tombstone" => assert!(!rows.contains_key(&key), "a row lives under {key}"),
            "c" | "r" | "u" => {
                let old = event.value["before"].get("id").map(|id| format!("{{\"id\":{id}}}"));
                rows.remove(&old.unwrap_or_default());
                rows.insert(key, event.value["after"].clone());
            }
            _ => {}
        }
    }
    rows
}
