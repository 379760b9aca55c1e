//! Redo records, before they are written as rows.

use std::sync::Arc;

use highwater_oracle::{ClientSession, Scn, TransactionKey, Verb};

use crate::lob::LobRow;
use crate::render::NO_ROW;
use crate::table::Layout;
use crate::value::{Row, Value};

/// Who makes a change: what every row of the transaction says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Actor {
    pub(crate) key: TransactionKey,
    pub(crate) user: Option<String>,
    pub(crate) session: ClientSession,
    pub(crate) pdb: Option<String>,
}

/// A change of one row by one statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RowChange {
    /// Place of the table among all.
    pub(crate) table: usize,
    pub(crate) layout: Arc<Layout>,
    pub(crate) object: u64,
    pub(crate) row_id: Arc<str>,
    pub(crate) verb: Verb,
    pub(crate) before: Option<Row>,
    pub(crate) after: Option<Row>,
    /// Places of the columns that an update assigns.
    pub(crate) set: Vec<usize>,
    /// Places of the large objects whose value after it the redo tells.
    pub(crate) told_lobs: Vec<usize>,
    /// Places of those that it changes without that.
    pub(crate) lost_lobs: Vec<usize>,
    /// Whether it takes back an earlier change of its transaction.
    pub(crate) is_undo: bool,
}

impl RowChange {
    /// The same where LogMiner does not know the ROWID yet.
    pub(crate) fn without_row_id(&self) -> Self {
        Self { row_id: NO_ROW.into(), ..self.clone() }
    }

    /// The change that takes this one back.
    pub(crate) fn undone(&self) -> Self {
        Self {
            verb: self.verb.inverse(),
            before: self.after.clone(),
            after: self.before.clone(),
            is_undo: true,
            ..self.clone()
        }
    }
}

/// A statement that changes a definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DdlText {
    pub(crate) owner: Option<String>,
    pub(crate) table: Option<String>,
    pub(crate) object: u64,
    pub(crate) version: u64,
    pub(crate) sql: String,
}

/// What one row of a redo record says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    Start,
    Commit,
    Rollback,
    /// A ROLLBACK row that ends nothing but a rollback to a savepoint, and that is there only while the
    /// log is online.
    SavepointEnd,
    MissingScn,
    Ddl(Arc<DdlText>),
    Row(Arc<RowChange>),
    Lob(Arc<LobRow>),
}

impl Content {
    /// Bytes in the log, about.
    fn bytes(&self) -> u64 {
        let image =
            |row: &Option<Row>| row.iter().flat_map(|row| row.iter()).map(length).sum::<u64>();
        match self {
            Self::Row(change) => 80 + image(&change.before) + image(&change.after),
            Self::Lob(lob) => lob.bytes(),
            Self::SavepointEnd => 0,
            Self::Ddl(ddl) => 200 + ddl.sql.len() as u64,
            Self::Start | Self::Commit | Self::Rollback | Self::MissingScn => 60,
        }
    }
}

fn length(value: &Value) -> u64 {
    value.as_ref().map_or(1, |text| text.len() as u64)
}

/// How LogMiner gives the XID of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum XidForm {
    #[default]
    Whole,
    /// All zeros.
    Zero,
    /// With a sequence that is not known.
    Partial,
    /// The same, as long as the log is online.
    PartialOnline,
}

/// How LogMiner gives what all rows of a record have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Form {
    pub(crate) xid: XidForm,
    /// Whether `RS_ID` is all zeros.
    pub(crate) hides_address: bool,
    /// Whether all rows have the `SSN` 0.
    pub(crate) shares_ssn: bool,
}

/// A redo record: what was done at one SCN by one call, in one piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) scn: Scn,
    pub(crate) time_us: i64,
    pub(crate) actor: Arc<Actor>,
    /// The rows, in the order of their `SSN`.
    pub(crate) rows: Vec<Content>,
    pub(crate) form: Form,
}

impl Record {
    /// Bytes in the log, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.rows.iter().map(Content::bytes).sum()
    }
}
