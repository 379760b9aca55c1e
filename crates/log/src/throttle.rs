//! A bound of the bytes that a thread moves a second.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::background::Stop;

/// The most that a thread falls behind at once before it waits.
const BURST: Duration = Duration::from_millis(100);

/// Counts what one thread moves.
#[derive(Debug)]
pub(crate) struct Throttle {
    bytes_per_second: Option<u64>,
    stop: Stop,
    /// Until when what was moved so far keeps it busy.
    busy_until: Mutex<Instant>,
}

impl Throttle {
    pub(crate) fn new(bytes_per_second: Option<u64>, stop: Stop) -> Self {
        Self { bytes_per_second, stop, busy_until: Mutex::new(Instant::now()) }
    }

    /// Counts bytes and waits where they came too fast; false if the thread is to end.
    pub(crate) fn passes(&self, bytes: u64) -> bool {
        let now = Instant::now();
        let Some(rate) = self.bytes_per_second.filter(|rate| *rate > 0) else {
            return self.stop.pause_until(now);
        };
        // An hour is more than any one call should take.
        let takes = Duration::from_secs_f64((bytes as f64 / rate as f64).min(3600.0));
        let mut busy_until = self.busy_until.lock();
        *busy_until = (*busy_until).max(now) + takes;
        let until = *busy_until;
        drop(busy_until);
        self.stop.pause_until(if until > now + BURST { until } else { now })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_too_fast_waits_and_an_end_is_heard() {
        let stop = Stop::default();
        let throttle = Throttle::new(Some(1000), stop.clone());
        let began = Instant::now();
        assert!(throttle.passes(50), "a burst passes");
        assert!(began.elapsed() < Duration::from_secs(2));
        assert!(throttle.passes(400));
        assert!(began.elapsed() >= Duration::from_millis(300), "450 bytes take 0.45 s, less 0.1 s");
        stop.stop();
        assert!(!throttle.passes(u64::MAX / 2), "it does not wait for a thousand years");
        assert!(!Throttle::new(None, stop).passes(1));
    }
}
