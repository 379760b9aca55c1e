//! Decoder of the pgoutput plugin's messages, protocol versions 1 to 4.
//!
//! Layouts: PostgreSQL manual, "Logical Replication Message Formats". Values stay slices of the
//! received bytes. A message that is not known is an error, never skipped (rule R5).

use bytes::Bytes;

use crate::cursor::{Cursor, DecodeError};
use crate::lsn::Lsn;

/// One message of pgoutput.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the fields have the manual's names and meanings")]
pub enum Message {
    /// A transaction begins; `commit_lsn` is where its commit record starts.
    Begin { commit_lsn: Lsn, commit_time: PgTime, xid: u32 },
    /// It ends; `end_lsn` is where its commit record ends.
    Commit { commit_lsn: Lsn, end_lsn: Lsn, commit_time: PgTime },
    /// The transaction was replayed from another server.
    Origin { commit_lsn: Lsn, name: String },
    /// The shape of a table, before its first row and after each change.
    Relation(Relation),
    /// A type that is not built in; for a domain the name is its base type's.
    Type { oid: u32, schema: String, name: String },
    /// A new row.
    Insert { relation: u32, new: Tuple },
    /// A changed row.
    Update { relation: u32, old: Option<OldTuple>, new: Tuple },
    /// A removed row.
    Delete { relation: u32, old: OldTuple },
    /// Emptied tables.
    Truncate { relations: Vec<u32>, cascade: bool, restart_identity: bool },
    /// `pg_logical_emit_message`.
    Logical { transactional: bool, lsn: Lsn, prefix: String, content: Bytes },
    /// A part of a transaction in progress begins.
    StreamStart { xid: u32, first: bool },
    /// That part ends.
    StreamStop,
    /// A transaction sent in parts is committed.
    StreamCommit { xid: u32, commit_lsn: Lsn, end_lsn: Lsn, commit_time: PgTime },
    /// A transaction sent in parts, or a subtransaction of it, is rolled back.
    StreamAbort { xid: u32, subxid: u32, at: Option<(Lsn, PgTime)> },
    /// A prepared transaction begins.
    BeginPrepare { prepare_lsn: Lsn, end_lsn: Lsn, time: PgTime, xid: u32, gid: String },
    /// It is prepared.
    Prepare { prepare_lsn: Lsn, end_lsn: Lsn, time: PgTime, xid: u32, gid: String },
    /// It is committed.
    CommitPrepared { commit_lsn: Lsn, end_lsn: Lsn, time: PgTime, xid: u32, gid: String },
    /// It is rolled back.
    RollbackPrepared {
        prepare_end_lsn: Lsn,
        end_lsn: Lsn,
        prepare_time: PgTime,
        time: PgTime,
        xid: u32,
        gid: String,
    },
    /// A transaction sent in parts is prepared.
    StreamPrepare { prepare_lsn: Lsn, end_lsn: Lsn, time: PgTime, xid: u32, gid: String },
}

/// Microseconds since 2000-01-01 UTC, as PostgreSQL counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PgTime(pub i64);

impl PgTime {
    /// Microseconds from 1970-01-01 to 2000-01-01.
    const EPOCH_US: i64 = 946_684_800_000_000;

    /// Microseconds since 1970-01-01 UTC.
    pub const fn unix_us(self) -> i64 {
        self.0.saturating_add(Self::EPOCH_US)
    }

    /// The time that is `us` microseconds after 1970-01-01 UTC.
    pub const fn from_unix_us(us: i64) -> Self {
        Self(us.saturating_sub(Self::EPOCH_US))
    }
}

/// What a table's rows are identified by in its log records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplicaIdentity {
    /// The primary key.
    Default,
    /// Nothing.
    Nothing,
    /// The whole row.
    Full,
    /// A chosen unique index.
    Index,
}

