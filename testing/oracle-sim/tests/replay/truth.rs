//! The comparison.

use std::collections::BTreeMap;

use highwater_oracle::{Operation, Verb};
use highwater_oracle_sim::{
    CommittedTransaction, Quirk, Quirks, RowImage, Simulation, SimulationSettings, ThreadHistory,
};

use crate::miner::all_rows;
use crate::reader::{Transaction, replay};

/// One to three threads, none to two pluggable databases.
pub(crate) fn settings(seed: u64) -> SimulationSettings {
    SimulationSettings {
        threads: u32::try_from(1 + seed % 3).unwrap(),
        pdbs: u32::try_from(seed / 3 % 3).unwrap(),
        ..SimulationSettings::seeded(seed)
    }
}

fn same(truth: &CommittedTransaction, read: &Transaction) {
    assert_eq!(truth.key, read.key);
    let at = read.commit.at;
    assert_eq!((truth.commit.thread, truth.commit.scn), (at.thread, at.scn));
    assert!(at.address.is_none() || at.address == truth.commit.address);
    assert_eq!((truth.time_us, &truth.user), (read.commit.time_us, &read.commit.user));
    assert_eq!(truth.changes.len(), read.changes.len(), "{}", truth.key);
    for (truth, read) in truth.changes.iter().zip(&read.changes) {
        assert_eq!(truth.table.to_string(), read.table);
        if read.operation == Operation::Unsupported {
            continue;
        }
        let operation = match truth.verb {
            Verb::Insert => Operation::Insert,
            Verb::Update => Operation::Update,
            Verb::Delete => Operation::Delete,
        };
        assert_eq!(operation, read.operation);
        assert_eq!(truth.before, read.before);
        assert_eq!(truth.after, read.after);
    }
}

pub(crate) fn judge(simulation: &Simulation) {
    let mut read = replay(&all_rows(simulation));
    for ThreadHistory { thread, transactions } in simulation.history() {
        let read = read.remove(&thread).unwrap_or_default();
        assert_eq!(transactions.len(), read.len());
        transactions.iter().zip(&read).for_each(|(truth, read)| same(truth, read));
    }
}

#[test]
fn rows_give_what_was_committed() {
    for seed in 0..60 {
        judge(&Simulation::at(settings(seed), 1500));
    }
}

#[test]
fn rows_give_what_was_committed_without_quirks() {
    for seed in 0..20 {
        judge(&Simulation::at(
            SimulationSettings { quirks: Quirks::new(), ..settings(seed) },
            1500,
        ));
    }
}

#[test]
fn rows_give_what_was_committed_with_each_quirk() {
    for quirk in Quirk::ALL {
        let alone = |seed| SimulationSettings { quirks: Quirks::from([*quirk]), ..settings(seed) };
        (0..10).for_each(|seed| judge(&Simulation::at(alone(seed), 1200)));
    }
}

#[test]
fn rows_give_what_was_committed_with_all_quirks() {
    for seed in 0..30 {
        let quirks = Quirk::ALL.iter().copied().collect();
        judge(&Simulation::at(SimulationSettings { quirks, ..settings(seed) }, 1200));
    }
}

/// The rows of every table by key, as the history leaves them.
fn applied(simulation: &Simulation) -> BTreeMap<String, BTreeMap<Vec<String>, RowImage>> {
    let mut tables = BTreeMap::new();
    let keys = |table: &str| match table.rsplit('.').next() {
        Some("ITEMS") => vec!["ORDER_ID", "LINE"],
        _ => vec!["ID"],
    };
    let key = |table: &str, row: &RowImage| -> Vec<String> {
        keys(table).iter().map(|column| row[*column].clone().unwrap()).collect()
    };
    for (table, rows) in simulation.tables_first() {
        let table = table.to_string();
        let rows = rows.into_iter().map(|row| (key(&table, &row), row)).collect();
        tables.insert(table, rows);
    }
    let mut commits: Vec<_> =
        simulation.history().into_iter().flat_map(|thread| thread.transactions).collect();
    // A row that two threads change has commits with different SCNs.
    commits.sort_by_key(|commit| commit.commit.scn);
    for change in commits.into_iter().flat_map(|commit| commit.changes) {
        let name = change.table.to_string();
        let rows: &mut BTreeMap<Vec<String>, RowImage> = tables.entry(name.clone()).or_default();
        let mut row = RowImage::new();
        if let Some(before) = &change.before {
            row = rows.remove(&key(&name, before)).expect("the row before");
            assert!(before.iter().all(|(column, value)| row[column] == *value));
        }
        if let Some(after) = change.after {
            row.extend(after);
            assert!(rows.insert(key(&name, &row), row).is_none());
        }
    }
    tables
}

#[test]
fn the_history_leads_to_the_tables() {
    for seed in 0..60 {
        let simulation = Simulation::at(settings(seed), 1500);
        let applied = applied(&simulation);
        for (table, rows) in simulation.tables_now() {
            let mut replayed: Vec<_> = applied[&table.to_string()].values().cloned().collect();
            let mut rows = rows;
            replayed.sort();
            rows.sort();
            assert_eq!(rows, replayed, "{table} of seed {seed}");
        }
    }
}
