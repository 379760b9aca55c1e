//! How fast a peer has to be: some progress always, and enough of it on the whole.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

/// What is asked of a peer, and until when it has to be done with what it does now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// How long there may be no progress at all.
    pub(crate) stall: Duration,
    bytes_per_second: usize,
    deadline: Option<Instant>,
}

/// A peer that is too slow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum TooSlow {
    #[error("no byte moved for {0:?}")]
    Stalled(Duration),
    #[error("fewer than {bytes_per_second} bytes a second moved")]
    Dripping { bytes_per_second: usize },
}

impl Pace {
    pub(crate) const fn new(stall: Duration, bytes_per_second: usize) -> Self {
        Self { stall, bytes_per_second, deadline: None }
    }

    /// Begins something that may take as long as a stall, and what [`allow`](Self::allow) adds.
    pub(crate) fn begin(self) -> Self {
        Self { deadline: Instant::now().checked_add(self.stall), ..self }
    }

    /// Adds the time that `bytes` may take.
    pub(crate) fn allow(&mut self, bytes: usize) {
        let seconds = bytes / self.bytes_per_second.max(1);
        let time = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
        self.deadline = self.deadline.and_then(|deadline| deadline.checked_add(time));
    }

    /// Waits for one step.
    pub(crate) async fn keep<T>(self, step: impl Future<Output = T>) -> Result<T, TooSlow> {
        let step = timeout(self.stall, step);
        let done = match self.deadline {
            None => step.await,
            Some(deadline) => match timeout_at(deadline, step).await {
                Ok(done) => done,
                Err(_) => {
                    return Err(TooSlow::Dripping { bytes_per_second: self.bytes_per_second });
                }
            },
        };
        done.map_err(|_| TooSlow::Stalled(self.stall))
    }
}
