//! The stored offset: what it says, and the cheap positions of which it is made.
//!
//! Flat and primitive, as Kafka Connect wants it:
//!
//! | Field | Meaning |
//! |---|---|
//! | `v` | form of the offset, 1 |
//! | `state` | `intent`, `snapshot` or `streaming` |
//! | `slot`, `system_id`, `timeline`, `database` | whose position it is |
//! | `lsn` | every transaction whose commit record starts below it is safe |
//! | `commit_lsn`, `event_index` | a transaction of which so many events are safe |
//! | `publication` | JSON text: the rows of the catalog behind the publication and its captured tables |
//! | `snapshot` | JSON text: for each table whether it is read, and its point |
//!
//! Any other field is kept and written back.

use std::sync::Arc;

use highwater_connector::{Position, SourceOffset};
use serde_json::{Map, Value};

use crate::debezium_offset;
use crate::lsn::Lsn;
use crate::membership::Membership;
use crate::name::TableName;

/// How far the connector has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// A slot is about to be made (rule P3).
    Intent,
    /// Tables are being read.
    Snapshot,
    /// Changes are being read.
    Streaming,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Snapshot => "snapshot",
            Self::Streaming => "streaming",
        }
    }
}

/// How far the snapshot of one table has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TableProgress {
    /// The table.
    pub(crate) table: TableName,
    /// The point of the snapshot that read it, once that has begun; its changes that were
    /// committed before are part of the snapshot.
    pub(crate) point: Option<Lsn>,
    /// Whether it was read to its end.
    pub(crate) done: bool,
}

/// A stored offset, read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredOffset {
    /// See [`State`].
    pub(crate) state: State,
    /// The slot it was read from.
    pub(crate) slot: Option<String>,
    /// `system_identifier` of the server.
    pub(crate) system_id: Option<String>,
    /// Timeline of the server.
    pub(crate) timeline: Option<u32>,
    /// The database.
    pub(crate) database: Option<String>,
    /// What the publication was when it was last looked at; none where nobody has.
    pub(crate) publication: Option<Membership>,
    /// Every transaction whose commit record starts below it is safe.
    pub(crate) lsn: Lsn,
    /// A transaction of which so many events are safe, by the start of its commit record.
    pub(crate) partial: Option<Partial>,
    /// Tables of the snapshot, in order.
    pub(crate) snapshot: Vec<TableProgress>,
    /// Fields that this connector does not know.
    pub(crate) rest: Map<String, Value>,
}

/// A transaction that is safe in part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Partial {
    /// Where its commit record starts.
    pub(crate) commit_lsn: Lsn,
    /// How many of its events are safe.
    pub(crate) event_index: u64,
}

/// Why an offset cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum OffsetError {
    /// Written by a later release.
    #[error("the offset has form {0}; this release reads form 1")]
    Version(i64),
    /// A field has a value that it cannot have.
    #[error("field {field} is {value}; {right}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What it should hold.
        right: &'static str,
    },
}

/// All fields of an offset.
pub(crate) const FIELDS: [&str; 11] = [
    "v",
    "state",
    "slot",
    "system_id",
    "timeline",
    "database",
    "publication",
    "lsn",
    "commit_lsn",
    "event_index",
    "snapshot",
];

impl StoredOffset {
    /// Reads an offset. Only `lsn` must be there, and not in an intent.
    ///
    /// # Errors
    /// When a field cannot be read.
    pub(crate) fn read(offset: &SourceOffset) -> Result<Self, OffsetError> {
        if debezium_offset::is_debeziums(offset) {
            return Self::taken_over(offset);
        }
        match offset.number("v") {
            None | Some(1) => {}
            Some(other) => return Err(OffsetError::Version(other)),
        }
        let state = state(offset)?;
        let text = |field: &str| offset.text(field).map(str::to_owned);
        Ok(Self {
            state,
            slot: text("slot"),
            system_id: text("system_id"),
            timeline: offset.number("timeline").and_then(|number| u32::try_from(number).ok()),
            database: text("database"),
            publication: publication(offset)?,
            lsn: match (lsn(offset, "lsn")?, state) {
                (Some(lsn), _) => lsn,
                (None, State::Intent) => Lsn::default(),
                (None, _) => {
                    return Err(wrong(offset, "lsn", "it must be an LSN such as 0/1A2B3C8"));
                }
            },
            partial: partial(offset)?,
            snapshot: snapshot(offset)?,
            rest: rest(offset),
        })
    }

