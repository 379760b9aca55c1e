//! What has to be right before a publication is made or altered, decided without I/O.
//!
//! A published UPDATE or DELETE of a table without replica identity fails at the source: adding
//! such a table to a publication would break the application. So it is refused by name.

use highwater_connector::{ConnectorError, ErrorKind};

use crate::error::{begin_again, code};
use crate::name::{TableName, quoted};
use crate::pgoutput::ReplicaIdentity;
use crate::relation::captured;
use crate::settings::{Autocreate, Settings, SnapshotMode};

/// What the server has room for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Capacity {
    /// `wal_level`.
    pub(crate) wal_level: String,
    /// `max_replication_slots`.
    pub(crate) slots: i64,
    /// Slots that stand.
    pub(crate) slots_used: i64,
    /// Whether it is a standby.
    pub(crate) in_recovery: bool,
}

/// A table that can be published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    /// Its OID.
    pub(crate) oid: u32,
    /// Its name.
    pub(crate) name: TableName,
    /// Whether it is a partitioned table, which holds no rows itself.
    pub(crate) partitioned: bool,
    /// Its replica identity.
    pub(crate) identity: ReplicaIdentity,
    /// Columns of the index behind that identity; none where it has none.
    pub(crate) identity_columns: Vec<String>,
    /// How many columns it has, generated ones left out.
    pub(crate) columns: usize,
    /// Whether we may SELECT from it.
    pub(crate) readable: bool,
    /// OIDs of the partitioned tables above it.
    pub(crate) ancestors: Vec<u32>,
}

/// A publication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Publication {
    /// `oid:xmin` of its row in the catalog.
    pub(crate) row: String,
    /// Whether it is for all tables.
    pub(crate) all_tables: bool,
    /// Whether it publishes INSERT.
    pub(crate) insert: bool,
    /// Whether it publishes UPDATE.
    pub(crate) update: bool,
    /// Whether it publishes DELETE.
    pub(crate) delete: bool,
    /// Whether it publishes TRUNCATE.
    pub(crate) truncate: bool,
    /// Whether partitions appear under the name of the partitioned table.
    pub(crate) via_root: bool,
    /// OIDs of the tables that it names, partitioned ones among them.
    pub(crate) members: Vec<u32>,
    /// Its tables, as they appear in the stream.
    pub(crate) tables: Vec<Published>,
}

/// A table of a publication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Published {
    /// Its OID.
    pub(crate) oid: u32,
    /// Its name.
    pub(crate) name: TableName,
    /// Columns that are published, where the server says so.
    pub(crate) columns: Option<Vec<String>>,
    /// Row filter, as an SQL expression.
    pub(crate) filter: Option<String>,
    /// Whether it is a partitioned table.
    pub(crate) partitioned: bool,
    /// `oid:xmin` of the rows of the catalog that make it published.
    pub(crate) rows: Vec<String>,
}

/// What a start finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    /// See [`Capacity`].
    pub(crate) capacity: &'a Capacity,
    /// All tables that can be published.
    pub(crate) tables: &'a [Table],
    /// The publication, if it stands.
    pub(crate) publication: Option<&'a Publication>,
    /// Slots that this start makes.
    pub(crate) new_slots: i64,
    /// Whether nothing is stored yet.
    pub(crate) first: bool,
}

/// What to do with the publication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// Nothing.
    Keep,
    /// Make it, for all tables.
    CreateForAll,
    /// Make it, for these.
    Create(Vec<TableName>),
    /// Add these.
    Add(Vec<TableName>),
}

impl Plan {
    /// The statement, if there is anything to do.
    pub(crate) fn statement(&self, settings: &Settings) -> Option<String> {
        let name = quoted(&settings.publication);
        let with = if settings.via_root { " WITH (publish_via_partition_root = true)" } else { "" };
        match self {
            Self::Keep => None,
            Self::CreateForAll => Some(format!("CREATE PUBLICATION {name} FOR ALL TABLES{with}")),
            Self::Create(tables) => {
                Some(format!("CREATE PUBLICATION {name} FOR TABLE {}{with}", only(tables)))
            }
            Self::Add(tables) => {
                Some(format!("ALTER PUBLICATION {name} ADD TABLE {}", only(tables)))
            }
        }
    }
}

