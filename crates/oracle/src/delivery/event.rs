//! One change as the records that it becomes: one, or the three of a changed key (rule R3).

use std::borrow::Cow;

use bytes::Bytes;
use highwater_connector::{ColumnStates, OtherKey};

use super::envelope::{Op, Origin, TransactionText, Value};
use super::error;
use super::image::Row;
use super::key::key;
use super::output::Delivery;
use super::shape::{KeyPlaces, Shape};
use crate::statement::{Columns, Quoting, RowStatement, WrittenRow, read_lob, read_row};
use crate::{Change, Image, OracleError, Verb};

/// The bytes of a record.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) key: Option<Bytes>,
    /// None in a tombstone.
    pub(crate) value: Option<Bytes>,
    pub(crate) states: ColumnStates,
    pub(crate) other_key: Option<OtherKey>,
}

impl Encoded {
    pub(crate) fn new(key: Option<Bytes>, Value { json, states }: Value) -> Self {
        Self { key, value: Some(json), states, other_key: None }
    }

    /// A record without a row.
    pub(crate) fn bare(value: Bytes) -> Self {
        let states = ColumnStates::default();
        Self { key: None, value: Some(value), states, other_key: None }
    }

    /// The record that lets compaction forget the row that this one deletes.
    fn tombstone(&self) -> Self {
        let (key, other_key) = (self.key.clone(), self.other_key.clone());
        Self { key, value: None, states: ColumnStates::default(), other_key }
    }
}

/// The records of a change, by their part.
pub(crate) type Event = [Option<Encoded>; 3];

/// What a change says of its row, read from its text.
#[derive(Debug)]
pub(crate) struct Read<'a> {
    before: Columns<'a>,
    after: Columns<'a>,
    row_id: Option<Cow<'a, str>>,
}

/// Reads the text of a change.
///
/// # Errors
/// When it is no text as LogMiner writes it, or does something else than its operation code says.
pub(crate) fn read<'a>(
    shape: &Shape,
    change: &'a Change,
    quoting: Quoting,
) -> Result<Read<'a>, OracleError> {
    let unreadable = |fault| error::unreadable(shape, &fault);
    let (before, after, row_id) = match change.image {
        Image::Statement => {
            let row = read_row(&change.sql, quoting).map_err(unreadable)?;
            let RowStatement { verb, before, after, row_id, .. } = row;
            if verb != change.verb {
                return Err(error::other_verb(shape, change.verb, verb));
            }
            (before, after, row_id)
        }
        Image::Locator => {
            let row = read_lob(&change.sql).map_err(unreadable)?.row;
            let WrittenRow { before, row_id, .. } = row.ok_or_else(|| error::no_row(shape))?;
            (before, Vec::new(), row_id)
        }
    };
    let row_id = row_id.unwrap_or(Cow::Borrowed(&change.row_id));
    Ok(Read { before, after, row_id: is_real(&row_id).then_some(row_id) })
}

/// Whether a row's id is one of the database, and neither the placeholder of a row with large objects nor
/// a name that was made up for it.
fn is_real(row_id: &str) -> bool {
    !row_id.contains('#') && row_id.bytes().any(|byte| byte != b'A')
}

/// A change with all that its records are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) transaction: &'a TransactionText,
    /// Ordinals of the change from 1: in its transaction, and there among those of its table.
    pub(crate) orders: (u64, u64),
    /// When its records are made, in milliseconds since 1970.
    pub(crate) now_ms: i64,
}

/// A row that is being written.
#[derive(Clone, Copy, Debug)]
struct Writing<'a> {
    made: Made<'a>,
    row: Row<'a>,
    origin: Origin<'a>,
}

/// Which image the key of a record is taken from.
#[derive(Clone, Copy, Debug)]
enum Side {
    Before,
    After,
}

impl Delivery {
    /// The records of a change.
    ///
    /// # Errors
    /// When it cannot be decoded.
    pub(super) fn event(&mut self, change: &Change, made: Made<'_>) -> Result<Event, OracleError> {
        let read = read(made.shape, change, self.output.quoting)?;
        let (before, after) = (&read.before, &read.after);
        let row = Row { verb: change.verb, before, after, lobs: &change.lobs };
        let (scn, address) = (change.at.scn, change.at.address);
        let (row_id, orders) = (read.row_id.as_deref(), Some(made.orders));
        let writing = Writing { made, row, origin: Origin { scn, address, row_id, orders } };
        self.images.read(made.shape, &row)?;
        match change.verb {
            Verb::Insert => Ok([Some(self.encode(&writing, Op::Create, Side::After)?), None, None]),
            Verb::Delete => self.deleted(&writing),
            Verb::Update => self.updated(&writing),
        }
    }

    fn deleted(&mut self, writing: &Writing<'_>) -> Result<Event, OracleError> {
        let deleted = self.encode(writing, Op::Delete, Side::Before)?;
        let tombstone = self.tombstone(&deleted);
        Ok([Some(deleted), tombstone, None])
    }

    fn updated(&mut self, writing: &Writing<'_>) -> Result<Event, OracleError> {
        let shape = writing.made.shape;
        let may_move = self.output.topics.are_per_table()
            && self.images.sets_key
            && matches!(shape.key, KeyPlaces::Columns(_));
        if may_move {
            let keys = [self.key(writing, Side::Before)?, self.key(writing, Side::After)?];
            let [Some(old), Some(new)] = keys else { return Err(error::half_a_key(shape)) };
            if old != new {
                return self.moved(writing, old, new);
            }
        }
        Ok([Some(self.encode(writing, Op::Update, Side::After)?), None, None])
    }

    /// A row that goes on under another key.
    fn moved(
        &mut self,
        writing: &Writing<'_>,
        old: Bytes,
        new: Bytes,
    ) -> Result<Event, OracleError> {
        let mut left = Encoded::new(Some(old.clone()), self.value(writing, Op::Delete)?);
        let mut arrived = Encoded::new(Some(new.clone()), self.value(writing, Op::Create)?);
        left.other_key = Some(OtherKey::New(new));
        arrived.other_key = Some(OtherKey::Old(old));
        let tombstone = self.tombstone(&left);
        Ok([Some(left), tombstone, Some(arrived)])
    }

    fn tombstone(&self, deleted: &Encoded) -> Option<Encoded> {
        let is_followed = self.output.topics.are_per_table()
            && self.output.has_tombstones
            && deleted.key.is_some();
        is_followed.then(|| deleted.tombstone())
    }

    fn encode(
        &mut self,
        writing: &Writing<'_>,
        op: Op<'_>,
        side: Side,
    ) -> Result<Encoded, OracleError> {
        let key = self.key(writing, side)?;
        Ok(Encoded::new(key, self.value(writing, op)?))
    }

    fn key(&mut self, writing: &Writing<'_>, side: Side) -> Result<Option<Bytes>, OracleError> {
        let cells = match side {
            Side::Before => &self.images.before,
            Side::After => &self.images.after,
        };
        let Writing { made, row, origin } = writing;
        key(&mut self.envelope.json, made.shape, row, cells, origin.row_id)
    }

    fn value(&mut self, writing: &Writing<'_>, op: Op<'_>) -> Result<Value, OracleError> {
        let Writing { made, row, origin } = writing;
        let image = (op, row, &self.images);
        self.envelope.row(made.shape, image, made.transaction, origin, made.now_ms)
    }
}
