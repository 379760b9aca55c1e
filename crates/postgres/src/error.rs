//! The codes of this connector, and the errors that several parts share.

use highwater_connector::{CONNECTOR_NAME, ConnectorError, ErrorKind};

use crate::cursor::DecodeError;
use crate::name::literal;

/// The commands that let a connector begin again; a slot that stands is dropped meanwhile.
pub(crate) fn begin_again(slot: Option<&str>) -> String {
    let drop = |slot| format!("in the database {}; ", drop_statement(slot));
    let between = slot.map(drop).unwrap_or_default();
    format!(
        "begin again with a new snapshot: highwater connector stop {CONNECTOR_NAME}; highwater \
         offsets delete {CONNECTOR_NAME}; {between}highwater connector resume {CONNECTOR_NAME}"
    )
}

/// What drops a slot by hand.
pub(crate) fn drop_statement(slot: &str) -> String {
    format!("SELECT pg_drop_replication_slot({})", literal(slot))
}

/// Stable codes, one a condition.
pub mod code {
    /// The configuration does not hold together.
    pub const CONFIG: &str = "PG_CONFIG";
    /// The server cannot be reached, or the connection broke.
    pub const CONNECTION: &str = "PG_CONNECTION";
    /// The server refuses the user or the password.
    pub const LOGIN: &str = "PG_LOGIN_REFUSED";
    /// The server does not speak TLS.
    pub const TLS_UNAVAILABLE: &str = "PG_TLS_UNAVAILABLE";
    /// The server's certificate is not accepted.
    pub const TLS_CERTIFICATE: &str = "PG_TLS_CERTIFICATE";
    /// The server does not accept our certificate.
    pub const TLS_CLIENT: &str = "PG_TLS_CLIENT_CERTIFICATE";
    /// No TLS connection can be agreed on.
    pub const TLS_HANDSHAKE: &str = "PG_TLS_HANDSHAKE";
    /// A certificate or key file cannot be used.
    pub const TLS_FILES: &str = "PG_TLS_FILES";
    /// The server refuses a statement.
    pub const STATEMENT: &str = "PG_STATEMENT_FAILED";
    /// The server is older than what is read.
    pub const VERSION: &str = "PG_VERSION";
    /// `wal_level` is not `logical`.
    pub const WAL_LEVEL: &str = "PG_WAL_LEVEL";
    /// The server is a standby.
    pub const STANDBY: &str = "PG_STANDBY";
    /// No replication slot is free.
    pub const SLOTS_FULL: &str = "PG_SLOTS_FULL";
    /// No WAL sender is free.
    pub const SENDERS_FULL: &str = "PG_SENDERS_FULL";
    /// The user lacks a privilege.
    pub const PRIVILEGE: &str = "PG_PRIVILEGE";
    /// The application's own UPDATE or DELETE would begin to fail.
    pub const REPLICA_IDENTITY: &str = "PG_REPLICA_IDENTITY";
    /// A publication's column list makes UPDATE and DELETE fail.
    pub const COLUMN_LIST: &str = "PG_COLUMN_LIST";
    /// The publication leaves operations out.
    pub const PUBLISH: &str = "PG_PUBLICATION_OPERATIONS";
    /// The publication has a row filter on a captured table.
    pub const FILTER: &str = "PG_PUBLICATION_FILTER";
    /// The publication is not there, or not any more.
    pub const PUBLICATION: &str = "PG_PUBLICATION_MISSING";
    /// A captured table is not in the publication any more, or was not all the time.
    pub const PUBLICATION_CHANGED: &str = "PG_PUBLICATION_CHANGED";
    /// A slot that was to be dropped stays.
    pub const SLOT_NOT_DROPPED: &str = "PG_SLOT_NOT_DROPPED";
    /// A table of the include list is not there.
    pub const TABLE: &str = "PG_TABLE_MISSING";
    /// Nothing would be captured.
    pub const NO_TABLES: &str = "PG_NO_TABLES";
    /// The stored offset cannot be read.
    pub const OFFSET: &str = "PG_OFFSET_UNREADABLE";
    /// A position is stored and the slot is gone.
    pub const SLOT_MISSING: &str = "PG_SLOT_MISSING";
    /// The slot's log was removed by the server.
    pub const SLOT_LOST: &str = "PG_SLOT_LOST";
    /// The slot belongs to another plugin.
    pub const SLOT_PLUGIN: &str = "PG_SLOT_PLUGIN";
    /// The slot belongs to another database.
    pub const SLOT_DATABASE: &str = "PG_SLOT_DATABASE";
    /// Another process reads the slot.
    pub const SLOT_ACTIVE: &str = "PG_SLOT_ACTIVE";
    /// A slot stands and no offset is stored.
    pub const SLOT_FOREIGN: &str = "PG_SLOT_WITHOUT_OFFSET";
    /// The server may remove WAL that the slot needs.
    pub const SLOT_AT_RISK: &str = "PG_SLOT_AT_RISK";
    /// The slot holds back much WAL.
    pub const WAL_HELD: &str = "PG_WAL_HELD";
    /// Slots may hold back WAL without bound.
    pub const WAL_UNLIMITED: &str = "PG_WAL_UNLIMITED";
    /// The publication lacks captured tables.
    pub const PUBLICATION_DRIFT: &str = "PG_PUBLICATION_DRIFT";
    /// Open transactions keep the slot from being made.
    pub const SLOT_WAITS: &str = "PG_SLOT_WAITS";
    /// The stored position belongs to another server.
    pub const OTHER_SERVER: &str = "PG_OTHER_SERVER";
    /// The server's history leaves the stored one before the position.
    pub const TIMELINE: &str = "PG_TIMELINE_FORKED";
    /// The stored position lies beyond the server's log.
    pub const AHEAD: &str = "PG_POSITION_AHEAD";
    /// The slot was moved past the stored position.
    pub const BEHIND: &str = "PG_POSITION_BEHIND_SLOT";
    /// A transaction that was delivered in part came otherwise, or not at all.
    pub const TRANSACTION: &str = "PG_TRANSACTION_CHANGED";
    /// The stream holds something that this release does not know.
    pub const STREAM: &str = "PG_STREAM_UNREADABLE";
    /// A value has no JSON form.
    pub const VALUE: &str = "PG_VALUE_UNREADABLE";
    /// A row is above the record limit.
    pub const TOO_LARGE: &str = "PG_RECORD_TOO_LARGE";
    /// Debezium's offset, and a configuration that does not state its forms.
    pub const FORMS: &str = "PG_FORMS_UNSTATED";
    /// A key column whose form in Debezium is not known.
    pub const KEY_FORM: &str = "PG_KEY_FORM";
    /// A table has no topic of its own.
    pub const TOPIC_NAME: &str = "PG_TOPIC_NAME";
    /// A table was rewritten while it was to be read.
    pub const REWRITTEN: &str = "PG_TABLE_REWRITTEN";
}

