//! What keeps redo from being mined.

use thiserror::Error;

use crate::session::{ErrorClass, RedoLog, SessionError};
use crate::{Code, OracleError};

use super::ora;

/// What keeps redo from being mined.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum MiningError {
    /// The task stops.
    #[error(transparent)]
    Stop(#[from] OracleError),
    /// The database failed. What the parts of mining return beyond themselves is of
    /// [`ErrorClass::Transient`]: open the session again, see
    /// [`Backoff`](super::reconnect::Backoff), and go on.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl MiningError {
    /// A stop, unless the connection is to be opened again.
    pub(super) fn settle(self) -> Self {
        match self {
            Self::Session(error) if error.class != ErrorClass::Transient => {
                Self::Stop(ora::stop(&error))
            }
            other => other,
        }
    }
}

/// Of a task that does not run yet: a lost database stops it, and it is tried again by itself.
impl From<MiningError> for OracleError {
    fn from(error: MiningError) -> Self {
        match error {
            MiningError::Stop(error) => error,
            MiningError::Session(error) if error.class != ErrorClass::Transient => {
                ora::stop(&error)
            }
            MiningError::Session(error) => Self::new(
                Code::TransientDatabase,
                format!("the database cannot be asked: {error}"),
                "bring back the database, its listener and the network between; the task tries again \
                 by itself",
            ),
        }
    }
}

/// A stop that names the log, where the database says which one it cannot read.
pub(super) fn unreadable(error: SessionError, logs: &[RedoLog]) -> MiningError {
    let named = |log: &&RedoLog| !log.name.is_empty() && error.message.contains(&log.name);
    let named = logs.iter().find(named).filter(|_| error.class == ErrorClass::LogPurged);
    let Some(log) = named else { return error.into() };
    let mut stop = ora::stop(&error);
    let scns = format!("SCNs {} to {}", log.first, log.next.previous());
    stop.what =
        format!("log {} of thread {}, with {scns}: {}", log.sequence, log.thread, stop.what);
    stop.into()
}
