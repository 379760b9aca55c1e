//! Quirks of transactions: their ids, beginnings and ends.

use std::collections::{BTreeMap, BTreeSet};

use highwater_oracle::{ClientSession, Operation, RedoRow, Session, TransactionKey};
use highwater_oracle_sim::{Quirk, Simulation, SimulationSettings};

use super::simulated::{alone, shows, with_and_without};
use crate::miner::all_rows;

#[test]
fn control_rows_without_an_address() {
    for operation in [Operation::Start, Operation::Commit, Operation::Rollback] {
        shows(Quirk::ZeroAddress, |row| row.operation == operation && row.at.address.is_none());
    }
    let [rows, _] = with_and_without(Quirk::ZeroAddress);
    assert!(rows.iter().all(|row| row.at.address.is_some() || !row.operation.is_content()));
}

#[test]
fn a_commit_without_an_address_has_an_scn_of_its_own() {
    let [rows, _] = with_and_without(Quirk::ZeroAddress);
    let of = |scn| rows.iter().filter(|row| row.at.scn == scn).count();
    let is_it = |row: &&RedoRow| row.operation == Operation::Commit && row.at.address.is_none();
    assert!(rows.iter().filter(is_it).all(|row| of(row.at.scn) == 1));
}

#[test]
fn rollbacks_have_partial_xids() {
    let is_partial = |row: &RedoRow| row.transaction.xid.is_partial();
    shows(Quirk::PartialXid, |row| is_partial(row) && row.is_undo);
    shows(Quirk::PartialXid, |row| is_partial(row) && row.operation == Operation::Rollback);
    let [rows, _] = with_and_without(Quirk::PartialXid);
    let of_rollbacks = |row: &RedoRow| row.is_undo || row.operation == Operation::Rollback;
    assert!(rows.iter().filter(|row| is_partial(row)).all(of_rollbacks));
}

/// Rows by address, from the logs as they are: online at first, archived later.
fn partial_rows(simulation: &Simulation) -> BTreeSet<String> {
    let rows = all_rows(simulation);
    let partial = rows.iter().filter(|row| row.transaction.xid.is_partial());
    partial.map(|row| format!("{:?} {:?} {:?}", row.at, row.operation, row.is_undo)).collect()
}

#[test]
fn partial_xids_of_savepoints_are_whole_in_archived_logs() {
    let simulation = Simulation::at(alone(Some(Quirk::PartialXid)), 700);
    let before = partial_rows(&simulation);
    simulation.run(2000);
    let after = partial_rows(&simulation);
    assert!(before.difference(&after).any(|row| row.contains("Rollback") && row.contains("None")));
    assert!(before.difference(&after).any(|row| row.contains("Delete true")));
    assert!(before.intersection(&after).count() > 3);
}

#[test]
fn start_rows_with_an_xid_of_zeros() {
    shows(Quirk::ZeroXid, |row| row.transaction.xid.is_zero() && row.operation == Operation::Start);
}

fn open_at_once(settings: SimulationSettings) -> bool {
    let simulation = Simulation::new(settings);
    (0..1500).any(|_| {
        simulation.step();
        let open = simulation.open_now();
        let xids: BTreeSet<_> = open.iter().map(|open| open.key.xid).collect();
        xids.len() < open.len()
    })
}

#[test]
fn two_databases_have_the_same_xid_open() {
    assert!(open_at_once(alone(Some(Quirk::SamePdbXids))));
    assert!(!open_at_once(alone(None)));
}

/// Transactions that changed something, and those that have ended.
fn ends(rows: &[RedoRow]) -> (BTreeSet<TransactionKey>, BTreeSet<TransactionKey>) {
    let keys = |is_kind: &dyn Fn(&RedoRow) -> bool| {
        rows.iter().filter(|row| is_kind(row)).map(|row| row.transaction).collect()
    };
    let is_end = |row: &RedoRow| matches!(row.operation, Operation::Commit | Operation::Rollback);
    (keys(&|row| row.operation.is_content()), keys(&is_end))
}

#[test]
fn orphans_never_end_and_nobody_knows_them() {
    let lost = |quirk| {
        let simulation = Simulation::at(alone(quirk), 1500);
        let rows = all_rows(&simulation);
        let (begun, ended) = ends(&rows);
        let mut session = simulation.session();
        let open: BTreeSet<_> =
            session.open_transactions().unwrap().iter().map(|open| open.key).collect();
        let lost: Vec<_> = begun.difference(&ended).filter(|key| !open.contains(key)).collect();
        let is_alive = |session: &ClientSession| simulation.session().is_alive(session).unwrap();
        let is_its = |row: &&RedoRow| lost.contains(&&row.transaction);
        assert!(rows.iter().filter(is_its).all(|row| !is_alive(&row.session)));
        lost.len()
    };
    assert!(lost(Some(Quirk::Orphans)) > 3);
    assert_eq!(lost(None), 0);
}

#[test]
fn sessions_of_open_transactions_are_alive() {
    let simulation = Simulation::at(alone(None), 800);
    let open: BTreeSet<_> = simulation.open_now().iter().map(|open| open.key).collect();
    let rows = all_rows(&simulation);
    let mut theirs = rows.iter().filter(|row| open.contains(&row.transaction)).peekable();
    assert!(theirs.peek().is_some());
    assert!(theirs.all(|row| simulation.session().is_alive(&row.session).unwrap()));
}

#[test]
fn an_xid_is_used_again() {
    let used = |rows: &[RedoRow]| {
        let mut ends = BTreeMap::<TransactionKey, u32>::new();
        for row in rows.iter().filter(|row| row.operation == Operation::Commit) {
            *ends.entry(row.transaction).or_default() += 1;
        }
        ends.values().filter(|ends| **ends > 1).count()
    };
    let [with, without] = with_and_without(Quirk::ReusedXid);
    assert!(used(&with) > 5);
    assert_eq!(used(&without), 0);
}

#[test]
fn transactions_without_a_start_do_not_say_their_user() {
    shows(Quirk::MissingStart, |row| row.user.is_none() && row.operation == Operation::Commit);
    let [rows, _] = with_and_without(Quirk::MissingStart);
    let started: BTreeSet<_> = rows
        .iter()
        .filter(|row| row.operation == Operation::Start)
        .map(|row| row.transaction)
        .collect();
    assert!(rows.iter().all(|row| started.contains(&row.transaction) == row.user.is_some()));
}
