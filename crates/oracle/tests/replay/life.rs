//! Lives of an engine over one simulated database.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use highwater_connector::{Position, RecordKind, SourceOffset, SourceRecord, TableDescription};
use highwater_oracle::engine::{Engine, EngineStart, Stopped, Turn};
use highwater_oracle::outlet::{Closed, Outlet};
use highwater_oracle_sim::{Simulation, SimulationSettings};

use crate::settings;

/// Where a life ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    /// After so many records of this life.
    pub(crate) records: usize,
    /// How much of what is not acknowledged is then, in percent.
    pub(crate) acknowledged: u8,
}

/// How records and positions are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Delivery {
    /// Records first, positions later.
    AtLeastOnce,
    /// In one transaction, which ends with a source transaction.
    ExactlyOnce,
}

/// One case.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) settings: SimulationSettings,
    /// What the database does before the first start, and after it in all.
    pub(crate) actions: u64,
    /// What it does between two turns of the engine.
    pub(crate) pace: u64,
    pub(crate) stops: Vec<Stop>,
    pub(crate) delivery: Delivery,
}

/// What came of a case.
pub(crate) struct Run {
    pub(crate) simulation: Simulation,
    /// How many transactions each thread had committed before the first start.
    pub(crate) before: Vec<usize>,
    /// Everything in the log, in order.
    pub(crate) log: Vec<SourceRecord>,
    /// The starts after the first.
    pub(crate) starts: Vec<Restart>,
    /// What the first start stored.
    first: Option<SourceOffset>,
    /// Why the engine failed, if it did.
    pub(crate) failure: Option<String>,
}

/// A start after the first.
#[derive(Clone, Debug)]
pub(crate) struct Restart {
    /// Records of the log that its position covers.
    pub(crate) covered: Vec<Range<usize>>,
    /// Where its own records begin.
    pub(crate) begins: usize,
}

/// Takes records until the life ends.
#[derive(Clone)]
struct Taking {
    log: Arc<Mutex<Vec<SourceRecord>>>,
    left: Arc<Mutex<usize>>,
}

impl Outlet for Taking {
    fn put(&mut self, records: &mut Vec<SourceRecord>) -> Result<(), Closed> {
        let (mut log, mut left) = (self.log.lock().unwrap(), self.left.lock().unwrap());
        for record in records.drain(..) {
            *left = left.checked_sub(1).ok_or(Closed)?;
            log.push(record);
        }
        Ok(())
    }

    fn idle(&mut self, _: Arc<dyn Position>) -> Result<(), Closed> {
        Ok(())
    }

    fn wait(&mut self, _: Duration) -> Result<(), Closed> {
        Ok(())
    }
}

impl Run {
    pub(crate) fn of(plan: &Plan) -> Self {
        let simulation = Simulation::at(plan.settings.clone(), plan.actions / 4);
        // Reading CURRENT_SCN of a real database takes a new SCN, which no commit has had.
        while has_commit_now(&simulation) {
            simulation.step();
        }
        let histories = simulation.history();
        let before = histories.iter().map(|history| history.transactions.len()).collect();
        let mut run = Self {
            simulation,
            before,
            log: Vec::new(),
            starts: Vec::new(),
            first: None,
            failure: None,
        };
        let mut covered: Vec<Range<usize>> = Vec::new();
        for stop in plan.stops.iter().map(Some).chain([None]) {
            let begins = run.log.len();
            if run.first.is_some() {
                run.starts.push(Restart { covered: covered.clone(), begins });
            }
            let stored = covered.last().map_or(0, |last| last.end);
            run.live(plan, stored, stop.map_or(usize::MAX, |stop| stop.records));
            if run.failure.is_some() {
                break;
            }
            let acknowledged = stop.map_or(100, |stop| usize::from(stop.acknowledged));
            let mut stored = begins + (run.log.len() - begins) * acknowledged / 100;
            if plan.delivery == Delivery::ExactlyOnce {
                let own = run.log.get(begins..stored).unwrap_or_default();
                let last = own.iter().rposition(|record| record.boundary);
                stored = begins + last.map_or(0, |at| at + 1);
                run.log.truncate(stored);
            }
            if stored > begins {
                covered.push(begins..stored);
            }
        }
        run
    }

    fn live(&mut self, plan: &Plan, stored: usize, records: usize) {
        let folder = tempfile::tempdir().unwrap();
        let outlet = Taking {
            log: Arc::new(Mutex::new(std::mem::take(&mut self.log))),
            left: Arc::new(Mutex::new(records)),
        };
        let start =
            EngineStart { offset: self.stored(&outlet, stored), tables: descriptions(&outlet) };
        let settings = settings::engine(folder.path(), plan.settings.threads);
        let session = Box::new(self.simulation.session());
        let ended = Engine::open(settings, session, start, outlet.clone()).and_then(|engine| {
            self.first.get_or_insert_with(|| engine.position());
            self.turn(engine, plan, records == usize::MAX)
        });
        self.log = std::mem::take(&mut *outlet.log.lock().unwrap());
        if let Err(Stopped::Failed(error)) = ended {
            self.failure = Some(error.to_string());
        }
    }

    /// Turns while the database goes on; in the last life until nothing comes any more.
    fn turn(&self, mut engine: Engine<Taking>, plan: &Plan, is_last: bool) -> Result<(), Stopped> {
        let mut quiet = 0;
        while quiet < 12 {
            let left = (plan.actions * 2).saturating_sub(self.simulation.actions());
            let end = if is_last { left } else { left.min(plan.actions / 3) };
            self.simulation.run(plan.pace.min(end));
            match engine.turn()? {
                Turn::Moved => quiet = 0,
                Turn::Idle => quiet += 1,
            }
            if end == 0 && !is_last {
                return Ok(());
            }
        }
        Ok(())
    }

    fn stored(&self, outlet: &Taking, stored: usize) -> Option<SourceOffset> {
        let log = outlet.log.lock().unwrap();
        let last = stored.checked_sub(1).and_then(|last| log.get(last));
        let offset = last.map(|last| last.position.offset()).or_else(|| self.first.clone())?;
        let text = serde_json::to_string(&offset).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

fn has_commit_now(simulation: &Simulation) -> bool {
    let now = simulation.scn();
    let mut committed = simulation.history().into_iter().flat_map(|history| history.transactions);
    committed.any(|transaction| transaction.commit.scn == now)
}

/// All table descriptions of the log.
fn descriptions(outlet: &Taking) -> Vec<TableDescription> {
    let log = outlet.log.lock().unwrap();
    let records = log.iter().filter(|record| record.kind == RecordKind::TableDescription);
    records.map(|record| serde_json::from_slice(record.value.as_ref().unwrap()).unwrap()).collect()
}
