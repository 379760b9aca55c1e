//! Threads for code of connectors that checks a configuration and may never answer.
//!
//! Each is given up after a while and goes on until its code ends. It counts as taken until then: else
//! checks that hang would take all threads that the process has for files and passwords, too.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

/// How many there are, an eighth of those that a runtime has.
const MOST: usize = 64;

/// See the module's text. Clones are the same threads.
#[derive(Clone, Debug)]
pub struct Checks {
    free: Arc<Semaphore>,
    number: usize,
}

/// Why a check has not answered.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// All of so many threads were taken by others that have not ended.
    NoneFree(usize),
    /// It has not ended yet.
    Silent,
    /// It ended without an answer.
    Broken(JoinError),
}

impl Checks {
    /// So many threads.
    pub fn new(number: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(number)), number }
    }

    /// Has a thread do `work`. Waits up to `limit` for one, and as long for the answer.
    ///
    /// # Errors
    /// There is no answer.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        let free = timeout(limit, Arc::clone(&self.free).acquire_owned()).await;
        let Ok(Ok(taken)) = free else { return Err(Unanswered::NoneFree(self.number)) };
        let thread = spawn_blocking(move || {
            let _taken = taken;
            work()
        });
        match timeout(limit, thread).await {
            Ok(answer) => answer.map_err(Unanswered::Broken),
            Err(_) => Err(Unanswered::Silent),
        }
    }
}

impl Default for Checks {
    fn default() -> Self {
        Self::new(MOST)
    }
}

/// What is said where none is free.
pub(crate) fn none_free(number: usize) -> String {
    format!(
        "cannot be checked: all {number} threads for checks are taken by some that have not ended; \
         restart the server if they never do"
    )
}
