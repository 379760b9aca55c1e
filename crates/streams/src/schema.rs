//! JSON Schema records (draft 4), which tell a client the shape of what follows.

use highwater_connector::TableDescription;
use serde_json::{Map, Value, json};

use crate::encoding::Encoding;
use crate::metafields::Meta;

const DRAFT: &str = "http://json-schema.org/draft-04/schema#";

/// Schemas of the record families that belong to no table.
pub(crate) fn preamble(stream: &str, encoding: &Encoding) -> Vec<Value> {
    vec![
        stream_metadata(stream, encoding),
        object_metadata(stream, encoding),
        ddl(stream, encoding),
    ]
}

fn stream_metadata(stream: &str, encoding: &Encoding) -> Value {
    let mut properties = Map::new();
    properties.insert(op_type(encoding), json!({"enum": ["STREAM_METADATA"]}));
    for part in ["producer", "source", "begin"] {
        properties.insert(part.to_owned(), json!({"type": "object"}));
    }
    let required = json!([op_type(encoding), "producer", "source"]);
    schema(&format!("{stream}/stream-metadata"), "Stream metadata", properties, required)
}

fn object_metadata(stream: &str, encoding: &Encoding) -> Value {
    let column = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "null": {"type": "boolean"},
            "key": {"type": "boolean"},
            "ordinal": {"type": "integer"},
            "source_type": {"type": "string"},
        },
        "required": ["type", "null", "key"],
    });
    let table = encoding.meta_fields.name_or_default(Meta::QualifiedTable);
    let mut properties = Map::new();
    properties.insert(op_type(encoding), json!({"enum": ["OBJECT_METADATA"]}));
    properties.insert(table.to_owned(), json!({"type": "string"}));
    properties.insert("version".to_owned(), json!({"type": "integer"}));
    let columns = json!({"type": "object", "additionalProperties": column});
    properties.insert("columns".to_owned(), columns);
    let required = json!([op_type(encoding), table, "columns"]);
    schema(&format!("{stream}/object-metadata"), "Object metadata", properties, required)
}

fn ddl(stream: &str, encoding: &Encoding) -> Value {
    let mut properties = meta(encoding, &[&encoding.operation_strings.ddl]);
    properties.insert("ddl".to_owned(), json!({"type": ["string", "null"]}));
    properties.insert("ddl_inferred".to_owned(), json!({"type": "boolean"}));
    properties.extend(constants(encoding));
    schema(&format!("{stream}/ddl"), "DDL", properties, json!(["ddl"]))
}

/// Schema of the records of a table from one version on.
pub(crate) fn table(stream: &str, encoding: &Encoding, table: &TableDescription) -> Value {
    let labels = &encoding.operation_strings;
    let mut properties =
        meta(encoding, &[&labels.insert, &labels.update, &labels.delete, &labels.truncate]);
    for image in [&encoding.before_image_name, &encoding.after_image_name] {
        properties.insert(image.clone(), json!({"$ref": "#/definitions/row"}));
    }
    properties.insert("snapshot".to_owned(), json!({"type": "boolean"}));
    for list in ["unchanged", "unavailable"] {
        let strings = json!({"type": "array", "items": {"type": "string"}});
        properties.insert(list.to_owned(), strings);
    }
    properties.extend(constants(encoding));
    let columns: Map<String, Value> = table
        .columns
        .iter()
        .map(|column| (column.name.clone(), column_type(encoding, &column.json_type)))
        .collect();
    let id = format!("{stream}/table/{}/{}", table.table, table.version);
    let mut schema = schema(&id, &table.table, properties, json!(required(encoding)));
    schema["definitions"] = json!({
        "row": {"type": "object", "properties": columns, "additionalProperties": false},
    });
    schema
}

/// What a value of a column may be. A number may stand as text where JSON has no number for it,
/// such as `NaN`.
fn column_type(encoding: &Encoding, json_type: &str) -> Value {
    match json_type {
        _ if encoding.treat_all_columns_as_strings => json!({"type": ["string", "null"]}),
        "number" => json!({"type": ["number", "string", "null"]}),
        other => json!({"type": [other, "null"]}),
    }
}

/// The metadata that every data record may have.
fn meta(encoding: &Encoding, labels: &[&String]) -> Map<String, Value> {
    [
        (Meta::OpType, json!({"enum": labels})),
        (Meta::QualifiedTable, json!({"type": "string"})),
        (Meta::OpTs, json!({"type": "string", "format": "date-time"})),
        (Meta::Pos, json!({"type": "string"})),
        (Meta::Xid, json!({"type": "string"})),
        (Meta::Csn, json!({"type": "string"})),
        (Meta::OpSeqno, json!({"type": "integer"})),
        (Meta::TransInd, json!({"enum": ["B", "M", "E", "W"]})),
        (Meta::RecordId, json!({"type": "string"})),
    ]
    .into_iter()
    .filter_map(|(kind, schema)| Some((encoding.meta_fields.name(kind)?.to_owned(), schema)))
    .collect()
}

/// The members that no record of a table lacks.
fn required(encoding: &Encoding) -> Vec<&str> {
    [Meta::OpType, Meta::QualifiedTable, Meta::Pos, Meta::RecordId]
        .into_iter()
        .filter_map(|kind| encoding.meta_fields.name(kind))
        .collect()
}

fn constants(encoding: &Encoding) -> impl Iterator<Item = (String, Value)> {
    encoding.static_fields.iter().map(|(name, value)| (name.clone(), json!({"enum": [value]})))
}

fn op_type(encoding: &Encoding) -> String {
    encoding.meta_fields.name_or_default(Meta::OpType).to_owned()
}

fn schema(id: &str, title: &str, properties: Map<String, Value>, required: Value) -> Value {
    json!({
        "id": format!("/services/v2/stream/{id}"),
        "title": title,
        "$schema": DRAFT,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