impl ReplicaIdentity {
    /// The identity with the letter that the catalog and the protocol use.
    ///
    /// # Errors
    /// For any other letter.
    pub fn from_letter(letter: u8) -> Result<Self, DecodeError> {
        match letter {
            b'd' => Ok(Self::Default),
            b'n' => Ok(Self::Nothing),
            b'f' => Ok(Self::Full),
            b'i' => Ok(Self::Index),
            other => Err(DecodeError::Value("replica identity", i64::from(other))),
        }
    }
}

/// The shape of a table as the stream gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relation {
    /// OID of the table.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// What identifies its rows.
    pub identity: ReplicaIdentity,
    /// Published columns, in the table's order.
    pub columns: Vec<RelationColumn>,
}

/// One column of a [`Relation`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelationColumn {
    /// Whether it is part of the replica identity.
    pub key: bool,
    /// Its name.
    pub name: String,
    /// OID of its type.
    pub type_oid: u32,
    /// Modifier of its type, -1 for none.
    pub type_modifier: i32,
}

/// One value of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cell {
    /// SQL NULL.
    Null,
    /// A TOASTed value that the statement did not touch, and that was not sent.
    Unchanged,
    /// The value's text form.
    Text(Bytes),
    /// The value's binary form.
    Binary(Bytes),
}

/// The values of a row, one a column of its [`Relation`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tuple(pub Vec<Cell>);

/// The row before a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OldTuple {
    /// Only the columns of the replica identity mean anything; the others are null.
    Key(Tuple),
    /// All columns.
    Full(Tuple),
}

impl OldTuple {
    /// Its values.
    pub const fn tuple(&self) -> &Tuple {
        match self {
            Self::Key(tuple) | Self::Full(tuple) => tuple,
        }
    }
}

/// Decodes messages of one session; knows whether it is inside a streamed part, where row
/// messages carry the id of their subtransaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decoder {
    in_stream: bool,
}

impl Decoder {
    /// Decodes one message; the number is the (sub)transaction of a message of a streamed part.
    ///
    /// # Errors
    /// When the message is unknown, damaged, or has bytes behind its end.
    pub fn decode(&mut self, bytes: Bytes) -> Result<(Option<u32>, Message), DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let tag = cursor.u8("message type")?;
        let carries_xid =
            self.in_stream && matches!(tag, b'R' | b'Y' | b'I' | b'U' | b'D' | b'T' | b'M');
        let xid = carries_xid.then(|| cursor.u32("xid")).transpose()?;
        let message = message(tag, &mut cursor)?;
        cursor.end()?;
        match message {
            Message::StreamStart { .. } => self.in_stream = true,
            Message::StreamStop => self.in_stream = false,
            _ => {}
        }
        Ok((xid, message))
    }
}

fn message(tag: u8, cursor: &mut Cursor) -> Result<Message, DecodeError> {
    match tag {
        b'B' => Ok(Message::Begin {
            commit_lsn: cursor.lsn("commit LSN")?,
            commit_time: time(cursor)?,
            xid: cursor.u32("xid")?,
        }),
        b'C' => {
            flags(cursor)?;
            let (commit_lsn, end_lsn) = (cursor.lsn("commit LSN")?, cursor.lsn("end LSN")?);
            Ok(Message::Commit { commit_lsn, end_lsn, commit_time: time(cursor)? })
        }
        b'O' => Ok(Message::Origin {
            commit_lsn: cursor.lsn("origin LSN")?,
            name: cursor.text("origin name")?,
        }),
        b'R' => relation(cursor).map(Message::Relation),
        b'Y' => Ok(Message::Type {
            oid: cursor.u32("type OID")?,
            schema: cursor.text("type schema")?,
            name: cursor.text("type name")?,
        }),
        b'I' => insert(cursor),
        b'U' => update(cursor),
        b'D' => delete(cursor),
        b'T' => truncate(cursor),
        b'M' => logical(cursor),
        other => streamed(other, cursor),
    }
}

