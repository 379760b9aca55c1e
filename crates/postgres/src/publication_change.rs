//! What became of a publication while its changes were read, decided without I/O.
//!
//! The stream says nothing of it: rows of a table that was taken out, and operations that are not
//! published any more, simply do not come. So the catalog is asked, and what is missing is said.

use highwater_connector::{CONNECTOR_NAME, ConnectorError, ErrorKind};

use crate::error::{begin_again, code};
use crate::name::{TableName, quoted};
use crate::preflight::{Publication, Published, Table, missing_operations};
use crate::settings::{Autocreate, Settings, SnapshotMode};

/// The trouble that a publication makes, if it does; `before` are the captured tables that it had.
pub(crate) fn trouble(
    settings: &Settings,
    before: &[Published],
    now: Option<&Publication>,
    tables: &[Table],
) -> Option<ConnectorError> {
    let name = &settings.publication;
    let Some(now) = now else {
        return Some(stop(
            code::PUBLICATION,
            format!("publication {name} was dropped while its changes were read"),
            begin_again(Some(&settings.slot)),
        ));
    };
    let missing = missing_operations(now);
    if !missing.is_empty() {
        return Some(stop(
            code::PUBLISH,
            format!(
                "publication {name} was altered and leaves out {}, so those changes do not come any \
                 more",
                missing.join(", ")
            ),
            format!(
                "ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate'); then {}",
                quoted(name),
                begin_again(Some(&settings.slot))
            ),
        ));
    }
    let taken = taken_out(before.iter().map(|table| table.oid), now, tables);
    if taken.is_empty() { None } else { Some(taken_error(settings, &taken)) }
}

/// Tables of these OIDs that still stand and are not published any more, under no name.
pub(crate) fn taken_out(
    oids: impl Iterator<Item = u32>,
    now: &Publication,
    tables: &[Table],
) -> Vec<TableName> {
    let published = |table: &&Table| {
        let listed = |oid: &u32| now.tables.iter().any(|other| other.oid == *oid);
        let below = |other: &Published| {
            tables.iter().any(|part| part.oid == other.oid && part.ancestors.contains(&table.oid))
        };
        listed(&table.oid) || table.ancestors.iter().any(listed) || now.tables.iter().any(below)
    };
    oids.filter_map(|oid| tables.iter().find(|table| table.oid == oid))
        .filter(|table| !published(table))
        .map(|table| table.name.clone())
        .collect()
}

/// What is done about tables that were taken out: read again where the publication is ours to
/// widen, else a person decides.
pub(crate) fn taken_error(settings: &Settings, taken: &[TableName]) -> ConnectorError {
    let name = &settings.publication;
    let list: Vec<String> = taken.iter().map(ToString::to_string).collect();
    let list = list.join(", ");
    let what =
        format!("{list} was taken out of publication {name}, so its changes do not come any more");
    if settings.autocreate == Autocreate::Filtered && settings.snapshot == SnapshotMode::Initial {
        let what = format!("{what}; it is put back and read anew");
        return ConnectorError::again(code::PUBLICATION_CHANGED, ErrorKind::Source, what);
    }
    let only: Vec<String> = taken.iter().map(TableName::sql).collect();
    stop(
        code::PUBLICATION_CHANGED,
        what,
        format!(
            "if that was meant: leave the table out in table.exclude.list or table.include.list, then \
             highwater connector restart {CONNECTOR_NAME}; if not: ALTER PUBLICATION {} ADD TABLE {}; \
             then {}",
            quoted(name),
            only.join(", "),
            begin_again(Some(&settings.slot))
        ),
    )
}

fn stop(code: &'static str, what: String, remedy: String) -> ConnectorError {
    ConnectorError::stop(code, ErrorKind::Source, what, remedy)
}
