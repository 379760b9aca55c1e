//! Rows of large objects.

use std::collections::BTreeSet;

use highwater_oracle::{Operation, RedoRow, TransactionKey};
use highwater_oracle_sim::{Quirk, Simulation, SimulationSettings};

use super::simulated::{alone, shows};
use crate::miner::all_rows;

/// The rows of each transaction on the table with large objects, in words.
fn patterns(settings: SimulationSettings) -> BTreeSet<String> {
    let rows = all_rows(&Simulation::at(settings, 4000));
    let keys: BTreeSet<TransactionKey> = rows.iter().map(|row| row.transaction).collect();
    let of = |key: TransactionKey| {
        let its = |row: &&RedoRow| row.transaction == key && row.operation.is_data();
        rows.iter().filter(its).map(word).collect::<Vec<_>>().join(" ")
    };
    keys.into_iter().map(of).collect()
}

trait IsData {
    fn is_data(&self) -> bool;
}

impl IsData for Operation {
    fn is_data(&self) -> bool {
        !matches!(self, Self::Start | Self::Commit | Self::Rollback)
    }
}

fn word(row: &RedoRow) -> String {
    if row.table.as_deref() != Some("DOCS") {
        return "other".to_owned();
    }
    let id = if row.row_id == "A".repeat(18) { "placeholder" } else { "real" };
    let undo = if row.is_undo { "Undo" } else { "" };
    format!("{undo}{:?}[{id}]", row.operation)
}

#[test]
fn statements_give_the_rows_that_were_seen() {
    shows(Quirk::LobPieces, |row| row.operation == Operation::LobWrite);
    let settings = SimulationSettings { clients: 2, ..alone(Some(Quirk::LobPieces)) };
    let patterns = patterns(settings);
    let seen = [
        "Insert[placeholder] Update[real]",
        "Insert[placeholder] LobLocator[placeholder] LobWrite[placeholder] LobWrite[placeholder] Update[real]",
        "LobWrite[placeholder] LobTrim[placeholder]",
        "LobWrite[placeholder] LobLocator[placeholder] LobTrim[placeholder]",
        "Update[placeholder] LobLocator[placeholder] LobWrite[placeholder]",
        "LobLocator[real] LobWrite[real]",
        "LobLocator[real] LobTrim[placeholder]",
        "LobLocator[real] LobErase[placeholder]",
        "[placeholder] UndoUpdate[real]",
        "UndoDelete[real]",
        "UndoInsert[real]",
        "Delete[real]",
    ];
    for pattern in seen {
        assert!(patterns.iter().any(|rows| rows.contains(pattern)), "{pattern}");
    }
}

#[test]
fn rows_of_objects_are_never_undone_themselves() {
    let rows = all_rows(&Simulation::at(alone(Some(Quirk::LobPieces)), 2500));
    use Operation::{LobErase, LobLocator, LobTrim, LobWrite};
    let is_lob =
        |row: &&RedoRow| matches!(row.operation, LobLocator | LobWrite | LobTrim | LobErase);
    assert!(rows.iter().filter(is_lob).count() > 100);
    for row in rows.iter().filter(is_lob) {
        assert!(!row.is_undo);
        let is_locator = row.operation == LobLocator;
        assert_eq!((row.status == 0, row.sql_redo.is_none()), (is_locator, is_locator));
    }
}

#[test]
fn long_pieces_go_on_in_further_rows() {
    let settings = alone(Some(Quirk::LobPieces)).with(Quirk::SplitStatements);
    let rows = all_rows(&Simulation::at(settings, 1500));
    assert!(rows.iter().any(|row| row.operation == Operation::LobWrite && row.is_continued));
}