    /// What one of Debezium's says; it names no server.
    fn taken_over(offset: &SourceOffset) -> Result<Self, OffsetError> {
        let lsn = debezium_offset::position(offset).map_err(|why| wrong(offset, "lsn", why))?;
        Ok(Self {
            state: State::Streaming,
            slot: None,
            system_id: None,
            timeline: None,
            database: None,
            publication: None,
            lsn,
            partial: None,
            snapshot: Vec::new(),
            rest: Map::new(),
        })
    }

    /// The offset to store.
    pub(crate) fn write(&self) -> SourceOffset {
        let mut offset = self.fixed(&self.snapshot);
        finish(&mut offset, self.lsn, self.partial);
        if self.state == State::Intent {
            offset.0.shift_remove("lsn");
        }
        offset
    }

    /// Tables join the captured set: they are read before anything else, each with a point of its
    /// own, and what was known of a table of the same name is void.
    pub(crate) fn join(&mut self, tables: &[TableName]) {
        self.state = State::Snapshot;
        self.snapshot.retain(|known| !tables.contains(&known.table));
        if let Some(publication) = &mut self.publication {
            publication.forget(tables);
        }
        let waiting =
            |table: &TableName| TableProgress { table: table.clone(), point: None, done: false };
        self.snapshot.extend(tables.iter().map(waiting));
    }

    /// Puts the published partitions of a waiting table in its place, where it is published through
    /// them.
    pub(crate) fn expand(&mut self, partitions: impl Fn(&TableName) -> Vec<TableName>) {
        let waiting: Vec<TableName> = self
            .snapshot
            .iter()
            .filter(|known| !known.done)
            .map(|known| known.table.clone())
            .collect();
        for table in waiting {
            let parts = partitions(&table);
            if !parts.is_empty() {
                self.snapshot.retain(|known| known.table != table);
                self.join(&parts);
            }
        }
    }

    /// All fields but those that change with each record.
    fn fixed(&self, snapshot: &[TableProgress]) -> SourceOffset {
        let mut offset = SourceOffset(self.rest.clone());
        offset.set("v", 1);
        offset.set("state", self.state.name());
        let texts =
            [("slot", &self.slot), ("system_id", &self.system_id), ("database", &self.database)];
        for (field, text) in texts {
            if let Some(text) = text {
                offset.set(field, text.as_str());
            }
        }
        if let Some(timeline) = self.timeline {
            offset.set("timeline", timeline);
        }
        if let Some(publication) = &self.publication {
            offset.set("publication", publication.write());
        }
        if !snapshot.is_empty() {
            offset.set("snapshot", snapshot_text(snapshot));
        }
        offset
    }
}

fn finish(offset: &mut SourceOffset, lsn: Lsn, partial: Option<Partial>) {
    offset.set("lsn", lsn.to_string());
    if let Some(partial) = partial {
        offset.set("commit_lsn", partial.commit_lsn.to_string());
        offset.set("event_index", partial.event_index);
    }
}

fn wrong(offset: &SourceOffset, field: &'static str, right: &'static str) -> OffsetError {
    let value = offset.0.get(field).map_or_else(|| "absent".to_owned(), Value::to_string);
    OffsetError::Field { field, value, right }
}

fn state(offset: &SourceOffset) -> Result<State, OffsetError> {
    match offset.0.get("state").map(Value::as_str) {
        None | Some(Some("streaming")) => Ok(State::Streaming),
        Some(Some("snapshot")) => Ok(State::Snapshot),
        Some(Some("intent")) => Ok(State::Intent),
        Some(_) => Err(wrong(offset, "state", "it must be intent, snapshot or streaming")),
    }
}

