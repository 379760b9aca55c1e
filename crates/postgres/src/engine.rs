//! From the messages of the stream to records, without any I/O.
//!
//! The engine counts the events of each transaction, skips those that a stored offset covers,
//! holds one record back so that the last one can bear the count, and gives each record the
//! position that holds once it is safe. The same messages give the same records with the same
//! identities, wherever it begins.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use highwater_connector::{
    ConnectorError, ErrorKind, Generation, Hw, OtherKey, Position, RecordKind, SourceItem,
    SourceRecord, TableDescription,
};

use crate::column_form::Form;
use crate::ddl;
use crate::envelope::{Change, Encoded, Envelope, Origin, ValueError, changes_key};
use crate::error::{code, unreadable};
use crate::filter::Filter;
use crate::forms::Forms;
use crate::lsn::Lsn;
use crate::name::TableName;
use crate::offset::{Partial, PgPosition, Positions, Reached, StoredOffset};
use crate::pgoutput::{self, Message, PgTime, Relation, Tuple};
use crate::relation::{Known, RelationFacts, captured};
use crate::settings::RECORD_LIMIT;
use crate::shape::{JsonKind, Shape};
use crate::table_form::{TableFacts, dress};
use crate::tables::{Seen, Tables};
use crate::topic_names::TopicNames;

/// The lane of every PostgreSQL source (rule P5).
pub(crate) const LANE: &str = "pg";

/// Where records go and what they bear.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// The topics of records.
    pub(crate) names: TopicNames,
    /// Whether a tombstone follows a DELETE on the topic of a table.
    pub(crate) tombstones: bool,
    /// Debezium's forms, where they are stated.
    pub(crate) forms: Option<Forms>,
    /// The schema topic beside them.
    pub(crate) schema: Arc<str>,
    /// Generation of this run.
    pub(crate) generation: Generation,
    /// Bound of key and value together.
    pub(crate) record_limit: usize,
}

impl Output {
    /// The record that stores a table description.
    pub(crate) fn description(
        &self,
        description: &TableDescription,
        position: Arc<dyn Position>,
    ) -> SourceRecord {
        // Strings and numbers always serialise into a vector.
        let json = |result: serde_json::Result<Vec<u8>>| result.map(Bytes::from).ok();
        SourceRecord {
            kind: RecordKind::TableDescription,
            topic: Arc::clone(&self.schema),
            partition: Some(0),
            key: json(serde_json::to_vec(&description.key())),
            value: json(serde_json::to_vec(description)),
            other_key: None,
            headers: Vec::new(),
            hw: None,
            states: highwater_connector::ColumnStates::default(),
            position,
            boundary: false,
        }
    }

    /// The shape of a table's rows from here on.
    ///
    /// # Errors
    /// When the table has no topic, or no key in the stated forms.
    pub(crate) fn shape(
        &mut self,
        name: TableName,
        description: &TableDescription,
        relation: Option<&Relation>,
        facts: &TableFacts,
    ) -> Result<Shape, ConnectorError> {
        let topic = self.names.topic(&name)?;
        let mut shape = Shape::new(name, topic, description, relation);
        if let Some(forms) = &self.forms {
            dress(&mut shape, description, relation, facts, forms)?;
        }
        Ok(shape)
    }

    /// Says of the columns what the stated forms make of them.
    pub(crate) fn retype(&self, seen: &mut Seen, facts: &TableFacts) {
        let Some(forms) = &self.forms else { return };
        for column in &mut seen.columns {
            if let Some(known) = facts.columns.get(&column.name) {
                column.json_type = Form::of(known, forms).json_type().to_owned();
                column.key = facts.key.contains(&column.name);
                seen.keys_certain = false;
            }
        }
    }

    /// The record of an event of a table. One without a key goes to the first partition, so that
    /// its repetition after a crash meets it there.
    ///
    /// # Errors
    /// When it is above the record limit.
    pub(crate) fn event(
        &self,
        shape: &Shape,
        encoded: Encoded,
        hw: Hw,
        position: Arc<dyn Position>,
        boundary: bool,
    ) -> Result<SourceRecord, ConnectorError> {
        let Encoded { key, value, states, other_key } = encoded;
        let [key_size, value_size] = [&key, &value].map(|part| part.as_ref().map_or(0, Bytes::len));
        let size = key_size + value_size;
        if size > self.record_limit {
            return Err(too_large(&shape.name, key.as_deref(), size, self.record_limit));
        }
        let by_key = self.names.per_table() && key.is_some();
        Ok(SourceRecord {
            kind: RecordKind::Event,
            topic: Arc::clone(&shape.topic),
            partition: if by_key { None } else { Some(0) },
            key,
            value,
            other_key,
            headers: Vec::new(),
            hw: Some(hw),
            states,
            position,
            boundary,
        })
    }
}

