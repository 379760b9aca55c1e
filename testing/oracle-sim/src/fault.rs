//! Errors that the database gives when it is told to.

use std::collections::VecDeque;

use highwater_oracle::{ErrorClass, SessionError};

use crate::quirk::Quirk;
use crate::random::Random;
use crate::settings::SimulationSettings;

/// A call of a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Call {
    /// `database`.
    Database,
    /// `current_scn`.
    CurrentScn,
    /// `threads`.
    Threads,
    /// `archive_destinations`.
    ArchiveDestinations,
    /// `logs`.
    Logs,
    /// `start_mining`.
    StartMining,
    /// `rows`.
    Rows,
    /// `open_transactions`.
    OpenTransactions,
    /// `is_alive`.
    IsAlive,
    /// `table_objects`.
    TableObjects,
    /// `layout`.
    Layout,
    /// `scn_at`.
    ScnAt,
    /// `reconnect`.
    Reconnect,
}

/// When a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Moment {
    /// Before it gives anything.
    Before,
    /// After so many rows were given; at the end where there are fewer.
    AfterRows(u64),
    /// After all rows were given.
    AtEnd,
}

/// Errors that a seeded plan draws from, and how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultPlan {
    /// Everything random comes from it.
    pub seed: u64,
    /// One call in so many fails.
    pub one_in: u64,
    /// Numbers of the errors.
    pub errors: Vec<u32>,
}

impl FaultPlan {
    /// One call in `one_in` fails with an error that an engine must get over: a lost connection, or a
    /// step that is to be read again.
    pub fn recoverable(seed: u64, one_in: u64) -> Self {
        Self { seed, one_in, errors: vec![3113, 12_541, 1089, 310, 1289, 1291, 1368] }
    }
}

/// An error of the database by its number, of the class that the capture session gives it.
pub fn ora(number: u32, message: &str) -> SessionError {
    let class = match number {
        28 | 31 | 1033 | 1034 | 1089 | 1090 | 1092 | 1109 | 3113 | 3114 | 3135 | 4068 | 12_170
        | 12_514 | 12_516 | 12_528 | 12_537 | 12_541 | 12_543 | 16_331 | 17_002 | 17_008
        | 17_410 | 17_800 | 25_408 => ErrorClass::Transient,
        310 | 334 | 1289 | 1291 | 1368 => ErrorClass::StepRetry,
        1013 => ErrorClass::Timeout,
        308 | 1284 | 1285 | 16_226 => ErrorClass::LogPurged,
        942 | 1017 | 1031 | 1045 | 28_000 => ErrorClass::Privilege,
        4030 | 4036 => ErrorClass::OutOfMemory,
        1555 | 8181 => ErrorClass::SnapshotTooOld,
        1466 => ErrorClass::TableChanged,
        _ => ErrorClass::Unknown,
    };
    SessionError { ora: Some(number), class, message: format!("ORA-{number:05}: {message}") }
}

/// A fault that waits for its call.
#[derive(Clone, Debug)]
struct Planned {
    call: Call,
    moment: Moment,
    error: SessionError,
}

/// Faults to come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    planned: VecDeque<Planned>,
    seeded: Option<(FaultPlan, Random)>,
    /// Draws reads that take too long.
    timeouts: Option<Random>,
    /// Draws reads in which logs are switched.
    switches: Option<Random>,
}

/// The database goes on in the middle of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Disturbance {
    /// After so many rows.
    pub(crate) after: u64,
    /// Until each thread has switched its log so many times.
    pub(crate) switches: u64,
}

impl Faults {
    /// Those of the quirks.
    pub(crate) fn new(settings: &SimulationSettings) -> Self {
        let random = |quirk| settings.has(quirk).then(|| Random::new(settings.seed));
        Self {
            timeouts: random(Quirk::TimedOut),
            switches: random(Quirk::LogSwitchInRead),
            ..Self::default()
        }
    }

    /// What happens in a read that begins now.
    pub(crate) fn disturbance(&mut self, online_logs: u64) -> Option<Disturbance> {
        let random = self.switches.as_mut()?;
        let switches = if random.one_in(2) { 1 } else { online_logs };
        let after = random.below(30);
        random.one_in(3).then_some(Disturbance { after, switches })
    }

    /// Nothing fails any more by chance, and no read is disturbed.
    pub(crate) fn calm(&mut self) {
        self.switches = None;
        self.timeouts = None;
        self.seeded = None;
    }

    pub(crate) fn plan(&mut self, call: Call, moment: Moment, error: SessionError) {
        self.planned.push_back(Planned { call, moment, error });
    }

    pub(crate) fn seed(&mut self, plan: Option<FaultPlan>) {
        self.seeded = plan.map(|plan| {
            let random = Random::new(plan.seed);
            (plan, random)
        });
    }

    /// Whether, when and how a call that begins now is to fail.
    pub(crate) fn next(&mut self, call: Call) -> Option<(Moment, SessionError)> {
        match self.planned.iter().position(|planned| planned.call == call) {
            Some(place) => {
                self.planned.remove(place).map(|planned| (planned.moment, planned.error))
            }
            None => self.time_out(call).or_else(|| self.draw(call)),
        }
    }

    fn time_out(&mut self, call: Call) -> Option<(Moment, SessionError)> {
        let random = self.timeouts.as_mut().filter(|_| call == Call::Rows)?;
        let moment = Moment::AfterRows(random.below(60));
        let error = || ora(1013, "user requested cancel of current operation");
        random.one_in(4).then(|| (moment, error()))
    }

    fn draw(&mut self, call: Call) -> Option<(Moment, SessionError)> {
        let (plan, random) = self.seeded.as_mut()?;
        if !random.one_in(plan.one_in) {
            return None;
        }
        let number = *random.pick(&plan.errors)?;
        let moment = match (call, random.below(4)) {
            (Call::Rows, 0 | 1) => Moment::AfterRows(random.below(40)),
            (Call::Rows, 2) => Moment::AtEnd,
            _ => Moment::Before,
        };
        Some((moment, ora(number, &format!("planned for {call:?}, {moment:?}"))))
    }
}
