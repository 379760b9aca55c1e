//! Values of records: Debezium's envelope as JSON without schema, written straight into a buffer.

use bytes::Bytes;
use highwater_connector::{ColumnStates, Json};

use super::error;
use super::form::Form;
use super::image::{Cell, Images, LargeObjects, Row, Written};
use super::output::OversizedLob;
use super::shape::{Shape, ShapeColumn, json_text};
use crate::{Committed, LobValue, OracleError, RedoAddress, RedoThread, Scn, TransactionKey};

/// What a record tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op<'a> {
    /// `c`: a row is new, or goes on under another key.
    Create,
    /// `u`.
    Update,
    /// `d`: a row is gone, or goes on under another key.
    Delete,
    /// `r`: a row of a snapshot.
    Read,
    /// `t`.
    Truncate,
    /// `ddl`, with the statement.
    Ddl(&'a str),
    /// `snapshot_begin`, with the snapshot's point.
    SnapshotBegin(Scn),
    /// `snapshot_end`, with the snapshot's point.
    SnapshotEnd(Scn),
}

impl Op<'_> {
    const fn text(self) -> &'static str {
        match self {
            Self::Create => "c",
            Self::Update => "u",
            Self::Delete => "d",
            Self::Read => "r",
            Self::Truncate => "t",
            Self::Ddl(_) => "ddl",
            Self::SnapshotBegin(_) => "snapshot_begin",
            Self::SnapshotEnd(_) => "snapshot_end",
        }
    }

    const fn has_before(self) -> bool {
        matches!(self, Self::Update | Self::Delete)
    }

    const fn has_after(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Read)
    }
}

/// What all records of a transaction have alike in `source` and `transaction`, as JSON.
#[derive(Clone, Debug)]
pub(crate) struct TransactionText {
    /// From `ts_ms` to `snapshot`.
    times: String,
    /// From `txId` to before the change's SCN.
    id: String,
    /// From behind that to before the redo address.
    commit: String,
    /// From `redo_thread` to before the row's id.
    session: String,
    /// `transaction` to before its orders.
    block: String,
}

/// What stands in `snapshot` of `source`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotMark {
    /// The first row of a snapshot.
    First,
    /// A row in between.
    True,
    /// The last row of a snapshot.
    Last,
    /// A row of a snapshot that was asked for while streaming.
    Incremental,
}

impl SnapshotMark {
    const fn text(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::True => "true",
            Self::Last => "last",
            Self::Incremental => "incremental",
        }
    }
}