fn lsn(offset: &SourceOffset, field: &'static str) -> Result<Option<Lsn>, OffsetError> {
    match offset.0.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_str()
            .and_then(|text| text.parse().ok())
            .map(Some)
            .ok_or_else(|| wrong(offset, field, "it must be an LSN such as 0/1A2B3C8")),
    }
}

fn partial(offset: &SourceOffset) -> Result<Option<Partial>, OffsetError> {
    let Some(commit_lsn) = lsn(offset, "commit_lsn")? else { return Ok(None) };
    let event_index = offset
        .number("event_index")
        .and_then(|index| u64::try_from(index).ok())
        .ok_or_else(|| wrong(offset, "event_index", "it goes with commit_lsn, a number from 0"))?;
    Ok(Some(Partial { commit_lsn, event_index }))
}

fn rest(offset: &SourceOffset) -> Map<String, Value> {
    let unknown = offset.0.iter().filter(|(field, _)| !FIELDS.contains(&field.as_str()));
    unknown.map(|(field, value)| (field.clone(), value.clone())).collect()
}

fn publication(offset: &SourceOffset) -> Result<Option<Membership>, OffsetError> {
    let Some(text) = offset.text("publication") else { return Ok(None) };
    let right = "it must be the JSON text that was written";
    Membership::read(text).map(Some).ok_or_else(|| wrong(offset, "publication", right))
}

fn snapshot(offset: &SourceOffset) -> Result<Vec<TableProgress>, OffsetError> {
    let Some(text) = offset.text("snapshot") else { return Ok(Vec::new()) };
    serde_json::from_str::<Map<String, Value>>(text)
        .ok()
        .and_then(|tables| tables.iter().map(|(name, value)| table(name, value)).collect())
        .ok_or_else(|| wrong(offset, "snapshot", "it must be the JSON text that was written"))
}

fn table(name: &str, value: &Value) -> Option<TableProgress> {
    let point = match value.get("point") {
        None | Some(Value::Null) => None,
        Some(point) => Some(point.as_str()?.parse().ok()?),
    };
    Some(TableProgress { table: name.parse().ok()?, point, done: value.get("done")?.as_bool()? })
}

fn snapshot_text(tables: &[TableProgress]) -> String {
    let entry = |table: &TableProgress| {
        let mut value = Map::new();
        value.insert("done".to_owned(), Value::from(table.done));
        if let Some(point) = table.point {
            value.insert("point".to_owned(), Value::from(point.to_string()));
        }
        (table.table.to_string(), Value::Object(value))
    };
    Value::Object(tables.iter().map(entry).collect()).to_string()
}

/// Makes the positions of records: two numbers beside what does not change.
#[derive(Clone, Debug)]
pub(crate) struct Positions {
    /// While a table's point still matters.
    with_points: Arc<SourceOffset>,
    /// Afterwards.
    without_points: Arc<SourceOffset>,
    /// The greatest point.
    last_point: Lsn,
}

impl Positions {
    /// Positions of the same history as `offset`.
    pub(crate) fn new(offset: &StoredOffset) -> Self {
        Self {
            with_points: Arc::new(offset.fixed(&offset.snapshot)),
            without_points: Arc::new(offset.fixed(&[])),
            last_point: offset
                .snapshot
                .iter()
                .filter_map(|table| table.point)
                .max()
                .unwrap_or_default(),
        }
    }

    /// The position at `lsn`, inside a transaction if `partial` is given.
    pub(crate) fn at(&self, lsn: Lsn, partial: Option<Partial>) -> PgPosition {
        let base = if lsn < self.last_point { &self.with_points } else { &self.without_points };
        PgPosition { base: Arc::clone(base), lsn, partial }
    }

