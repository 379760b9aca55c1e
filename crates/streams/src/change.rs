//! A record of a trail, decoded: headers `hw` and `hw.states`, and the envelope (rule R1).

use std::borrow::Cow;

use highwater_connector::{
    ColumnStates, HW_HEADER, Hw, STATES_HEADER, TableKey, contained_name, qualified_name,
};
use highwater_kafka::ReadRecord;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a record tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Insert,
    Update,
    Delete,
    /// What marks a key as deleted for compaction, behind the delete itself.
    Tombstone,
    Truncate,
    Ddl,
    /// A row of a snapshot; shown as an insert.
    SnapshotRow,
    SnapshotBegin,
    SnapshotEnd,
}

/// A decoded record; images and texts still stand in the record's own bytes.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) hw: Hw,
    pub(crate) states: ColumnStates,
    pub(crate) operation: Operation,
    pub(crate) envelope: Envelope<'a>,
    /// Key of the other record, where a change of the key stands as a delete and a create.
    pub(crate) other_key: Option<&'a [u8]>,
}

/// Debezium's headers of such a delete and of such a create, holding the other one's key.
const NEW_KEY_HEADER: &str = "__debezium.newkey";
const OLD_KEY_HEADER: &str = "__debezium.oldkey";

/// The members of the envelope that a stream shows.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) before: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) after: Option<&'a RawValue>,
    #[serde(borrow)]
    source: Source<'a>,
    #[serde(borrow, default)]
    pub(crate) ddl: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) ddl_inferred: bool,
    #[serde(borrow, default)]
    pub(crate) point: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Source<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    db: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    schema: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    table: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pdb: Option<Cow<'a, str>>,
    #[serde(default)]
    ts_us: Option<i64>,
    #[serde(default)]
    ts_ms: Option<i64>,
}

/// Why a record is none of a trail of ours.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the record at offset {offset} is not one of a trail: {detail}")]
pub(crate) struct Undecodable {
    pub(crate) offset: i64,
    pub(crate) detail: String,
}

impl<'a> Change<'a> {
    /// Decodes a record.
    ///
    /// # Errors
    /// When it lacks the `hw` header, or is not an envelope that a stream can show.
    pub(crate) fn decode(record: &'a ReadRecord) -> Result<Self, Undecodable> {
        let fault = |detail: String| Undecodable { offset: record.offset, detail };
        let header = record.header(HW_HEADER).ok_or_else(|| fault("no header hw".to_owned()))?;
        let hw = Hw::decode(header).map_err(|error| fault(error.to_string()))?;
        let states = match record.header(STATES_HEADER) {
            Some(header) => ColumnStates::decode(header)
                .map_err(|error| fault(format!("header hw.states: {error}")))?,
            None => ColumnStates::default(),
        };
        let (operation, envelope) = content(record, &hw).map_err(fault)?;
        let other_key = match operation {
            Operation::Delete => record.header(NEW_KEY_HEADER),
            Operation::Insert => record.header(OLD_KEY_HEADER),
            _ => None,
        };
        Ok(Self { hw, states, operation, envelope, other_key: other_key.map(|key| &key[..]) })
    }

    /// Name of the connector's server, its `topic.prefix`, beside which tables are described.
    pub(crate) fn server(&self) -> Option<&str> {
        self.envelope.source.name.as_deref()
    }

    /// The qualified name of the table: schema and table, or database and table where the source
    /// has no schemas, with the pluggable database in front where there is one. `None` for an event that concerns no table.
    pub(crate) fn qualified_table(&self) -> Option<Cow<'_, str>> {
        let Source { db, schema, table, pdb, .. } = &self.envelope.source;
        let table = table.as_deref().filter(|table| !table.is_empty())?;
        let qualifier = [schema, db].into_iter().flatten().find(|part| !part.is_empty());
        Some(match (qualifier, pdb) {
            (Some(qualifier), Some(pdb)) => Cow::Owned(contained_name(pdb, qualifier, table)),
            (Some(qualifier), None) => Cow::Owned(qualified_name(qualifier, table)),
            (None, _) => Cow::Borrowed(table),
        })
    }

    /// The description that shapes the record's images.
    pub(crate) fn table_key(&self) -> Option<TableKey> {
        let has_image = self.envelope.before.is_some() || self.envelope.after.is_some();
        let version = self.hw.table_version.filter(|_| has_image)?;
        Some(TableKey { table: self.qualified_table()?.into_owned(), version })
    }

    /// Commit time in microseconds since 1970.
    pub(crate) fn commit_time_us(&self) -> Option<i64> {
        let source = &self.envelope.source;
        let millis = || source.ts_ms.and_then(|ms| ms.checked_mul(1_000));
        self.hw.commit_time_us.or(source.ts_us).or_else(millis)
    }
}

/// What a record's value says; a tombstone's has only its key to say.
fn content<'a>(record: &'a ReadRecord, hw: &Hw) -> Result<(Operation, Envelope<'a>), String> {
    let Some(value) = record.value.as_deref() else {
        // A tombstone stands behind its delete, so it is never the first part of an event.
        let key = record.key.as_deref().filter(|_| hw.part > 0).ok_or("no value")?;
        let key = key_columns(key).ok_or("no value, and the key is no JSON object")?;
        return Ok((Operation::Tombstone, Envelope::of_tombstone(key)));
    };
    let envelope: Envelope<'_> =
        serde_json::from_slice(value).map_err(|error| format!("value: {error}"))?;
    let operation =
        operation(&envelope.op).ok_or_else(|| format!("op {:?} is not known", envelope.op))?;
    Ok((operation, envelope))
}

impl<'a> Envelope<'a> {
    fn of_tombstone(key: &'a RawValue) -> Self {
        Self {
            op: Cow::Borrowed("d"),
            before: Some(key),
            after: None,
            source: Source::default(),
            ddl: None,
            ddl_inferred: false,
            point: None,
        }
    }
}

/// The columns of a key, out of the schema that Kafka Connect's converter may have put around them.
pub(crate) fn key_columns(key: &[u8]) -> Option<&RawValue> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct WithSchema<'a> {
        #[serde(borrow, rename = "schema")]
        _schema: &'a RawValue,
        #[serde(borrow)]
        payload: &'a RawValue,
    }
    let columns = match serde_json::from_slice::<WithSchema<'_>>(key) {
        Ok(wrapped) => wrapped.payload,
        Err(_) => serde_json::from_slice(key).ok()?,
    };
    columns.get().starts_with('{').then_some(columns)
}

/// The operation behind Debezium's letters and our words.
fn operation(op: &str) -> Option<Operation> {
    Some(match op {
        "c" => Operation::Insert,
        "u" => Operation::Update,
        "d" => Operation::Delete,
        "t" => Operation::Truncate,
        "r" => Operation::SnapshotRow,
        "ddl" => Operation::Ddl,
        "snapshot_begin" => Operation::SnapshotBegin,
        "snapshot_end" => Operation::SnapshotEnd,
        _ => return None,
    })
}
