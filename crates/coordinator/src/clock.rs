//! Time, as it is passed to the state machines.

use highwater_log::now_ms;
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
        let ticks = self.began.elapsed().as_millis();
        Now { tick_ms: i64::try_from(ticks).unwrap_or(i64::MAX), wall_ms: now_ms() }
    }

    /// When it will be this tick.
    pub(crate) fn instant(self, tick_ms: i64) -> Instant {
        self.began + std::time::Duration::from_millis(u64::try_from(tick_ms).unwrap_or(0))
    }
}