    /// The position of `offset` with all tables and their points, whatever they are worth there.
    pub(crate) fn whole(&self, offset: &StoredOffset) -> PgPosition {
        let base = Arc::clone(&self.with_points);
        PgPosition { base, lsn: offset.lsn, partial: offset.partial }
    }
}

/// The position behind one record.
#[derive(Clone, Debug)]
pub(crate) struct PgPosition {
    base: Arc<SourceOffset>,
    lsn: Lsn,
    partial: Option<Partial>,
}

/// What positions are compared by: the safe LSN, then the transaction that is safe in part.
pub(crate) type Reached = (Lsn, Option<Partial>);

impl PgPosition {
    pub(crate) const fn reached(&self) -> Reached {
        (self.lsn, self.partial)
    }
}

impl Position for PgPosition {
    fn offset(&self) -> SourceOffset {
        let mut offset = (*self.base).clone();
        finish(&mut offset, self.lsn, self.partial);
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(json: &str) -> SourceOffset {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_offset_is_read_back_with_fields_it_does_not_know() {
        let given = offset(
            r#"{"v":1,"state":"snapshot","slot":"s","system_id":"7","timeline":2,"database":"d",
            "lsn":"0/10","commit_lsn":"0/20","event_index":3,"mine":true,
            "snapshot":"{\"public.a\":{\"done\":true,\"point\":\"0/9\"},\"x.b\":{\"done\":false}}"}"#,
        );
        let stored = StoredOffset::read(&given).unwrap();
        assert_eq!(stored.partial, Some(Partial { commit_lsn: Lsn(0x20), event_index: 3 }));
        assert_eq!(stored.snapshot.len(), 2);
        let written = stored.write();
        assert_eq!(written.0.get("mine"), Some(&Value::Bool(true)));
        assert_eq!(StoredOffset::read(&written), Ok(stored));
    }

    #[test]
    fn a_bare_lsn_is_enough() {
        let stored = StoredOffset::read(&offset(r#"{"lsn":"0/10"}"#)).unwrap();
        assert_eq!((stored.state, stored.lsn, stored.system_id), (State::Streaming, Lsn(16), None));
    }

    #[test]
    fn wrong_fields_are_named() {
        for (json, field) in [
            (r#"{"state":"streaming"}"#, "lsn"),
            (r#"{"lsn":true}"#, "lsn"),
            (r#"{"lsn":"0/1","state":"x"}"#, "state"),
            (r#"{"lsn":"0/1","commit_lsn":"0/1"}"#, "event_index"),
            (r#"{"lsn":"0/1","snapshot":"[]"}"#, "snapshot"),
        ] {
            let error = StoredOffset::read(&offset(json)).unwrap_err();
            assert!(error.to_string().contains(field), "{json}: {error}");
        }
        let later = StoredOffset::read(&offset(r#"{"v":2,"lsn":"0/1"}"#));
        assert_eq!(later, Err(OffsetError::Version(2)));
    }

    #[test]
    fn an_intent_has_no_lsn() {
        let stored = StoredOffset::read(&offset(r#"{"v":1,"state":"intent","slot":"s"}"#)).unwrap();
        assert_eq!(stored.write().0.get("lsn"), None);
    }

    #[test]
    fn points_are_kept_while_they_matter() {
        let mut stored = StoredOffset::read(&offset(r#"{"lsn":"0/10"}"#)).unwrap();
        let table = TableName::new("public", "a");
        stored.snapshot = vec![TableProgress { table, point: Some(Lsn(0x20)), done: true }];
        let positions = Positions::new(&stored);
        assert!(positions.at(Lsn(0x1F), None).offset().text("snapshot").is_some());
        assert!(positions.at(Lsn(0x20), None).offset().text("snapshot").is_none());
    }

    #[test]
    fn positions_sort_as_they_are_reached() {
        let partial = |commit, event_index| Some(Partial { commit_lsn: Lsn(commit), event_index });
        let order =
            [(Lsn(1), None), (Lsn(1), partial(5, 1)), (Lsn(1), partial(5, 2)), (Lsn(9), None)];
        assert!(order.is_sorted());
    }
}
