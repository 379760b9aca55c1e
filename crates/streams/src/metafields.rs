//! Which metadata each record carries, and under which name.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use crate::fields::{Fields, Problem};

/// One kind of metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meta {
    OpType,
    QualifiedTable,
    OpTs,
    Pos,
    Xid,
    Csn,
    OpSeqno,
    TransInd,
    RecordId,
}

/// Each kind with its attribute and the name it has in records unless renamed. All are on by
/// default: the reader of a change feed wants `csn`, `opSeqno` and `transInd`, and `record_id` is
/// its idempotency key (rule S1).
const ALL: [(Meta, &str, &str); 9] = [
    (Meta::OpType, "opType", "op_type"),
    (Meta::QualifiedTable, "qualifiedTable", "qual_table"),
    (Meta::OpTs, "opTs", "op_ts"),
    (Meta::Pos, "pos", "pos"),
    (Meta::Xid, "xid", "xid"),
    (Meta::Csn, "csn", "csn"),
    (Meta::OpSeqno, "opSeqno", "opSeqno"),
    (Meta::TransInd, "transInd", "transInd"),
    (Meta::RecordId, "recordId", "record_id"),
];

/// Known kinds that this release does not have.
const LATER: [&str; 11] = [
    "primaryKeys",
    "catalog",
    "schema",
    "table",
    "currentTs",
    "currentTsMicroSecs",
    "opTsMicroSecs",
    "tokens",
    "userTokens",
    "env",
    "sys",
];

/// The name of each kind of metadata that is on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MetaFields {
    names: [Option<String>; ALL.len()],
}

impl Default for MetaFields {
    fn default() -> Self {
        Self { names: ALL.map(|(_, _, name)| Some(name.to_owned())) }
    }
}

impl MetaFields {
    /// The name under which records carry it; `None` when it is off.
    pub(crate) fn name(&self, meta: Meta) -> Option<&str> {
        let at = ALL.iter().position(|(kind, _, _)| *kind == meta)?;
        self.names.get(at)?.as_deref()
    }

    /// The name in metadata records, which carry it always.
    pub(crate) fn name_or_default(&self, meta: Meta) -> &str {
        let default = ALL.iter().find(|(kind, _, _)| *kind == meta).map_or("", |entry| entry.2);
        self.name(meta).unwrap_or(default)
    }

    /// All names in use.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().flatten().map(String::as_str)
    }

    /// Reads the attribute `metaFields`: a switch each, a new name, or `{"name": new name}`.
    pub(crate) fn parse(path: &str, value: &Value) -> (Self, Vec<Problem>) {
        let mut fields = Fields::of(path, value);
        let mut parsed = Self::default();
        for ((_, attribute, default), name) in ALL.iter().zip(parsed.names.iter_mut()) {
            match fields.get(attribute).map(|value| switch(value, default)) {
                None => {}
                Some(Ok(chosen)) => *name = chosen,
                Some(Err(message)) => fields.wrong(attribute, message),
            }
        }
        for attribute in LATER {
            fields.later(attribute, &json!(false), "leave it out");
        }
        (parsed, fields.finish())
    }
}

/// What one entry says: off, on, or on under another name.
fn switch(value: &Value, default: &str) -> Result<Option<String>, &'static str> {
    let name = match value {
        Value::Bool(on) => return Ok(on.then(|| default.to_owned())),
        Value::Object(form) if form.len() == 1 => form.get("name").and_then(Value::as_str),
        other => other.as_str(),
    };
    name.filter(|name| (1..=64).contains(&name.chars().count()))
        .map(|name| Some(name.to_owned()))
        .ok_or("must be true, false, or a name of 1 to 64 characters")
}

impl Serialize for MetaFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(ALL.len()))?;
        for ((_, attribute, default), name) in ALL.iter().zip(&self.names) {
            match name {
                None => map.serialize_entry(attribute, &false)?,
                Some(name) if name == default => map.serialize_entry(attribute, &true)?,
                Some(name) => map.serialize_entry(attribute, name)?,
            }
        }
        map.end()
    }
}
