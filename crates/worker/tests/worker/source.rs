//! A source whose history is known: transaction `n` has `size(n)` events, one lane, one table.
//!
//! Its server remembers what it was told, so that a test can say what was promised to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use highwater_connector::{
    Claim, Column, ColumnStates, Config, ConfigDef, ConfigKey, ConnectorError, ErrorKind,
    ExactlyOnce, Generation, Hold, Hw, Importance, Keeps, KeyType, OffsetChange, OffsetVerdict,
    OwnRecord, Position, RecordKind, Routing, SideTopic, SourceConnector, SourceItem, SourceOffset,
    SourcePartition, SourceRecord, SourceTask, Start, TableDescription, TaskStore, Topics,
    schema_topic,
};
use highwater_kafka::Reader;
use serde_json::json;
use tokio::sync::watch;

use crate::barrier::Barrier;
use crate::trail;

/// A place in the history: the next event to deliver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Place {
    pub(crate) tx: u64,
    pub(crate) event: u64,
}

impl Place {
    pub(crate) fn of(offset: &SourceOffset) -> Option<Self> {
        let number = |key| offset.number(key).map(i64::unsigned_abs);
        Some(Self { tx: number("tx")?, event: number("event")? })
    }

    pub(crate) fn offset(self) -> SourceOffset {
        let mut offset = SourceOffset::default();
        offset.set("tx", self.tx);
        offset.set("event", self.event);
        offset
    }

    /// Where reading goes on after the event at this place.
    pub(crate) fn next(self) -> Self {
        if self.event + 1 < size(self.tx) {
            Self { event: self.event + 1, ..self }
        } else {
            Self { tx: self.tx + 1, event: 0 }
        }
    }
}

/// Number of events of transaction `tx`.
pub(crate) fn size(tx: u64) -> u64 {
    1 + (tx * 7 + 3) % 5
}

/// All events before `end`, in order.
pub(crate) fn events_before(end: Place) -> Vec<Place> {
    let mut events = Vec::new();
    let mut at = Place::default();
    while at < end {
        events.push(at);
        at = at.next();
    }
    events
}

/// One start of a task.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    pub(crate) offset: Option<SourceOffset>,
    pub(crate) generation: Generation,
    pub(crate) tables: usize,
    /// The part of the source that it reads.
    pub(crate) part: String,
    /// What it logs in with.
    pub(crate) password: String,
    /// Keys and values of its journal.
    pub(crate) journal: Vec<OwnRecord>,
    /// The last position that was reported as stored before.
    pub(crate) told: Option<Place>,
}

/// What a server knows and is told.
#[derive(Default)]
pub(crate) struct State {
    /// Transactions below this one are committed.
    pub(crate) committed: u64,
    /// Events in one poll.
    pub(crate) batch: u64,
    /// Every start, in order.
    pub(crate) starts: Vec<Started>,
    /// Every position that was reported as stored, in order.
    pub(crate) told: Vec<Place>,
    /// How many of the next polls panic.
    pub(crate) panics: u32,
    /// Errors that the next polls give.
    pub(crate) failures: Vec<ConnectorError>,
    /// An error that every start gives.
    pub(crate) unreachable: Option<ConnectorError>,
    /// What the server says to a change of offsets; accepted when absent.
    pub(crate) refusal: Option<OffsetVerdict>,
    /// Changes that it was asked about.
    pub(crate) asked: Vec<OffsetChange>,
    /// What the server keeps, or why it does not say.
    pub(crate) hold: Option<Result<Hold, ConnectorError>>,
    /// Offsets with which it was asked to let go.
    pub(crate) released: Vec<Option<SourceOffset>>,
    /// Events yielded at most, over all lives.
    pub(crate) dam: Option<u64>,
    /// What every check of a configuration fails with.
    pub(crate) misfit: Option<ConnectorError>,
    /// It cannot be exactly-once.
    pub(crate) inexact: bool,
    /// How long the polls of the events at these places take.
    pub(crate) slow: Vec<(Place, Duration)>,
    /// A value that makes every row this many bytes larger.
    pub(crate) padding: usize,
}

/// The source system.
#[derive(Clone)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    /// Number of events that were polled, over all lives.
    pub(crate) polled: Arc<watch::Sender<u64>>,
    /// Number of positions that were reported as stored, over all lives.
    pub(crate) tells: Arc<watch::Sender<u64>>,
    /// Where checks of configurations wait that say so.
    pub(crate) checks: Barrier,
    /// Where tasks wait that stop.
    pub(crate) stops: Barrier,
    /// Reads the log, to see that what is reported as stored is stored.
    pub(crate) reader: Arc<OnceLock<Reader>>,
}

