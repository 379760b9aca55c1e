//! Stopping within a bound: each part has until the same moment, and one that hangs is named.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout_at};

use crate::failure::{Exit, Failure};

/// What asks a server to stop: SIGTERM, SIGINT.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// From here on the signals no longer end the process by themselves.
    pub(crate) fn catch() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// What each part has, also where those before it took all the time there was.
const LEAST: Duration = Duration::from_secs(1);

/// A stop that is under way.
pub(crate) struct Stopping {
    bound: Duration,
    until: Instant,
    late: Vec<&'static str>,
}

impl Stopping {
    /// Every part has until `bound` from now.
    pub(crate) fn within(bound: Duration) -> Self {
        Self { bound, until: Instant::now() + bound, late: Vec::new() }
    }

    /// Waits for a part to end.
    pub(crate) async fn part(&mut self, name: &'static str, ended: impl Future<Output = ()>) {
        // One that hangs must not make the ones behind it look as if they did.
        let until = self.until.max(Instant::now() + LEAST);
        if timeout_at(until, ended).await.is_err() {
            tracing::warn!(part = name, bound = ?self.bound, "did not stop in time and is left");
            self.late.push(name);
        }
    }

    /// Gives what comes next `grace` more where the others took it all.
    pub(crate) fn extend(&mut self, grace: Duration) {
        self.until = self.until.max(Instant::now() + grace);
    }

    /// How it went.
    ///
    /// # Errors
    /// Names the parts that did not end.
    pub(crate) fn done(self) -> Result<(), Failure> {
        if self.late.is_empty() {
            return Ok(());
        }
        let what = format!("did not stop within {:?}: {}", self.bound, self.late.join(", "));
        Err(Failure::new(Exit::Failed, "SHUTDOWN_INCOMPLETE", what)
            .kept("all that was acknowledged is on disk; a source delivers again what no stored offset covers")
            .remedy("start it again: highwater server; if it hangs again, raise shutdown_timeout_ms"))
    }
}

/// Somebody asked twice.
pub(crate) fn at_once() -> Failure {
    Failure::new(Exit::Failed, "SHUTDOWN_AT_ONCE", "a second signal ended the stop half way")
        .kept("all that was acknowledged is on disk")
        .remedy("start it again: highwater server; it recovers the log first")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_hangs_is_named_and_the_rest_still_stops() {
        let mut stopping = Stopping::within(Duration::from_secs(3));
        let began = Instant::now();
        stopping.part("the worker", std::future::pending()).await;
        assert_eq!(began.elapsed(), Duration::from_secs(3));
        let mut closed = false;
        stopping.extend(Duration::from_secs(1));
        stopping
            .part("the log", async {
                tokio::time::sleep(Duration::from_millis(900)).await;
                closed = true;
            })
            .await;
        assert!(closed);
        let failure = stopping.done().unwrap_err();
        assert_eq!(failure.what, "did not stop within 3s: the worker");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_in_time_is_well() {
        let mut stopping = Stopping::within(Duration::from_secs(3));
        stopping.part("streams", tokio::time::sleep(Duration::from_secs(2))).await;
        assert!(stopping.done().is_ok());
    }
}