/// The stream holds something that cannot be read (rule R5).
pub(crate) fn unreadable(what: impl Into<String>) -> ConnectorError {
    ConnectorError::stop(
        code::STREAM,
        ErrorKind::Data,
        what,
        "report this message with the server's version; nothing behind it was read",
    )
}

impl From<DecodeError> for ConnectorError {
    fn from(error: DecodeError) -> Self {
        unreadable(format!("a message of the replication stream cannot be read: {error}"))
    }
}

/// Something failed that may pass by itself.
pub(crate) fn connection(what: impl Into<String>) -> ConnectorError {
    ConnectorError {
        remedy: "see that PostgreSQL answers at database.hostname and database.port, as pg_isready -h HOST -p PORT \
                 asks; the task tries again by itself"
            .to_owned(),
        ..ConnectorError::again(code::CONNECTION, ErrorKind::Source, what)
    }
}

/// What to do when a login is refused.
pub(crate) const LOGIN_REMEDY: &str =
    "check database.user, database.password, database.sslmode and the server's pg_hba.conf";

/// Conditions of the server that decide what happens next (manual, appendix A).
pub(crate) mod sqlstate {
    pub(crate) const INVALID_AUTHORIZATION: &str = "28000";
    pub(crate) const INVALID_PASSWORD: &str = "28P01";
    pub(crate) const INVALID_CATALOG_NAME: &str = "3D000";
    pub(crate) const INSUFFICIENT_PRIVILEGE: &str = "42501";
    /// A database in `SQL_ASCII` holds bytes that are no text.
    pub(crate) const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
    pub(crate) const TOO_MANY_CONNECTIONS: &str = "53300";
    pub(crate) const OBJECT_IN_USE: &str = "55006";
    /// An invalidated slot among others.
    pub(crate) const NOT_IN_PREREQUISITE_STATE: &str = "55000";
    pub(crate) const UNDEFINED_OBJECT: &str = "42704";
    pub(crate) const LOCK_NOT_AVAILABLE: &str = "55P03";
    pub(crate) const UNDEFINED_FILE: &str = "58P01";
    /// An operator ended the connection, or the server stops.
    pub(crate) const ADMIN_SHUTDOWN: &str = "57P01";
    /// Another process of the server died, so that all connections end.
    pub(crate) const CRASH_SHUTDOWN: &str = "57P02";
    /// The server starts, recovers or stops.
    pub(crate) const CANNOT_CONNECT_NOW: &str = "57P03";
    /// The database was dropped.
    pub(crate) const DATABASE_DROPPED: &str = "57P04";
}

