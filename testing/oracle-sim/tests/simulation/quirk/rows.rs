//! Quirks of row changes.

use std::collections::{BTreeMap, BTreeSet};

use highwater_oracle::Operation;
use highwater_oracle_sim::{Quirk, Simulation};

use super::simulated::{alone, shows, with_and_without};
use crate::miner::all_rows;

#[test]
fn split_statements_go_on_in_rows_of_the_same_address() {
    shows(Quirk::SplitStatements, |row| row.is_continued);
    let rows = all_rows(&Simulation::at(alone(Some(Quirk::SplitStatements)), 1500));
    let length = |sql: &Option<String>| sql.as_ref().map_or(0, |sql| sql.chars().count());
    assert!(rows.iter().all(|row| length(&row.sql_redo) <= 4000));
    for pair in rows.windows(2).filter(|pair| pair[0].is_continued) {
        assert_eq!(pair[0].at, pair[1].at);
        assert_eq!(length(&pair[0].sql_redo), 4000);
    }
}

#[test]
fn array_deletes_share_an_address() {
    let shared = |rows: &[highwater_oracle::RedoRow]| {
        let mut addresses = BTreeMap::<_, BTreeSet<_>>::new();
        for row in rows.iter().filter(|row| row.operation == Operation::Delete) {
            addresses.entry(row.at.address).or_default().insert(row.row_id.clone());
        }
        addresses.values().filter(|rows| rows.len() > 1).count()
    };
    let [with, without] = with_and_without(Quirk::ArrayDeletes);
    assert!(shared(&with) > 5);
    assert_eq!(shared(&without), 0);
}

#[test]
fn rows_of_unsupported_types_have_no_statement() {
    shows(Quirk::Unsupported, |row| row.operation == Operation::Unsupported && row.status == 2);
}

#[test]
fn missing_redo_has_a_row() {
    shows(Quirk::MissingScn, |row| row.operation == Operation::MissingScn);
}
