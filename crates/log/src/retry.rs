//! When something that failed is tried again: the wait doubles from one failure to the next.

/// The first wait and the longest, in milliseconds.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Retry<const FIRST_MS: i64, const MOST_MS: i64> {
    failures: u32,
    next_ms: i64,
}

impl<const FIRST_MS: i64, const MOST_MS: i64> Retry<FIRST_MS, MOST_MS> {
    /// Answers how long it waits now.
    pub(crate) fn failed(&mut self, now_ms: i64) -> i64 {
        // Sixteen doublings are more than any of the bounds.
        let wait = (FIRST_MS << self.failures.min(16)).min(MOST_MS);
        self.failures = self.failures.saturating_add(1);
        self.next_ms = now_ms.saturating_add(wait);
        wait
    }

    pub(crate) const fn is_due(&self, now_ms: i64) -> bool {
        now_ms >= self.next_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failure_it_waits_longer_each_time() {
        let mut retry = Retry::<60_000, 3_600_000>::default();
        assert!(retry.is_due(0));
        assert_eq!(retry.failed(1000), 60_000);
        assert!(!retry.is_due(60_999) && retry.is_due(61_000));
        assert_eq!(retry.failed(61_000), 120_000);
        assert_eq!((0..100).map(|_| retry.failed(0)).max(), Some(3_600_000));
    }
}
