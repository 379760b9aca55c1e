//! The comparison.

use std::collections::{BTreeMap, BTreeSet};

use highwater_oracle::{ObjectId, Operation, Scn, Verb};
use highwater_oracle_sim::{
    CommittedChange, CommittedTransaction, Definition, Quirk, Quirks, RowImage, Simulation,
    SimulationSettings, ThreadHistory,
};

use crate::lob;
use crate::miner;
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
        if read.operation == Operation::Unsupported || !read.is_known {
            continue;
        }
        let operation = match truth.verb {
            Verb::Insert => Operation::Insert,
            Verb::Update => Operation::Update,
            Verb::Delete => Operation::Delete,
        };
        assert_eq!(operation, read.operation);
        assert_eq!(truth.table.to_string(), read.table);
        assert_eq!(truth.before, read.before);
        assert_eq!(truth.after, read.told());
        assert_eq!(truth.lost, read.lost());
    }
}

/// Lets a database run, and looks at its tables after each action: numbers of tables and partitions
/// come and go.
fn run(settings: SimulationSettings, actions: u64) -> (Simulation, Vec<ObjectId>) {
    let simulation = Simulation::new(settings);
    let mut objects = BTreeSet::new();
    for _ in 0..actions {
        simulation.step();
        objects.extend(miner::objects(&mut simulation.session()));
    }
    (simulation, objects.into_iter().collect())
}

fn judge(settings: SimulationSettings) {
    let (simulation, objects) = run(settings, 1200);
    let mut read = replay(&miner::rows_of(&simulation, &miner::everything(objects)));
    for ThreadHistory { thread, transactions } in simulation.history() {
        let read = read.remove(&thread).unwrap_or_default();
        // While rows are read the database may go on to logs that were not there before.
        assert!(read.len() == transactions.len() || simulation.actions() > 1200);
        transactions.iter().zip(&read).for_each(|(truth, read)| same(truth, read));
    }
}

#[test]
fn rows_give_what_was_committed() {
    (0..20).for_each(|seed| judge(settings(seed)));
}

#[test]
fn rows_give_what_was_committed_without_quirks() {
    (0..10).for_each(|seed| judge(SimulationSettings { quirks: Quirks::new(), ..settings(seed) }));
}

#[test]
fn rows_give_what_was_committed_with_each_quirk() {
    for quirk in quirks() {
        let alone = |seed| SimulationSettings { quirks: Quirks::from([quirk]), ..settings(seed) };
        (0..4).for_each(|seed| judge(alone(seed)));
    }
}

#[test]
fn rows_give_what_was_committed_with_all_quirks() {
    // The database does not go on while it is read: its tables would change.
    let goes_on = [Quirk::ClosedPdb, Quirk::LogSwitchInRead];
    let still = || quirks().filter(|quirk| !goes_on.contains(quirk));
    // Pieces of large objects cannot be put together without names.
    let apart = |seed| [Quirk::LobPieces, Quirk::Ddl][usize::try_from(seed % 2).unwrap()];
    let set = |seed| still().filter(|quirk| *quirk != apart(seed)).collect();
    let all = |seed| SimulationSettings { quirks: set(seed), ..settings(seed) };
    (0..12).for_each(|seed| judge(all(seed)));
}

/// All but a new incarnation, whose logs do not have what was committed before.
fn quirks() -> impl Iterator<Item = Quirk> {
    Quirk::ALL.iter().copied().filter(|quirk| *quirk != Quirk::NewIncarnation)
}

/// The rows of every table by key, as the history leaves them.
fn applied(simulation: &Simulation) -> Tables {
    let mut tables = Tables::new();
    for (table, rows) in simulation.tables_first() {
        let table = table.to_string();
        let rows = rows.into_iter().map(|row| (key(&table, &row), row)).collect();
        tables.insert(table, rows);
    }
    for event in events(simulation) {
        match event {
            Event::Change(change) => apply(&mut tables, change),
            Event::Definition(definition) => {
                let name = definition.table.to_string();
                let rows = tables.entry(name.clone()).or_default();
                for removed in definition.removed {
                    rows.remove(&key(&name, &removed)).expect("a row to remove");
                }
            }
        }
    }
    tables
}

enum Event {
    Change(CommittedChange),
    Definition(Definition),
}

/// Commits and definitions by SCN. A row that two threads change has commits with different SCNs.
fn events(simulation: &Simulation) -> Vec<Event> {
    let commits = simulation.history().into_iter().flat_map(|thread| thread.transactions);
    let changes = commits.flat_map(|commit| {
        let scn = commit.commit.scn;
        commit.changes.into_iter().map(move |change| (scn, Event::Change(change)))
    });
    let definitions = simulation.definitions().into_iter();
    let definitions =
        definitions.map(|definition| (definition.at.scn, Event::Definition(definition)));
    let mut events: Vec<(Scn, Event)> = changes.chain(definitions).collect();
    events.sort_by_key(|(scn, _)| *scn);
    events.into_iter().map(|(_, event)| event).collect()
}

type Tables = BTreeMap<String, BTreeMap<Vec<String>, RowImage>>;

fn key(table: &str, row: &RowImage) -> Vec<String> {
    let columns = match table.rsplit('.').next() {
        Some("ITEMS") => vec!["ORDER_ID", "LINE"],
        _ => vec!["ID"],
    };
    columns.iter().map(|column| row[*column].clone().unwrap()).collect()
}

fn apply(tables: &mut Tables, change: CommittedChange) {
    let name = change.table.to_string();
    let rows = tables.entry(name.clone()).or_default();
    let mut row = RowImage::new();
    if let Some(before) = &change.before {
        row = rows.remove(&key(&name, before)).expect("the row before");
        assert!(before.iter().all(|(column, value)| row.get(column).cloned().flatten() == *value));
    }
    if let Some(after) = change.after {
        row.extend(after);
        change.lost.iter().for_each(|column| drop(row.remove(column)));
        assert!(rows.insert(key(&name, &row), row).is_none());
    }
}

/// Asserts that the history makes the tables of now of the first ones.
fn leads_to_tables(settings: SimulationSettings) {
    let simulation = Simulation::at(settings, 1500);
    let applied = applied(&simulation);
    for (table, mut rows) in simulation.tables_now() {
        let table = table.to_string();
        let mut replayed: Vec<_> = applied[&table].values().cloned().collect();
        // Columns that came later are NULL in older rows, and dropped ones are in none.
        for (row, now) in replayed.iter_mut().zip(std::iter::repeat(rows.first())) {
            let columns: BTreeSet<_> =
                now.map(|now| now.keys().cloned().collect()).unwrap_or_default();
            row.retain(|column, _| columns.contains(column));
            for column in columns.into_iter().filter(|it| !lob::COLUMNS.contains(&&**it)) {
                row.entry(column).or_default();
            }
        }
        // The value of an object that was changed in part is not known.
        replayed.sort_by_key(|row| key(&table, row));
        rows.sort_by_key(|row| key(&table, row));
        for (row, replayed) in rows.iter_mut().zip(&replayed) {
            row.retain(|column, _| {
                replayed.contains_key(column) || !lob::COLUMNS.contains(&&**column)
            });
        }
        assert_eq!(rows, replayed, "{table}");
    }
}

#[test]
fn the_history_leads_to_the_tables() {
    for seed in 0..15 {
        leads_to_tables(settings(seed));
        leads_to_tables(SimulationSettings { quirks: quirks().collect(), ..settings(seed) });
    }
}
