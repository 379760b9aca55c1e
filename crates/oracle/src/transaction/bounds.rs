//! The oldest open work of each redo thread, from which a restart has to read.

use std::collections::{BTreeMap, BTreeSet};

use crate::{RedoAddress, RedoPoint, RedoThread, Scn, TransactionKey};

/// Points from which transactions are open, ordered, so that the oldest is found at once.
#[derive(Debug, Default)]
pub(super) struct OpenBounds {
    threads: BTreeMap<RedoThread, ThreadBounds>,
}

/// Redo of a private strand reaches the log late, under its old SCN: the lowest SCN and the lowest
/// address may be those of two transactions.
#[derive(Debug, Default)]
struct ThreadBounds {
    scns: BTreeSet<(Scn, TransactionKey)>,
    addresses: BTreeSet<(RedoAddress, TransactionKey)>,
}

impl OpenBounds {
    /// A transaction is open from a point on.
    pub(super) fn insert(&mut self, key: TransactionKey, point: &RedoPoint) {
        let thread = self.threads.entry(point.thread).or_default();
        thread.scns.insert((point.scn, key));
        thread.addresses.extend(point.address.map(|address| (address, key)));
    }

    /// Takes back what was inserted.
    pub(super) fn remove(&mut self, key: TransactionKey, point: &RedoPoint) {
        if let Some(thread) = self.threads.get_mut(&point.thread) {
            thread.scns.remove(&(point.scn, key));
            if let Some(address) = point.address {
                thread.addresses.remove(&(address, key));
            }
        }
    }

    /// One point for each thread with open work: the lowest SCN and the lowest address of it. Without
    /// an address where some of the work has none.
    pub(super) fn oldest(&self) -> impl Iterator<Item = RedoPoint> + '_ {
        self.threads.iter().filter_map(|(&thread, bounds)| {
            let &(scn, _) = bounds.scns.first()?;
            let have_all = bounds.scns.len() == bounds.addresses.len();
            let lowest = bounds.addresses.first().map(|&(address, _)| address);
            Some(RedoPoint { thread, scn, address: lowest.filter(|_| have_all) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(thread: u32, scn: u64, block: Option<u64>) -> RedoPoint {
        let address = block.map(|block| RedoAddress { sequence: 7, block, byte: 16, ssn: 0 });
        RedoPoint { thread: RedoThread(thread), scn: Scn(scn), address }
    }

    fn key(sequence: u32) -> TransactionKey {
        format!("5.1.{sequence}").parse().unwrap()
    }

    #[test]
    fn each_thread_has_its_own_oldest() {
        let mut bounds = OpenBounds::default();
        bounds.insert(key(1), &point(1, 30, Some(300)));
        bounds.insert(key(2), &point(2, 20, Some(900)));
        bounds.insert(key(3), &point(1, 40, Some(400)));
        let oldest: Vec<RedoPoint> = bounds.oldest().collect();
        assert_eq!(oldest, [point(1, 30, Some(300)), point(2, 20, Some(900))]);
        bounds.remove(key(1), &point(1, 30, Some(300)));
        bounds.remove(key(2), &point(2, 20, Some(900)));
        assert_eq!(bounds.oldest().collect::<Vec<_>>(), [point(1, 40, Some(400))]);
    }

    #[test]
    fn a_late_strand_lowers_the_scn_and_not_the_address() {
        let mut bounds = OpenBounds::default();
        bounds.insert(key(1), &point(1, 30, Some(300)));
        bounds.insert(key(2), &point(1, 10, Some(800)));
        assert_eq!(bounds.oldest().collect::<Vec<_>>(), [point(1, 10, Some(300))]);
    }

    #[test]
    fn work_without_an_address_leaves_the_scn_alone() {
        let mut bounds = OpenBounds::default();
        bounds.insert(key(1), &point(1, 30, Some(300)));
        bounds.insert(key(2), &point(1, 50, None));
        assert_eq!(bounds.oldest().collect::<Vec<_>>(), [point(1, 30, None)]);
    }
}
