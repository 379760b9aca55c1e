//! How long a lost database is waited for.

use std::time::Duration;

use crate::session::SessionError;
use crate::{Code, OracleError};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pauses between attempts to reach a lost database: 1 s, doubling up to 30 s, within a budget. It
/// begins anew when a step was read again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backoff {
    budget: Duration,
    pause: Duration,
    waited: Duration,
    attempts: u64,
}

impl Backoff {
    /// Within a budget (`cdc.retry.max.time.ms`).
    pub const fn new(budget: Duration) -> Self {
        Self { budget, pause: FIRST_PAUSE, waited: Duration::ZERO, attempts: 0 }
    }

    /// How long to wait before the next attempt. `spent` is the time since the database was lost.
    /// `jitter` is any random number; it takes up to a half off the pause, so that tasks do not come all
    /// at once.
    ///
    /// # Errors
    /// CDC-1001 when the budget is used up.
    pub fn next(
        &mut self,
        spent: Duration,
        jitter: u32,
        error: &SessionError,
    ) -> Result<Duration, OracleError> {
        if spent.max(self.waited) >= self.budget {
            return Err(self.used_up(spent, error));
        }
        let pause = self.pause - self.pause / 2 * jitter / u32::MAX;
        self.pause = self.pause.saturating_mul(2).min(LONGEST_PAUSE);
        self.waited += pause;
        self.attempts += 1;
        Ok(pause)
    }

    fn used_up(&self, spent: Duration, error: &SessionError) -> OracleError {
        OracleError::new(
            Code::TransientDatabase,
            format!(
                "the database is lost since {} s, after {} attempts: {}",
                spent.as_secs(),
                self.attempts,
                error.message
            ),
            "bring back the database, its listener and the network between, then restart the task",
        )
    }

    /// The database is back, and a step was read.
    pub fn reset(&mut self) {
        *self = Self::new(self.budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ErrorClass;

    fn lost() -> SessionError {
        SessionError {
            ora: Some(3113),
            class: ErrorClass::Transient,
            message: "ORA-03113: end-of-file".to_owned(),
        }
    }

    #[test]
    fn pauses_double_up_to_thirty_seconds() {
        let mut backoff = Backoff::new(Duration::from_secs(1_000));
        let seconds =
            [1, 2, 4, 8, 16, 30, 30].map(|_| backoff.next(Duration::ZERO, 0, &lost()).unwrap());
        assert_eq!(seconds.map(|pause| pause.as_secs()), [1, 2, 4, 8, 16, 30, 30]);
        backoff.reset();
        assert_eq!(backoff.next(Duration::ZERO, 0, &lost()).unwrap(), FIRST_PAUSE);
    }

    #[test]
    fn jitter_takes_off_up_to_a_half() {
        for (jitter, millis) in [(0, 1000), (u32::MAX / 2, 750), (u32::MAX, 500)] {
            let pause = Backoff::new(Duration::from_secs(9)).next(Duration::ZERO, jitter, &lost());
            assert_eq!(pause.unwrap().as_millis(), millis);
        }
    }

    #[test]
    fn a_budget_ends() {
        let mut backoff = Backoff::new(Duration::from_secs(3));
        assert!(backoff.next(Duration::from_millis(2_999), 0, &lost()).is_ok());
        let error = backoff.next(Duration::from_secs(3), 0, &lost()).unwrap_err();
        assert_eq!(error.code, Code::TransientDatabase);
        assert!(error.what.contains("after 1 attempts") && error.what.contains("ORA-03113"));
    }
}