/// Tables for a publication, without what inherits from them.
fn only(tables: &[TableName]) -> String {
    let tables: Vec<String> = tables.iter().map(|table| format!("ONLY {}", table.sql())).collect();
    tables.join(", ")
}

/// Checks everything and plans.
///
/// # Errors
/// The first thing that is wrong, with all tables that it is wrong with.
pub(crate) fn check(settings: &Settings, found: &Found<'_>) -> Result<Plan, ConnectorError> {
    check_server(found)?;
    let wanted = wanted(settings, found.tables);
    let plan = plan(settings, found, &wanted)?;
    if let Some(publication) = found.publication {
        check_operations(settings, publication, found.first)?;
        check_filters(settings, publication, found)?;
        check_column_lists(settings, publication, found.tables)?;
    }
    check_identities(&plan, found)?;
    if found.first && settings.snapshot == SnapshotMode::Initial {
        check_readable(settings, &wanted, found.tables)?;
    }
    Ok(plan)
}

/// A standby has neither the slots nor the last word: it is asked before anything is decided.
///
/// # Errors
/// When it is one.
pub(crate) fn check_primary(capacity: &Capacity) -> Result<(), ConnectorError> {
    if !capacity.in_recovery {
        return Ok(());
    }
    Err(ConnectorError::again(
        code::STANDBY,
        ErrorKind::Source,
        "the server is a standby; changes are captured from the primary",
    ))
}

fn check_server(found: &Found<'_>) -> Result<(), ConnectorError> {
    let Capacity { wal_level, slots, slots_used, .. } = found.capacity;
    check_primary(found.capacity)?;
    if wal_level != "logical" {
        return Err(refusal(
            code::WAL_LEVEL,
            format!("wal_level is {wal_level}; logical is needed"),
            "ALTER SYSTEM SET wal_level = logical; then restart the server",
        ));
    }
    if slots_used + found.new_slots > *slots {
        return Err(refusal(
            code::SLOTS_FULL,
            format!("{slots_used} of {slots} replication slots are taken"),
            "drop slots that nobody reads (SELECT slot_name, active FROM pg_replication_slots), or \
             ALTER SYSTEM SET max_replication_slots, then restart the server",
        ));
    }
    Ok(())
}

/// Captured tables, partitions left out where a table above them is captured.
fn wanted<'a>(settings: &Settings, tables: &'a [Table]) -> Vec<&'a Table> {
    let matches = |oid: &u32| {
        let table = tables.iter().find(|table| table.oid == *oid);
        table.is_some_and(|table| settings.filter.matches(&table.name))
    };
    tables
        .iter()
        .filter(|table| matches(&table.oid) && !table.ancestors.iter().any(matches))
        .collect()
}

fn plan(settings: &Settings, found: &Found<'_>, wanted: &[&Table]) -> Result<Plan, ConnectorError> {
    let names: Vec<TableName> = found.tables.iter().map(|table| table.name.clone()).collect();
    let unmatched = settings.filter.unmatched(&names);
    if found.first && !unmatched.is_empty() {
        return Err(refusal(
            code::TABLE,
            format!("table.include.list names {}, which no table matches", unmatched.join(", ")),
            "make the table, or take it out of table.include.list",
        ));
    }
    if found.first && wanted.is_empty() {
        return Err(refusal(
            code::NO_TABLES,
            "no table of the database is captured",
            "make a table, or widen table.include.list and schema.include.list",
        ));
    }
    match (settings.autocreate, found.publication) {
        (Autocreate::Filtered, Some(publication)) if !publication.all_tables => {
            Ok(add(wanted, publication))
        }
        (_, Some(_)) => Ok(Plan::Keep),
        (_, None) if !found.first => Err(refusal(
            code::PUBLICATION,
            format!(
                "publication {} is gone; the log before a new one cannot be read through it",
                settings.publication
            ),
            begin_again(Some(&settings.slot)),
        )),
        (Autocreate::Disabled, None) => Err(refusal(
            code::PUBLICATION,
            format!(
                "publication {} is not there and publication.autocreate.mode is disabled",
                settings.publication
            ),
            format!("CREATE PUBLICATION {} FOR TABLE ...", quoted(&settings.publication)),
        )),
        (Autocreate::AllTables, None) => Ok(Plan::CreateForAll),
        (Autocreate::Filtered, None) => {
            Ok(Plan::Create(wanted.iter().map(|table| table.name.clone()).collect()))
        }
    }
}

