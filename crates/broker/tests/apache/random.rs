//! Numbers that one seed decides.

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `end`, which it does not reach.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.bits() % end as u64).unwrap()
    }

    /// From `first` to `last`, both among them.
    pub(crate) fn between(&mut self, first: i64, last: i64) -> i64 {
        first + i64::try_from(self.bits() % (last - first + 1).unsigned_abs()).unwrap()
    }

    /// True this many times in a hundred.
    pub(crate) fn percent(&mut self, times: u64) -> bool {
        self.bits() % 100 < times
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub(crate) fn version(&mut self, versions: std::ops::RangeInclusive<i16>) -> i16 {
        i16::try_from(self.between((*versions.start()).into(), (*versions.end()).into())).unwrap()
    }
}
