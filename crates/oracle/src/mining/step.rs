//! What came of a step.

use std::collections::BTreeSet;

use crate::row::ObjectId;
use crate::{Cursor, RedoRow, TableName};

use super::advance::Advance;
use super::stage::StagedRows;

/// What came of a step.
#[derive(Debug)]
pub enum Step {
    /// There is no new redo.
    Idle,
    /// Rows to be applied. The cursor stays until [`Miner::applied`](super::Miner::applied).
    Rows(Box<StagedStep>),
    /// Rows of these tables and objects are from before a DDL, and the present dictionary does not decode
    /// or name them: the step has to be read by [`Miner::replay`](super::Miner::replay).
    Lagging {
        /// Tables of the rows.
        tables: BTreeSet<TableName>,
        /// Objects of rows whose table is not known.
        objects: BTreeSet<ObjectId>,
    },
    /// The range cannot be read now. Nothing was applied; the same step comes again.
    Retry(String),
    /// The step was not done in time, or the server's memory did not hold it. Nothing was applied; a
    /// smaller step comes next.
    TimedOut,
}

/// Where a step ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepEnd {
    /// At the end of its range.
    End,
    /// Behind this DDL, its last row: before the next step the objects are looked up again.
    Cut(Box<RedoRow>),
}

/// The rows of a step that was read whole.
#[derive(Debug)]
pub struct StagedStep {
    /// The rows in redo order, to be read once.
    pub rows: StagedRows,
    /// Where the step ended.
    pub ended_by: StepEnd,
    /// How many rows were left out because nothing of their transaction was captured: they name only
    /// its slot, and none is open in it.
    pub without_transaction: u64,
    /// Whether the range was read to its planned end.
    pub(super) is_whole: bool,
    pub(super) after: Advance,
}

impl StagedStep {
    /// Where the cursor is when the step was applied.
    pub const fn cursor_after(&self) -> &Cursor {
        self.after.cursor()
    }
}
