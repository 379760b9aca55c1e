//! The codes of this connector, and the errors that several parts share.

use highwater_connector::{CONNECTOR_NAME, ConnectorError, ErrorKind};

use crate::cursor::DecodeError;
use crate::name::literal;

/// The commands that let a connector begin again; a slot that stands is dropped meanwhile.
pub(crate) fn begin_again(slot: Option<&str>) -> String {
    let drop =
        |slot| format!("in the database SELECT pg_drop_replication_slot({}); ", literal(slot));
    let between = slot.map(drop).unwrap_or_default();
    format!(
        "begin again with a new snapshot: highwater connector stop {CONNECTOR_NAME}; highwater \
         offsets delete {CONNECTOR_NAME}; {between}highwater connector resume {CONNECTOR_NAME}"
    )
}

/// Stable codes, one a condition.
pub mod code {
    /// The configuration does not hold together.
    pub const CONFIG: &str = "PG_CONFIG";
    /// The server cannot be reached, or the connection broke.
    pub const CONNECTION: &str = "PG_CONNECTION";
    /// The server refuses the user or the password.
    pub const LOGIN: &str = "PG_LOGIN_REFUSED";
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
    /// The publication is not there, or not any more.
    pub const PUBLICATION: &str = "PG_PUBLICATION_MISSING";
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
    ConnectorError::again(code::CONNECTION, ErrorKind::Source, what)
}

/// The error that a server's answer amounts to.
pub(crate) fn from_server(doing: &str, sqlstate: &str, message: &str) -> ConnectorError {
    let what = format!("{doing}: {message} (SQLSTATE {sqlstate})");
    match sqlstate {
        // invalid_authorization_specification, invalid_password
        "28000" | "28P01" => ConnectorError::stop(
            code::LOGIN,
            ErrorKind::Source,
            what,
            "check database.user, database.password and the server's pg_hba.conf",
        ),
        // invalid_catalog_name
        "3D000" => ConnectorError::stop(
            code::CONFIG,
            ErrorKind::Configuration,
            what,
            "set database.dbname to a database that exists",
        ),
        // insufficient_privilege
        "42501" => ConnectorError::stop(
            code::PRIVILEGE,
            ErrorKind::Source,
            what,
            "grant the missing privilege to the user of database.user",
        ),
        // character_not_in_repertoire: a database in SQL_ASCII holds bytes that are no text
        "22021" => ConnectorError::stop(
            code::VALUE,
            ErrorKind::Data,
            what,
            "mend the value at the source, or leave its table out of the publication",
        ),
        // too_many_connections
        "53300" if message.contains("max_wal_senders") => ConnectorError::again(
            code::SENDERS_FULL,
            ErrorKind::Source,
            format!("{what}; raise max_wal_senders, or end readers in pg_stat_replication"),
        ),
        // object_in_use
        "55006" => ConnectorError::again(code::SLOT_ACTIVE, ErrorKind::Source, what),
        // object_not_in_prerequisite_state: an invalidated slot among others
        "55000" if message.contains("slot") => ConnectorError::stop(
            code::SLOT_LOST,
            ErrorKind::Position,
            what,
            "look at wal_status in pg_replication_slots; a lost slot needs a new snapshot",
        ),
        _ => ConnectorError::again(code::STATEMENT, ErrorKind::Source, what),
    }
}

/// The error of a query.
pub(crate) fn from_query(doing: &str, error: &tokio_postgres::Error) -> ConnectorError {
    match error.as_db_error() {
        Some(answer) => from_server(doing, answer.code().code(), answer.message()),
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
