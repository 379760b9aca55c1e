//! An Avro schema as it is read from its JSON, each part with the schema of Connect that it means.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map as Members, Value as Json};

use super::default;
use crate::error::DataError;
use crate::logical::Logical;
use crate::schema::{Fields, Schema, Type};
use crate::value::Value;

/// The namespace of names that no schema gave.
pub(super) const NAMESPACE: &str = "io.confluent.connect.avro";
/// The name of a record without one.
pub(super) const DEFAULT_NAME: &str = "ConnectDefault";
/// The name of the records that stand for the entries of a map whose keys are no strings.
pub(super) const MAP_ENTRY: &str = "MapEntry";
/// Parameter with an Avro decimal's precision, where it is not [`DEFAULT_PRECISION`].
pub(super) const PRECISION: &str = "connect.decimal.precision";
/// The precision of decimals that name none.
pub(super) const DEFAULT_PRECISION: i64 = 64;

/// No schema has more parts, each counted wherever it is used: what walks all of them stays short.
const LARGEST: usize = 100_000;
/// No schema nests deeper.
const DEEPEST: usize = 100;

/// A part of an Avro schema.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) shape: Shape,
    /// What it means in Connect; `None` for null.
    pub(super) schema: Option<Schema>,
    /// How many parts it has, each counted wherever it is used.
    pub(super) size: usize,
    depth: usize,
}

/// How its bytes lie.
#[derive(Debug)]
pub(super) enum Shape {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<Arc<str>>),
    Array(Arc<Node>),
    Map(Arc<Node>),
    /// Records of a key and a value each, which mean one map.
    Entries(Arc<Node>, Arc<Node>),
    Record(Vec<Arc<Node>>),
    /// A union with null, which is branch 0 or 1.
    Optional(Arc<Node>, usize),
    Union(Vec<Arc<Node>>),
}

impl Shape {
    fn parts(&self) -> Vec<&Arc<Node>> {
        match self {
            Self::Array(part) | Self::Map(part) | Self::Optional(part, _) => vec![part],
            Self::Entries(key, value) => vec![key, value],
            Self::Record(parts) | Self::Union(parts) => parts.iter().collect(),
            _ => Vec::new(),
        }
    }
}

impl Node {
    fn new(shape: Shape, schema: Option<Schema>) -> Result<Arc<Self>, DataError> {
        let (mut size, mut depth) = (1_usize, 0_usize);
        for part in shape.parts() {
            size = size.saturating_add(part.size);
            depth = depth.max(part.depth + 1);
        }
        if size > LARGEST || depth > DEEPEST {
            let bounds = format!("{LARGEST} parts, or nested deeper than {DEEPEST}");
            return Err(DataError::unfit(format!("an Avro schema of more than {bounds}")));
        }
        Ok(Arc::new(Self { shape, schema, size, depth }))
    }
}

/// Reads a schema.
pub(super) fn parse(text: &str) -> Result<Arc<Node>, DataError> {
    let json = serde_json::from_str(text)
        .map_err(|error| DataError::unfit(format!("an Avro schema that is no JSON: {error}")))?;
    Parser::default().node(&json, "")
}

/// The named types so far; `None` while one is being read.
#[derive(Default)]
struct Parser {
    names: HashMap<String, Option<Arc<Node>>>,
}

type Parsed = Result<Arc<Node>, DataError>;

fn unfit(what: impl Into<String>) -> DataError {
    DataError::unfit(what)
}

impl Parser {
    fn node(&mut self, json: &Json, namespace: &str) -> Parsed {
        match json {
            Json::String(name) => self.named(name, &Members::new(), namespace),
            Json::Array(branches) => self.union(branches, namespace),
            Json::Object(members) => match members.get("type") {
                Some(Json::String(name)) => self.named(name, members, namespace),
                Some(inner @ (Json::Object(_) | Json::Array(_))) => self.node(inner, namespace),
                _ => Err(unfit("an Avro schema without type")),
            },
            _ => Err(unfit("an Avro schema that is no string, object or array")),
        }
    }

    /// A type by its name, and what stands beside it.
    fn named(&mut self, name: &str, members: &Members<String, Json>, namespace: &str) -> Parsed {
        let plain = |shape, kind| Node::new(shape, Some(schema(kind, members)?));
        match name {
            "null" => Node::new(Shape::Null, None),
            "boolean" => plain(Shape::Boolean, Type::Boolean),
            "int" => plain(Shape::Int, int_kind(members)),
            "long" => plain(Shape::Long, Type::Int64),
            "float" => plain(Shape::Float, Type::Float32),
            "double" => plain(Shape::Double, Type::Float64),
            "bytes" => plain(Shape::Bytes, Type::Bytes),
            "string" => plain(Shape::String, Type::String),
            "array" => self.array(members, namespace),
            "map" => {
                let values = self.part(members, "values", namespace)?;
                let kind = Type::Map(Some(Type::String.into()), values.schema.clone());
                let schema = schema(kind, members)?;
                Node::new(Shape::Map(values), Some(schema))
            }
            "record" | "error" | "enum" | "fixed" => self.definition(name, members, namespace),
            reference => {
                let full = full_name(reference, namespace);
                match self.names.get(&full) {
                    Some(Some(node)) => Ok(Arc::clone(node)),
                    Some(None) => Err(unfit(format!(
                        "the Avro type {full:?} within itself, which has no schema in Connect here"
                    ))),
                    None => Err(unfit(format!("the Avro type {full:?}, which is defined nowhere"))),
                }
            }
        }
    }

