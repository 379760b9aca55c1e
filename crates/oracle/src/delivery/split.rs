//! Where a transaction is split, so that none of the log's own transactions grows without bound.

/// When a transaction is split (`cdc.eos.split.max.records`, `cdc.eos.split.max.bytes`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitLimits {
    /// Above so many changes.
    pub records: u64,
    /// Above so many bytes of keys, values and headers.
    pub bytes: u64,
}

/// What has gathered since the last cut of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    limits: SplitLimits,
    records: u64,
    bytes: u64,
    cuts: u64,
    is_split: bool,
}

impl Split {
    /// Of a transaction with so many changes. That it is above the limit of bytes is known only on the
    /// way.
    pub(crate) const fn new(limits: SplitLimits, changes: u64) -> Self {
        Self { limits, records: 0, bytes: 0, cuts: 0, is_split: changes > limits.records }
    }

    /// Whether the transaction is one that is split, as far as that is known.
    pub(crate) const fn is_split(&self) -> bool {
        self.is_split
    }

    /// How often it was cut.
    pub(crate) const fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Takes note of the records of a change, and says whether to cut behind it. A transaction is not cut
    /// behind its last change.
    pub(crate) const fn cuts_behind(&mut self, records: u64, bytes: u64, is_last: bool) -> bool {
        self.records = self.records.saturating_add(records);
        self.bytes = self.bytes.saturating_add(bytes);
        let is_full = self.records >= self.limits.records || self.bytes >= self.limits.bytes;
        if !is_full || is_last {
            return false;
        }
        self.records = 0;
        self.bytes = 0;
        self.cuts += 1;
        self.is_split = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(limits: SplitLimits, changes: &[(u64, u64)]) -> Vec<bool> {
        let count = u64::try_from(changes.len()).unwrap();
        let mut split = Split::new(limits, count);
        let last = changes.len() - 1;
        let cut = |(at, (records, bytes)): (usize, &(u64, u64))| {
            split.cuts_behind(*records, *bytes, at == last)
        };
        changes.iter().enumerate().map(cut).collect()
    }

    #[test]
    fn it_is_cut_where_a_limit_is_reached_and_never_at_its_end() {
        let limits = SplitLimits { records: 2, bytes: 100 };
        assert_eq!(cuts(limits, &[(1, 1); 5]), [false, true, false, true, false]);
        assert_eq!(cuts(limits, &[(1, 1); 2]), [false, false]);
        assert_eq!(cuts(limits, &[(1, 100), (1, 1), (1, 99)]), [true, false, false]);
        // The records of one change stay together.
        assert_eq!(cuts(limits, &[(3, 1), (1, 1)]), [true, false]);
    }

    #[test]
    fn it_is_known_by_its_changes_before_the_first_cut_and_by_its_bytes_behind_it() {
        let limits = SplitLimits { records: 2, bytes: 100 };
        assert!(Split::new(limits, 3).is_split());
        let mut split = Split::new(limits, 2);
        assert!(!split.is_split());
        assert!(split.cuts_behind(1, 100, false) && split.is_split());
    }
}
