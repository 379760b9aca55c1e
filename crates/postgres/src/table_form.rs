//! The forms of a whole table: which columns its key has and in which order, and the schemas
//! around keys and values.

use std::collections::HashMap;

use highwater_connector::{Column, ConnectorError, ErrorKind, Json, TableDescription};

use crate::column_default::default_json;
use crate::column_form::{ColumnFacts, Form};
use crate::error::code;
use crate::forms::Forms;
use crate::pgoutput::{Relation, ReplicaIdentity};
use crate::shape::{Frame, Shape, ShapeColumn};

/// What the catalog says of a table, beside what every routing needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TableFacts {
    /// Its columns by name.
    pub(crate) columns: HashMap<String, ColumnFacts>,
    /// Columns of the primary key in its own order, or of the first unique index by name.
    pub(crate) key: Vec<String>,
}

/// Gives a shape the forms of Debezium.
///
/// # Errors
/// When a key column has a type whose form is not known, so that keys would differ.
pub(crate) fn dress(
    shape: &mut Shape,
    description: &TableDescription,
    relation: Option<&Relation>,
    facts: &TableFacts,
    forms: &Forms,
) -> Result<(), ConnectorError> {
    let of = |column: &Column| match facts.columns.get(&column.name) {
        Some(facts) if facts.type_id == column.type_id => facts.clone(),
        // The catalog of today tells of a later column.
        found => described(column, found),
    };
    let known: Vec<ColumnFacts> = description.columns.iter().map(of).collect();
    for (column, facts) in shape.columns.iter_mut().zip(&known) {
        column.form = Form::of(facts, forms);
        column.optional = facts.optional;
    }
    if let Some(key) = ordered(shape, &facts.key, relation) {
        shape.key = key;
    }
    for at in &shape.key {
        if let (Some(column), Some(facts)) = (shape.columns.get(*at), known.get(*at))
            && column.form == Form::Foreign
        {
            return Err(foreign(shape, column, facts));
        }
    }
    let mut fields = Vec::with_capacity(known.len());
    for (column, facts) in shape.columns.iter_mut().zip(&known) {
        let default = default_json(facts, column.form);
        fields.push(field(column, facts, default.as_deref()));
        let demanded = forms.value_schema && !column.optional;
        column.fallback = demanded.then(|| default.unwrap_or_else(|| zero(column.form)));
    }
    shape.frame = frame(shape, &fields, forms);
    Ok(())
}

/// The places of the key's columns in its own order; none where the catalog of today has another
/// key than the stream, so that the stream's flags have to do.
fn ordered(shape: &Shape, key: &[String], relation: Option<&Relation>) -> Option<Vec<usize>> {
    let place = |name: &String| shape.columns.iter().position(|column| column.name == *name);
    let places: Vec<usize> = key.iter().map(place).collect::<Option<_>>()?;
    let flagged = relation.filter(|relation| relation.identity == ReplicaIdentity::Default);
    let Some(flagged) = flagged.map(|relation| &relation.columns) else { return Some(places) };
    let same = flagged.iter().enumerate().all(|(at, column)| column.key == places.contains(&at));
    (same || !flagged.iter().any(|column| column.key)).then_some(places)
}

/// What a column's description says, for a table that is gone from the catalog or has another
/// type there.
fn described(column: &Column, found: Option<&ColumnFacts>) -> ColumnFacts {
    let (oid, modifier) = column.type_id.split_once(':').unwrap_or_default();
    ColumnFacts {
        type_id: column.type_id.clone(),
        oid: oid.parse().unwrap_or(0),
        type_name: column.source_type.clone(),
        modifier: modifier.parse().unwrap_or(-1),
        optional: found.map_or(column.nullable, |found| found.optional),
        default: found.and_then(|found| found.default.clone()),
        labels: Vec::new(),
    }
}

fn foreign(shape: &Shape, column: &ShapeColumn, facts: &ColumnFacts) -> ConnectorError {
    let (table, column, type_name) = (&shape.name, &column.name, &facts.type_name);
    ConnectorError::stop(
        code::KEY_FORM,
        ErrorKind::Data,
        format!(
            "key column {column} of {table} has type {type_name}, for which no key equal to \
             Debezium's is made"
        ),
        "leave the table out of the captured ones",
    )
}

/// The value that Debezium puts where its type must have one.
fn zero(form: Form) -> String {
    let mut json = Json::java();
    form.write_placeholder(&mut json, "", false);
    String::from_utf8_lossy(&json.finish()).into_owned()
}

/// The schema of a column, as a field.
fn field(column: &ShapeColumn, facts: &ColumnFacts, default: Option<&str>) -> String {
    let (json_type, meaning) = column.form.schema(facts);
    let optional = column.optional;
    let default = default.map(|default| format!(r#","default":{default}"#)).unwrap_or_default();
    let name = quoted(&column.name);
    format!(r#"{{"type":{json_type},"optional":{optional}{meaning}{default},"field":{name}}}"#)
}

fn frame(shape: &Shape, fields: &[String], forms: &Forms) -> Frame {
    let topic = &shape.topic;
    let key: Vec<&str> =
        shape.key.iter().filter_map(|at| fields.get(*at)).map(String::as_str).collect();
    let key_schema = format!(
        r#"{{"schema":{{"type":"struct","fields":[{}],"optional":false,"name":"{topic}.Key"}},"payload":"#,
        key.join(",")
    );
    let row = |image: &str| {
        format!(
            r#"{{"type":"struct","fields":[{}],"optional":true,"name":"{topic}.Value","field":"{image}"}}"#,
            fields.join(",")
        )
    };
    let value_schema = format!(
        r#"{{"schema":{{"type":"struct","fields":[{},{},{SOURCE},{REST}],"optional":false,"name":"{topic}.Envelope","version":2}},"payload":"#,
        row("before"),
        row("after")
    );
    Frame {
        key: if forms.key_schema { key_schema } else { String::new() },
        value: if forms.value_schema { value_schema } else { String::new() },
    }
}

/// The envelope's `source` (`PostgresSourceInfoStructMaker`).
const SOURCE: &str = r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},{"type":"string","optional":false,"field":"connector"},{"type":"string","optional":false,"field":"name"},{"type":"int64","optional":false,"field":"ts_ms"},{"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"parameters":{"allowed":"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},"default":"false","field":"snapshot"},{"type":"string","optional":false,"field":"db"},{"type":"string","optional":true,"field":"sequence"},{"type":"int64","optional":true,"field":"ts_us"},{"type":"int64","optional":true,"field":"ts_ns"},{"type":"string","optional":false,"field":"schema"},{"type":"string","optional":false,"field":"table"},{"type":"int64","optional":true,"field":"txId"},{"type":"int64","optional":true,"field":"lsn"},{"type":"int64","optional":true,"field":"xmin"},{"type":"string","optional":true,"field":"origin"},{"type":"int64","optional":true,"field":"origin_lsn"}],"optional":false,"name":"io.debezium.connector.postgresql.Source","version":1,"field":"source"}"#;

/// What follows it in the envelope.
const REST: &str = r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},{"type":"int64","optional":false,"field":"total_order"},{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,"name":"event.block","version":1,"field":"transaction"},{"type":"string","optional":false,"field":"op"},{"type":"int64","optional":true,"field":"ts_ms"},{"type":"int64","optional":true,"field":"ts_us"},{"type":"int64","optional":true,"field":"ts_ns"}"#;

/// A JSON string in Java's spelling.
pub(crate) fn quoted(text: &str) -> String {
    let mut json = Json::java();
    json.string(text);
    String::from_utf8_lossy(&json.finish()).into_owned()
}
