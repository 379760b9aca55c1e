//! Rows of `V$LOGMNR_CONTENTS` for a redo record.

use highwater_oracle::{
    ObjectId, Operation, RedoAddress, RedoPoint, RedoRow, RedoThread, TransactionKey, Verb, Xid,
};

use crate::lob::LobRow;
use crate::record::{Content, DdlText, RowChange, XidForm};
use crate::redo::Written;
use crate::statement::Names;
use crate::table::Kind;

/// `ROW_ID` where there is no row.
pub(crate) const NO_ROW: &str = "AAAAAAAAAAAAAAAAAA";
/// `STATUS` of a statement that cannot be run.
const NOT_EXECUTABLE: u32 = 2;

/// Characters of `SQL_REDO` that one row holds.
const ROW_CHARACTERS: usize = 4000;

/// The rows of a record, in their order. What was read of an online log may look different.
pub(crate) fn rows(
    thread: RedoThread,
    written: &Written,
    is_online: bool,
    names: &dyn Fn(usize, u64, u64) -> Names,
) -> Vec<RedoRow> {
    let mut rows = Vec::new();
    for (ssn, content) in written.record.rows.iter().enumerate() {
        let view = View { thread, written, ssn: ssn as u64, is_online };
        match content {
            Content::SavepointEnd if !is_online => {}
            Content::Row(change) => {
                let names = names(change.table, change.object, change.layout.version);
                rows.extend(split(view.data(change, names)));
            }
            Content::Lob(lob) => {
                let names = names(lob.table, lob.object, lob.layout.version);
                rows.extend(split(view.lob(lob, names)));
            }
            _ => rows.push(view.control(content)),
        }
    }
    rows
}

/// A place in a record, as LogMiner sees it.
struct View<'a> {
    thread: RedoThread,
    written: &'a Written,
    ssn: u64,
    is_online: bool,
}

impl View<'_> {
    fn at(&self) -> RedoPoint {
        let form = self.written.record.form;
        let ssn = if form.shares_ssn { 0 } else { self.ssn };
        let address = RedoAddress { ssn, ..self.written.address };
        let scn = self.written.record.scn;
        RedoPoint { thread: self.thread, scn, address: (!form.hides_address).then_some(address) }
    }

    fn transaction(&self) -> TransactionKey {
        let key = self.written.record.actor.key;
        let partial = Xid { sequence: Xid::UNKNOWN_SEQUENCE, ..key.xid };
        let xid = match self.written.record.form.xid {
            XidForm::Zero => Xid::default(),
            XidForm::Partial => partial,
            XidForm::PartialOnline if self.is_online => partial,
            XidForm::PartialOnline | XidForm::Whole => key.xid,
        };
        TransactionKey { xid, ..key }
    }

    fn row(&self, operation: Operation, sql: Option<&str>) -> RedoRow {
        let record = &self.written.record;
        let actor = &record.actor;
        RedoRow {
            at: self.at(),
            transaction: self.transaction(),
            operation,
            is_undo: false,
            is_continued: false,
            status: 0,
            info: None,
            time_us: record.time_us,
            object: ObjectId { container: actor.key.container, number: 0 },
            object_version: 0,
            pdb: actor.pdb.clone(),
            owner: None,
            table: None,
            row_id: NO_ROW.to_owned(),
            user: actor.user.clone(),
            session: actor.session.clone(),
            sql_redo: sql.map(str::to_owned),
        }
    }

    fn control(&self, content: &Content) -> RedoRow {
        match content {
            Content::Start => self.row(Operation::Start, Some("set transaction read write")),
            Content::Commit => self.row(Operation::Commit, Some("commit")),
            Content::SavepointEnd => {
                let row = self.row(Operation::Rollback, Some("rollback"));
                RedoRow { at: RedoPoint { address: None, ..row.at }, ..row }
            }
            Content::MissingScn => RedoRow {
                info: Some("MISSING_SCN".to_owned()),
                ..self.row(Operation::MissingScn, None)
            },
            Content::Ddl(ddl) => self.ddl(ddl),
            Content::Rollback | Content::Row(_) | Content::Lob(_) => {
                self.row(Operation::Rollback, Some("rollback"))
            }
        }
    }

    fn ddl(&self, ddl: &DdlText) -> RedoRow {
        let row = self.row(Operation::Ddl, Some(&ddl.sql));
        RedoRow {
            object: ObjectId { number: ddl.object, ..row.object },
            object_version: ddl.version,
            owner: ddl.owner.clone(),
            table: ddl.table.clone(),
            ..row
        }
    }

    fn lob(&self, lob: &LobRow, names: Names) -> RedoRow {
        let block = lob.block(names);
        let row = self.row(lob.operation(), block.as_deref());
        let named = |text: &str| (names != Names::Lost).then(|| text.to_owned());
        let info = block.is_some().then(|| "LOB sql_redo not re-executable".to_owned());
        RedoRow {
            status: if block.is_some() { NOT_EXECUTABLE } else { 0 },
            info,
            object: ObjectId { number: lob.object, ..row.object },
            object_version: lob.layout.version,
            owner: named(&lob.layout.name.owner),
            table: named(&lob.layout.name.table),
            row_id: lob.row_id.to_string(),
            ..row
        }
    }

    fn data(&self, change: &RowChange, names: Names) -> RedoRow {
        let is_written = change.layout.kind != Kind::Unsupported;
        let statement = is_written.then(|| change.statement(names));
        let row = self.row(operation(change), Some(statement.as_deref().unwrap_or("Unsupported")));
        let named = |text: &str| (names != Names::Lost).then(|| text.to_owned());
        let is_executable = is_written && names == Names::Known;
        RedoRow {
            is_undo: change.is_undo,
            status: if is_executable { 0 } else { NOT_EXECUTABLE },
            object: ObjectId { number: change.object, ..row.object },
            object_version: change.layout.version,
            owner: named(&change.layout.name.owner),
            table: named(&change.layout.name.table),
            row_id: change.row_id.to_string(),
            ..row
        }
    }
}

fn operation(change: &RowChange) -> Operation {
    match (change.layout.kind, change.verb) {
        (Kind::Unsupported, _) => Operation::Unsupported,
        (_, Verb::Insert) => Operation::Insert,
        (_, Verb::Delete) => Operation::Delete,
        (_, Verb::Update) => Operation::Update,
    }
}

/// A statement that is too long for one row goes on in the next, which has the same address.
fn split(row: RedoRow) -> Vec<RedoRow> {
    if row.sql_redo.as_ref().is_none_or(|sql| sql.len() <= ROW_CHARACTERS) {
        return vec![row];
    }
    let letters: Vec<char> = row.sql_redo.iter().flat_map(|sql| sql.chars()).collect();
    let pieces = letters.chunks(ROW_CHARACTERS);
    let last = pieces.len().saturating_sub(1);
    let piece = |(place, piece): (usize, &[char])| RedoRow {
        sql_redo: Some(piece.iter().collect()),
        is_continued: place < last,
        ..row.clone()
    };
    pieces.enumerate().map(piece).collect()
}