    fn part(&mut self, members: &Members<String, Json>, name: &str, namespace: &str) -> Parsed {
        let part =
            members.get(name).ok_or_else(|| unfit(format!("an Avro schema without {name}")))?;
        self.node(part, namespace)
    }

    fn array(&mut self, members: &Members<String, Json>, namespace: &str) -> Parsed {
        let items = self.part(members, "items", namespace)?;
        if let (Shape::Record(parts), Some(row)) = (&items.shape, &items.schema)
            && let [key, value] = parts.as_slice()
            && is_map_entry(row)
        {
            let kind = Type::Map(key.schema.clone(), value.schema.clone());
            let schema = schema(kind, members)?;
            return Node::new(Shape::Entries(Arc::clone(key), Arc::clone(value)), Some(schema));
        }
        let schema = schema(Type::Array(items.schema.clone()), members)?;
        Node::new(Shape::Array(items), Some(schema))
    }

    fn definition(
        &mut self,
        kind: &str,
        members: &Members<String, Json>,
        namespace: &str,
    ) -> Parsed {
        let name = members.get("name").and_then(Json::as_str);
        let name = name.ok_or_else(|| unfit(format!("an Avro {kind} without name")))?;
        let own = members.get("namespace").and_then(Json::as_str).unwrap_or(namespace);
        let full = full_name(name, own);
        let within = full.rsplit_once('.').map_or("", |(namespace, _)| namespace).to_owned();
        if self.names.insert(full.clone(), None).is_some() {
            return Err(unfit(format!("the Avro type {full:?} is defined twice")));
        }
        let node = match kind {
            "enum" => enumeration(&full, members),
            "fixed" => fixed(&full, members),
            _ => self.record(&full, members, &within),
        }?;
        self.names.insert(full, Some(Arc::clone(&node)));
        Ok(node)
    }

    fn record(&mut self, full: &str, members: &Members<String, Json>, namespace: &str) -> Parsed {
        let list = members.get("fields").and_then(Json::as_array);
        let (mut fields, mut parts) = (Fields::default(), Vec::new());
        let mut docs = Vec::new();
        for field in list.ok_or_else(|| unfit("an Avro record without fields"))? {
            let name = field.get("name").and_then(Json::as_str).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| unfit("an Avro field without name"))?;
            let part = self.node(field.get("type").unwrap_or(&Json::Null), namespace)?;
            let schema = part.schema.clone().ok_or_else(|| {
                unfit(format!("the Avro field {name:?} of type null, which Connect does not have"))
            })?;
            let schema = match field.get("default") {
                None | Some(Json::Null) => schema,
                Some(json) => with_field_default(schema, json)?,
            };
            docs.extend(field.get("doc").and_then(Json::as_str).map(|doc| (name, doc)));
            if !fields.add(name, schema) {
                return Err(unfit(format!("two Avro fields of the name {name:?}")));
            }
            parts.push(part);
        }
        let mut schema = schema(Type::Struct(fields), members)?;
        if schema.name().is_none() && full != format!("{NAMESPACE}.{DEFAULT_NAME}") {
            schema = schema.named(Some(full.into()));
        }
        if members.get("connect.internal.type").and_then(Json::as_str) == Some(MAP_ENTRY) {
            schema = schema.named(Some(format!("{NAMESPACE}.{MAP_ENTRY}").into()));
        }
        if let Some(doc) = members.get("doc").and_then(Json::as_str) {
            schema = schema.parameter(format!("{NAMESPACE}.record.doc"), doc);
        }
        for (name, doc) in docs {
            schema = schema.parameter(format!("{NAMESPACE}.field.doc.{name}"), doc);
        }
        Node::new(Shape::Record(parts), Some(schema))
    }

    fn union(&mut self, branches: &[Json], namespace: &str) -> Parsed {
        let parts = branches.iter().map(|branch| self.node(branch, namespace));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        match parts.as_slice() {
            [null, other] | [other, null] if null.schema.is_none() && other.schema.is_some() => {
                let at = usize::from(parts.first().is_some_and(|first| first.schema.is_some()));
                let schema = other.schema.clone().map(|schema| schema.optional(true));
                Node::new(Shape::Optional(Arc::clone(other), at), schema)
            }
            _ => {
                let mut fields = Fields::default();
                let mut optional = false;
                for (json, part) in branches.iter().zip(&parts) {
                    match &part.schema {
                        None => optional = true,
                        Some(schema) => {
                            if !fields.add(branch_name(json), schema.clone().optional(true)) {
                                return Err(unfit("an Avro union with two branches of one name"));
                            }
                        }
                    }
                }
                let name = Some(format!("{NAMESPACE}.Union").into());
                let schema = Schema::new(Type::Struct(fields)).named(name).optional(optional);
                Node::new(Shape::Union(parts), Some(schema))
            }
        }
    }
}