/// A transaction whose messages are coming.
#[derive(Debug)]
struct Open {
    commit_lsn: Lsn,
    /// The same as position text.
    position: String,
    time: PgTime,
    xid: u32,
    /// Events so far.
    index: u64,
    /// Events that a stored offset covers.
    skip: u64,
}

/// Which record of which event.
#[derive(Clone, Copy, Debug)]
struct Part {
    index: u64,
    part: u32,
    /// Whether the event is whole with it.
    last: bool,
}

impl Part {
    const fn only(index: u64) -> Self {
        Self { index, part: 0, last: true }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Engine {
    output: Output,
    envelope: Envelope,
    filter: Filter,
    tables: Tables,
    positions: Positions,
    points: HashMap<TableName, Lsn>,
    relations: HashMap<u32, Known>,
    domains: HashMap<u32, JsonKind>,
    /// Every transaction whose commit record starts below it was yielded, or is safe.
    floor: Lsn,
    partial: Option<Partial>,
    open: Option<Open>,
    pending: Option<SourceRecord>,
    /// The position of the last record that was yielded.
    yielded: Option<Reached>,
}

impl Engine {
    /// An engine that begins at a stored offset.
    pub(crate) fn new(
        output: Output,
        envelope: Envelope,
        filter: Filter,
        tables: Tables,
        offset: &StoredOffset,
    ) -> Self {
        let point =
            |table: &crate::offset::TableProgress| Some((table.table.clone(), table.point?));
        Self {
            output,
            envelope,
            filter,
            tables,
            positions: Positions::new(offset),
            points: offset.snapshot.iter().filter_map(point).collect(),
            relations: HashMap::new(),
            domains: HashMap::new(),
            floor: offset.lsn,
            partial: offset.partial,
            open: None,
            pending: None,
            yielded: None,
        }
    }

    /// Takes one message that stands at `lsn` and adds what it gives to `out`.
    ///
    /// # Errors
    /// When the message does not belong here, or gives something that cannot be delivered.
    pub(crate) fn apply(
        &mut self,
        message: &Message,
        lsn: Lsn,
        out: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        match message {
            Message::Begin { commit_lsn, commit_time, xid } => {
                self.begin(*commit_lsn, *commit_time, *xid)
            }
            Message::Commit { end_lsn, .. } => self.commit(*end_lsn, out),
            Message::Relation(relation) => {
                self.relation(relation.clone(), RelationFacts::default());
                Ok(())
            }
            Message::Type { oid, schema, name } => {
                self.domains.insert(*oid, JsonKind::of_base_type(schema, name));
                Ok(())
            }
            // Neither carries rows: where a change came from is told nowhere yet, and messages of
            // pg_logical_emit_message are covered by the positions around them.
            Message::Origin { .. } | Message::Logical { .. } => Ok(()),
            Message::Insert { relation, new } => {
                self.event(*relation, Change::Create { new }, lsn, out)
            }
            Message::Update { relation, old, new } => {
                self.event(*relation, Change::Update { old: old.as_ref(), new }, lsn, out)
            }
            Message::Delete { relation, old } => {
                self.event(*relation, Change::Delete { old }, lsn, out)
            }
            Message::Truncate { relations, .. } => relations
                .iter()
                .try_for_each(|relation| self.event(*relation, Change::Truncate, lsn, out)),
            other => {
                Err(unreadable(format!("the stream holds {other:?}, which was not asked for")))
            }
        }
    }

    /// Takes the shape of a table, with what the catalog adds.
    pub(crate) fn relation(&mut self, relation: Relation, facts: RelationFacts) {
        let name = TableName::new(relation.schema.as_str(), relation.table.as_str());
        // A table that is gone is captured if it was.
        let known = !facts.exists && self.tables.knows(&name.to_string());
        let captured = captured(&self.filter, &name, &facts.ancestors) || known;
        let point = self.points.get(&name).copied().unwrap_or_default();
        let oid = relation.oid;
        let known = Known { relation, name, facts, captured, point, shape: None };
        self.relations.insert(oid, known);
    }

    /// Takes a row message of this size whose end was cut off because it was above the bound.
    ///
    /// # Errors
    /// When it belongs to a table whose changes are delivered.
    pub(crate) fn cut(&mut self, prefix: Bytes, size: usize) -> Result<(), ConnectorError> {
        let Some((oid, values)) = pgoutput::cut_row(prefix) else {
            return Err(unreadable(format!("the stream holds a message of {size} bytes, no row")));
        };
        let known = self.known(oid)?;
        if !known.captured || self.open.as_ref().is_some_and(|open| open.commit_lsn < known.point) {
            return Ok(());
        }
        let key = shown_key(&known.relation, &values);
        Err(too_large(&known.name, Some(key.as_bytes()), size, self.output.record_limit))
    }

    /// The server says that everything below `lsn` was sent.
    ///
    /// # Errors
    /// When a transaction that was delivered in part did not come.
    pub(crate) fn reached(&mut self, lsn: Lsn) -> Result<(), ConnectorError> {
        if self.open.is_some() || lsn <= self.floor {
            return Ok(());
        }
        match self.partial {
            Some(partial) if partial.commit_lsn < lsn => Err(vanished(partial)),
            _ => {
                self.floor = lsn;
                Ok(())
            }
        }
    }

    /// The position to store while idle (rule P1): no transaction is begun and unfinished, and
    /// `stored` covers every record that was yielded.
    pub(crate) fn idle(&self, stored: Reached) -> Option<PgPosition> {
        let covered = self.yielded.is_none_or(|yielded| yielded <= stored);
        let quiet = self.open.is_none() && covered && self.partial.is_none();
        (quiet && (self.floor, None) > stored).then(|| self.positions.at(self.floor, None))
    }

    /// Gives what is held back, when nothing more will come: it is not the last of its
    /// transaction.
    pub(crate) fn give_up(&mut self, out: &mut Vec<SourceItem>) {
        self.release(out);
    }

    /// Whether a transaction is begun and unfinished.
    pub(crate) const fn in_transaction(&self) -> bool {
        self.open.is_some()
    }

    /// Everything below was yielded.
    pub(crate) const fn floor(&self) -> Lsn {
        self.floor
    }

    fn known(&self, oid: u32) -> Result<&Known, ConnectorError> {
        self.relations
            .get(&oid)
            .ok_or_else(|| unreadable(format!("a row belongs to table {oid}, never described")))
    }

    fn begin(&mut self, commit_lsn: Lsn, time: PgTime, xid: u32) -> Result<(), ConnectorError> {
        if self.open.is_some() {
            return Err(unreadable("a transaction begins inside another"));
        }
        let skip = match self.partial {
            // The server sends no transaction below the position that was asked for; if it does,
            // all of it is safe.
            _ if commit_lsn < self.floor => u64::MAX,
            Some(partial) if partial.commit_lsn < commit_lsn => return Err(vanished(partial)),
            Some(partial) if partial.commit_lsn == commit_lsn => partial.event_index,
            _ => 0,
        };
        let position = commit_lsn.sortable();
        self.open = Some(Open { commit_lsn, position, time, xid, index: 0, skip });
        Ok(())
    }

    fn commit(&mut self, end_lsn: Lsn, out: &mut Vec<SourceItem>) -> Result<(), ConnectorError> {
        let open = self.open.take();
        let open = open.ok_or_else(|| unreadable("a transaction ends that did not begin"))?;
        if open.commit_lsn < self.floor {
            return Ok(());
        }
        if let Some(partial) = self.partial.take_if(|partial| partial.commit_lsn == open.commit_lsn)
            && open.index <= open.skip
        {
            return Err(changed(partial, open.index));
        }
        self.floor = self.floor.max(end_lsn);
        if let Some(mut last) = self.pending.take() {
            let position = self.positions.at(self.floor, None);
            self.yielded = Some(position.reached());
            last.position = Arc::new(position);
            last.boundary = true;
            if let Some(hw) = &mut last.hw {
                hw.count = Some(open.index);
            }
            out.push(SourceItem::Record(last));
        }
        Ok(())
    }

    fn event(
        &mut self,
        oid: u32,
        change: Change<'_>,
        lsn: Lsn,
        out: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        let known = self.known(oid)?;
        let open = self.open.as_ref();
        let open = open.ok_or_else(|| unreadable("a row stands outside of a transaction"))?;
        if !known.captured || open.commit_lsn < known.point || open.commit_lsn < self.floor {
            return Ok(());
        }
        let shape = match &known.shape {
            Some(shape) => Arc::clone(shape),
            None => self.resolve(oid, lsn, out)?,
        };
        let Some(index) = self.count() else { return Ok(()) };
        let origin = self.origin(lsn);
        if self.output.names.per_table() {
            return self.parts(&shape, change, &origin, index, out);
        }
        let encoded = self.encode(&shape, change, &origin)?;
        self.push(&shape, encoded, Part::only(index), out)
    }

    /// The records of one event on the topic of its table (rule R3): a changed key is a row
    /// deleted and a row created, and what is deleted has a tombstone behind it.
    fn parts(
        &mut self,
        shape: &Shape,
        change: Change<'_>,
        origin: &Origin,
        index: u64,
        out: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        let part = |part, last| Part { index, part, last };
        if let (Change::Update { .. }, Some(column)) = (change, shape.key_outside_identity()) {
            let error = ValueError::KeyMissing(column.name.clone());
            return Err(undeliverable(&shape.name, origin, &error.to_string()));
        }
        let (left, arrived) = match change {
            Change::Update { old: Some(old), new } if changes_key(shape, old, new) => {
                let mut left = self.encode(shape, Change::Delete { old }, origin)?;
                let mut arrived = self.encode(shape, Change::Arrive { old, new }, origin)?;
                left.other_key = arrived.key.clone().map(OtherKey::New);
                arrived.other_key = left.key.clone().map(OtherKey::Old);
                (left, Some(arrived))
            }
            Change::Delete { .. } => (self.encode(shape, change, origin)?, None),
            _ => {
                let encoded = self.encode(shape, change, origin)?;
                return self.push(shape, encoded, Part::only(index), out);
            }
        };
        let tombstone = (self.output.tombstones && left.key.is_some()).then(|| left.tombstone());
        self.push(shape, left, part(0, tombstone.is_none() && arrived.is_none()), out)?;
        if let Some(tombstone) = tombstone {
            self.push(shape, tombstone, part(1, arrived.is_none()), out)?;
        }
        arrived.map_or(Ok(()), |arrived| self.push(shape, arrived, part(2, true), out))
    }

    fn encode(
        &mut self,
        shape: &Shape,
        change: Change<'_>,
        origin: &Origin,
    ) -> Result<Encoded, ConnectorError> {
        if matches!(change, Change::Truncate | Change::Ddl(_)) {
            return Ok(Encoded::bare(self.envelope.mark(shape, change, origin)));
        }
        let encoded = self.envelope.row(shape, change, origin);
        encoded.map_err(|error| undeliverable(&shape.name, origin, &error.to_string()))
    }

    /// Finds the shape that holds from here on; where it is new or begins here, that is told
    /// first.
    fn resolve(
        &mut self,
        oid: u32,
        lsn: Lsn,
        out: &mut Vec<SourceItem>,
    ) -> Result<Arc<Shape>, ConnectorError> {
        let known = self.known(oid)?;
        let (name, mut seen) = (known.name.clone(), known.seen(&self.domains));
        self.output.retype(&mut seen, &known.facts.table);
        let at = self.open.as_ref().map_or(("", 0), |open| (open.position.as_str(), open.index));
        let resolved = self.tables.resolve(&name.to_string(), seen, at);
        let description = resolved.description;
        if resolved.fresh {
            // What is held back comes before, or its position would be covered unwritten.
            self.release(out);
            let position = self.position(at_index(self.open.as_ref()));
            out.push(SourceItem::Record(self.output.description(&description, position)));
        }
        let known = self.known(oid)?;
        let (relation, facts) = (known.relation.clone(), known.facts.table.clone());
        let shape = self.output.shape(name, &description, Some(&relation), &facts)?;
        let shape = Arc::new(shape);
        if let Some(known) = self.relations.get_mut(&oid) {
            known.shape = Some(Arc::clone(&shape));
        }
        if let Some(before) = resolved.before {
            self.altered(&shape, &ddl::inferred(&shape.name, &before, &description), lsn, out)?;
        }
        Ok(shape)
    }

    /// A trail tells that a table was altered; on the topic of a table Debezium's readers expect
    /// rows alone, and the schema topic tells it.
    fn altered(
        &mut self,
        shape: &Shape,
        statement: &str,
        lsn: Lsn,
        out: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        if self.output.names.per_table() {
            return Ok(());
        }
        let Some(index) = self.count() else { return Ok(()) };
        let origin = self.origin(lsn);
        let encoded = self.encode(shape, Change::Ddl(statement), &origin)?;
        self.push(shape, encoded, Part::only(index), out)
    }

    /// Counts one event; gives its index unless a stored offset covers it.
    fn count(&mut self) -> Option<u64> {
        let open = self.open.as_mut()?;
        let index = open.index;
        open.index += 1;
        (index >= open.skip).then_some(index)
    }

    fn origin(&self, lsn: Lsn) -> Origin {
        let open = self.open.as_ref();
        Origin {
            time_us: open.map_or(0, |open| open.time.unix_us()),
            xid: open.map(|open| open.xid),
            lsn,
            sequence: (self.floor, open.map_or(lsn, |open| open.commit_lsn)),
            snapshot: false,
        }
    }

    fn position(&self, partial: Option<Partial>) -> Arc<dyn Position> {
        Arc::new(self.positions.at(self.floor, partial))
    }

    fn push(
        &mut self,
        shape: &Shape,
        encoded: Encoded,
        part: Part,
        out: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        let Some(open) = &self.open else { return Ok(()) };
        let Part { index, part, last } = part;
        let hw = Hw {
            generation: self.output.generation,
            lane: Some(LANE.to_owned()),
            position: open.position.clone(),
            index,
            part,
            commit_time_us: Some(open.time.unix_us()),
            table_version: Some(shape.version),
            xid: Some(open.xid.to_string()),
            count: None,
        };
        // An event is safe with its last part; until then its first one comes again, too.
        let event_index = if last { index + 1 } else { index };
        let partial = Partial { commit_lsn: open.commit_lsn, event_index };
        let partial = (event_index > 0).then_some(partial);
        let position = self.position(partial);
        let record = self.output.event(shape, encoded, hw, position, false)?;
        self.release(out);
        self.yielded = Some((self.floor, partial));
        self.pending = Some(record);
        Ok(())
    }

    fn release(&mut self, out: &mut Vec<SourceItem>) {
        out.extend(self.pending.take().map(SourceItem::Record));
    }
}

/// The part of the open transaction that lies behind, if any.
fn at_index(open: Option<&Open>) -> Option<Partial> {
    let open = open?;
    let event_index = open.index.max(open.skip);
    (event_index > 0).then_some(Partial { commit_lsn: open.commit_lsn, event_index })
}

fn shown_key(relation: &Relation, values: &Tuple) -> String {
    let pairs = relation.columns.iter().zip(&values.0);
    let keys = pairs.filter(|(column, _)| column.key).map(|(column, cell)| match cell {
        pgoutput::Cell::Text(text) => {
            let text: String = String::from_utf8_lossy(text).chars().take(64).collect();
            format!("{}={text}", column.name)
        }
        _ => format!("{}=?", column.name),
    });
    let keys: Vec<String> = keys.collect();
    if keys.is_empty() { "not known".to_owned() } else { keys.join(", ") }
}

pub(crate) fn too_large(
    table: &TableName,
    key: Option<&[u8]>,
    size: usize,
    limit: usize,
) -> ConnectorError {
    let key = key.map_or_else(|| "none".into(), String::from_utf8_lossy);
    ConnectorError::stop(
        code::TOO_LARGE,
        ErrorKind::Data,
        format!(
            "a row of {table} with key {key} makes a record of {size} bytes; {RECORD_LIMIT} of the \
             connector is {limit}, and max.message.bytes of its topic is at least as much if the \
             worker made it"
        ),
        format!(
            "raise max.message.bytes of its topic above {size} where it is less, then \
             {RECORD_LIMIT} of the connector"
        ),
    )
}

pub(crate) fn undeliverable(table: &TableName, origin: &Origin, why: &str) -> ConnectorError {
    ConnectorError::stop(
        code::VALUE,
        ErrorKind::Data,
        format!("a row of {table} at {} cannot be delivered: {why}", origin.lsn),
        "leave the table out of the captured ones, or mend the row at the source",
    )
}

fn vanished(partial: Partial) -> ConnectorError {
    changed_error(format!(
        "the transaction at {} of which {} events were delivered does not come again",
        partial.commit_lsn, partial.event_index
    ))
}

fn changed(partial: Partial, found: u64) -> ConnectorError {
    changed_error(format!(
        "the transaction at {} has {found} events, and {} were delivered",
        partial.commit_lsn, partial.event_index
    ))
}

fn changed_error(what: String) -> ConnectorError {
    ConnectorError::stop(
        code::TRANSACTION,
        ErrorKind::Position,
        format!("{what}: the publication or its tables were altered"),
        "set the offset to the same lsn without commit_lsn and event_index; the transaction is \
         then delivered again as it now is",
    )
}

#[cfg(test)]
mod tests;
