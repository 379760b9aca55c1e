//! Quirks of tables and their definitions.

use std::collections::BTreeSet;

use highwater_oracle::{
    Dictionary, MiningStart, ObjectId, Operation, RedoRow, Scn, Session, TableName,
};
use highwater_oracle_sim::{Quirk, Simulation};

use super::simulated::{alone, shows};
use crate::miner;

#[test]
fn rows_of_an_index_organised_table_have_the_number_of_its_top_index() {
    shows(Quirk::IndexOrganised, |row| row.table.as_deref() == Some("PRICES"));
    let simulation = Simulation::at(alone(Some(Quirk::IndexOrganised)), 500);
    let objects = simulation.session().table_objects().unwrap();
    let of_table = objects.iter().filter(|object| object.table.table == "PRICES");
    let numbers: Vec<_> = of_table.map(|object| object.id.number).collect();
    let rows = miner::all_rows(&simulation);
    let mut named = rows.iter().filter(|row| row.table.as_deref() == Some("PRICES"));
    assert!(named.all(|row| row.object.number == numbers[1] && row.row_id == "A".repeat(18)));
}

/// The objects of a table.
fn objects_of(simulation: &Simulation, table: &str) -> BTreeSet<ObjectId> {
    let all = simulation.session().table_objects().unwrap();
    all.into_iter().filter(|object| object.table.table == table).map(|object| object.id).collect()
}

#[test]
fn partitions_get_other_numbers() {
    let simulation = Simulation::new(alone(Some(Quirk::Partitions)));
    let mut seen = objects_of(&simulation, "SALES");
    assert_eq!(seen.len(), 5);
    for _ in 0..3000 {
        simulation.step();
        seen.extend(objects_of(&simulation, "SALES"));
    }
    let now = objects_of(&simulation, "SALES");
    assert!(seen.len() > now.len() && !now.is_empty());
    let rows = miner::rows_of(&simulation, &miner::everything(seen.iter().copied().collect()));
    let used: BTreeSet<_> = rows.iter().filter(|row| row.operation.is_content()).collect_objects();
    assert!(used.difference(&now).count() > 1);
    let texts: BTreeSet<_> = simulation.definitions().into_iter().map(|it| it.text).collect();
    for word in ["SPLIT", "MERGE", "DROP PARTITION", "ADD PARTITION", "TRUNCATE PARTITION"] {
        assert!(texts.iter().any(|text| text.contains(word)), "{word}");
    }
}

trait Objects {
    fn collect_objects(self) -> BTreeSet<ObjectId>;
}

impl<'a, I: Iterator<Item = &'a RedoRow>> Objects for I {
    fn collect_objects(self) -> BTreeSet<ObjectId> {
        self.map(|row| row.object).collect()
    }
}

#[test]
fn definitions_have_rows_and_oracles_own_are_not_given() {
    shows(Quirk::Ddl, |row| row.operation == Operation::Ddl);
    let simulation = Simulation::at(alone(Some(Quirk::Ddl)), 1500);
    let rows = miner::all_rows(&simulation);
    let ddl = || rows.iter().filter(|row| row.operation == Operation::Ddl);
    assert!(ddl().all(|row| row.owner.as_deref() != Some("SYS")));
    for definition in simulation.definitions() {
        let row = ddl().find(|row| row.at == definition.at).unwrap();
        assert_eq!(row.sql_redo.as_ref(), Some(&definition.text));
        assert_eq!(row.table.as_ref(), Some(&definition.table.table));
    }
}

#[test]
fn rows_before_a_change_of_columns_come_without_names() {
    shows(Quirk::Ddl, |row| row.operation == Operation::Insert && row.status == 2);
    let simulation = Simulation::at(alone(Some(Quirk::Ddl)), 1500);
    let orders = TableName { pdb: None, owner: "SHOP".into(), table: "ORDERS".into() };
    let columns = simulation.session().layout(&orders).unwrap().unwrap().columns.len();
    for row in miner::all_rows(&simulation) {
        let is_insert = row.operation == Operation::Insert && !row.is_undo;
        if is_insert && row.table.as_deref() == Some("ORDERS") {
            let sql = row.sql_redo.unwrap();
            assert_eq!(row.status == 2, sql.contains("\"COL 1\""), "{sql}");
            let (names, _) = sql.split_once(") values (").unwrap();
            assert!(row.status == 2 || names.matches("\",\"").count() + 1 == columns);
        }
    }
}

/// Rows of the logs from the newest dictionary in the redo on.
fn rows_by_redo(simulation: &Simulation) -> Vec<RedoRow> {
    let mut session = simulation.session();
    let objects = miner::objects(&mut session);
    let mut logs = miner::logs(&mut session);
    let begin = logs.iter().filter(|log| log.begins_dictionary).map(|log| log.first).max().unwrap();
    logs.retain(|log| log.first >= begin);
    let start = MiningStart { logs, start: begin, end: Scn::MAX, dictionary: Dictionary::Redo };
    session.start_mining(&start).unwrap();
    let mut rows = Vec::new();
    session
        .rows(&miner::everything(objects), &mut |row| {
            rows.push(row);
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    rows
}

#[test]
fn a_dictionary_in_the_redo_names_what_the_present_one_does_not() {
    let generic = |rows: &[RedoRow]| rows.iter().filter(|row| row.status == 2).count();
    let seeds = (0..5).map(|seed| {
        let settings = highwater_oracle_sim::SimulationSettings { seed, ..alone(Some(Quirk::Ddl)) };
        let simulation = Simulation::at(settings, 2780);
        let by_redo = rows_by_redo(&simulation);
        assert_eq!(generic(&by_redo), 0);
        let first = by_redo.first().unwrap().at.address;
        let online = miner::all_rows(&simulation);
        let same: Vec<_> = online.into_iter().filter(|row| row.at.address >= first).collect();
        generic(&same)
    });
    assert!(seeds.sum::<usize>() > 20);
}

#[test]
fn without_a_build_there_is_no_dictionary_in_the_redo() {
    let simulation = Simulation::at(alone(None), 500);
    let mut session = simulation.session();
    let logs = miner::logs(&mut session);
    let start = logs.iter().map(|log| log.first).min().unwrap();
    let start = MiningStart { logs, start, end: Scn::MAX, dictionary: Dictionary::Redo };
    assert_eq!(session.start_mining(&start).unwrap_err().ora, Some(1371));
}
