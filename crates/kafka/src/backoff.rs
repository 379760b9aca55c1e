//! Pauses between attempts.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// Doubling pauses with jitter, so that many clients of a broker that comes back do not arrive
/// together.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The next pause: between a half and the whole of the doubled one, at most a second.
    pub(crate) fn pause(&mut self) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.attempts.min(10)).min(LONGEST);
        self.attempts = self.attempts.saturating_add(1);
        whole.mul_f64(rand::random_range(0.5..=1.0))
    }

    /// Begins again, after a success.
    pub(crate) const fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_begin_again() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..50).map(|_| backoff.pause()).collect();
        assert!(pauses[0] <= FIRST && pauses[0] >= FIRST / 2);
        assert!(pauses[49] <= LONGEST && pauses[49] >= LONGEST / 2);
        backoff.reset();
        assert!(backoff.pause() <= FIRST);
    }
}