fn streamed(tag: u8, cursor: &mut Cursor) -> Result<Message, DecodeError> {
    match tag {
        b'S' => Ok(Message::StreamStart {
            xid: cursor.u32("xid")?,
            first: cursor.u8("first segment")? == 1,
        }),
        b'E' => Ok(Message::StreamStop),
        b'c' => {
            let xid = cursor.u32("xid")?;
            flags(cursor)?;
            let (commit_lsn, end_lsn) = (cursor.lsn("commit LSN")?, cursor.lsn("end LSN")?);
            Ok(Message::StreamCommit { xid, commit_lsn, end_lsn, commit_time: time(cursor)? })
        }
        b'A' => {
            let (xid, subxid) = (cursor.u32("xid")?, cursor.u32("subxid")?);
            // Protocol version 4 with parallel streaming adds where and when.
            let at = (cursor.left() > 0)
                .then(|| Ok((cursor.lsn("abort LSN")?, time(cursor)?)))
                .transpose()?;
            Ok(Message::StreamAbort { xid, subxid, at })
        }
        other => prepared(other, cursor),
    }
}

fn prepared(tag: u8, cursor: &mut Cursor) -> Result<Message, DecodeError> {
    if !matches!(tag, b'b' | b'P' | b'K' | b'r' | b'p') {
        return Err(DecodeError::Unknown(char::from(tag)));
    }
    if tag != b'b' {
        flags(cursor)?;
    }
    let (first, end_lsn) = (cursor.lsn("LSN")?, cursor.lsn("end LSN")?);
    let prepare_time = if tag == b'r' { time(cursor)? } else { PgTime::default() };
    let (time, xid) = (time(cursor)?, cursor.u32("xid")?);
    let gid = cursor.text("gid")?;
    Ok(match tag {
        b'b' => Message::BeginPrepare { prepare_lsn: first, end_lsn, time, xid, gid },
        b'P' => Message::Prepare { prepare_lsn: first, end_lsn, time, xid, gid },
        b'K' => Message::CommitPrepared { commit_lsn: first, end_lsn, time, xid, gid },
        b'r' => {
            let prepare_end_lsn = first;
            Message::RollbackPrepared { prepare_end_lsn, end_lsn, prepare_time, time, xid, gid }
        }
        _ => Message::StreamPrepare { prepare_lsn: first, end_lsn, time, xid, gid },
    })
}

fn time(cursor: &mut Cursor) -> Result<PgTime, DecodeError> {
    cursor.i64("time").map(PgTime)
}

/// A byte of flags in which no flag is defined.
fn flags(cursor: &mut Cursor) -> Result<(), DecodeError> {
    match cursor.u8("flags")? {
        0 => Ok(()),
        other => Err(DecodeError::Value("flags", i64::from(other))),
    }
}

fn relation(cursor: &mut Cursor) -> Result<Relation, DecodeError> {
    let oid = cursor.u32("relation OID")?;
    // The protocol writes the schema pg_catalog as an empty text.
    let schema = Some(cursor.text("schema")?).filter(|schema| !schema.is_empty());
    let table = cursor.text("table")?;
    let identity = ReplicaIdentity::from_letter(cursor.u8("replica identity")?)?;
    let count = usize::from(cursor.u16("column count")?);
    let mut columns = Vec::with_capacity(count.min(cursor.left()));
    for _ in 0..count {
        columns.push(RelationColumn {
            key: cursor.u8("column flags")? & 1 == 1,
            name: cursor.text("column name")?,
            type_oid: cursor.u32("type OID")?,
            type_modifier: cursor.i32("type modifier")?,
        });
    }
    let schema = schema.unwrap_or_else(|| "pg_catalog".to_owned());
    Ok(Relation { oid, schema, table, identity, columns })
}

fn tuple(cursor: &mut Cursor) -> Result<Tuple, DecodeError> {
    let count = usize::from(cursor.u16("column count")?);
    let mut cells = Vec::with_capacity(count.min(cursor.left()));
    for _ in 0..count {
        cells.push(cell(cursor)?);
    }
    Ok(Tuple(cells))
}

