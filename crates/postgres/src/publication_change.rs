//! What became of a publication while its changes were read, or while nobody looked, decided
//! without I/O.
//!
//! The stream says nothing of it: rows of a table that was taken out, and operations that are not
//! published any more, simply do not come. So the catalog is asked, and what is missing is said.

use highwater_connector::{CONNECTOR_NAME, ConnectorError, ErrorKind};

use crate::error::{begin_again, code};
use crate::membership::{Gap, Membership};
use crate::name::{TableName, quoted};
use crate::preflight::{Publication, Published, Table, filtered, missing_operations};
use crate::settings::Settings;

/// The capture as it began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Capture {
    /// The captured tables of the publication.
    pub(crate) tables: Vec<Published>,
    /// What made them published.
    pub(crate) membership: Membership,
}

impl Capture {
    /// What is captured of a publication.
    pub(crate) fn of(publication: &Publication, captured: &[TableName]) -> Self {
        let tables = publication.tables.iter().filter(|table| captured.contains(&table.name));
        Self {
            tables: tables.cloned().collect(),
            membership: Membership::of(publication, captured),
        }
    }

    /// Whether a table was captured, or bears the name of one that was.
    fn had(&self, oid: u32, name: &TableName) -> bool {
        self.tables.iter().any(|other| other.oid == oid || other.name == *name)
    }
}

/// The trouble that a publication makes, if it does.
pub(crate) fn trouble(
    settings: &Settings,
    before: &Capture,
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
        return Some(operations_error(settings, &missing));
    }
    let captured = now.tables.iter().filter(|table| before.had(table.oid, &table.name));
    if let Some(error) = filtered(settings, captured, false) {
        return Some(error);
    }
    let membership = Membership::of(now, before.tables.iter().map(|table| &table.name));
    if let Some(gap) = before.membership.gap(&membership) {
        return Some(gap_error(settings, &gap));
    }
    let taken =
        taken_out(tables.iter().filter(|table| before.had(table.oid, &table.name)), now, tables);
    if taken.is_empty() { None } else { Some(taken_error(settings, &taken)) }
}

fn operations_error(settings: &Settings, missing: &[&str]) -> ConnectorError {
    let name = &settings.publication;
    stop(
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
    )
}

/// Which of these tables are published under no name.
pub(crate) fn taken_out<'a>(
    captured: impl Iterator<Item = &'a Table>,
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
    captured.filter(|table| !published(table)).map(|table| table.name.clone()).collect()
}

/// What is done about tables that are not in the publication any more.
pub(crate) fn taken_error(settings: &Settings, taken: &[TableName]) -> ConnectorError {
    let name = &settings.publication;
    let only: Vec<String> = taken.iter().map(TableName::sql).collect();
    let what = format!(
        "{} was taken out of publication {name}, or dropped and made again outside of it, so its \
         changes do not come any more",
        list(taken)
    );
    missing(
        settings,
        what,
        &format!("ALTER PUBLICATION {} ADD TABLE {}; then ", quoted(name), only.join(", ")),
    )
}

/// What is done about changes that may be missing.
pub(crate) fn gap_error(settings: &Settings, gap: &Gap) -> ConnectorError {
    let name = &settings.publication;
    match gap {
        Gap::Remade => stop(
            code::PUBLICATION,
            format!(
                "publication {name} was dropped and made again; the log before the new one cannot \
                 be read through it"
            ),
            begin_again(Some(&settings.slot)),
        ),
        Gap::Altered => stop(
            code::PUBLICATION_CHANGED,
            format!(
                "publication {name} itself was altered: its operations, an option or its owner; \
                 changes that it left out meanwhile are missing"
            ),
            format!("{}; else {}", accept(), begin_again(Some(&settings.slot))),
        ),
        Gap::Tables(tables) => {
            let what = format!(
                "{} was taken out of publication {name} and put in again, or its row filter or \
                 column list was altered, so changes in between may be missing",
                list(tables)
            );
            missing(settings, what, &format!("{}; else ", accept()))
        }
    }
}

/// Read again where the publication is ours to widen, else a person decides.
fn missing(settings: &Settings, what: String, first: &str) -> ConnectorError {
    if settings.reads_anew() {
        let what = format!("{what}; the table is in it after the next start, and read anew");
        return ConnectorError::again(code::PUBLICATION_CHANGED, ErrorKind::Source, what);
    }
    let lists = if settings.filter.includes() {
        "take the table out of table.include.list"
    } else {
        "name the table in table.exclude.list"
    };
    stop(
        code::PUBLICATION_CHANGED,
        what,
        format!(
            "if the table is not to be captured: {lists}, then highwater connector restart \
             {CONNECTOR_NAME}; if it is: {first}{}",
            begin_again(Some(&settings.slot))
        ),
    )
}

/// What lets a capture go on where nothing was left out.
fn accept() -> String {
    format!(
        "if nothing was written meanwhile: highwater connector stop {CONNECTOR_NAME}; highwater \
         offsets set {CONNECTOR_NAME} --remove publication --reason 'nothing is missing'; highwater \
         connector resume {CONNECTOR_NAME}"
    )
}

fn list(tables: &[TableName]) -> String {
    tables.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn stop(code: &'static str, what: String, remedy: String) -> ConnectorError {
    ConnectorError::stop(code, ErrorKind::Source, what, remedy)
}