impl Server {
    pub(crate) fn new(committed: u64, batch: u64) -> Self {
        let state = State { committed, batch, ..State::default() };
        Self {
            state: Arc::new(Mutex::new(state)),
            polled: Arc::new(watch::Sender::new(0)),
            tells: Arc::new(watch::Sender::new(0)),
            checks: Barrier::default(),
            stops: Barrier::default(),
            reader: Arc::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The place behind everything committed.
    pub(crate) fn end(&self) -> Place {
        Place { tx: self.state().committed, event: 0 }
    }

    /// The last start of a task.
    pub(crate) fn last_start(&self) -> Started {
        self.state().starts.last().unwrap().clone()
    }

    /// Waits until `count` more events were polled than now.
    pub(crate) fn after_polled(&self, count: u64) -> impl Future<Output = ()> + use<> {
        let mut polled = self.polled.subscribe();
        let goal = *polled.borrow() + count;
        async move { drop(polled.wait_for(|polled| *polled >= goal).await.unwrap()) }
    }

    /// Waits until the source was told that everything committed is stored.
    pub(crate) async fn all_told(&self) {
        let mut tells = self.tells.subscribe();
        let end = self.end();
        tells.wait_for(|_| self.state().told.last() == Some(&end)).await.unwrap();
    }
}

/// The kind of source.
pub(crate) struct Fake {
    server: Server,
    def: ConfigDef,
}

pub(crate) const CLASS: &str = "test.FakeConnector";

impl Fake {
    pub(crate) fn new(server: Server) -> Self {
        let key = |name, key_type, default| ConfigKey {
            name,
            key_type,
            default,
            importance: Importance::High,
            documentation: "",
        };
        let def = ConfigDef::new(vec![
            key("topic.prefix", KeyType::String, None),
            key("tables", KeyType::List, Some("t")),
            key("topic.routing", KeyType::Choice(&["trail", "table"]), Some("trail")),
            key("database.password", KeyType::Password, Some("")),
            key("slot", KeyType::String, Some("")),
            key("journal", KeyType::String, Some("")),
            key("audit", KeyType::String, Some("")),
            key("parts", KeyType::List, Some("")),
            key("check", KeyType::Choice(&["", "panics", "hangs", "waits"]), Some("")),
        ]);
        Self { server, def }
    }
}

#[async_trait]
impl SourceConnector for Fake {
    fn classes(&self) -> &'static [&'static str] {
        &[CLASS, "fake"]
    }

    fn version(&self) -> &'static str {
        "9.8.7"
    }

    fn config(&self) -> &ConfigDef {
        &self.def
    }

    /// One task a part.
    fn tasks(
        &self,
        properties: &BTreeMap<String, String>,
        config: &Config,
        _: u32,
    ) -> Result<Vec<BTreeMap<String, String>>, ConnectorError> {
        let of = |part: &str| {
            let mut properties = properties.clone();
            properties.insert("parts".to_owned(), part.to_owned());
            properties
        };
        match config.list("parts").as_slice() {
            [] => Ok(vec![properties.clone()]),
            parts => Ok(parts.iter().copied().map(of).collect()),
        }
    }

    fn partition(&self, config: &Config) -> SourcePartition {
        let mut partition = json!({ "server": config.text("topic.prefix") });
        let part = config.text("parts");
        if !part.is_empty() {
            partition["part"] = json!(part);
        }
        serde_json::from_value(partition).unwrap()
    }

    fn topics(&self, config: &Config) -> Topics {
        let trail = config.text("topic.prefix").to_owned();
        let schema = Some(schema_topic(&trail));
        let routing = match config.text("topic.routing") {
            "table" => Routing::Tables(trail),
            _ => Routing::Trail(trail),
        };
        let side = [("journal", Keeps::Newest), ("audit", Keeps::For(Duration::from_secs(3600)))];
        let side = side.map(|(key, keeps)| SideTopic { name: config.text(key).to_owned(), keeps });
        let side = side.into_iter().filter(|side| !side.name.is_empty()).collect();
        Topics { schema, routing, side }
    }

    fn fingerprint(&self, config: &Config) -> String {
        config.text("tables").to_owned()
    }

    fn before_open_transaction(&self, offset: &SourceOffset) -> Option<SourceOffset> {
        let place = Place::of(offset)?;
        (place.event > 0).then(|| Place { event: 0, ..place }.offset())
    }

