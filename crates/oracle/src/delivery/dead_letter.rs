//! Dead letters: rows and transactions that were not delivered because an operator asked for that, so that
//! nothing is dropped unseen.

use std::sync::Arc;

use highwater_connector::{Position, SourceRecord};

use super::error::verb;
use super::output::Delivery;
use super::own_record::{Object, own_record};
use crate::schema::Layouts;
use crate::{Change, Committed, OracleError, RedoPoint, RedoRow, TableName, TransactionKey};

/// What stands for a text that may hold columns which are left out of records.
const WITHHELD: &str = "(withheld: the table has columns in cdc.columns.exclude)";

/// What was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeadLetterKind {
    /// A row that cannot be decoded.
    DecodeError,
    /// A row that LogMiner cannot give as a statement.
    UnsupportedRow,
    /// A transaction that was given up because of its age.
    TransactionDiscarded,
}

impl DeadLetterKind {
    const fn text(self) -> &'static str {
        match self {
            Self::DecodeError => "decode-error",
            Self::UnsupportedRow => "unsupported-row",
            Self::TransactionDiscarded => "transaction-discarded",
        }
    }
}

/// What was not delivered, and why. Its texts are cut to 2,000 characters each when it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetter {
    /// See [`DeadLetterKind`].
    kind: DeadLetterKind,
    /// Its transaction.
    key: TransactionKey,
    table: Option<TableName>,
    at: Option<RedoPoint>,
    /// Further members, in order.
    members: Vec<(&'static str, String)>,
}

impl DeadLetter {
    /// A committed change that cannot be decoded. Where `has_excluded`, its text is withheld.
    pub(crate) fn change(
        committed: &Committed,
        change: &Change,
        error: &OracleError,
        has_excluded: bool,
    ) -> Self {
        let sql = if has_excluded { WITHHELD } else { &*change.sql };
        let mut members = vec![
            ("operation", verb(change.verb).to_owned()),
            ("sql_redo", sql.to_owned()),
            ("schema_version", change.table_version.to_string()),
            ("exception", error.code.to_string()),
            ("message", error.what.clone()),
        ];
        members.extend(committed.user.clone().map(|user| ("user", user)));
        Self {
            kind: DeadLetterKind::DecodeError,
            key: committed.key,
            table: Some((*change.table).clone()),
            at: Some(change.at),
            members,
        }
    }

    /// A row that LogMiner cannot give as a statement. Where `has_excluded`, its text is withheld.
    pub fn unsupported(row: &RedoRow, table: &TableName, has_excluded: bool) -> Self {
        let sql = row.sql_redo.as_deref();
        let sql = sql.map(|sql| if has_excluded { WITHHELD } else { sql });
        let optional = [
            ("status", Some(row.status.to_string())),
            ("info", row.info.clone()),
            ("sql_redo", sql.map(str::to_owned)),
            ("user", row.user.clone()),
        ];
        Self {
            kind: DeadLetterKind::UnsupportedRow,
            key: row.transaction,
            table: Some(table.clone()),
            at: Some(row.at),
            members: optional.into_iter().filter_map(|(name, text)| Some((name, text?))).collect(),
        }
    }

    /// A transaction that was given up after so many milliseconds, with so many changes from `first` to
    /// `last`.
    pub fn discarded(
        key: TransactionKey,
        (first, last): (RedoPoint, RedoPoint),
        changes: u64,
        age_ms: u64,
    ) -> Self {
        let members = vec![
            ("first_scn", first.scn.to_string()),
            ("last_scn", last.scn.to_string()),
            ("events", changes.to_string()),
            ("age_ms", age_ms.to_string()),
        ];
        Self { kind: DeadLetterKind::TransactionDiscarded, key, table: None, at: None, members }
    }
}

/// Whether columns of the table of a change are left out of records; of a version that is not known, they
/// may be.
pub(crate) fn has_excluded(layouts: &Layouts, change: &Change) -> bool {
    let version = layouts.numbered(&change.table, change.table_version);
    version.map_or(true, |version| layouts.has_excluded(version))
}

impl Delivery {
    /// The record of a dead letter.
    pub fn dead_letter(
        &self,
        letter: &DeadLetter,
        position: Arc<dyn Position>,
        now_ms: i64,
    ) -> SourceRecord {
        let xid = letter.key.xid.to_string();
        let table = letter.table.as_ref();
        let address = letter.at.and_then(|at| at.address);
        let ssn = address.map(|address| address.ssn.to_string());
        let mut value = Object::default()
            .number("v", 1)
            .text("kind", letter.kind.text())
            .number("ts_ms", now_ms)
            .text("server", self.server())
            .number("con_id", i64::from(letter.key.container))
            .text("xid", &xid)
            .optional("pdb", table.and_then(|table| table.pdb.as_deref()))
            .optional("schema", table.map(|table| table.owner.as_str()))
            .optional("table", table.map(|table| table.table.as_str()))
            .optional("scn", letter.at.map(|at| at.scn.to_string()).as_deref())
            .optional("rs_id", address.map(|address| address.rs_id()).as_deref())
            .optional("ssn", ssn.as_deref());
        for (name, text) in &letter.members {
            value = value.text(name, text);
        }
        let key = Object::default().text("server", self.server()).text("xid", &xid).close();
        own_record(&self.own_topics().dead_letters, key, value.close(), position)
    }
}
