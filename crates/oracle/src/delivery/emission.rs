//! A committed transaction on its way into records, change by change, so that one of any size needs no more
//! room than a change.

use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;

use bytes::Bytes;
use highwater_connector::{ColumnStates, Hw, Position, RecordKind, SourceRecord, TableDescription};

use super::dead_letter::{DeadLetter, has_excluded};
use super::envelope::TransactionText;
use super::error;
use super::event::{Encoded, Event, Made};
use super::headers::{Header, TransactionHeaders};
use super::ops::OpsEvent;
use super::output::{Delivery, OnDecodeError};
use super::position_text;
use super::shape::Shape;
use super::split::Split;
use crate::schema::Layouts;
use crate::{Change, Code, Committed, OracleError, TableName};

/// Gives the position that holds once so many changes of a transaction are delivered; all of it with
/// their count.
pub type PositionAt = Box<dyn Fn(u64) -> Arc<dyn Position> + Send>;

/// Whether a transaction has been delivered whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivered {
    /// There are more changes.
    Partly,
    /// That was the last one.
    Whole,
}

/// A transaction that is being delivered.
pub struct Emission {
    committed: Committed,
    positions: PositionAt,
    text: TransactionText,
    headers: TransactionHeaders,
    lane: Option<String>,
    position: String,
    xid: String,
    /// Changes that were read.
    index: u64,
    /// Changes at its beginning that are safe already.
    skip: u64,
    /// Changes of each table that were read.
    tables: HashMap<Arc<TableName>, u64>,
    split: Split,
}

impl Emission {
    /// Changes that were read, with those that were skipped.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// Takes note of a change of a table; gives how many there were with it.
    fn count(&mut self, table: &Arc<TableName>) -> u64 {
        let count = self.tables.entry(Arc::clone(table)).or_default();
        *count += 1;
        *count
    }

    /// The next change. That there is one too many is said before the last one is out.
    fn next(&mut self) -> Result<Option<Change>, OracleError> {
        let Committed { changes, count, .. } = &mut self.committed;
        let change = changes.next().transpose()?;
        let is_last = self.index + 1 == *count;
        let is_promised = self.index < *count;
        if change.is_some() != is_promised || (is_last && changes.next().is_some()) {
            return Err(self.miscounted());
        }
        Ok(change)
    }

    fn miscounted(&self) -> OracleError {
        let Committed { key, commit, count, .. } = &self.committed;
        OracleError::new(
            Code::Corruption,
            format!(
                "transaction {key} that committed at SCN {} was kept with {count} changes, and there \
                 are more or less: {} were read before that was seen",
                commit.scn, self.index
            ),
            "restart the connector: its redo is read again",
        )
    }

    fn hw(&self, shape: &Shape, index: u64, part: u32, delivery: &Delivery) -> Hw {
        Hw {
            generation: delivery.output.generation,
            lane: self.lane.clone(),
            position: self.position.clone(),
            index,
            part,
            commit_time_us: Some(self.committed.time_us),
            table_version: Some(shape.version),
            xid: Some(self.xid.clone()),
            count: Some(self.committed.count),
        }
    }
}

impl Delivery {
    /// Begins to deliver a transaction whose first `skip` changes are safe already.
    pub fn begin(&self, committed: Committed, skip: u64, positions: PositionAt) -> Emission {
        let (lane, position) = position_text::place(&committed.commit, &committed.key);
        Emission {
            text: TransactionText::of(&committed),
            headers: TransactionHeaders::of(&committed),
            lane,
            position,
            xid: committed.key.xid.to_string(),
            index: 0,
            skip,
            tables: HashMap::new(),
            split: Split::new(self.output.split, committed.count),
            committed,
            positions,
        }
    }

    /// Adds the records of the next change of a transaction to `out`. `now_ms` is when they are made.
    ///
    /// # Errors
    /// When the change cannot be read or delivered; nothing of it is in `out` then.
    pub fn deliver(
        &mut self,
        emission: &mut Emission,
        layouts: &Layouts,
        now_ms: i64,
        out: &mut Vec<SourceRecord>,
    ) -> Result<Delivered, OracleError> {
        let Some(change) = emission.next()? else { return Ok(Delivered::Whole) };
        let in_table = emission.count(&change.table);
        let index = emission.index;
        if index >= emission.skip {
            let orders = (index + 1, in_table);
            let made = self.change(emission, &change, layouts, (orders, now_ms), out);
            made.or_else(|error| self.refused(emission, &change, (error, layouts), now_ms, out))
                .map_err(|error| error::at(error, &change.at, &emission.committed.key))?;
        }
        emission.index += 1;
        let is_whole = emission.index == emission.committed.count;
        Ok(if is_whole { Delivered::Whole } else { Delivered::Partly })
    }

