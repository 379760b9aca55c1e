//! The connector as the worker drives it, over a simulated database.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use highwater_connector::{
    Config, ConnectorError, Generation, OffsetChange, OffsetVerdict, OwnRecord, Retry,
    SourceConnector, SourceItem, SourceOffset, SourceTask, Start, TaskStore,
};
use highwater_oracle::settings::{DatabaseSettings, StatementSettings};
use highwater_oracle::{ErrorClass, OracleConnector, Session, SessionError, Sessions};
use highwater_oracle_sim::{Call, Moment, Quirk, Simulation, SimulationSettings, ora};

/// Sessions with one simulation, or none while it is away.
struct Simulated(Mutex<Option<Simulation>>);

impl Simulated {
    fn of(simulation: &Simulation) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(simulation.clone()))))
    }
}

impl Sessions for Simulated {
    fn open(
        &self,
        _: &DatabaseSettings,
        _: &StatementSettings,
    ) -> Result<Box<dyn Session>, SessionError> {
        match &*self.0.lock().unwrap() {
            Some(simulation) => Ok(Box::new(simulation.session())),
            None => Err(SessionError {
                ora: Some(12_541),
                class: ErrorClass::Transient,
                message: "ORA-12541: no listener".to_owned(),
            }),
        }
    }
}

/// What was stored without records.
#[derive(Default)]
struct Stored(Mutex<Vec<SourceOffset>>);

#[async_trait]
impl TaskStore for Stored {
    async fn store(&self, offset: &SourceOffset) -> Result<(), ConnectorError> {
        self.0.lock().unwrap().push(offset.clone());
        Ok(())
    }

    async fn read_back(
        &self,
        _: &str,
        _: &mut (dyn FnMut(OwnRecord) + Send),
    ) -> Result<(), ConnectorError> {
        Ok(())
    }
}

struct Bench {
    connector: OracleConnector,
    config: Config,
    store: Arc<Stored>,
    _spill: tempfile::TempDir,
}

impl Bench {
    fn new(sessions: Arc<Simulated>) -> Self {
        let spill = tempfile::tempdir().unwrap();
        let connector = OracleConnector::new(sessions);
        let pairs = [
            ("cdc.database.url", "simulated"),
            ("cdc.database.user", "capture"),
            ("cdc.database.password", "hush"),
            ("cdc.tables.include", r"SHOP\..*"),
            ("cdc.users.exclude", "BATCH"),
            ("cdc.topic.prefix", "shop"),
            ("cdc.buffer.spill.dir", spill.path().to_str().unwrap()),
        ];
        let given: BTreeMap<_, _> =
            pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let config = connector.config().parse(&given, &[]).unwrap();
        assert!(connector.problems(&config).is_empty());
        Self { connector, config, store: Arc::default(), _spill: spill }
    }

    async fn start(
        &self,
        offset: Option<SourceOffset>,
    ) -> Result<Box<dyn SourceTask>, ConnectorError> {
        let mut task = self.connector.task(&self.config)?;
        let start = Start { offset, generation: Generation::from_bits(1), tables: Vec::new() };
        task.start(start, self.store.clone()).await?;
        Ok(task)
    }
}

/// Everything until nothing came for so long; of changes the redo position and number of each.
async fn drain(task: &mut dyn SourceTask) -> (Vec<String>, Option<SourceOffset>) {
    let (mut changes, mut last, mut heard) = (Vec::new(), None, Instant::now());
    while heard.elapsed() < Duration::from_millis(1_500) {
        for item in task.poll().await.unwrap() {
            let SourceItem::Record(record) = item else { continue };
            last = Some(record.position.offset());
            if let Some(hw) = record.hw {
                changes.push(format!("{} {}", hw.position, hw.index));
                heard = Instant::now();
            }
        }
    }
    (changes, last)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_position_is_stored_before_any_redo_is_read() {
    let simulation = Simulation::at(SimulationSettings::seeded(3), 200);
    let bench = Bench::new(Simulated::of(&simulation));
    let mut task = bench.start(None).await.unwrap();
    let first = bench.store.0.lock().unwrap().clone();
    assert_eq!(first.len(), 1, "{first:?}");
    simulation.run(600);
    let (changes, last) = drain(&mut *task).await;
    assert!(changes.len() > 20, "{}", changes.len());
    assert!(task.activity().starts_with("redo is read up to SCN "), "{}", task.activity());
    assert!(task.facts().iter().any(|(name, _)| *name == "mined_to_scn"));
    task.stop().await;

    // From the first position all comes again, and from the last one nothing.
    let mut again = bench.start(Some(first[0].clone())).await.unwrap();
    assert_eq!(drain(&mut *again).await.0, changes);
    again.stop().await;
    let mut behind = bench.start(last).await.unwrap();
    assert_eq!(drain(&mut *behind).await.0, Vec::<String>::new());
    behind.stop().await;
    assert_eq!(bench.store.0.lock().unwrap().len(), 1, "only the first start stores");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_is_tried_again_and_redo_that_is_missing_is_not() {
    let simulation = Simulation::at(SimulationSettings::seeded(3), 200);
    let sessions = Simulated::of(&simulation);
    let bench = Bench::new(sessions.clone());
    *sessions.0.lock().unwrap() = None;
    let away = bench.start(None).await.err().unwrap();
    assert_eq!((away.code, away.retry), ("CDC-1001", Retry::Backoff), "{}", away.what);
    assert!(bench.store.0.lock().unwrap().is_empty());

    let missing = Simulation::at(SimulationSettings::seeded(3).with(Quirk::MissingScn), 200);
    *sessions.0.lock().unwrap() = Some(missing.clone());
    let mut task = bench.start(None).await.unwrap();
    missing.run(2_000);
    let failed = loop {
        if let Err(error) = task.poll().await {
            break error;
        }
    };
    assert_eq!(failed.retry, Retry::Never, "{} {}", failed.code, failed.what);
    assert_eq!(task.activity(), "not reading");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_ends_while_its_database_is_lost() {
    let simulation = Simulation::at(SimulationSettings::seeded(3), 200);
    let sessions = Simulated::of(&simulation);
    let bench = Bench::new(sessions.clone());
    let mut task = bench.start(None).await.unwrap();
    let lost = || simulation.fail_next(Call::CurrentScn, Moment::Before, ora(3113, "end-of-file"));
    for _ in 0..50 {
        lost();
        task.poll().await.unwrap();
    }
    let begun = Instant::now();
    task.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offset_is_moved_only_to_redo_that_is_there() {
    let simulation = Simulation::at(SimulationSettings::seeded(3), 600);
    let bench = Bench::new(Simulated::of(&simulation));
    let mut task = bench.start(None).await.unwrap();
    task.stop().await;
    let current = bench.store.0.lock().unwrap()[0].clone();
    let verdict = async |scn: u64| {
        let mut wanted = current.clone();
        wanted.set("resume_scn", scn);
        let change = OffsetChange {
            current: Some(current.clone()),
            wanted: Some(wanted),
            allow_skip: false,
        };
        bench.connector.check_offset_change(&bench.config, &change).await.unwrap()
    };
    let now = current.number("resume_scn").unwrap().unsigned_abs();
    assert!(matches!(verdict(now).await, OffsetVerdict::Accepted(Some(_))));
    let OffsetVerdict::Refused { what, .. } = verdict(1).await else { panic!("it was accepted") };
    assert!(what.contains("SCN"), "{what}");
}
