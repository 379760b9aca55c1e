//! Keys and values of records: Debezium's envelope as JSON without schema (rule R1).

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use highwater_connector::{ColumnStates, Json, OtherKey};

use crate::column_form::{Form, plain};
use crate::lsn::Lsn;
use crate::name::TableName;
use crate::pgoutput::{Cell, OldTuple, Tuple};
use crate::shape::{Frame, Shape, ShapeColumn};

/// What a record tells of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    /// `op=c`.
    Create { new: &'a Tuple },
    /// `op=r`.
    Read { new: &'a Tuple },
    /// `op=u`.
    Update { old: Option<&'a OldTuple>, new: &'a Tuple },
    /// `op=d`.
    Delete { old: &'a OldTuple },
    /// `op=c`: an UPDATE that changed the key, under the new one (rule R3).
    Arrive { old: &'a OldTuple, new: &'a Tuple },
    /// `op=t`.
    Truncate,
    /// `op=ddl`, with the inferred statement.
    Ddl(&'a str),
    /// `op=snapshot_begin`, with the snapshot's point.
    SnapshotBegin(Lsn),
    /// `op=snapshot_end`, with the snapshot's point.
    SnapshotEnd(Lsn),
}

impl Change<'_> {
    const fn op(self) -> &'static str {
        match self {
            Self::Create { .. } | Self::Arrive { .. } => "c",
            Self::Read { .. } => "r",
            Self::Update { .. } => "u",
            Self::Delete { .. } => "d",
            Self::Truncate => "t",
            Self::Ddl(_) => "ddl",
            Self::SnapshotBegin(_) => "snapshot_begin",
            Self::SnapshotEnd(_) => "snapshot_end",
        }
    }
}

/// Where a record comes from: the envelope's `source`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Commit time, or the time of the snapshot.
    pub(crate) time_us: i64,
    /// Transaction id; none in a snapshot.
    pub(crate) xid: Option<u32>,
    /// Where the change stands in the write-ahead log.
    pub(crate) lsn: Lsn,
    /// End of the transaction before, and start of the commit record of this one.
    pub(crate) sequence: (Lsn, Lsn),
    /// Whether it was read by a snapshot.
    pub(crate) snapshot: bool,
}

/// Why a row has no JSON form.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("the value of column {0:?} is not UTF-8")]
    NotUtf8(String),
    #[error("the value {1:?} of column {0:?} has no form under the modes of the configuration")]
    Formless(String, String),
    #[error("the value of column {0:?} came in binary form, which was not asked for")]
    Binary(String),
    #[error("the row has {found} values and the table {expected} columns")]
    Count { expected: usize, found: usize },
    #[error("the server did not send the value of key column {0:?}")]
    KeyMissing(String),
}

/// A record's bytes.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) key: Option<Bytes>,
    /// None in a tombstone.
    pub(crate) value: Option<Bytes>,
    pub(crate) states: ColumnStates,
    pub(crate) other_key: Option<OtherKey>,
}

impl Encoded {
    /// A record without key.
    pub(crate) fn bare(value: Bytes) -> Self {
        let states = ColumnStates::default();
        Self { key: None, value: Some(value), states, other_key: None }
    }

    /// The record that lets compaction forget the row that this one deletes.
    pub(crate) fn tombstone(&self) -> Self {
        let (key, other_key) = (self.key.clone(), self.other_key.clone());
        Self { key, value: None, states: ColumnStates::default(), other_key }
    }
}

/// Writes keys and values for one connector.
#[derive(Debug)]
pub(crate) struct Envelope {
    json: Json,
    /// Members of `source` that never change, as JSON.
    head: String,
    /// The database's name, as JSON.
    database: String,
    placeholder: String,
    /// Whether members that Debezium has beside ours are written.
    formed: bool,
}

impl Envelope {
    /// A writer for the connector with this topic prefix over this database; `placeholder`
    /// stands for values that the server did not send; with `formed` shapes have Debezium's forms.
    pub(crate) fn new(server: &str, database: &str, placeholder: &str, formed: bool) -> Self {
        let quote = |text: &str| serde_json::Value::from(text).to_string();
        let version = quote(env!("CARGO_PKG_VERSION"));
        let server = quote(server);
        Self {
            json: if formed { Json::java() } else { Json::default() },
            head: format!(
                r#""source":{{"version":{version},"connector":"postgresql","name":{server}"#
            ),
            database: quote(database),
            placeholder: placeholder.to_owned(),
            formed,
        }
    }

