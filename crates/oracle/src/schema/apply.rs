//! What a DDL does at its place in the redo.

use std::sync::Arc;

use super::ddl_class::{DdlClass, WrittenName, head};
use super::key::Key;
use super::versions::{LayoutVersion, Layouts, TableVersions, move_position};
use crate::{Code, OracleError, RedoPoint, TableLayout, TableName};

/// How much later than its own time a DDL may show in `LAST_DDL_TIME`, in microseconds: the time of a
/// row comes from its SCN, which the database maps to times in steps of some seconds.
pub const TIME_SLACK_US: i64 = 10_000_000;

/// A DDL on a captured table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ddl<'a> {
    /// Its row.
    pub at: RedoPoint,
    /// Time of the row, in microseconds since 1970, by the same clock as `LAST_DDL_TIME`.
    pub time_us: i64,
    /// Its table, or the table that it concerns beside another.
    pub table: &'a TableName,
    /// Its kind.
    pub class: &'a DdlClass,
    /// Its text.
    pub sql: &'a str,
}

/// What a DDL did, and so what is published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Neither rows nor their layout changed: an ops event and no record.
    Seen,
    /// A record of the statement; rows have the layout that they had.
    Kept,
    /// A record that all rows are gone.
    Truncated,
    /// A record of the statement; rows have another layout from here on.
    Next {
        /// The layout.
        version: Arc<LayoutVersion>,
        /// Whether its description must be stored before the first row that names it; it was already,
        /// when the statement is read again.
        is_new: bool,
    },
    /// A record of the statement; there is no table of this name any more.
    Forgotten {
        /// The name that its rows go on under: if that is captured, its layout is to be taken in by
        /// [`DdlClass::Create`].
        renamed_to: Option<TableName>,
    },
}

impl Effect {
    /// Whether a record of the statement is published. It depends on the statement alone, so that
    /// reading it again gives the same records.
    pub const fn is_record(&self) -> bool {
        !matches!(self, Self::Seen)
    }
}

impl WrittenName {
    /// The table that it means in a statement about another one.
    pub fn beside(&self, table: &TableName) -> TableName {
        TableName {
            pdb: table.pdb.clone(),
            owner: self.owner.clone().unwrap_or_else(|| table.owner.clone()),
            table: self.name.clone(),
        }
    }
}

/// What the versions of a table have to do with a DDL.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Decision {
    Nothing,
    Forget,
    Known(Arc<LayoutVersion>),
    Next { is_exact: bool },
}

impl Layouts {
    /// Applies a DDL. `layout` is what the dictionary says of the table now, `None` when it is gone;
    /// it is used only where [`DdlClass::reads_layout`].
    ///
    /// # Errors
    /// CDC-6002 when the statement is not known; CDC-3001 when the table has no key any more.
    pub fn apply(
        &mut self,
        ddl: &Ddl<'_>,
        layout: Option<TableLayout>,
    ) -> Result<Effect, OracleError> {
        match ddl.class {
            DdlClass::Unknown => return Err(unknown(ddl)),
            DdlClass::NoChange => return Ok(Effect::Seen),
            DdlClass::Truncate => return Ok(Effect::Truncated),
            DdlClass::Partition => return Ok(Effect::Kept),
            DdlClass::Drop => return Ok(self.forget(ddl.table, None)),
            DdlClass::Rename { to } => {
                return Ok(self.forget(ddl.table, Some(to.beside(ddl.table))));
            }
            DdlClass::Create
            | DdlClass::Columns
            | DdlClass::Constraints
            | DdlClass::Logging
            | DdlClass::Index { .. } => {}
        }
        let layout = layout.map(|layout| self.keyed(layout)).transpose()?;
        let versions = self.tables.entry(ddl.table.clone()).or_default();
        match (decide(versions, ddl, layout.as_ref()), layout) {
            (Decision::Next { is_exact }, Some((layout, key))) => {
                let version = next(versions, ddl, layout, key, is_exact);
                Ok(Effect::Next { version: versions.push(version), is_new: true })
            }
            (Decision::Known(version), _) => {
                versions.set_current(Some(Arc::clone(&version)));
                Ok(Effect::Next { version, is_new: false })
            }
            (Decision::Nothing, _) => Ok(Effect::Kept),
            (Decision::Forget | Decision::Next { .. }, _) => Ok(self.forget(ddl.table, None)),
        }
    }

    /// A layout with the key that the rules choose for it.
    pub(crate) fn keyed(&self, layout: TableLayout) -> Result<(TableLayout, Key), OracleError> {
        let key = self.rules.choose(&layout, |column| self.is_excluded(&layout.name, column))?;
        Ok((layout, key))
    }

    /// Changes that were staged before keep their versions.
    fn forget(&mut self, table: &TableName, renamed_to: Option<TableName>) -> Effect {
        if let Some(versions) = self.tables.get_mut(table) {
            versions.set_current(None);
        }
        Effect::Forgotten { renamed_to }
    }
}

fn decide(
    versions: &TableVersions,
    ddl: &Ddl<'_>,
    layout: Option<&(TableLayout, Key)>,
) -> Decision {
    if let Some(version) = versions.begun_by(ddl.at) {
        return Decision::Known(Arc::clone(version));
    }
    let Some((layout, key)) = layout else { return Decision::Forget };
    let is_ahead = layout.last_ddl_us > ddl.time_us.saturating_add(TIME_SLACK_US);
    match versions.current() {
        Some(current) if current.fits(layout, key) && (current.is_exact || is_ahead) => {
            Decision::Nothing
        }
        _ => Decision::Next { is_exact: !is_ahead },
    }
}

fn next(
    versions: &TableVersions,
    ddl: &Ddl<'_>,
    layout: TableLayout,
    key: Key,
    is_exact: bool,
) -> LayoutVersion {
    LayoutVersion {
        table: layout.name,
        number: versions.next_number(),
        from: ddl.at.scn,
        ddl: Some(ddl.at),
        is_exact,
        columns: layout.columns,
        key,
        logging: layout.logging,
    }
}

fn unknown(ddl: &Ddl<'_>) -> OracleError {
    OracleError::new(
        Code::UnsupportedDdl,
        format!(
            "a DDL on {} at SCN {} is not known, so what it did to rows is not: {}",
            ddl.table,
            ddl.at.scn,
            head(ddl.sql)
        ),
        format!(
            "report the statement; to go on, leave {} out with cdc.tables.exclude, or move the \
             position past it and load the table again: {}",
            ddl.table,
            move_position(&ddl.at.scn.next().to_string(), "--allow-skip ")
        ),
    )
}

#[cfg(test)]
mod tests;