/// Captured tables that the publication lacks.
fn add(wanted: &[&Table], publication: &Publication) -> Plan {
    let published = |table: &&&Table| {
        let listed = publication.tables.iter().any(|other| other.oid == table.oid);
        let member = |oid: &u32| publication.members.contains(oid);
        listed || member(&table.oid) || table.ancestors.iter().any(member)
    };
    let missing: Vec<TableName> =
        wanted.iter().filter(|table| !published(table)).map(|table| table.name.clone()).collect();
    if missing.is_empty() { Plan::Keep } else { Plan::Add(missing) }
}

/// Operations that a publication leaves out.
pub(crate) fn missing_operations(found: &Publication) -> Vec<&'static str> {
    [
        ("insert", found.insert),
        ("update", found.update),
        ("delete", found.delete),
        ("truncate", found.truncate),
    ]
    .iter()
    .filter(|(_, published)| !published)
    .map(|(operation, _)| *operation)
    .collect()
}

fn check_operations(
    settings: &Settings,
    found: &Publication,
    first: bool,
) -> Result<(), ConnectorError> {
    let missing = missing_operations(found);
    if missing.is_empty() {
        return Ok(());
    }
    let name = quoted(&settings.publication);
    Err(refusal(
        code::PUBLISH,
        format!("publication {name} leaves out {}", missing.join(", ")),
        format!(
            "ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate'){}",
            if first { String::new() } else { then_begin_again(settings) }
        ),
    ))
}

/// What was left out before is nowhere.
fn then_begin_again(settings: &Settings) -> String {
    format!("; then {}", begin_again(Some(&settings.slot)))
}

fn check_filters(
    settings: &Settings,
    publication: &Publication,
    found: &Found<'_>,
) -> Result<(), ConnectorError> {
    let captured = |published: &&Published| {
        let table = found.tables.iter().find(|table| table.oid == published.oid);
        table.is_some_and(|table| captured_in(settings, &published.name, table, found.tables))
    };
    let captured = publication.tables.iter().filter(captured);
    filtered(settings, captured, found.first).map_or(Ok(()), Err)
}

/// What is said of tables whose row filter keeps rows out (`WHERE`, PostgreSQL 15 and later), if
/// there are any.
pub(crate) fn filtered<'a>(
    settings: &Settings,
    captured: impl Iterator<Item = &'a Published>,
    first: bool,
) -> Option<ConnectorError> {
    let names: Vec<&TableName> =
        captured.filter(|table| table.filter.is_some()).map(|table| &table.name).collect();
    if names.is_empty() {
        return None;
    }
    let publication = quoted(&settings.publication);
    let tables: Vec<String> = names.iter().map(|table| table.sql()).collect();
    let tables = tables.join(", ");
    let begin = !first && !settings.reads_anew();
    Some(refusal(
        code::FILTER,
        format!(
            "publication {} has a row filter on {}, so rows that do not match never come",
            settings.publication,
            list(names.into_iter())
        ),
        format!(
            "ALTER PUBLICATION {publication} DROP TABLE {tables}; ALTER PUBLICATION {publication} \
             ADD TABLE {tables}{}",
            if begin { then_begin_again(settings) } else { String::new() }
        ),
    ))
}

impl Settings {
    /// Whether tables of which changes are missing are read again by themselves: where the
    /// publication is ours to widen.
    pub(crate) fn reads_anew(&self) -> bool {
        self.autocreate == Autocreate::Filtered && self.snapshot == SnapshotMode::Initial
    }
}