    fn change(
        &mut self,
        emission: &mut Emission,
        change: &Change,
        layouts: &Layouts,
        (orders, now_ms): ((u64, u64), i64),
        out: &mut Vec<SourceRecord>,
    ) -> Result<(), OracleError> {
        let index = emission.index;
        let at = (emission.position.as_str(), index);
        let version = (&change.table, change.table_version);
        let shape = self.shape(version, layouts, at, || (emission.positions)(index), out)?;
        let transaction = &emission.text;
        let event = self.event(change, Made { shape: &shape, transaction, orders, now_ms })?;
        let is_split = emission.split.is_split();
        let json = &mut self.envelope.json;
        let headers = emission.headers.change(json, &shape, change.at.scn, index, is_split);
        self.push(emission, &shape, event, headers, now_ms, out);
        Ok(())
    }

    /// Adds the records of an event. It is safe with its last one; until then all come again.
    fn push(
        &self,
        emission: &mut Emission,
        shape: &Shape,
        event: Event,
        mut headers: Vec<Header>,
        now_ms: i64,
        out: &mut Vec<SourceRecord>,
    ) {
        let (from, index) = (out.len(), emission.index);
        let last = event.iter().rposition(Option::is_some);
        for (part, encoded) in event.into_iter().enumerate() {
            let Some(encoded) = encoded else { continue };
            let is_last = Some(part) == last;
            let headers = if is_last { take(&mut headers) } else { headers.clone() };
            let hw = emission.hw(shape, index, u32::try_from(part).unwrap_or(u32::MAX), self);
            let position = (emission.positions)(index + u64::from(is_last));
            out.push(self.record(shape, encoded, hw, headers, position));
        }
        let added = out.get(from..).unwrap_or_default();
        let (records, bytes) = (added.len(), added.iter().map(size).sum());
        let records = u64::try_from(records).unwrap_or(u64::MAX);
        self.end(emission, (records, bytes), now_ms, out);
    }

    /// Says of the last record of a change whether one of the log's transactions may end with it.
    fn end(
        &self,
        emission: &mut Emission,
        (records, bytes): (u64, u64),
        now_ms: i64,
        out: &mut Vec<SourceRecord>,
    ) {
        let done = emission.index + 1;
        let is_last = done == emission.committed.count;
        let is_cut = emission.split.cuts_behind(records, bytes, is_last);
        let is_first_cut = is_cut && emission.split.cuts() == 1;
        if let Some(last) = out.last_mut() {
            last.boundary = is_last || (is_cut && !is_first_cut);
        }
        if is_first_cut {
            let event = OpsEvent::split(&emission.committed, done);
            out.push(self.ops(&event, None, (emission.positions)(done), now_ms));
        }
    }

    /// A change that cannot be decoded goes to the topic of dead letters, where that was asked for.
    fn refused(
        &self,
        emission: &mut Emission,
        change: &Change,
        (error, layouts): (OracleError, &Layouts),
        now_ms: i64,
        out: &mut Vec<SourceRecord>,
    ) -> Result<(), OracleError> {
        if error.code != Code::Decode || self.output.on_decode_error == OnDecodeError::Fail {
            return Err(error);
        }
        let position = (emission.positions)(emission.index + 1);
        let has_excluded = has_excluded(layouts, change);
        let letter = DeadLetter::change(&emission.committed, change, &error, has_excluded);
        let event = OpsEvent::dead_letter(&emission.committed, change, &error);
        for mut record in [
            self.dead_letter(&letter, Arc::clone(&position), now_ms),
            self.ops(&event, None, position, now_ms),
        ] {
            record.boundary = false;
            out.push(record);
        }
        self.end(emission, (2, 0), now_ms, out);
        Ok(())
    }

    pub(super) fn record(
        &self,
        shape: &Shape,
        encoded: Encoded,
        hw: Hw,
        headers: Vec<Header>,
        position: Arc<dyn Position>,
    ) -> SourceRecord {
        let Encoded { key, value, states, other_key } = encoded;
        let is_by_key = self.output.topics.are_per_table() && key.is_some();
        SourceRecord {
            kind: RecordKind::Event,
            topic: Arc::clone(&shape.topic),
            // What has no key stays in one partition, so that its repetition meets it there.
            partition: if is_by_key { None } else { Some(0) },
            key,
            value,
            other_key,
            headers,
            hw: Some(hw),
            states,
            position,
            boundary: false,
        }
    }

    /// The record that stores a description.
    pub(super) fn description(
        &self,
        description: &TableDescription,
        position: Arc<dyn Position>,
    ) -> SourceRecord {
        // Strings and numbers always serialise into a vector.
        let json = |result: serde_json::Result<Vec<u8>>| result.map(Bytes::from).ok();
        SourceRecord {
            kind: RecordKind::TableDescription,
            topic: Arc::clone(&self.own_topics().schema),
            partition: Some(0),
            key: json(serde_json::to_vec(&description.key())),
            value: json(serde_json::to_vec(description)),
            other_key: None,
            headers: Vec::new(),
            hw: None,
            states: ColumnStates::default(),
            position,
            boundary: false,
        }
    }
}

/// Bytes of key, value and headers.
fn size(record: &SourceRecord) -> u64 {
    /// What header `hw` and the lengths between take, about.
    const REST: usize = 200;
    let bytes = |part: &Option<Bytes>| part.as_ref().map_or(0, Bytes::len);
    let headers: usize = record.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let size = bytes(&record.key) + bytes(&record.value) + headers + REST;
    u64::try_from(size).unwrap_or(u64::MAX)
}