    /// The record of a change of a table whose rows have this shape.
    ///
    /// # Errors
    /// When a value has no JSON form.
    pub(crate) fn row(
        &mut self,
        shape: &Shape,
        change: Change<'_>,
        origin: &Origin,
    ) -> Result<Encoded, ValueError> {
        self.json.discard();
        let key = self.key(shape, change)?;
        let mut states = ColumnStates::default();
        self.json.raw(&shape.frame.value);
        self.json.raw(r#"{"before":"#);
        self.before(shape, change, &mut states)?;
        self.json.raw(r#","after":"#);
        self.after(shape, change, &mut states)?;
        self.json.raw(",");
        let value = Some(self.close(shape, change, origin));
        Ok(Encoded { key, value, states, other_key: None })
    }

    /// The record of a change that has no rows.
    pub(crate) fn mark(&mut self, shape: &Shape, change: Change<'_>, origin: &Origin) -> Bytes {
        self.json.discard();
        self.json.raw(&shape.frame.value);
        self.json.raw(r#"{"before":null,"after":null,"#);
        self.close(shape, change, origin)
    }

    fn close(&mut self, shape: &Shape, change: Change<'_>, origin: &Origin) -> Bytes {
        self.source(&shape.name, origin);
        self.json.raw(r#","transaction":null,"op":""#);
        self.json.raw(change.op());
        self.json.raw("\"");
        self.extra(change);
        let now = i128::from(now_us());
        self.json.raw(r#","ts_ms":"#);
        self.json.int(now / 1_000);
        if self.formed {
            self.json.raw(r#","ts_us":"#);
            self.json.int(now);
            self.json.raw(r#","ts_ns":"#);
            self.json.int(now * 1_000);
        }
        self.json.raw("}");
        self.json.raw(Frame::end(&shape.frame.value));
        self.json.finish()
    }

    fn extra(&mut self, change: Change<'_>) {
        match change {
            Change::Ddl(statement) => {
                self.json.raw(r#","ddl":"#);
                self.json.string(statement);
                self.json.raw(r#","ddl_inferred":true"#);
            }
            Change::SnapshotBegin(point) | Change::SnapshotEnd(point) => {
                self.json.raw(r#","point":"#);
                self.json.string(&point.sortable());
            }
            _ => {}
        }
    }

    fn source(&mut self, name: &TableName, origin: &Origin) {
        let Self { json, head, database, formed, .. } = self;
        let time = i128::from(origin.time_us);
        json.raw(head);
        json.raw(r#","ts_ms":"#);
        json.int(time.div_euclid(1_000));
        json.raw(r#","ts_us":"#);
        json.int(time);
        json.raw(r#","ts_ns":"#);
        json.int(time * 1_000);
        json.raw(if origin.snapshot {
            r#","snapshot":"true","db":"#
        } else {
            r#","snapshot":"false","db":"#
        });
        json.raw(database);
        json.raw(r#","sequence":"[\""#);
        json.int(i128::from(origin.sequence.0.0));
        json.raw(r#"\",\""#);
        json.int(i128::from(origin.sequence.1.0));
        json.raw(r#"\"]","schema":"#);
        json.string(&name.schema);
        json.raw(r#","table":"#);
        json.string(&name.table);
        json.raw(r#","txId":"#);
        match origin.xid {
            Some(xid) => json.int(i128::from(xid)),
            None => json.raw("null"),
        }
        json.raw(r#","lsn":"#);
        json.int(i128::from(origin.lsn.0));
        json.raw(r#","xmin":null"#);
        if *formed {
            json.raw(r#","origin":null,"origin_lsn":null"#);
        }
        json.raw("}");
    }

    fn key(&mut self, shape: &Shape, change: Change<'_>) -> Result<Option<Bytes>, ValueError> {
        if shape.key.is_empty() {
            return Ok(None);
        }
        self.json.raw(&shape.frame.key);
        let mut members = Members::open(&mut self.json);
        for (at, column) in key_columns(shape) {
            let cell = key_cell(column, at, change)
                .ok_or_else(|| ValueError::KeyMissing(column.name.clone()))?;
            members.value(column, cell)?;
        }
        members.close();
        self.json.raw(Frame::end(&shape.frame.key));
        Ok(Some(self.json.finish()))
    }

    fn before(
        &mut self,
        shape: &Shape,
        change: Change<'_>,
        states: &mut ColumnStates,
    ) -> Result<(), ValueError> {
        let old = match change {
            Change::Update { old, .. } => old,
            Change::Delete { old } => Some(old),
            _ => None,
        };
        let Some(old) = old else {
            self.json.raw("null");
            return Ok(());
        };
        counted(shape, old.tuple())?;
        let all = matches!(old, OldTuple::Full(_));
        let mut members = Members::open(&mut self.json);
        for (column, cell) in shape.columns.iter().zip(&old.tuple().0) {
            // Columns outside the identity stand as null in a key tuple and are not known.
            if (all || column.identity) && *cell != Cell::Unchanged {
                members.value(column, cell)?;
            } else if let Some(fallback) = &column.fallback {
                states.unavailable.push(column.name.clone());
                members.name(column);
                members.json.raw(fallback);
            }
        }
        members.close();
        Ok(())
    }

    fn after(
        &mut self,
        shape: &Shape,
        change: Change<'_>,
        states: &mut ColumnStates,
    ) -> Result<(), ValueError> {
        let (old, new) = match change {
            Change::Create { new } | Change::Read { new } => (None, new),
            Change::Update { old, new } => (old, new),
            Change::Arrive { old, new } => (Some(old), new),
            _ => {
                self.json.raw("null");
                return Ok(());
            }
        };
        counted(shape, new)?;
        let mut members = Members::open(&mut self.json);
        for (at, (column, cell)) in shape.columns.iter().zip(&new.0).enumerate() {
            match (cell, old_cell(column, at, old)) {
                (Cell::Unchanged, None) => {
                    states.unchanged.push(column.name.clone());
                    members.placeholder(column, &self.placeholder);
                }
                (Cell::Unchanged, Some(cell)) | (cell, _) => members.value(column, cell)?,
            }
        }
        members.close();
        Ok(())
    }
}

/// The members of one JSON object.
struct Members<'a> {
    json: &'a mut Json,
    first: bool,
}

impl<'a> Members<'a> {
    fn open(json: &'a mut Json) -> Self {
        json.raw("{");
        Self { json, first: true }
    }

    fn close(self) {
        self.json.raw("}");
    }

    fn name(&mut self, column: &ShapeColumn) {
        if !std::mem::take(&mut self.first) {
            self.json.raw(",");
        }
        self.json.raw(&column.member);
    }

    fn placeholder(&mut self, column: &ShapeColumn, text: &str) {
        self.name(column);
        column.form.write_placeholder(self.json, text, column.optional);
    }

    fn value(&mut self, column: &ShapeColumn, cell: &Cell) -> Result<(), ValueError> {
        self.name(column);
        let text = match cell {
            Cell::Null | Cell::Unchanged => {
                self.json.raw("null");
                return Ok(());
            }
            Cell::Binary(_) => return Err(ValueError::Binary(column.name.clone())),
            Cell::Text(text) => text,
        };
        let not_utf8 = || ValueError::NotUtf8(column.name.clone());
        if let Form::Plain(kind) = column.form {
            return plain(self.json, kind, text).map_err(|_| not_utf8());
        }
        let text = std::str::from_utf8(text).map_err(|_| not_utf8())?;
        let written = column.form.write(self.json, text);
        written.map_err(|_| ValueError::Formless(column.name.clone(), shortened(text)))
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

/// The columns of the key, with their places.
fn key_columns(shape: &Shape) -> impl Iterator<Item = (usize, &ShapeColumn)> {
    shape.key.iter().filter_map(|at| Some((*at, shape.columns.get(*at)?)))
}

/// A value that the old row gives for a column, if it gives one.
fn old_cell<'a>(column: &ShapeColumn, at: usize, old: Option<&'a OldTuple>) -> Option<&'a Cell> {
    let tuple = match old? {
        OldTuple::Full(tuple) => tuple,
        OldTuple::Key(tuple) if column.identity => tuple,
        OldTuple::Key(_) => return None,
    };
    tuple.0.get(at).filter(|cell| **cell != Cell::Unchanged)
}

/// Whether an UPDATE gave the row another key. An old value that the server does not send did not
/// change.
pub(crate) fn changes_key(shape: &Shape, old: &OldTuple, new: &Tuple) -> bool {
    key_columns(shape).any(|(at, column)| match (old_cell(column, at, Some(old)), new.0.get(at)) {
        (_, Some(Cell::Unchanged)) | (None, _) => false,
        (old, new) => old != new,
    })
}

fn key_cell<'a>(column: &ShapeColumn, at: usize, change: Change<'a>) -> Option<&'a Cell> {
    let updated = |old, new: &'a Tuple| match new.0.get(at) {
        Some(Cell::Unchanged) => old_cell(column, at, old),
        cell => cell,
    };
    match change {
        Change::Create { new } | Change::Read { new } => new.0.get(at),
        Change::Update { old, new } => updated(old, new),
        Change::Arrive { old, new } => updated(Some(old), new),
        Change::Delete { old } => old_cell(column, at, Some(old)),
        _ => None,
    }
}

fn counted(shape: &Shape, tuple: &Tuple) -> Result<(), ValueError> {
    let (expected, found) = (shape.columns.len(), tuple.0.len());
    if expected == found { Ok(()) } else { Err(ValueError::Count { expected, found }) }
}

/// Microseconds since 1970 by this machine's clock.
pub(crate) fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_micros()).ok())
        .unwrap_or(0)
}