/// A column list that leaves out a column of the replica identity makes UPDATE and DELETE fail;
/// with FULL every list does (case P16).
fn check_column_lists(
    settings: &Settings,
    publication: &Publication,
    tables: &[Table],
) -> Result<(), ConnectorError> {
    let breaks = |published: &&Published| {
        let table = tables.iter().find(|table| table.oid == published.oid);
        let (Some(table), Some(columns)) = (table, &published.columns) else { return false };
        captured_in(settings, &published.name, table, tables)
            && published.listed(table)
            && (table.identity == ReplicaIdentity::Full
                || table.identity_columns.iter().any(|column| !columns.contains(column)))
    };
    let names: Vec<&Published> = publication.tables.iter().filter(breaks).collect();
    if names.is_empty() {
        return Ok(());
    }
    let remedies: Vec<String> = names
        .iter()
        .map(|table| {
            let publication = quoted(&settings.publication);
            let table = table.name.sql();
            format!(
                "ALTER PUBLICATION {publication} DROP TABLE {table}; ALTER PUBLICATION \
                 {publication} ADD TABLE {table}"
            )
        })
        .collect();
    Err(refusal(
        code::COLUMN_LIST,
        format!(
            "the column list of publication {} leaves out columns of the replica identity of {}, \
             so the application's own UPDATE and DELETE fail there",
            settings.publication,
            list(names.iter().map(|table| &table.name))
        ),
        remedies.join("; "),
    ))
}

impl Published {
    /// Whether a column list leaves any column of the table out.
    fn listed(&self, table: &Table) -> bool {
        let Some(columns) = &self.columns else { return false };
        columns.len() < table.columns
    }
}

fn captured_in(settings: &Settings, name: &TableName, table: &Table, tables: &[Table]) -> bool {
    let above: Vec<TableName> = tables
        .iter()
        .filter(|other| table.ancestors.contains(&other.oid))
        .map(|other| other.name.clone())
        .collect();
    captured(&settings.filter, name, &above)
}

/// Tables that hold rows and are about to be published need a replica identity.
fn check_identities(plan: &Plan, found: &Found<'_>) -> Result<(), ConnectorError> {
    let added: Vec<&Table> = match plan {
        Plan::Keep => return Ok(()),
        Plan::CreateForAll => found.tables.iter().collect(),
        Plan::Create(names) | Plan::Add(names) => {
            found.tables.iter().filter(|table| names.contains(&table.name)).collect()
        }
    };
    let published = |table: &&Table| {
        !table.partitioned
            && added.iter().any(|a| a.oid == table.oid || table.ancestors.contains(&a.oid))
    };
    let broken: Vec<&Table> = found
        .tables
        .iter()
        .filter(published)
        .filter(|table| {
            table.identity != ReplicaIdentity::Full && table.identity_columns.is_empty()
        })
        .collect();
    if broken.is_empty() {
        return Ok(());
    }
    let remedies: Vec<String> = broken
        .iter()
        .map(|table| format!("ALTER TABLE {} REPLICA IDENTITY FULL", table.name.sql()))
        .collect();
    Err(refusal(
        code::REPLICA_IDENTITY,
        format!(
            "the application's own UPDATE and DELETE would begin to fail once published: {} has no \
             primary key and no other replica identity",
            list(broken.iter().map(|table| &table.name))
        ),
        format!(
            "add a primary key; or {}; or leave it out of the captured tables",
            remedies.join("; ")
        ),
    ))
}

fn check_readable(
    settings: &Settings,
    wanted: &[&Table],
    tables: &[Table],
) -> Result<(), ConnectorError> {
    let read = |table: &&Table| {
        wanted.iter().any(|w| w.oid == table.oid || table.ancestors.contains(&w.oid))
    };
    let closed: Vec<&Table> = tables.iter().filter(read).filter(|table| !table.readable).collect();
    if closed.is_empty() {
        return Ok(());
    }
    let names = list(closed.iter().map(|table| &table.name));
    let sql: Vec<String> = closed.iter().map(|table| table.name.sql()).collect();
    Err(refusal(
        code::PRIVILEGE,
        format!("user {} may not read {names}", settings.login.user),
        format!("GRANT SELECT ON {} TO {}", sql.join(", "), quoted(&settings.login.user)),
    ))
}

fn list<'a>(names: impl Iterator<Item = &'a TableName>) -> String {
    names.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn refusal(
    code: &'static str,
    what: impl Into<String>,
    remedy: impl Into<String>,
) -> ConnectorError {
    ConnectorError::stop(code, ErrorKind::Source, what, remedy)
        .keeping("everything: nothing was changed at the server")
}

#[cfg(test)]
mod tests;