    async fn check_offset_change(
        &self,
        _: &Config,
        change: &OffsetChange,
    ) -> Result<OffsetVerdict, ConnectorError> {
        let mut state = self.server.state();
        state.asked.push(change.clone());
        Ok(state.refusal.clone().unwrap_or(OffsetVerdict::Accepted(change.wanted.clone())))
    }

    fn claims(&self, config: &Config) -> Vec<Claim> {
        let slot = config.text("slot");
        let claim = Claim { key: "slot", what: format!("slot {slot} of the server") };
        Some(claim).filter(|_| !slot.is_empty()).into_iter().collect()
    }

    async fn hold(&self, _: &Config) -> Result<Option<Hold>, ConnectorError> {
        self.server.state().hold.clone().transpose()
    }

    async fn release(
        &self,
        _: &Config,
        offset: Option<&SourceOffset>,
    ) -> Result<Option<String>, ConnectorError> {
        let mut state = self.server.state();
        state.released.push(offset.cloned());
        match state.hold.take() {
            Some(Err(error)) => Err(error),
            hold => Ok(hold.map(|_| "the slot is dropped".to_owned())),
        }
    }

    fn exactly_once(&self, _: &Config) -> ExactlyOnce {
        if self.server.state().inexact { ExactlyOnce::Unsupported } else { ExactlyOnce::Supported }
    }

    fn can_define_boundaries(&self, _: &Config) -> bool {
        !self.server.state().inexact
    }

    fn task(&self, config: &Config) -> Result<Box<dyn SourceTask>, ConnectorError> {
        match config.text("check") {
            "panics" => panic!("the check is odd"),
            "hangs" => std::thread::sleep(Duration::from_secs(6)),
            "waits" => self.server.checks.pass_blocking(),
            _ => {}
        }
        let misfit = self.server.state().misfit.clone();
        if let Some(misfit) = misfit {
            return Err(misfit);
        }
        Ok(Box::new(FakeTask {
            server: self.server.clone(),
            part: config.text("parts").to_owned(),
            password: config.text("database.password").to_owned(),
            topics: self.topics(config),
            journal: config.text("journal").to_owned(),
            generation: Generation::from_bits(0),
            run: 0,
            at: Place::default(),
            describe: false,
            journals: true,
        }))
    }
}

struct FakeTask {
    server: Server,
    part: String,
    password: String,
    topics: Topics,
    journal: String,
    generation: Generation,
    run: usize,
    at: Place,
    describe: bool,
    journals: bool,
}

impl FakeTask {
    /// Topic and partition of a record.
    fn place(&self) -> (Arc<str>, Option<i32>) {
        match &self.topics.routing {
            Routing::Trail(topic) | Routing::Topic(topic) => (topic.as_str().into(), Some(0)),
            Routing::Tables(prefix) if self.part.is_empty() => {
                (format!("{prefix}.public.t").into(), None)
            }
            Routing::Tables(prefix) => (format!("{prefix}.{}.t", self.part).into(), None),
        }
    }

    fn record(&mut self) -> SourceRecord {
        let at = self.at;
        self.at = at.next();
        let hw = Hw {
            generation: self.generation,
            lane: Some("fake".to_owned()),
            position: format!("{:08}", at.tx),
            index: at.event,
            part: 0,
            commit_time_us: None,
            table_version: Some(1),
            xid: None,
            count: (self.at.event == 0).then(|| size(at.tx)),
        };
        let value = json!({
            "source": { "schema": "public", "table": "t" },
            "tx": at.tx, "event": at.event, "run": self.run,
            "padding": "x".repeat(self.server.state().padding),
        });
        let (topic, partition) = self.place();
        SourceRecord {
            kind: RecordKind::Event,
            topic,
            partition,
            key: Some(json!({ "id": at.tx }).to_string().into()),
            value: Some(value.to_string().into()),
            other_key: None,
            headers: Vec::new(),
            hw: Some(hw),
            states: ColumnStates::default(),
            position: Arc::new(self.at.offset()),
            boundary: self.at.event == 0,
        }
    }

    /// Says in the journal that this run began, and takes back what the run before it said.
    fn journaled(&self) -> Vec<SourceItem> {
        let record = |run: usize| SourceRecord {
            kind: RecordKind::Event,
            topic: self.journal.as_str().into(),
            partition: Some(0),
            key: Some(run.to_string().into()),
            value: (run == self.run).then(|| "began".into()),
            other_key: None,
            headers: Vec::new(),
            hw: None,
            states: ColumnStates::default(),
            position: Arc::new(self.at.offset()),
            boundary: self.at.event == 0,
        };
        let runs = [self.run.checked_sub(1), Some(self.run)].into_iter().flatten();
        runs.filter(|_| !self.journal.is_empty()).map(record).map(SourceItem::Record).collect()
    }

