//! Lives of an engine over one simulated database.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use highwater_connector::{Position, RecordKind, SourceOffset, SourceRecord, TableDescription};
use highwater_oracle::engine::{Engine, EngineStart, Stopped, Turn};
use highwater_oracle::outlet::{Closed, Outlet};
use highwater_oracle::{Code, OracleError};
use highwater_oracle_sim::{FaultPlan, Simulation, SimulationSettings};

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
    /// One call in so many fails while an engine runs.
    pub(crate) faults: Option<u64>,
}

/// Errors that pass: the task is started again after them.
const PASSING: [Code; 3] = [Code::TransientDatabase, Code::MiningStepRetry, Code::MiningStalled];
/// Starts after such errors, at most.
const MORE_STARTS: usize = 60;

/// Turns without anything new after which there is nothing more: an engine that reads a step again and
/// again has stopped by then.
const QUIET: u32 = 30;

/// Turns at the end that may be disturbed; where reads were for ever, there would be no end.
const DISTURBED: u32 = 12;

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
    /// Why the engine failed for good, if it did.
    pub(crate) failure: Option<OracleError>,
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
        run.live_all(plan);
        run
    }

    fn live_all(&mut self, plan: &Plan) {
        let mut covered: Vec<Range<usize>> = Vec::new();
        let mut stops: Vec<Option<Stop>> = plan.stops.iter().copied().map(Some).collect();
        stops.push(None);
        let mut nth = 0;
        while let Some(stop) = stops.get(nth).copied() {
            nth += 1;
            let begins = self.log.len();
            if self.first.is_some() {
                self.starts.push(Restart { covered: covered.clone(), begins });
            }
            let stored = covered.last().map_or(0, |last| last.end);
            let failure = self.live(plan, stored, stop.map_or(usize::MAX, |stop| stop.records));
            if let Some(failure) = failure {
                let is_passing = PASSING.contains(&failure.code) && stops.len() < MORE_STARTS;
                if !is_passing {
                    self.failure = Some(failure);
                    return;
                }
                if nth == stops.len() {
                    stops.push(None);
                }
            }
            let acknowledged = stop.map_or(100, |stop| usize::from(stop.acknowledged));
            let mut stored = begins + (self.log.len() - begins) * acknowledged / 100;
            if plan.delivery == Delivery::ExactlyOnce {
                let own = self.log.get(begins..stored).unwrap_or_default();
                let last = own.iter().rposition(|record| record.boundary);
                stored = begins + last.map_or(0, |at| at + 1);
                self.log.truncate(stored);
            }
            if stored > begins {
                covered.push(begins..stored);
            }
        }
    }

    /// One life; the error that ended it, if one did.
    fn live(&mut self, plan: &Plan, stored: usize, records: usize) -> Option<OracleError> {
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
            let seed = plan.settings.seed.wrapping_add(self.starts.len() as u64);
            let faults = plan.faults.map(|one_in| FaultPlan::recoverable(seed, one_in));
            self.simulation.plan_faults(faults);
            self.turn(engine, plan, records == usize::MAX)
        });
        self.simulation.plan_faults(None);
        self.log = std::mem::take(&mut *outlet.log.lock().unwrap());
        match ended {
            Err(Stopped::Failed(error)) => Some(error),
            _ => None,
        }
    }

    /// Turns while the database goes on; in the last life until nothing comes any more.
    fn turn(&self, mut engine: Engine<Taking>, plan: &Plan, is_last: bool) -> Result<(), Stopped> {
        let (mut quiet, mut at_end) = (0, 0);
        while quiet < QUIET {
            let left = (plan.actions * 2).saturating_sub(self.simulation.actions());
            let end = if is_last { left } else { left.min(plan.actions / 3) };
            self.simulation.run(plan.pace.min(end));
            while end == 0 && !self.simulation.is_readable() {
                self.simulation.step();
            }
            at_end += u32::from(left == 0);
            if at_end > DISTURBED {
                self.simulation.calm();
            }
            match engine.turn()? {
                Turn::Idle if left == 0 => quiet += 1,
                Turn::Moved | Turn::Idle => quiet = 0,
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
