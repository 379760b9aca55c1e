//! What the rows of the logs are like, and which of them a query gives.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use highwater_oracle::{RedoAddress, RedoThread, RowMark, Scn, Session};
use highwater_oracle_sim::{Call, Moment, Quirk, Quirks, Simulation, SimulationSettings, ora};

#[path = "replay/miner.rs"]
mod miner;

use miner::{all_rows, rows};

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
        let before = rows(&mut simulation.session(), Vec::new(), Scn(0), until).len();
        simulation.run(200);
        late += rows(&mut simulation.session(), Vec::new(), Scn(0), until).len() - before;
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
fn in_steps(simulation: &Simulation, actions: u64) -> Vec<highwater_oracle::RedoRow> {
    let mut marks: BTreeMap<RedoThread, RedoAddress> = BTreeMap::new();
    for log in miner::logs(&mut simulation.session()) {
        marks.entry(log.thread).or_insert(RedoAddress::start_of_log(log.sequence));
    }
    let mut read = Vec::new();
    for _ in 0..40 {
        simulation.run(actions);
        let mut session = simulation.session();
        let until = session.current_scn().unwrap();
        let mark = |(thread, address): (&RedoThread, &RedoAddress)| RowMark {
            thread: Some(*thread),
            address: *address,
            is_inclusive: false,
        };
        let step = rows(&mut session, marks.iter().map(mark).collect(), Scn(0), until);
        for row in &step {
            let mark = marks.get_mut(&row.at.thread).unwrap();
            *mark = (*mark).max(row.at.address.unwrap());
        }
        read.extend(step);
    }
    read
}

#[test]
fn steps_by_address_give_every_row_once() {
    let simulation = Simulation::new(three_threads(6));
    let mut read = in_steps(&simulation, 40);
    let mut all = all_rows(&simulation);
    let order = |row: &highwater_oracle::RedoRow| (row.at.thread, row.at.address);
    read.sort_by_key(order);
    all.sort_by_key(order);
    all.truncate(read.len());
    assert!(read.len() > 500, "{}", read.len());
    assert_eq!(order(read.last().unwrap()).0, RedoThread(3));
    for thread in 1..=3 {
        let of = |rows: &[highwater_oracle::RedoRow]| -> Vec<_> {
            rows.iter().filter(|row| row.at.thread == RedoThread(thread)).cloned().collect()
        };
        let (read, all) = (of(&read), of(&all_rows(&simulation)));
        let all: Vec<_> = all.into_iter().take(read.len()).collect();
        let mut all = all;
        all.sort_by_key(order);
        assert_eq!(read, all);
    }
}

#[test]
fn a_fault_comes_once_and_where_it_was_planned() {
    let simulation = Simulation::at(SimulationSettings::seeded(1), 300);
    simulation.fail_next(Call::CurrentScn, Moment::Before, ora(3113, "end-of-file"));
    let mut session = simulation.session();
    assert_eq!(session.current_scn().unwrap_err().ora, Some(3113));
    assert!(session.current_scn().is_ok());
}