    fn description(&self) -> SourceRecord {
        let column = Column {
            name: "id".to_owned(),
            source_type: "int8".to_owned(),
            json_type: "number".to_owned(),
            nullable: false,
            key: true,
            type_id: String::new(),
        };
        let table = TableDescription {
            table: "public.t".to_owned(),
            version: 1,
            from_position: String::new(),
            from_index: 0,
            columns: vec![column],
            notes: None,
        };
        SourceRecord {
            kind: RecordKind::TableDescription,
            topic: self.topics.schema.as_deref().unwrap().into(),
            partition: Some(0),
            key: Some(serde_json::to_vec(&table.key()).unwrap().into()),
            value: Some(serde_json::to_vec(&table).unwrap().into()),
            other_key: None,
            headers: Vec::new(),
            hw: None,
            states: ColumnStates::default(),
            position: Arc::new(self.at.offset()),
            boundary: self.at.event == 0,
        }
    }
}

#[async_trait]
impl SourceTask for FakeTask {
    async fn start(
        &mut self,
        start: Start,
        store: Arc<dyn TaskStore>,
    ) -> Result<(), ConnectorError> {
        let unreachable = self.server.state().unreachable.clone();
        if let Some(error) = unreachable {
            return Err(error);
        }
        if start.offset.is_none() {
            // As a source with a slot does: first the intent, then the position.
            let mut intent = SourceOffset::default();
            intent.set("intent", true);
            store.store(&intent).await?;
            store.store(&Place::default().offset()).await?;
        }
        let mut journal = Vec::new();
        if !self.journal.is_empty() {
            store.read_back(&self.journal, &mut |record| journal.push(record)).await?;
        }
        self.at = start.offset.as_ref().and_then(Place::of).unwrap_or_default();
        self.generation = start.generation;
        self.describe = start.tables.is_empty();
        let mut state = self.server.state();
        self.run = state.starts.len();
        let told = state.told.last().copied();
        state.starts.push(Started {
            offset: start.offset,
            generation: start.generation,
            tables: start.tables.len(),
            part: self.part.clone(),
            password: self.password.clone(),
            journal,
            told,
        });
        Ok(())
    }

    async fn poll(&mut self) -> Result<Vec<SourceItem>, ConnectorError> {
        let (end, batch) = {
            let mut state = self.server.state();
            if let Some(left) = state.panics.checked_sub(1) {
                state.panics = left;
                drop(state);
                panic!("the poll is odd");
            }
            if let Some(error) = state.failures.pop() {
                return Err(error);
            }
            (Place { tx: state.committed, event: 0 }, state.batch)
        };
        let slow = self.server.state().slow.clone();
        for (_, pause) in slow.into_iter().filter(|(place, _)| *place == self.at) {
            tokio::time::sleep(pause).await;
        }
        let mut items = Vec::new();
        if std::mem::take(&mut self.describe) {
            items.push(SourceItem::Record(self.description()));
        }
        if std::mem::take(&mut self.journals) {
            items.extend(self.journaled());
        }
        let mut polled = 0;
        let total = *self.server.polled.borrow();
        let dam = self.server.state().dam.unwrap_or(u64::MAX);
        while self.at < end && polled < batch && total + polled < dam {
            items.push(SourceItem::Record(self.record()));
            polled += 1;
        }
        if polled == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.server.polled.send_modify(|total| *total += polled);
        Ok(items)
    }

    async fn committed(&mut self, position: &dyn Position) -> Result<(), ConnectorError> {
        let place = Place::of(&position.offset()).unwrap();
        if let Some(reader) = self.server.reader.get() {
            let rows = trail::offset_rows(reader).await;
            let stored = rows.iter().filter_map(|row| Place::of(row.offset.as_ref()?)).max();
            assert!(stored >= Some(place), "told {place:?} while {stored:?} is stored");
        }
        self.server.state().told.push(place);
        self.server.tells.send_modify(|tells| *tells += 1);
        Ok(())
    }

    async fn stop(&mut self) {
        self.server.stops.pass().await;
    }

    fn activity(&self) -> String {
        format!("Reads; next is transaction {}", self.at.tx)
    }
}

/// An error that trying again may cure.
pub(crate) fn passing() -> ConnectorError {
    ConnectorError::again("FAKE_AWAY", ErrorKind::Source, "the source went away")
}

/// An error that a person has to act on.
pub(crate) fn lasting() -> ConnectorError {
    ConnectorError::stop("FAKE_ODD", ErrorKind::Data, "a row is odd", "mend the row")
}
