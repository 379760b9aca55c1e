//! Shapes of tables by version, each compiled once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use highwater_connector::{TableDescription, TableKey};

use super::shape::Shape;
use super::topic_names::TopicNames;
use crate::schema::Layouts;
use crate::{OracleError, TableName};

/// A table at the version that its rows were staged under.
type Known = (Arc<TableName>, u32);

/// Shapes that were needed so far.
#[derive(Debug)]
pub(crate) struct Shapes {
    known: HashMap<Known, Arc<Shape>>,
    /// The one that was asked for last; most rows have that of the row before.
    last: Option<(Known, Arc<Shape>)>,
    /// Versions whose descriptions are stored (rule R4).
    described: HashSet<TableKey>,
}

/// What a shape is compiled with.
pub(crate) struct Compiling<'a> {
    pub(crate) layouts: &'a Layouts,
    pub(crate) topics: &'a mut TopicNames,
    /// Name of the database, for tables outside of pluggable ones.
    pub(crate) database: &'a str,
    /// Position text and event index of the row that needs it.
    pub(crate) at: (&'a str, u64),
}

impl Shapes {
    /// None yet; these descriptions are stored.
    pub(crate) fn new(stored: &[TableDescription]) -> Self {
        let described = stored.iter().map(TableDescription::key).collect();
        Self { known: HashMap::new(), last: None, described }
    }

    /// The shape of a version of a table, and its description if that has to be stored first.
    ///
    /// # Errors
    /// When the version is not known, or the table has no topic or no key.
    pub(crate) fn shape(
        &mut self,
        table: &Arc<TableName>,
        version: u32,
        compiling: Compiling<'_>,
    ) -> Result<(Arc<Shape>, Option<TableDescription>), OracleError> {
        if let Some(((last, at), shape)) = &self.last
            && *at == version
            && (Arc::ptr_eq(last, table) || last == table)
        {
            return Ok((Arc::clone(shape), None));
        }
        let name = (Arc::clone(table), version);
        let (shape, fresh) = match self.known.get(&name) {
            Some(shape) => (Arc::clone(shape), None),
            None => self.compile(&name, compiling)?,
        };
        self.last = Some((name, Arc::clone(&shape)));
        Ok((shape, fresh))
    }

    fn compile(
        &mut self,
        name: &Known,
        compiling: Compiling<'_>,
    ) -> Result<(Arc<Shape>, Option<TableDescription>), OracleError> {
        let (table, number) = name;
        let Compiling { layouts, topics, database, at } = compiling;
        let version = layouts.numbered(table, *number)?;
        let topic = topics.topic(table)?;
        let is_excluded = |column: &str| layouts.is_excluded(table, column);
        let shape = Shape::new((Arc::clone(table), topic), database, version, is_excluded)?;
        let shape = Arc::new(shape);
        self.known.insert(name.clone(), Arc::clone(&shape));
        let description = layouts.description(version, at);
        let is_fresh = self.described.insert(description.key());
        Ok((shape, is_fresh.then_some(description)))
    }

    /// Forgets all versions of a table.
    pub(crate) fn forget(&mut self, table: &TableName) {
        self.known.retain(|(known, _), _| **known != *table);
        self.last = None;
    }
}
