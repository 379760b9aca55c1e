//! What the rows of the logs are like, and which of them a query gives.

use std::collections::{BTreeMap, BTreeSet};

use highwater_oracle::{RedoAddress, RedoRow, RedoThread, RowMark, RowQuery, Scn, Session};
use highwater_oracle_sim::{Call, Moment, Quirk, Quirks, Simulation, SimulationSettings, ora};

use crate::miner::{self, all_rows, everything, rows_of};

fn three_threads(seed: u64) -> SimulationSettings {
    SimulationSettings { threads: 3, ..SimulationSettings::seeded(seed) }
}

#[test]
fn equal_settings_and_actions_have_equal_redo() {
    let one = Simulation::at(three_threads(4), 900);
    let other = Simulation::new(three_threads(4));
    for _ in 0..300 {
        other.run(3);
        other.session().current_scn().unwrap();
    }
    assert_eq!(one.actions(), other.actions());
    assert_eq!(all_rows(&one), all_rows(&other));
    assert_eq!(one.history(), other.history());
    assert_eq!(one.tables_now(), other.tables_now());
    assert_ne!(all_rows(&one), all_rows(&Simulation::at(three_threads(5), 900)));
}

#[test]
fn rows_of_a_thread_are_in_address_order() {
    for seed in 0..10 {
        let mut last: BTreeMap<RedoThread, RedoAddress> = BTreeMap::new();
        for row in all_rows(&Simulation::at(three_threads(seed), 1500)) {
            let address = row.at.address.unwrap();
            let before = last.insert(row.at.thread, address);
            assert!(before.is_none_or(|before| before < address), "{before:?} then {address}");
        }
        assert_eq!(last.len(), 3);
    }
}

#[test]
fn rows_lie_in_the_range_of_their_log() {
    let simulation = Simulation::at(three_threads(2), 2500);
    let logs = miner::logs(&mut simulation.session());
    assert!(logs.len() > 9, "{}", logs.len());
    for row in all_rows(&simulation) {
        let sequence = row.at.address.unwrap().sequence;
        let log = logs.iter().find(|log| log.thread == row.at.thread && log.sequence == sequence);
        let log = log.unwrap();
        assert!(log.first <= row.at.scn && row.at.scn < log.next, "{:?} in {log:?}", row.at);
    }
}

#[test]
fn scns_tie() {
    let rows = all_rows(&Simulation::at(three_threads(2), 1500));
    let mut scns = BTreeMap::<Scn, BTreeSet<_>>::new();
    for row in &rows {
        scns.entry(row.at.scn).or_default().insert(row.transaction);
    }
    assert!(scns.values().any(|transactions| transactions.len() > 1));
}

/// How many rows come late: below an SCN up to which everything was read before.
fn late(settings: SimulationSettings) -> usize {
    let simulation = Simulation::new(settings);
    let mut late = 0;
    for _ in 0..15 {
        simulation.run(50);
        let until = simulation.session().current_scn().unwrap();
        let objects = miner::objects(&mut simulation.session());
        let query = RowQuery { until, ..everything(objects) };
        let before = rows_of(&simulation, &query).len();
        simulation.run(200);
        late += rows_of(&simulation, &query).len() - before;
    }
    late
}

#[test]
fn late_strands_give_rows_below_an_earlier_bound() {
    let plain = SimulationSettings { quirks: Quirks::new(), ..SimulationSettings::seeded(3) };
    assert_eq!(late(plain.clone()), 0);
    assert!(late(plain.with(Quirk::LateStrands)) > 20);
}

/// Reads in steps, each from the greatest address of the one before it.
fn in_steps(simulation: &Simulation, actions: u64) -> Vec<RedoRow> {
    let mut marks: BTreeMap<RedoThread, RedoAddress> = BTreeMap::new();
    for log in miner::logs(&mut simulation.session()) {
        marks.entry(log.thread).or_insert(RedoAddress::start_of_log(log.sequence));
    }
    let mut read = Vec::new();
    for _ in 0..40 {
        simulation.run(actions);
        let mark = |(thread, address): (&RedoThread, &RedoAddress)| RowMark {
            thread: Some(*thread),
            address: *address,
            is_inclusive: false,
        };
        let objects = miner::objects(&mut simulation.session());
        let marks_now = marks.iter().map(mark).collect();
        let step = rows_of(simulation, &RowQuery { marks: marks_now, ..everything(objects) });
        for row in &step {
            let mark = marks.get_mut(&row.at.thread).unwrap();
            *mark = (*mark).max(row.at.address.unwrap());
        }
        read.extend(step);
    }
    read
}

/// Asserts that steps give what one read gives.
fn same_in_steps(settings: SimulationSettings) {
    let simulation = Simulation::new(settings);
    let mut read = in_steps(&simulation, 40);
    let mut all = all_rows(&simulation);
    let order = |row: &RedoRow| (row.at.thread, row.at.address);
    read.sort_by_key(order);
    all.sort_by_key(order);
    assert!(read.len() > 500, "{}", read.len());
    assert_eq!(read, all);
}

#[test]
fn steps_by_address_give_every_row_once() {
    (0..5).for_each(|seed| same_in_steps(three_threads(seed)));
    let delete_many = three_threads(6).with(Quirk::ArrayDeletes);
    same_in_steps(delete_many.clone().with(Quirk::LaggingLog));
    same_in_steps(delete_many.with(Quirk::TimedOut));
}

/// How many rows a reader loses that bounds its steps by SCN: a row above the bound lies before a late
/// one below it, and the mark goes past both.
fn lost_by_a_bound(settings: SimulationSettings) -> usize {
    let simulation = Simulation::new(settings);
    let mut mark: Option<RedoAddress> = None;
    let mut read = 0;
    for _ in 0..60 {
        let until = simulation.scn();
        simulation.run(25);
        let objects = miner::objects(&mut simulation.session());
        let marks = mark.map(|address| RowMark { thread: None, address, is_inclusive: false });
        let query = RowQuery { marks: marks.into_iter().collect(), until, ..everything(objects) };
        let step = rows_of(&simulation, &query);
        mark = step.iter().filter_map(|row| row.at.address).chain(mark).max();
        read += step.len();
    }
    let is_passed = |row: &&RedoRow| row.at.address <= mark;
    all_rows(&simulation).iter().filter(is_passed).count() - read
}

#[test]
fn a_bound_by_scn_loses_rows_of_late_strands() {
    let plain = SimulationSettings { quirks: Quirks::new(), ..SimulationSettings::seeded(3) };
    assert_eq!(lost_by_a_bound(plain.clone()), 0);
    assert!(lost_by_a_bound(plain.with(Quirk::LateStrands)) > 20);
}

#[test]
fn a_fault_comes_once_and_where_it_was_planned() {
    let simulation = Simulation::at(SimulationSettings::seeded(1), 300);
    simulation.fail_next(Call::CurrentScn, Moment::Before, ora(3113, "end-of-file"));
    let mut session = simulation.session();
    assert_eq!(session.current_scn().unwrap_err().ora, Some(3113));
    assert!(session.current_scn().is_ok());
}
