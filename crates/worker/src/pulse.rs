//! Whether the log takes what a task sends: a task that waits for it can say nothing itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

/// Shorter silence is an ordinary sync of a busy disk.
const SHORT: SignedDuration = SignedDuration::from_secs(5);

/// No time: nothing waits.
const NOTHING: i64 = i64::MIN;

/// Since when records wait of which the log has taken none, in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Pulse(Arc<AtomicI64>);

impl Default for Pulse {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(NOTHING)))
    }
}

impl Pulse {
    /// Something was sent.
    pub(crate) fn sent(&self) {
        // One that waits longer stays the one that counts.
        let now = Timestamp::now().as_millisecond();
        let _ = self.0.compare_exchange(NOTHING, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The log took something; whether more waits.
    pub(crate) fn taken(&self, more: bool) {
        let since = if more { Timestamp::now().as_millisecond() } else { NOTHING };
        self.0.store(since, Ordering::Relaxed);
    }

    /// In words, once it lasts.
    pub(crate) fn silence(&self, now: Timestamp) -> Option<String> {
        let since = Timestamp::from_millisecond(self.0.load(Ordering::Relaxed)).ok()?;
        (now.duration_since(since) >= SHORT).then(|| {
            format!("the log has taken nothing since {since:.0}: what was read waits, and its source with it")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_once_it_lasts_and_ends_with_the_next_record() {
        let pulse = Pulse::default();
        let later = Timestamp::now() + SignedDuration::from_secs(60);
        assert_eq!(pulse.silence(later), None, "nothing waits");
        pulse.sent();
        assert_eq!(pulse.silence(Timestamp::now()), None, "it is soon");
        pulse.sent();
        let said = pulse.silence(later).unwrap();
        assert!(said.starts_with("the log has taken nothing since 2"), "{said}");
        pulse.taken(true);
        assert!(pulse.silence(later).is_some(), "more waits");
        pulse.taken(false);
        assert_eq!(pulse.silence(later), None);
    }
}
