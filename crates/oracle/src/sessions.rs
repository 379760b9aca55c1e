//! Where sessions come from: the one place that knows a driver.

use crate::OracleError;
use crate::mining::MiningError;
use crate::session::{Session, SessionError};
use crate::settings::{DatabaseSettings, Settings, StatementSettings};

/// Opens sessions with databases.
pub trait Sessions: Send + Sync {
    /// A session with a database, whose statements run as they say. May take as long as a login does.
    ///
    /// # Errors
    /// As every call of a [`Session`].
    fn open(
        &self,
        database: &DatabaseSettings,
        statements: &StatementSettings,
    ) -> Result<Box<dyn Session>, SessionError>;
}

/// A session, and its answer to a first question.
///
/// # Errors
/// CDC-1001 where the database cannot be asked, and what the question gives.
pub(crate) fn ask<T, E: Into<MiningError>>(
    sessions: &dyn Sessions,
    settings: &Settings,
    question: impl FnOnce(&mut dyn Session) -> Result<T, E>,
) -> Result<(Box<dyn Session>, T), OracleError> {
    let opened = sessions.open(&settings.database, &settings.statements);
    let mut session = opened.map_err(MiningError::from)?;
    let answer = question(&mut *session).map_err(Into::into)?;
    Ok((session, answer))
}
