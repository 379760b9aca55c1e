//! Rows of `V$LOGMNR_CONTENTS` for a redo record.

use highwater_oracle::{ObjectId, Operation, RedoAddress, RedoPoint, RedoRow, RedoThread, Verb};

use crate::record::{Content, Record, RowChange};
use crate::redo::Written;
use crate::statement::Names;

/// `ROW_ID` where there is no row.
pub(crate) const NO_ROW: &str = "AAAAAAAAAAAAAAAAAA";
/// `STATUS` of a statement that cannot be run.
const NOT_EXECUTABLE: u32 = 2;

/// Gives the rows of a record, in their order, to `take`.
pub(crate) fn rows(
    thread: RedoThread,
    written: &Written,
    names: &dyn Fn(&RowChange) -> Names,
    take: &mut dyn FnMut(RedoRow),
) {
    for (ssn, content) in written.record.rows.iter().enumerate() {
        let address = RedoAddress { ssn: ssn as u64, ..written.address };
        let at = RedoPoint { thread, scn: written.record.scn, address: Some(address) };
        row(at, &written.record, content, names, take);
    }
}

fn row(
    at: RedoPoint,
    record: &Record,
    content: &Content,
    names: &dyn Fn(&RowChange) -> Names,
    take: &mut dyn FnMut(RedoRow),
) {
    match content {
        Content::Start => take(control(at, record, Operation::Start, "set transaction read write")),
        Content::Commit => take(control(at, record, Operation::Commit, "commit")),
        Content::Rollback => take(control(at, record, Operation::Rollback, "rollback")),
        Content::Row(change) => take(data(at, record, change, names(change))),
    }
}

fn control(at: RedoPoint, record: &Record, operation: Operation, sql: &str) -> RedoRow {
    let actor = &record.actor;
    RedoRow {
        at,
        transaction: actor.key,
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
        sql_redo: Some(sql.to_owned()),
    }
}

fn data(at: RedoPoint, record: &Record, change: &RowChange, names: Names) -> RedoRow {
    let operation = match change.verb {
        Verb::Insert => Operation::Insert,
        Verb::Delete => Operation::Delete,
        Verb::Update => Operation::Update,
    };
    let row = control(at, record, operation, &change.statement(names));
    let named = |text: &str| (names != Names::Lost).then(|| text.to_owned());
    RedoRow {
        is_undo: change.is_undo,
        status: if names == Names::Known { 0 } else { NOT_EXECUTABLE },
        object: ObjectId { number: change.object, ..row.object },
        object_version: change.layout.version,
        owner: named(&change.layout.name.owner),
        table: named(&change.layout.name.table),
        row_id: change.row_id.to_string(),
        ..row
    }
}
