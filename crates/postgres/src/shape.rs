//! The shape of a table's rows, compiled for writing them.

use std::sync::Arc;

use highwater_connector::{Column, Json, TableDescription};

use crate::column_form::Form;
use crate::name::TableName;
use crate::pgoutput::{Relation, ReplicaIdentity};

/// JSON primitive that a column's values become (rule R1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JsonKind {
    /// The source's text.
    String,
    /// The source's digits.
    Number,
    /// `t` and `f` as true and false.
    Boolean,
}

impl JsonKind {
    /// The kind of a built-in type, by its fixed OID (`pg_type.dat`).
    pub(crate) const fn of_type(oid: u32) -> Self {
        match oid {
            16 => Self::Boolean,
            // int8, int2, int4, oid, float4, float8
            20 | 21 | 23 | 26 | 700 | 701 => Self::Number,
            _ => Self::String,
        }
    }

    /// The kind of a domain, by the name of the built-in type under it.
    pub(crate) fn of_base_type(schema: &str, name: &str) -> Self {
        match (schema, name) {
            ("" | "pg_catalog", "bool") => Self::Boolean,
            ("" | "pg_catalog", "int2" | "int4" | "int8" | "oid" | "float4" | "float8") => {
                Self::Number
            }
            _ => Self::String,
        }
    }

    /// Its name in table descriptions.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    fn from_name(name: &str) -> Self {
        match name {
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => Self::String,
        }
    }
}

/// One column, ready to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ShapeColumn {
    /// Its name.
    pub(crate) name: String,
    /// Its name as a JSON member: `"id":`.
    pub(crate) member: String,
    /// What its values become.
    pub(crate) form: Form,
    /// Whether NULL may occur.
    pub(crate) optional: bool,
    /// JSON of what stands for a value that the server did not send, where a schema demands one.
    pub(crate) fallback: Option<String>,
    /// Whether it is part of the record key.
    pub(crate) key: bool,
    /// Whether it is part of the replica identity, and so has a value in a key tuple.
    pub(crate) identity: bool,
}

/// A table at one version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// The table.
    pub(crate) name: TableName,
    /// The topic of its records.
    pub(crate) topic: Arc<str>,
    /// Version of its description.
    pub(crate) version: u32,
    /// Columns in the table's order.
    pub(crate) columns: Vec<ShapeColumn>,
    /// Places of the columns that the record key is made of, in its order.
    pub(crate) key: Vec<usize>,
    /// What stands around keys and values.
    pub(crate) frame: Frame,
}

/// What stands before the payload of keys and values that bear their schema, up to it; empty where
/// they bear none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Frame {
    /// What closes one of the two.
    pub(crate) const fn end(opened: &str) -> &'static str {
        if opened.is_empty() { "" } else { "}" }
    }
}

impl Shape {
    /// The shape of a description; the relation, if there is one, says what a key tuple holds.
    pub(crate) fn new(
        name: TableName,
        topic: Arc<str>,
        description: &TableDescription,
        relation: Option<&Relation>,
    ) -> Self {
        let identity = |at: usize| {
            let column = relation.and_then(|relation| relation.columns.get(at));
            column.is_some_and(|column| column.key)
        };
        let columns: Vec<ShapeColumn> = description
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| ShapeColumn::new(column, identity(at)))
            .collect();
        let keys = columns.iter().enumerate().filter(|(_, column)| column.key);
        let key = keys.map(|(at, _)| at).collect();
        Self { name, topic, version: description.version, columns, key, frame: Frame::default() }
    }

    /// A column of the key whose old value the server does not send.
    pub(crate) fn key_outside_identity(&self) -> Option<&ShapeColumn> {
        let mut keys = self.key.iter().filter_map(|at| self.columns.get(*at));
        keys.find(|column| !column.identity)
    }
}

impl ShapeColumn {
    fn new(column: &Column, identity: bool) -> Self {
        let mut member = Json::default();
        member.string(&column.name);
        member.raw(":");
        Self {
            name: column.name.clone(),
            member: String::from_utf8_lossy(&member.finish()).into_owned(),
            form: Form::Plain(JsonKind::from_name(&column.json_type)),
            optional: column.nullable,
            fallback: None,
            key: column.key,
            identity,
        }
    }
}

/// Text by which types are compared: OID and modifier.
pub(crate) fn type_id(oid: u32, modifier: i32) -> String {
    format!("{oid}:{modifier}")
}

/// Whether the flags of a relation's columns name the record key. With FULL all columns are
/// flagged and with NOTHING none is, so the key is the primary key, which the stream does not
/// tell.
pub(crate) const fn flags_are_key(identity: ReplicaIdentity) -> bool {
    matches!(identity, ReplicaIdentity::Default | ReplicaIdentity::Index)
}
