//! The clocks of the database: SCN and time.

use std::collections::BTreeMap;

use highwater_oracle::Scn;

use crate::random::Random;

/// 2026-01-05 08:00:00 UTC, in milliseconds since 1970.
const FIRST_TIME_MS: i64 = 1_767_600_000_000;
const FIRST_SCN: u64 = 1_000_000;

/// The SCN and the time of day. Both rise; the SCN with ties, as redo records of one moment have one.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    scn: u64,
    time_ms: i64,
    /// The SCN at the beginning of each second that was seen.
    seconds: BTreeMap<i64, u64>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let mut clock = Self { scn: FIRST_SCN, time_ms: FIRST_TIME_MS, seconds: BTreeMap::new() };
        clock.note();
        clock
    }

    /// `CURRENT_SCN`.
    pub(crate) const fn scn(&self) -> Scn {
        Scn(self.scn)
    }

    /// The time in microseconds since 1970. `TIMESTAMP` is a DATE: whole seconds.
    pub(crate) const fn time_us(&self) -> i64 {
        self.time_ms.div_euclid(1000) * 1_000_000
    }

    /// `TIMESTAMP_TO_SCN`: `None` for a time before the first redo; of a time that is still to come the
    /// current one.
    pub(crate) fn scn_at(&self, time_us: i64) -> Option<Scn> {
        if time_us > self.time_us() {
            return Some(self.scn());
        }
        self.seconds.range(..=time_us).next_back().map(|(_, scn)| Scn(*scn))
    }

    fn note(&mut self) {
        self.seconds.entry(self.time_us()).or_insert(self.scn);
    }

    /// Time goes by between two actions.
    pub(crate) fn pass(&mut self, random: &mut Random) {
        self.time_ms = self.time_ms.saturating_add_unsigned(random.between(1, 400));
        if random.one_in(4) {
            self.scn += random.between(1, 3);
        }
        self.note();
    }

    /// The SCN of a redo record: often that of the record before it.
    pub(crate) fn tick(&mut self, random: &mut Random) -> Scn {
        if !random.one_in(3) {
            self.scn += random.between(1, 3);
        }
        self.scn()
    }

    /// An SCN that no record has yet.
    pub(crate) const fn advance(&mut self) -> Scn {
        self.scn += 1;
        self.scn()
    }

    /// Goes past an SCN, as an instance does that reads a block which another has changed.
    pub(crate) fn pass_scn(&mut self, scn: Scn) {
        self.scn = self.scn.max(scn.0 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scn_rises_with_ties() {
        let (mut clock, mut random) = (Clock::new(), Random::new(3));
        let scns: Vec<_> = (0..100).map(|_| clock.tick(&mut random)).collect();
        assert!(scns.is_sorted());
        assert!(scns.windows(2).any(|pair| pair[0] == pair[1]));
        assert!(clock.advance() > scns[99]);
    }

    #[test]
    fn times_are_whole_seconds() {
        let (mut clock, mut random) = (Clock::new(), Random::new(3));
        for _ in 0..100 {
            let before = clock.time_us();
            clock.pass(&mut random);
            assert_eq!(clock.time_us() % 1_000_000, 0);
            assert!(clock.time_us() >= before);
        }
    }
}
