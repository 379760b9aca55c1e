//! The ledger of transactions that were given up.

use crate::TransactionKey;

/// Transactions that orphan detection released or that were discarded by age, oldest first. A COMMIT
/// of one of them would publish it in part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Released(Vec<TransactionKey>);

impl Released {
    /// How many are kept; the oldest goes first.
    pub const LIMIT: usize = 256;

    /// Adds a transaction.
    pub fn add(&mut self, key: TransactionKey) {
        if self.contains(key) {
            return;
        }
        if self.0.len() == Self::LIMIT {
            self.0.remove(0);
        }
        self.0.push(key);
    }

    /// Whether the transaction was given up.
    pub fn contains(&self, key: TransactionKey) -> bool {
        self.0.contains(&key)
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = TransactionKey> + '_ {
        self.0.iter().copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<TransactionKey> for Released {
    fn from_iter<T: IntoIterator<Item = TransactionKey>>(keys: T) -> Self {
        let mut released = Self::default();
        keys.into_iter().for_each(|key| released.add(key));
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Xid;

    fn key(sequence: u32) -> TransactionKey {
        TransactionKey { container: 3, xid: Xid { usn: 1, slot: 2, sequence } }
    }

    #[test]
    fn the_oldest_goes_first() {
        let released: Released = (0..258).map(key).collect();
        assert_eq!(released.iter().count(), 256);
        assert!(!released.contains(key(1)) && released.contains(key(2)));
        assert_eq!(released.iter().last(), Some(key(257)));
    }

    #[test]
    fn a_transaction_is_kept_once() {
        let released: Released = [key(1), key(2), key(1)].into_iter().collect();
        assert_eq!(released.iter().collect::<Vec<_>>(), [key(1), key(2)]);
    }
}