fn cell(cursor: &mut Cursor) -> Result<Cell, DecodeError> {
    let kind = cursor.u8("value kind")?;
    match kind {
        b'n' => return Ok(Cell::Null),
        b'u' => return Ok(Cell::Unchanged),
        b't' | b'b' => {}
        other => return Err(DecodeError::Value("value kind", i64::from(other))),
    }
    let len = cursor.i32("value length")?;
    let len =
        usize::try_from(len).map_err(|_| DecodeError::Value("value length", i64::from(len)))?;
    let value = cursor.take(len, "value")?;
    Ok(if kind == b't' { Cell::Text(value) } else { Cell::Binary(value) })
}

fn old_tuple(kind: u8, cursor: &mut Cursor) -> Result<OldTuple, DecodeError> {
    match kind {
        b'K' => tuple(cursor).map(OldTuple::Key),
        b'O' => tuple(cursor).map(OldTuple::Full),
        other => Err(DecodeError::Value("tuple kind", i64::from(other))),
    }
}

fn new_tuple(kind: u8, cursor: &mut Cursor) -> Result<Tuple, DecodeError> {
    match kind {
        b'N' => tuple(cursor),
        other => Err(DecodeError::Value("tuple kind", i64::from(other))),
    }
}

fn insert(cursor: &mut Cursor) -> Result<Message, DecodeError> {
    let relation = cursor.u32("relation OID")?;
    let kind = cursor.u8("tuple kind")?;
    Ok(Message::Insert { relation, new: new_tuple(kind, cursor)? })
}

fn update(cursor: &mut Cursor) -> Result<Message, DecodeError> {
    let relation = cursor.u32("relation OID")?;
    let mut kind = cursor.u8("tuple kind")?;
    let mut old = None;
    if kind != b'N' {
        old = Some(old_tuple(kind, cursor)?);
        kind = cursor.u8("tuple kind")?;
    }
    Ok(Message::Update { relation, old, new: new_tuple(kind, cursor)? })
}

fn delete(cursor: &mut Cursor) -> Result<Message, DecodeError> {
    let relation = cursor.u32("relation OID")?;
    let kind = cursor.u8("tuple kind")?;
    Ok(Message::Delete { relation, old: old_tuple(kind, cursor)? })
}

fn truncate(cursor: &mut Cursor) -> Result<Message, DecodeError> {
    let count = usize::try_from(cursor.u32("relation count")?).unwrap_or(usize::MAX);
    let options = cursor.u8("truncate options")?;
    let mut relations = Vec::with_capacity(count.min(cursor.left() / 4));
    for _ in 0..count {
        relations.push(cursor.u32("relation OID")?);
    }
    let (cascade, restart_identity) = (options & 1 == 1, options & 2 == 2);
    Ok(Message::Truncate { relations, cascade, restart_identity })
}

fn logical(cursor: &mut Cursor) -> Result<Message, DecodeError> {
    let transactional = cursor.u8("message flags")? & 1 == 1;
    let lsn = cursor.lsn("message LSN")?;
    let prefix = cursor.text("message prefix")?;
    let len = usize::try_from(cursor.u32("message length")?).unwrap_or(usize::MAX);
    Ok(Message::Logical { transactional, lsn, prefix, content: cursor.take(len, "message")? })
}

/// What can be told of a row message whose end was cut off: its table, and the first values of
/// its first tuple.
pub(crate) fn cut_row(prefix: Bytes) -> Option<(u32, Tuple)> {
    let mut cursor = Cursor::new(prefix);
    if !matches!(cursor.u8("message type"), Ok(b'I' | b'U' | b'D')) {
        return None;
    }
    let relation = cursor.u32("relation OID").ok()?;
    let mut cells = Vec::new();
    if cursor.u8("tuple kind").is_ok() && cursor.u16("column count").is_ok() {
        while let Ok(value) = cell(&mut cursor) {
            cells.push(value);
        }
    }
    Some((relation, Tuple(cells)))
}

#[cfg(test)]
mod tests;
