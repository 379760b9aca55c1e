//! How long to wait before a failed task is tried again, and how often.

use std::time::Duration;

/// First delay; each attempt doubles it (KIP-298).
const FIRST: Duration = Duration::from_millis(300);

/// Kafka Connect's error retries: 300 ms doubled an attempt, random below the cap once it passes
/// it (KIP-298).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Backoff {
    /// Greatest delay.
    pub(crate) cap: Duration,
    /// Time after the first failure until the task gives up; `None` tries for ever.
    pub(crate) give_up_after: Option<Duration>,
}

impl Backoff {
    /// The delay before attempt number `attempt` (from 1), or `None` when the task gives up.
    /// `failing_for` is the time since it last made progress, `chance` a random number in 0..1.
    ///
    /// Below the cap the upper half of the delay is random, so that tasks that failed together
    /// do not come back together.
    pub(crate) fn delay(
        &self,
        attempt: u32,
        failing_for: Duration,
        chance: f64,
    ) -> Option<Duration> {
        if self.give_up_after.is_some_and(|limit| failing_for >= limit) {
            return None;
        }
        let chance = chance.clamp(0.0, 1.0);
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        if doubled > self.cap {
            // Never at once: a source that is down is not helped by a storm.
            return Some(FIRST.min(self.cap).max(self.cap.mul_f64(chance)));
        }
        Some(doubled.mul_f64(0.5 + chance / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn delays_double_up_to_the_cap() {
        let backoff = Backoff { cap: 60 * SECOND, give_up_after: None };
        let delays: Vec<u128> = (1..=4)
            .filter_map(|attempt| backoff.delay(attempt, SECOND, 1.0))
            .map(|delay| delay.as_millis())
            .collect();
        assert_eq!(delays, [300, 600, 1200, 2400]);
        assert_eq!(backoff.delay(40, SECOND, 0.5), Some(30 * SECOND));
    }

    #[test]
    fn it_gives_up_after_its_time() {
        let backoff = Backoff { cap: SECOND, give_up_after: Some(10 * SECOND) };
        assert!(backoff.delay(3, 9 * SECOND, 0.5).is_some());
        assert_eq!(backoff.delay(3, 10 * SECOND, 0.5), None);
    }

    proptest! {
        #[test]
        fn a_delay_is_never_zero_and_never_above_the_cap(
            attempt in 0_u32..=u32::MAX, cap in 1_u64..100_000, chance in 0.0_f64..1.0,
        ) {
            let cap = Duration::from_millis(cap);
            let backoff = Backoff { cap, give_up_after: None };
            let delay = backoff.delay(attempt, Duration::ZERO, chance).unwrap();
            prop_assert!(delay > Duration::ZERO && delay <= cap, "{delay:?}");
        }
    }
}
