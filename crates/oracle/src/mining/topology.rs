//! Whether a database is the one that a position belongs to, and of a shape that is captured.

use crate::session::{
    ArchiveDestination, Database, Identity, OpenMode, Role, Session, ThreadState,
};
use crate::{Code, Marks, OracleError, RedoThread};

use super::failure::MiningError;
use super::settings::{CaptureMode, MiningMode, MiningSettings};

/// A database that was found fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// What it says of itself.
    pub database: Database,
    /// `DEST_ID` of the archive destination that is read.
    pub destination: u32,
    /// Whether the database finds the logs of a range itself.
    pub is_range_mode: bool,
    /// The redo threads that are enabled.
    pub enabled: Vec<RedoThread>,
}

impl Topology {
    /// Asks the database for its shape, at start and after each reconnect. `stored` is the identity
    /// that the position holds.
    ///
    /// # Errors
    /// CDC-5001 for another database, another incarnation of it, or a shape that is not captured;
    /// else the session's.
    pub fn probe(
        session: &mut dyn Session,
        settings: &MiningSettings,
        stored: Option<Identity>,
    ) -> Result<Self, MiningError> {
        let database = session.database()?;
        check_identity(&database, stored)?;
        check_shape(&database, settings)?;
        let threads = session.threads()?;
        let enabled = check_threads(&threads, settings)?;
        let destinations = session.archive_destinations()?;
        let destination = choose_destination(&destinations, settings)?;
        let is_range_mode = is_range_mode(&database, settings)?;
        Ok(Self { database, destination, is_range_mode, enabled })
    }

    /// Whether the database is a standby, where redo is applied after it was archived.
    pub fn is_standby(&self) -> bool {
        self.database.role != Role::Primary
    }

    /// Refuses marks that name no thread where several may write: an address says nothing about
    /// another thread's log.
    ///
    /// # Errors
    /// CDC-5001.
    pub fn check_marks(&self, marks: &Marks) -> Result<(), OracleError> {
        match marks {
            Marks::AnyThread(_) if self.enabled.len() > 1 => Err(refuse(
                format!(
                    "the stored position names no redo thread, and the database has {} enabled ones",
                    self.enabled.len()
                ),
                "begin again with a new snapshot, or disable all threads but the one of the position",
            )),
            _ => Ok(()),
        }
    }
}

fn refuse(what: impl Into<String>, remedy: impl Into<String>) -> OracleError {
    OracleError::new(Code::Topology, what, remedy)
}

fn check_identity(database: &Database, stored: Option<Identity>) -> Result<(), OracleError> {
    let found = database.identity;
    let Some(stored) = stored.filter(|stored| *stored != found) else { return Ok(()) };
    let what = if stored.dbid == found.dbid {
        format!(
            "database {} was opened with RESETLOGS at SCN {}, and the position is of the incarnation \
             of SCN {}",
            database.name, found.resetlogs, stored.resetlogs
        )
    } else {
        format!(
            "the position is of the database with DBID {}, and {} has DBID {}",
            stored.dbid, database.name, found.dbid
        )
    };
    Err(refuse(what, "connect to the original database, or begin again with a new snapshot"))
}

fn check_shape(database: &Database, settings: &MiningSettings) -> Result<(), OracleError> {
    check_role(database, settings.capture)?;
    if !database.is_archiving {
        return Err(refuse(
            format!("database {} does not archive its redo", database.name),
            "put it into ARCHIVELOG mode: redo that is overwritten before it was read is lost",
        ));
    }
    if !database.has_supplemental_logging {
        return Err(refuse(
            format!("database {} has no minimal supplemental logging", database.name),
            "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA",
        ));
    }
    Ok(())
}

fn check_role(database: &Database, capture: CaptureMode) -> Result<(), OracleError> {
    let is_fit = matches!(
        (capture, &database.role, &database.open_mode),
        (_, Role::Primary, OpenMode::ReadWrite)
            | (CaptureMode::ArchiveOnly, Role::PhysicalStandby, OpenMode::ReadOnly)
    );
    if is_fit {
        return Ok(());
    }
    let remedy = match capture {
        CaptureMode::Online => {
            "capture from a primary that is open READ WRITE, or set cdc.capture.mode=archive_only"
        }
        CaptureMode::ArchiveOnly => {
            "capture from a primary that is open READ WRITE, or from a physical standby that is open \
             READ ONLY"
        }
    };
    let (name, role, mode) = (&database.name, &database.role, &database.open_mode);
    Err(refuse(format!("database {name} is {role:?} and open as {mode:?}"), remedy))
}

/// The threads that are enabled. Without `cdc.rac.enabled` it must be one, open or not: an instance may
/// open its thread at any moment, and one more thread needs a position of its own.
pub(super) fn check_threads(
    threads: &[ThreadState],
    settings: &MiningSettings,
) -> Result<Vec<RedoThread>, OracleError> {
    let is_enabled = |state: &&ThreadState| state.is_enabled;
    let enabled: Vec<_> = threads.iter().filter(is_enabled).map(|state| state.thread).collect();
    let names: Vec<String> = enabled.iter().map(RedoThread::to_string).collect();
    match enabled.len() {
        0 => Err(refuse("the database has no enabled redo thread", "open the database first")),
        1 => Ok(enabled),
        _ if settings.is_rac_enabled => Ok(enabled),
        _ => Err(refuse(
            format!("the redo threads {} are enabled, and one is captured", names.join(", ")),
            "ALTER DATABASE DISABLE THREAD for those of dead instances, or set cdc.rac.enabled=true",
        )),
    }
}

fn choose_destination(
    destinations: &[ArchiveDestination],
    settings: &MiningSettings,
) -> Result<u32, OracleError> {
    let usable = destinations.iter().filter(|destination| destination.is_usable);
    let chosen = match &settings.archive_destination {
        Some(name) => usable.clone().find(|usable| usable.name.eq_ignore_ascii_case(name)),
        None => usable.clone().min_by_key(|usable| usable.id),
    };
    chosen.map(|chosen| chosen.id).ok_or_else(|| {
        let names: Vec<&str> = usable.map(|usable| usable.name.as_str()).collect();
        let wanted = settings.archive_destination.as_deref().unwrap_or("that is valid and local");
        refuse(
            format!(
                "there is no archive destination {wanted}; usable ones: [{}]",
                names.join(", ")
            ),
            "set cdc.archive.destination to the name of one that is usable",
        )
    })
}

fn is_range_mode(database: &Database, settings: &MiningSettings) -> Result<bool, OracleError> {
    match (settings.mode, database.is_in_pdb) {
        (MiningMode::Logs, true) => Err(refuse(
            "logs cannot be named from inside a pluggable database (ORA-65040)",
            "set cdc.mining.mode=range, or connect to the root with a common user",
        )),
        (MiningMode::Range, _) | (MiningMode::Auto, true) => Ok(true),
        (MiningMode::Logs | MiningMode::Auto, false) => Ok(false),
    }
}
