//! Time, as it is passed to the state machines.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// A moment: time-outs go by the one clock, what is stored bears the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since the coordinator began; never goes back.
    pub tick_ms: i64,
    /// Milliseconds since 1970.
    pub wall_ms: i64,
}

/// The clocks of a coordinator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now() }
    }

    pub(crate) fn now(self) -> Now {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { tick_ms: millis(self.began.elapsed()), wall_ms: millis(since) }
    }

    /// When it will be this tick.
    pub(crate) fn instant(self, tick_ms: i64) -> Instant {
        self.began + std::time::Duration::from_millis(u64::try_from(tick_ms).unwrap_or(0))
    }
}

fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