impl TransactionText {
    /// Of a transaction, or of a DDL, which is one.
    pub(crate) fn new(
        key: &TransactionKey,
        commit_scn: Scn,
        thread: RedoThread,
        time_us: i64,
        user: Option<&str>,
    ) -> Self {
        let xid = key.xid;
        Self {
            times: times(time_us, "false"),
            id: format!(r#","txId":"{xid}","scn":""#),
            commit: format!(r#"","commit_scn":"{commit_scn}","rs_id":"#),
            session: json_text(|json| {
                json.raw(&format!(r#","redo_thread":{thread},"user_name":"#));
                text_or_null(json, user);
                json.raw(r#","row_id":"#);
            }),
            block: format!(r#","transaction":{{"id":"{xid}","total_order":"#),
        }
    }

    /// Of a committed transaction.
    pub(crate) fn of(committed: &Committed) -> Self {
        let Committed { key, commit, time_us, user, .. } = committed;
        Self::new(key, commit.scn, commit.thread, *time_us, user.as_deref())
    }

    /// Of a snapshot that is read at this time.
    pub(crate) fn snapshot(time_us: i64, mark: SnapshotMark) -> Self {
        Self {
            times: times(time_us, mark.text()),
            id: r#","txId":null,"scn":""#.to_owned(),
            commit: r#"","commit_scn":null,"rs_id":"#.to_owned(),
            session: r#","redo_thread":null,"user_name":null,"row_id":"#.to_owned(),
            block: String::new(),
        }
    }
}

fn times(time_us: i64, snapshot: &str) -> String {
    let (ms, ns) = (time_us.div_euclid(1_000), i128::from(time_us) * 1_000);
    format!(r#","ts_ms":{ms},"ts_us":{time_us},"ts_ns":{ns},"snapshot":"{snapshot}""#)
}

fn text_or_null(json: &mut Json, text: Option<&str>) {
    match text {
        Some(text) => json.string(text),
        None => json.raw("null"),
    }
}

/// Where a change stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) scn: Scn,
    pub(crate) address: Option<RedoAddress>,
    /// The row's id, where it is a real one.
    pub(crate) row_id: Option<&'a str>,
    /// Ordinals of the change from 1: in its transaction, and there among those of its table.
    pub(crate) orders: Option<(u64, u64)>,
}

/// A row's record value.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) json: Bytes,
    pub(crate) states: ColumnStates,
}

/// Writes values for one connector.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) json: Json,
    /// Members of `source` that never change.
    head: String,
    large: LargeObjects,
    oversized: OversizedLob,
}

impl Envelope {
    /// A writer for the connector with this topic prefix.
    pub(crate) fn new(server: &str, large: LargeObjects, oversized: OversizedLob) -> Self {
        let head = json_text(|json| {
            json.raw(r#","source":{"version":"#);
            json.string(env!("CARGO_PKG_VERSION"));
            json.raw(r#","connector":"oracle","name":"#);
            json.string(server);
        });
        Self { json: Json::default(), head, large, oversized }
    }

    /// The value of a record that has a row. `now_ms` is when it is made.
    ///
    /// # Errors
    /// When a value has no JSON form.
    pub(crate) fn row(
        &mut self,
        shape: &Shape,
        (op, row, images): (Op<'_>, &Row<'_>, &Images),
        transaction: &TransactionText,
        origin: &Origin<'_>,
        now_ms: i64,
    ) -> Result<Value, OracleError> {
        self.json.discard();
        let mut states = ColumnStates::default();
        self.json.raw(r#"{"before":"#);
        if op.has_before() {
            self.before(shape, row, &images.before)?;
        } else {
            self.json.raw("null");
        }
        self.json.raw(r#","after":"#);
        if op.has_after() {
            self.after(shape, row, &images.after, &mut states)?;
        } else {
            self.json.raw("null");
        }
        self.close(shape, op, transaction, origin, now_ms);
        Ok(Value { json: self.json.finish(), states })
    }

    /// The value of a record that has no row.
    pub(crate) fn mark(
        &mut self,
        shape: &Shape,
        op: Op<'_>,
        transaction: &TransactionText,
        origin: &Origin<'_>,
        now_ms: i64,
    ) -> Bytes {
        self.json.discard();
        self.json.raw(r#"{"before":null,"after":null"#);
        self.close(shape, op, transaction, origin, now_ms);
        self.json.finish()
    }

    fn before(&mut self, shape: &Shape, row: &Row<'_>, cells: &[Cell]) -> Result<(), OracleError> {
        let mut members = Members::open(&mut self.json);
        let are_large_left_out = self.large == LargeObjects::LeftOut;
        for (column, cell) in shape.columns.iter().zip(cells) {
            let is_left_out = column.is_excluded || (are_large_left_out && column.form.is_large());
            if !is_left_out && let Some(Written::Literal(literal)) = row.value(*cell) {
                let written = column.form.write(members.name(column), literal);
                written.map_err(|misfit| error::misfit(shape, column, &misfit))?;
            }
        }
        members.close();
        Ok(())
    }

    fn after(
        &mut self,
        shape: &Shape,
        row: &Row<'_>,
        cells: &[Cell],
        states: &mut ColumnStates,
    ) -> Result<(), OracleError> {
        let mut members = Members::open(&mut self.json);
        for (column, cell) in shape.columns.iter().zip(cells) {
            if column.is_excluded || *cell == Cell::Absent {
                continue;
            }
            if column.form.is_large() {
                let shown = (&self.large, self.oversized);
                large(&mut members, (shape, column), row, *cell, shown, states)?;
            } else if let Some(Written::Literal(literal)) = row.value(*cell) {
                let written = column.form.write(members.name(column), literal);
                written.map_err(|misfit| error::misfit(shape, column, &misfit))?;
            }
        }
        members.close();
        Ok(())
    }

    fn close(
        &mut self,
        shape: &Shape,
        op: Op<'_>,
        transaction: &TransactionText,
        origin: &Origin<'_>,
        now_ms: i64,
    ) {
        self.source(shape, transaction, origin);
        let json = &mut self.json;
        match origin.orders {
            Some((total, in_table)) => {
                json.raw(&transaction.block);
                json.int(i128::from(total));
                json.raw(r#","data_collection_order":"#);
                json.int(i128::from(in_table));
                json.raw(r#"},"op":""#);
            }
            None => json.raw(r#","transaction":null,"op":""#),
        }
        json.raw(op.text());
        json.raw("\"");
        match op {
            Op::Ddl(statement) => {
                json.raw(r#","ddl":"#);
                json.string(statement);
            }
            Op::SnapshotBegin(point) | Op::SnapshotEnd(point) => {
                json.raw(&format!(r#","point":"{point}""#));
            }
            _ => {}
        }
        json.raw(r#","ts_ms":"#);
        json.int(i128::from(now_ms));
        json.raw("}");
    }

    fn source(&mut self, shape: &Shape, transaction: &TransactionText, origin: &Origin<'_>) {
        let Self { json, head, .. } = self;
        json.raw(head);
        json.raw(&transaction.times);
        json.raw(&shape.source);
        json.raw(&transaction.id);
        json.int(i128::from(origin.scn.0));
        json.raw(&transaction.commit);
        match origin.address {
            Some(address) => {
                json.raw(&format!("\"{}\"", address.rs_id()));
                json.raw(r#","ssn":"#);
                json.int(i128::from(address.ssn));
            }
            None => json.raw(r#"null,"ssn":null"#),
        }
        json.raw(&transaction.session);
        text_or_null(json, origin.row_id);
        json.raw(&shape.source_end);
    }
}

/// Writes a large object of the row as it is, or what stands for it.
fn large(
    members: &mut Members<'_>,
    (shape, column): (&Shape, &ShapeColumn),
    row: &Row<'_>,
    cell: Cell,
    (large, oversized): (&LargeObjects, OversizedLob),
    states: &mut ColumnStates,
) -> Result<(), OracleError> {
    let value = row.value(cell);
    if let Some(Written::Large(LobValue::Undecodable(why))) = value {
        return Err(error::lob(shape, column, why));
    }
    let LargeObjects::Shown { placeholder } = large else {
        // A consumer that keeps what it has must know that it is not so any more.
        let is_written = matches!(cell, Cell::After(_) | Cell::Large(_));
        states.unavailable.extend(is_written.then(|| column.name.clone()));
        return Ok(());
    };
    let list = match value {
        Some(Written::Literal(literal)) => {
            let written = column.form.write(members.name(column), literal);
            return written.map_err(|misfit| error::misfit(shape, column, &misfit));
        }
        Some(Written::Large(LobValue::Null)) => {
            members.name(column).raw("null");
            return Ok(());
        }
        Some(Written::Large(LobValue::Text(text))) => {
            members.name(column).string(text);
            return Ok(());
        }
        Some(Written::Large(LobValue::Bytes(bytes))) => {
            super::form::base64(members.name(column), bytes);
            return Ok(());
        }
        Some(Written::Large(LobValue::TooLarge)) if oversized == OversizedLob::Fail => {
            return Err(error::too_large(shape, column));
        }
        None if cell == Cell::Unchanged => &mut states.unchanged,
        _ => &mut states.unavailable,
    };
    list.push(column.name.clone());
    match column.form {
        Form::Blob => super::form::base64(members.name(column), placeholder.as_bytes()),
        _ => members.name(column).string(placeholder),
    }
    Ok(())
}

/// The members of one JSON object.
struct Members<'a> {
    json: &'a mut Json,
    is_first: bool,
}

impl<'a> Members<'a> {
    fn open(json: &'a mut Json) -> Self {
        json.raw("{");
        Self { json, is_first: true }
    }

    /// Begins a member; its value is to be written behind it.
    fn name(&mut self, column: &ShapeColumn) -> &mut Json {
        if !std::mem::take(&mut self.is_first) {
            self.json.raw(",");
        }
        self.json.raw(&column.member);
        self.json
    }

    fn close(self) {
        self.json.raw("}");
    }
}
