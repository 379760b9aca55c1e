//! Tests of the parts of mining together, against the database of [`fake`](super::fake).

mod exactly_once;
mod inventory;
mod start;
mod steps;
mod unnamed;

use crate::row::RedoRow;
use crate::{Cursor, Marks, Scn};

use super::fake::Fake;
use super::table_filter::TableFilter;
use super::{Miner, MiningError, MiningFrom, MiningSettings, Step};

fn filter() -> TableFilter {
    TableFilter::new(&[r"HR\..*".to_owned()], &[], false).unwrap()
}

fn from_scn(scn: u64) -> MiningFrom {
    from(Cursor { scn: Scn(scn), marks: Marks::None })
}

fn from(cursor: Cursor) -> MiningFrom {
    MiningFrom { cursor, scope: None, identity: None }
}

fn miner(fake: &mut Fake, from: MiningFrom) -> Miner {
    miner_with(fake, from, MiningSettings::default())
}

fn miner_with(fake: &mut Fake, from: MiningFrom, settings: MiningSettings) -> Miner {
    Miner::new(fake, settings, filter(), from).unwrap()
}

fn step(miner: &mut Miner, fake: &mut Fake) -> Result<Step, MiningError> {
    miner.step(fake, &mut std::iter::empty())
}

/// Reads a step and applies it.
fn apply(miner: &mut Miner, fake: &mut Fake) -> Vec<RedoRow> {
    let step = step(miner, fake).unwrap();
    let Step::Rows(mut step) = step else { panic!("{step:?}") };
    let rows = step.rows.by_ref().map(|row| row.unwrap().row().clone()).collect();
    miner.applied(*step);
    rows
}

/// Texts of rows.
fn texts(rows: &[RedoRow]) -> Vec<&str> {
    rows.iter().map(|row| row.sql_redo.as_deref().unwrap()).collect()
}