/// What a server answered instead of what was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServerError {
    /// What it was asked for.
    pub(crate) doing: String,
    /// Which condition; see [`sqlstate`].
    pub(crate) sqlstate: String,
    /// Its words.
    pub(crate) message: String,
}

impl From<ServerError> for ConnectorError {
    fn from(error: ServerError) -> Self {
        let ServerError { doing, sqlstate, message } = error;
        let what = format!("{doing}: {message} (SQLSTATE {sqlstate})");
        let stop =
            |code, kind, remedy: &str| Self::stop(code, kind, what.as_str(), remedy.to_owned());
        match sqlstate.as_str() {
            sqlstate::INVALID_AUTHORIZATION | sqlstate::INVALID_PASSWORD => {
                stop(code::LOGIN, ErrorKind::Source, LOGIN_REMEDY)
            }
            sqlstate::INVALID_CATALOG_NAME | sqlstate::DATABASE_DROPPED => stop(
                code::CONFIG,
                ErrorKind::Configuration,
                "set database.dbname to a database that exists",
            ),
            sqlstate::INSUFFICIENT_PRIVILEGE => stop(
                code::PRIVILEGE,
                ErrorKind::Source,
                "grant the missing privilege to the user of database.user",
            ),
            sqlstate::CHARACTER_NOT_IN_REPERTOIRE => stop(
                code::VALUE,
                ErrorKind::Data,
                "mend the value at the source, or leave its table out of the publication",
            ),
            // The server has one condition for all its limits and names the setting in its words.
            sqlstate::TOO_MANY_CONNECTIONS if message.contains("max_wal_senders") => Self::again(
                code::SENDERS_FULL,
                ErrorKind::Source,
                format!("{what}; raise max_wal_senders, or end readers in pg_stat_replication"),
            ),
            sqlstate::OBJECT_IN_USE => Self::again(code::SLOT_ACTIVE, ErrorKind::Source, what),
            // One condition again for whatever is not ready; only its words name the slot.
            sqlstate::NOT_IN_PREREQUISITE_STATE if message.contains("slot") => stop(
                code::SLOT_LOST,
                ErrorKind::Position,
                "look at wal_status in pg_replication_slots; a lost slot needs a new snapshot",
            ),
            sqlstate::ADMIN_SHUTDOWN | sqlstate::CRASH_SHUTDOWN | sqlstate::CANNOT_CONNECT_NOW => {
                connection(what)
            }
            _ => Self::again(code::STATEMENT, ErrorKind::Source, what),
        }
    }
}

/// The error of a query.
pub(crate) fn from_query(doing: &str, error: &tokio_postgres::Error) -> ConnectorError {
    match error.as_db_error() {
        Some(answer) => ServerError {
            doing: doing.to_owned(),
            sqlstate: answer.code().code().to_owned(),
            message: answer.message().to_owned(),
        }
        .into(),
        None => connection(format!("{doing}: {}", chain(error))),
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}
