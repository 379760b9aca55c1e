//! The miner over a simulated database: whatever the steps, the faults and the quirks are, it gives the
//! rows that one read of everything gives, once and in the order of each thread's log.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use highwater_oracle::mining::table_filter::TableFilter;
use highwater_oracle::mining::{Miner, MiningError, MiningFrom, MiningSettings, StagedRow, Step};
use highwater_oracle::{Cursor, Marks, Operation, RedoRow, RedoThread, Scn, TransactionKey};
use highwater_oracle_sim::{
    CAPTURED_OWNER, FaultPlan, Quirk, SimSession, Simulation, SimulationSettings,
};

#[path = "replay/miner.rs"]
mod whole;

/// What is compared of a row: where it is, what it does, its text, its transaction.
type Told = (Operation, String, TransactionKey);

/// A capture that reads now and then.
struct Capture {
    session: SimSession,
    miner: Miner,
    rows: BTreeMap<RedoThread, Vec<RedoRow>>,
    /// Transactions with captured rows and no end, as a buffer has them.
    open: BTreeSet<TransactionKey>,
    steps: u32,
}

impl Capture {
    fn new(simulation: &Simulation, settings: MiningSettings) -> Self {
        let busy = simulation.clone();
        let mut session = simulation.session().between_rows(move |_, given| {
            if given % 5 == 4 {
                busy.step();
            }
        });
        let filter = TableFilter::new(&[format!(r"(.*\.)?{CAPTURED_OWNER}\..*")], &[], false);
        let cursor = Cursor { scn: Scn(0), marks: Marks::None };
        let from = MiningFrom { cursor, scope: None, identity: None };
        let miner = Miner::new(&mut session, settings, filter.unwrap(), from).unwrap();
        Self { session, miner, rows: BTreeMap::new(), open: BTreeSet::new(), steps: 0 }
    }

    /// Whether anything was read.
    fn step(&mut self) -> bool {
        let open: Vec<_> = self.open.iter().copied().collect();
        match self.miner.step(&mut self.session, &mut open.into_iter()) {
            Ok(Step::Rows(mut step)) => {
                step.rows.by_ref().for_each(|row| self.take(&row.unwrap()));
                self.miner.applied(*step);
                self.steps += 1;
                true
            }
            Ok(Step::Idle) => false,
            Ok(Step::Retry(_) | Step::TimedOut) => true,
            Ok(Step::Lagging { tables }) => panic!("{tables:?}"),
            Err(MiningError::Session(_)) => {
                while self.miner.reconnect(&mut self.session).is_err() {}
                true
            }
            Err(MiningError::Stop(error)) => panic!("{error}"),
        }
    }

    fn take(&mut self, staged: &StagedRow) {
        let row = staged.row();
        match (staged, row.operation) {
            (StagedRow::PartialRollback(_), _) | (_, Operation::Start) => {}
            (_, Operation::Commit | Operation::Rollback) => {
                self.open.remove(&row.transaction);
            }
            _ => {
                self.open.insert(row.transaction);
            }
        }
        self.rows.entry(row.at.thread).or_default().push(row.clone());
    }
}

/// Rows that have an address and say more than that a transaction ended without effect.
fn told(rows: &[RedoRow]) -> Vec<(String, Told)> {
    let mut told: Vec<(String, Told)> = Vec::new();
    let is_told = |row: &&RedoRow| !matches!(row.operation, Operation::Rollback | Operation::Start);
    let mut goes_on = false;
    for row in rows.iter().filter(is_told) {
        let Some(address) = row.at.address else { continue };
        let text = row.sql_redo.clone().unwrap_or_default();
        match told.last_mut() {
            Some(last) if goes_on => last.1.1.push_str(&text),
            _ => told.push((address.to_string(), (row.operation, text, row.transaction))),
        }
        goes_on = row.is_continued;
    }
    told
}

fn check(simulation: &Simulation, settings: MiningSettings, faults: Option<FaultPlan>) {
    let mut capture = Capture::new(simulation, settings);
    simulation.plan_faults(faults);
    for _ in 0..60 {
        simulation.run(40);
        capture.step();
    }
    simulation.plan_faults(None);
    let end = simulation.scn();
    while capture.step() && capture.miner.cursor().scn < end {}
    let all = whole::all_rows(simulation);
    assert!(capture.steps > 20, "{}", capture.steps);
    for (thread, rows) in &capture.rows {
        let (got, all) = (told(rows), told(&of_thread(&all, *thread)));
        let from_end = got.len().min(all.len());
        assert!(got.len() > 100 && got.len() + 200 > all.len(), "{} of {}", got.len(), all.len());
        assert_eq!(got[..], all[..from_end], "thread {thread}");
    }
}

fn of_thread(rows: &[RedoRow], thread: RedoThread) -> Vec<RedoRow> {
    rows.iter().filter(|row| row.at.thread == thread).cloned().collect()
}

fn settings(threads: u32) -> MiningSettings {
    MiningSettings {
        is_rac_enabled: threads > 1,
        excluded_users: vec!["BATCH".to_owned()],
        max_logs_per_step: 3,
        stage_max_bytes: 20_000,
        ..MiningSettings::default()
    }
}

#[test]
fn one_thread_with_every_quirk_of_rows() {
    for seed in 0..4 {
        let simulated = SimulationSettings::seeded(seed)
            .with(Quirk::ZeroAddress)
            .with(Quirk::PartialXid)
            .with(Quirk::SplitStatements)
            .with(Quirk::ArrayDeletes)
            .with(Quirk::ZeroXid)
            .with(Quirk::MissingStart);
        let faults = Some(FaultPlan::recoverable(seed, 9));
        check(&Simulation::new(simulated), settings(1), faults);
    }
}

#[test]
fn several_threads() {
    for seed in 0..4 {
        let simulated = SimulationSettings { threads: 3, ..SimulationSettings::seeded(seed) };
        let simulated = simulated.with(Quirk::SplitStatements);
        check(&Simulation::new(simulated), settings(3), Some(FaultPlan::recoverable(seed, 12)));
    }
}

#[test]
fn a_range_inside_a_pluggable_database() {
    let simulated =
        SimulationSettings { pdbs: 1, is_in_pdb: true, ..SimulationSettings::seeded(3) };
    check(&Simulation::new(simulated), settings(1), None);
}
