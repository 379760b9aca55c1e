//! Random statements on large objects, beside the values that they leave in the table. Tests of the
//! assembler.

use std::collections::HashMap;

use proptest::prelude::*;

use super::lob_assembler::LobMode;
use super::lob_piece::LobEdit;
use super::lob_row_id::PLACEHOLDER;
use super::lob_statements::{
    OTHER, REAL, Row, assembler, edit_of, give, insert, internal, key, line, update, write_edit,
};
use crate::{Change, LobValue};

/// A statement on one of two rows, and one of two columns.
#[derive(Clone, Debug)]
enum Statement {
    /// A value that is set by a bind variable; `is_basic` is the storage.
    SetLarge {
        value: String,
        is_basic: bool,
    },
    /// A literal.
    SetSmall {
        value: String,
    },
    /// Calls of `DBMS_LOB`.
    Write {
        offset: usize,
        value: String,
    },
    Trim {
        length: usize,
    },
    Erase {
        offset: usize,
        amount: usize,
    },
    /// Something else in the transaction.
    Else,
}

#[derive(Clone, Debug)]
struct Step {
    row: usize,
    column: &'static str,
    statement: Statement,
}

const ROW_IDS: [&str; 2] = [REAL, OTHER];
const IMAGES: [&[(&str, &str)]; 2] = [&[("ID", "7"), ("NAME", "a")], &[("ID", "8"), ("NAME", "a")]];

