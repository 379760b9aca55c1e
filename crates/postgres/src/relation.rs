//! What is known of a table of the stream: its shape, whether it is captured, since when.

use std::collections::HashMap;
use std::sync::Arc;

use highwater_connector::Column;

use crate::filter::Filter;
use crate::lsn::Lsn;
use crate::name::TableName;
use crate::pgoutput::{Relation, RelationColumn};
use crate::shape::{JsonKind, Shape, flags_are_key, type_id};
use crate::table_form::TableFacts;
use crate::tables::Seen;

/// What the catalog says of a table, beside what the stream says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RelationFacts {
    /// Whether the table still stands.
    pub(crate) exists: bool,
    /// Partitioned tables that it is a partition of.
    pub(crate) ancestors: Vec<TableName>,
    /// Columns of its primary key.
    pub(crate) primary_key: Vec<String>,
    /// What Debezium's forms need; empty where they are not stated.
    pub(crate) table: TableFacts,
    /// Names of its columns' types, by OID and modifier.
    pub(crate) type_names: HashMap<(u32, i32), String>,
}

/// Whether a table is captured: by its own name, or as a partition of one that is.
pub(crate) fn captured(filter: &Filter, name: &TableName, ancestors: &[TableName]) -> bool {
    filter.matches(name) || ancestors.iter().any(|ancestor| filter.matches(ancestor))
}

/// One table of the stream.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) relation: Relation,
    pub(crate) name: TableName,
    pub(crate) facts: RelationFacts,
    /// Whether its changes are delivered at all.
    pub(crate) captured: bool,
    /// Changes committed below are part of the table's snapshot.
    pub(crate) point: Lsn,
    /// Its shape, once a change made it matter.
    pub(crate) shape: Option<Arc<Shape>>,
}

impl Known {
    /// The columns as the stream tells them, with what the catalog adds.
    pub(crate) fn seen(&self, domains: &HashMap<u32, JsonKind>) -> Seen {
        let keys_certain = flags_are_key(self.relation.identity);
        let columns = self.relation.columns.iter();
        Seen {
            columns: columns.map(|column| self.column(column, keys_certain, domains)).collect(),
            keys_certain,
            nulls_certain: false,
        }
    }

    fn column(
        &self,
        column: &RelationColumn,
        keys_certain: bool,
        domains: &HashMap<u32, JsonKind>,
    ) -> Column {
        let RelationColumn { type_oid, type_modifier, .. } = *column;
        let key =
            if keys_certain { column.key } else { self.facts.primary_key.contains(&column.name) };
        let kind = domains.get(&type_oid).copied().unwrap_or(JsonKind::of_type(type_oid));
        let type_name = self.facts.type_names.get(&(type_oid, type_modifier)).cloned();
        Column {
            name: column.name.clone(),
            source_type: type_name.unwrap_or_else(|| format!("type {type_oid}")),
            json_type: kind.name().to_owned(),
            nullable: !key,
            key,
            type_id: type_id(type_oid, type_modifier),
        }
    }
}
