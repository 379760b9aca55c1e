//! Which changes of a transaction were taken back: two bits a change, from the first undo on.

/// What became of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It stands.
    Stands,
    /// It is kept as an update whose large objects are unavailable, and is not taken back again.
    Downgraded,
    /// It is gone.
    Removed,
}

/// The fates of the changes of a transaction, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Fates {
    /// 32 changes a word; what lies beyond stands.
    words: Vec<u64>,
    removed: u64,
    downgraded: u64,
}

const CHANGES: u64 = 32;

impl Fates {
    /// What became of a change.
    pub(super) fn get(&self, number: u64) -> Fate {
        let word = self.words.get((number / CHANGES) as usize).copied().unwrap_or_default();
        match word >> shift(number) & 0b11 {
            0 => Fate::Stands,
            1 => Fate::Downgraded,
            _ => Fate::Removed,
        }
    }

    /// Downgrades a change that stands.
    pub(super) fn downgrade(&mut self, number: u64) {
        *self.word(number) |= 0b01 << shift(number);
        self.downgraded += 1;
    }

    /// Removes a change that stands or was downgraded.
    pub(super) fn remove(&mut self, number: u64) {
        self.downgraded -= u64::from(self.get(number) == Fate::Downgraded);
        *self.word(number) |= 0b10 << shift(number);
        self.removed += 1;
    }

    /// How many are gone.
    pub(super) const fn removed(&self) -> u64 {
        self.removed
    }

    /// How many are downgraded and not gone.
    pub(super) const fn downgraded(&self) -> u64 {
        self.downgraded
    }

    /// Bytes that it holds.
    pub(super) const fn memory(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    fn word(&mut self, number: u64) -> &mut u64 {
        let index = (number / CHANGES) as usize;
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        &mut self.words[index]
    }
}

const fn shift(number: u64) -> u64 {
    number % CHANGES * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_are_kept_by_number() {
        let mut fates = Fates::default();
        assert_eq!((fates.get(1_000_000), fates.memory()), (Fate::Stands, 0));
        for number in [0, 31, 32, 70] {
            fates.remove(number);
        }
        fates.downgrade(33);
        fates.downgrade(34);
        fates.remove(34);
        let gone: Vec<u64> =
            (0..100).filter(|&number| fates.get(number) == Fate::Removed).collect();
        assert_eq!(gone, [0, 31, 32, 34, 70]);
        assert_eq!(fates.get(33), Fate::Downgraded);
        assert_eq!((fates.removed(), fates.downgraded()), (5, 1));
    }
}