/// How a branch of a union is called: by its type, or its own name without namespace.
fn branch_name(json: &Json) -> &str {
    let name = match json {
        Json::String(name) => name,
        json => match json.get("type").and_then(Json::as_str) {
            Some("record" | "error" | "enum" | "fixed") => {
                json.get("name").and_then(Json::as_str).unwrap_or_default()
            }
            other => other.unwrap_or_default(),
        },
    };
    name.rsplit_once('.').map_or(name, |(_, name)| name)
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

fn is_map_entry(row: &Schema) -> bool {
    row.name().is_some_and(|name| **name == format!("{NAMESPACE}.{MAP_ENTRY}"))
        && row.fields().is_some_and(|fields| {
            fields.place("key") == Some(0) && fields.place("value") == Some(1)
        })
}

fn int_kind(members: &Members<String, Json>) -> Type {
    match members.get("connect.type").and_then(Json::as_str) {
        Some("int8") => Type::Int8,
        Some("int16") => Type::Int16,
        _ => Type::Int32,
    }
}

fn enumeration(full: &str, members: &Members<String, Json>) -> Parsed {
    let symbols = members.get("symbols").and_then(Json::as_array);
    let symbols = symbols.ok_or_else(|| unfit("an Avro enum without symbols"))?;
    let text = |symbol: &Json| {
        symbol.as_str().map(Arc::from).ok_or_else(|| unfit("an Avro symbol that is no string"))
    };
    let symbols: Vec<Arc<str>> = symbols.iter().map(text).collect::<Result<_, _>>()?;
    let key = format!("{NAMESPACE}.Enum");
    let mut schema = schema(Type::String, members)?.parameter(&*key, full);
    for symbol in &symbols {
        schema = schema.parameter(format!("{key}.{symbol}"), &**symbol);
    }
    if schema.name().is_none() {
        schema = schema.named(Some(full.into()));
    }
    Node::new(Shape::Enum(symbols), Some(schema))
}

fn fixed(full: &str, members: &Members<String, Json>) -> Parsed {
    let size =
        members.get("size").and_then(Json::as_u64).and_then(|size| usize::try_from(size).ok());
    let size = size.ok_or_else(|| unfit("an Avro fixed without size"))?;
    let mut schema = schema(Type::Bytes, members)?;
    if schema.name().is_none() {
        schema = schema.named(Some(full.into()));
    }
    let schema = schema.parameter("connect.fixed.size", size.to_string());
    Node::new(Shape::Fixed(size), Some(schema))
}

/// The schema of a type with what Connect wrote beside it.
fn schema(kind: Type, members: &Members<String, Json>) -> Result<Schema, DataError> {
    let text = |name: &str| members.get(name).and_then(Json::as_str).map(Arc::from);
    let mut schema = logical(kind, members)?;
    if let Some(name) = text("connect.name") {
        schema = schema.named(Some(name));
    }
    if let Some(version) = members.get("connect.version").and_then(Json::as_i64) {
        schema = schema.versioned(i32::try_from(version).ok());
    }
    schema = schema.documented(text("connect.doc"));
    for (key, value) in
        members.get("connect.parameters").and_then(Json::as_object).into_iter().flatten()
    {
        let value =
            value.as_str().ok_or_else(|| unfit(format!("parameter {key:?} is no string")))?;
        schema = schema.parameter(key, value);
    }
    match members.get("connect.default") {
        None | Some(Json::Null) => Ok(schema),
        Some(json) => {
            let value = default::from_json(&schema, json)?;
            Ok(schema.with_default(value))
        }
    }
}

fn logical(kind: Type, members: &Members<String, Json>) -> Result<Schema, DataError> {
    let number = |name: &str| members.get(name).and_then(Json::as_i64);
    Ok(match (members.get("logicalType").and_then(Json::as_str), &kind) {
        (Some("decimal"), Type::Bytes) => {
            let scale = i32::try_from(number("scale").unwrap_or(0))
                .map_err(|_| unfit("a scale beyond 32 bits"))?;
            let schema = Logical::decimal(scale);
            match number("precision") {
                None | Some(DEFAULT_PRECISION) => schema,
                Some(precision) => schema.parameter(PRECISION, precision.to_string()),
            }
        }
        (Some("date"), Type::Int32) => Logical::Date.schema(),
        (Some("time-millis"), Type::Int32) => Logical::Time.schema(),
        (Some("timestamp-millis"), Type::Int64) => Logical::Timestamp.schema(),
        _ => Schema::new(kind),
    })
}

/// The default of a field stands in the field; a flag says that it was written so.
fn with_field_default(schema: Schema, json: &Json) -> Result<Schema, DataError> {
    let value = default::from_json(&schema, json)?;
    if *schema.default_value() == value && value != Value::Null {
        return Ok(schema);
    }
    Ok(schema.with_default(value).parameter(format!("{NAMESPACE}.field.default"), "true"))
}
