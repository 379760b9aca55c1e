//! Where the engine puts its records.

use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{Position, SourceRecord};
use thiserror::Error;

/// Nobody takes records any more: the task was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the task was stopped")]
pub struct Closed;

/// Takes the engine's records, in order. It waits where it is full, so that the engine never runs ahead of
/// what can be stored.
pub trait Outlet {
    /// Takes records out of a list, from the first on.
    ///
    /// # Errors
    /// [`Closed`] when nobody takes them any more.
    fn put(&mut self, records: &mut Vec<SourceRecord>) -> Result<(), Closed>;

    /// Takes a position that holds once all records before it are safe.
    ///
    /// # Errors
    /// [`Closed`] when nobody takes it any more.
    fn idle(&mut self, position: Arc<dyn Position>) -> Result<(), Closed>;

    /// Waits, until it is closed at most.
    ///
    /// # Errors
    /// [`Closed`] when it was.
    fn wait(&mut self, time: Duration) -> Result<(), Closed>;
}