fn statement() -> impl Strategy<Value = Statement> {
    let value = || "[a-z]{1,9}";
    prop_oneof![
        3 => (value(), any::<bool>())
            .prop_map(|(value, is_basic)| Statement::SetLarge { value, is_basic }),
        1 => value().prop_map(|value| Statement::SetSmall { value }),
        3 => (0..14_usize, value()).prop_map(|(offset, value)| Statement::Write { offset, value }),
        2 => (0..14_usize).prop_map(|length| Statement::Trim { length }),
        1 => (0..14_usize, 1..6_usize)
            .prop_map(|(offset, amount)| Statement::Erase { offset, amount }),
        1 => Just(Statement::Else),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let column = prop_oneof![Just("C"), Just("B")];
    (0..2_usize, column, statement()).prop_map(|(row, column, statement)| Step {
        row,
        column,
        statement,
    })
}

/// Values in the table, ASCII, so that a unit is a byte.
#[derive(Clone, Debug)]
struct Table(HashMap<(usize, &'static str), Vec<u8>>);

impl Table {
    fn new() -> Self {
        let cells = [(0, "C"), (0, "B"), (1, "C"), (1, "B")];
        Self(cells.map(|cell| (cell, b"before".to_vec())).into())
    }

    /// Applies a step as the database does; false where it would refuse it or give no row.
    fn apply(&mut self, step: &Step) -> bool {
        let Some(value) = self.0.get_mut(&(step.row, step.column)) else { return false };
        let filler = if step.column == "B" { 0 } else { b' ' };
        match &step.statement {
            Statement::SetLarge { value: new, .. } | Statement::SetSmall { value: new } => {
                *value = new.clone().into_bytes();
            }
            Statement::Write { offset, value: new } => {
                let end = offset + new.len();
                value.resize(value.len().max(end), filler);
                value[*offset..end].copy_from_slice(new.as_bytes());
            }
            Statement::Trim { length } if *length > value.len() => return false,
            Statement::Trim { length } => value.truncate(*length),
            Statement::Erase { offset, .. } if *offset >= value.len() => return false,
            Statement::Erase { offset, amount } => {
                let end = (offset + amount).min(value.len());
                value[*offset..end].fill(filler);
            }
            Statement::Else => {}
        }
        true
    }
}

fn rows_of(step: &Step) -> Vec<Row> {
    let (real, column) = (ROW_IDS[step.row], step.column);
    let edit = |row_id, edit| edit_of(IMAGES[step.row], row_id, column, edit);
    let call = |row_id, one| vec![internal(real), edit(row_id, one)];
    match &step.statement {
        Statement::SetLarge { value, is_basic } => {
            let mut rows = vec![internal(PLACEHOLDER)];
            for (place, part) in value.as_bytes().chunks(4).enumerate() {
                let part = std::str::from_utf8(part).unwrap();
                rows.push(edit(PLACEHOLDER, write_edit(column, 1 + 4 * place as u64, part)));
            }
            rows.extend(is_basic.then(|| internal(PLACEHOLDER)));
            rows.push(edit(PLACEHOLDER, LobEdit::Trim { length: value.len() as u64 }));
            rows
        }
        Statement::SetSmall { value } => vec![update(real, &[], &[(column, value)])],
        Statement::Write { offset, value } => {
            call(real, write_edit(column, *offset as u64 + 1, value))
        }
        Statement::Trim { length } => call(PLACEHOLDER, LobEdit::Trim { length: *length as u64 }),
        Statement::Erase { offset, amount } => {
            let (offset, amount) = (*offset as u64 + 1, *amount as u64);
            call(PLACEHOLDER, LobEdit::Erase { offset, amount })
        }
        Statement::Else => vec![Row::Else],
    }
}

/// A transaction: its rows, and for each the step it is of and the table after that.
struct History {
    rows: Vec<Row>,
    states: Vec<(Step, Table, bool)>,
}

impl History {
    fn of(steps: &[Step]) -> Self {
        let (mut table, mut history) = (Table::new(), Self { rows: vec![], states: vec![] });
        for step in steps {
            if table.apply(step) {
                let rows = rows_of(step);
                let count = rows.len();
                history.rows.extend(rows);
                let state = |row| (step.clone(), table.clone(), row + 1 == count);
                history.states.extend((0..count).map(state));
            }
        }
        history.rows.push(Row::Else);
        history
    }

    /// Changes from the row with this number on, with the number of the row that gave each out.
    fn changes_from(&self, first: usize) -> Vec<(usize, Change)> {
        let mut assembler = assembler(LobMode::Inline);
        let rows = self.rows.iter().cloned().enumerate().skip(first);
        let give = |(number, row)| {
            let given = give(&mut assembler, row, number as u64);
            given.into_iter().map(move |change| (number, change))
        };
        rows.flat_map(give).collect()
    }
}

/// A value in bytes, if it is known.
fn bytes(value: &LobValue) -> Option<Vec<u8>> {
    match value {
        LobValue::Text(text) => Some(text.clone().into_bytes()),
        LobValue::Bytes(bytes) => Some(bytes.clone()),
        LobValue::Unavailable => None,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn what_is_published_was_in_the_table(steps in prop::collection::vec(step(), 1..12)) {
        let history = History::of(&steps);
        for (_, change) in history.changes_from(0) {
            for lob in &change.lobs {
                let (step, table, is_end) = &history.states[lob.last.scn.0 as usize];
                let actual = &table.0[&(step.row, step.column)];
                let value = bytes(&lob.value);
                prop_assert_eq!(&lob.column, step.column);
                prop_assert!(value.as_ref().is_none_or(|value| value == actual), "{}", line(&change));
                let is_set = matches!(step.statement, Statement::SetLarge { .. });
                prop_assert!(value.is_some() || !is_set, "{}", line(&change));
                prop_assert!(is_end, "{}", line(&change));
            }
        }
    }

    #[test]
    fn every_row_is_in_one_change(steps in prop::collection::vec(step(), 1..12)) {
        let history = History::of(&steps);
        let mut end = 0;
        for (_, change) in history.changes_from(0) {
            let (first, last) = (change.at.scn.0 as usize, change.last().scn.0 as usize);
            let between = &history.rows[end..first];
            prop_assert!(between.iter().all(|row| matches!(row, Row::Else)), "{}", line(&change));
            end = last + 1;
        }
        prop_assert!(history.rows[end..].iter().all(|row| matches!(row, Row::Else)));
    }

    #[test]
    fn a_start_from_the_open_work_gives_the_same_changes(
        steps in prop::collection::vec(step(), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let history = History::of(&steps);
        let cut = cut.index(history.rows.len());
        let mut first = assembler(LobMode::Inline);
        for (number, row) in history.rows.iter().cloned().enumerate().take(cut) {
            give(&mut first, row, number as u64);
        }
        let open = first.open().find(|(open, _)| *open == key());
        let resume = open.map_or(cut, |(_, at)| at.scn.0 as usize);
        let rest: Vec<_> =
            history.changes_from(0).into_iter().filter(|(number, _)| *number >= cut).collect();
        prop_assert_eq!(history.changes_from(resume), rest);
    }
}

#[test]
fn an_insert_and_what_follows_are_told_apart() {
    let steps = [
        Step {
            row: 0,
            column: "C",
            statement: Statement::SetLarge { value: "abcdefgh".into(), is_basic: false },
        },
        Step { row: 0, column: "C", statement: Statement::Write { offset: 8, value: "i".into() } },
    ];
    let mut history = History::of(&steps);
    history.rows.insert(0, insert(IMAGES[0]));
    let lines: Vec<String> = history.changes_from(0).iter().map(|(_, one)| line(one)).collect();
    assert_eq!(lines[0], "insert 0 #0x000001.00000000.0010/0 C='abcdefgh'@4");
    assert_eq!(lines[1], "update 5 real C=unavailable@6");
}
