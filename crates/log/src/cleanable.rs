//! Which part of a partition may be compacted now, and whether it is worth it. Pure; the rules are Kafka's.

use crate::topic_config::Compaction;

/// What has to be known of a closed segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Closed {
    pub(crate) base: i64,
    /// The offset behind it.
    pub(crate) end: i64,
    pub(crate) size: u64,
    /// Of its records' times, in milliseconds, -1 if none bears one.
    pub(crate) greatest: i64,
    /// The time of its first batch, or -1.
    pub(crate) first: i64,
}

/// What bounds a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    pub(crate) log_start: i64,
    pub(crate) log_end: i64,
    /// The last stable offset: no transaction below it can still end either way.
    pub(crate) stable: i64,
    /// How far it was compacted, as far as that is known.
    pub(crate) cleaned_to: Option<i64>,
}

/// The part of a partition that a pass would cover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cleanable {
    /// Below it everything was compacted before, and is gone through again.
    pub(crate) first_dirty: i64,
    /// Where the pass ends: at the end of a closed segment.
    pub(crate) end: i64,
    pub(crate) clean_bytes: u64,
    pub(crate) dirty_bytes: u64,
    /// True if a record waits longer than `max.compaction.lag.ms`.
    pub(crate) is_overdue: bool,
}

impl Cleanable {
    /// `closed` are the closed segments, oldest first.
    pub(crate) fn of(closed: &[Closed], bounds: &Bounds, config: &Compaction, now_ms: i64) -> Self {
        let first_dirty = bounds.first_dirty();
        let is_dirty = |segment: &&Closed| segment.end > first_dirty;
        let young = now_ms.saturating_sub(config.min_lag_ms);
        let too_young = |segment: &&Closed| {
            config.min_lag_ms > 0 && is_dirty(segment) && segment.greatest > young
        };
        let covered =
            closed.iter().take_while(|segment| segment.end <= bounds.stable && !too_young(segment));
        let mut cleanable = Self {
            first_dirty,
            end: first_dirty,
            clean_bytes: 0,
            dirty_bytes: 0,
            is_overdue: false,
        };
        let oldest = now_ms.saturating_sub(config.max_lag_ms);
        for segment in covered {
            if is_dirty(&segment) {
                cleanable.dirty_bytes += segment.size;
                cleanable.end = segment.end;
                cleanable.is_overdue |= segment.first > 0 && segment.first < oldest;
            } else {
                cleanable.clean_bytes += segment.size;
            }
        }
        cleanable
    }

    /// The share of bytes that was not compacted yet.
    pub(crate) fn ratio(&self) -> f64 {
        let dirty = self.dirty_bytes as f64;
        if self.dirty_bytes == 0 { 0.0 } else { dirty / (dirty + self.clean_bytes as f64) }
    }

    /// Whether a pass is due.
    pub(crate) fn is_due(&self, config: &Compaction) -> bool {
        self.dirty_bytes > 0 && (self.is_overdue || self.ratio() > config.min_dirty_ratio)
    }
}

impl Bounds {
    /// A point that does not lie in the log, after it was cut or its start was moved, says nothing.
    fn first_dirty(&self) -> i64 {
        let lies = |point: &i64| (self.log_start..=self.log_end).contains(point);
        self.cleaned_to.filter(lies).unwrap_or(self.log_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TopicConfig;

    fn closed(base: i64, end: i64, time: i64) -> Closed {
        Closed { base, end, size: 100, greatest: time, first: time }
    }

    fn three() -> [Closed; 3] {
        [closed(0, 10, 100), closed(10, 20, 200), closed(20, 30, 300)]
    }

    fn bounds(stable: i64, cleaned_to: Option<i64>) -> Bounds {
        Bounds { log_start: 0, log_end: 35, stable, cleaned_to }
    }

    fn config(min_lag_ms: i64, max_lag_ms: i64) -> Compaction {
        Compaction { min_lag_ms, max_lag_ms, ..TopicConfig::default().compaction }
    }

    fn of(bounds: Bounds, config: &Compaction, now_ms: i64) -> Cleanable {
        Cleanable::of(&three(), &bounds, config, now_ms)
    }

    #[test]
    fn a_pass_begins_where_the_last_one_ended() {
        let config = config(0, i64::MAX);
        let all = of(bounds(35, None), &config, 1000);
        assert_eq!((all.first_dirty, all.end, all.dirty_bytes, all.clean_bytes), (0, 30, 300, 0));
        let rest = of(bounds(35, Some(20)), &config, 1000);
        assert_eq!(
            (rest.first_dirty, rest.end, rest.dirty_bytes, rest.clean_bytes),
            (20, 30, 100, 200)
        );
        let inside = of(bounds(35, Some(15)), &config, 1000);
        assert_eq!((inside.first_dirty, inside.dirty_bytes), (15, 200), "a full map ends anywhere");
        assert_eq!(of(bounds(35, Some(36)), &config, 1000).first_dirty, 0, "the log was cut");
        let done = of(bounds(35, Some(30)), &config, 1000);
        assert!(done.dirty_bytes == 0 && !done.is_due(&config));
    }

    #[test]
    fn a_segment_above_the_last_stable_offset_waits() {
        let config = config(0, i64::MAX);
        assert_eq!(of(bounds(30, None), &config, 1000).end, 30);
        assert_eq!(of(bounds(29, None), &config, 1000).end, 20);
        assert_eq!(of(bounds(9, None), &config, 1000).dirty_bytes, 0);
    }

    #[test]
    fn a_record_is_not_compacted_too_early() {
        let config = config(50, i64::MAX);
        assert_eq!(of(bounds(35, None), &config, 250).end, 20, "200 is 50 old, 300 is not");
        assert_eq!(of(bounds(35, None), &config, 249).end, 10);
        let known = of(bounds(35, Some(30)), &config, 0);
        assert_eq!(known.clean_bytes, 300, "what was compacted is gone through again");
    }

    #[test]
    fn it_is_worth_it_above_the_ratio_or_when_a_record_waited_too_long() {
        let ratio = Compaction { min_dirty_ratio: 0.33, ..config(0, i64::MAX) };
        assert!(of(bounds(35, Some(20)), &ratio, 1000).is_due(&ratio), "a third is above");
        let half = config(0, i64::MAX);
        assert!(!of(bounds(35, Some(20)), &half, 1000).is_due(&half));
        let lag = config(0, 700);
        assert!(!of(bounds(35, Some(20)), &lag, 1000).is_due(&lag));
        assert!(of(bounds(35, Some(20)), &lag, 1001).is_due(&lag));
        let none = Compaction { min_dirty_ratio: 0.0, ..lag };
        assert!(!of(bounds(9, None), &none, i64::MAX).is_due(&none), "there is nothing to do");
    }
}
