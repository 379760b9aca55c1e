//! What one step reads.

use crate::session::{Dictionary, MiningStart, RedoLog};
use crate::{Cursor, Marks, Scn};

use super::inventory::Inventory;

/// What one step reads: of each thread, the rows in front of the first one whose SCN is at or above
/// `until`. What is behind that row waits, whatever its SCN, so that a thread is always read in the
/// order of its log: its commits are delivered in that order, and its mark leaves nothing out.
///
/// That needs a look at every row up to there, those above `until` among them. A range that ended at
/// `until` would hide them and show late ones behind. So every log that goes on beyond `until` is mined
/// to its end, where by its own nature it holds no row of a higher SCN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// First SCN of the next step.
    pub until: Scn,
    /// First SCN that LogMiner is not asked for; [`Scn::MAX`] where a log is still being written.
    pub mined_until: Scn,
    /// First SCN that LogMiner is asked for.
    pub start: Scn,
    /// Logs that hold what is read.
    pub logs: Vec<RedoLog>,
}

impl Plan {
    /// The step from the cursor up to `until`, which is not above what the inventory has settled.
    pub fn new(inventory: &Inventory, cursor: &Cursor, until: Scn) -> Self {
        let goes_on = |log: &&RedoLog| log.first < until && until < log.next;
        let mined_until =
            inventory.logs().filter(goes_on).map(|log| log.next).max().unwrap_or(until);
        let begins_before = |log: &&RedoLog| log.first < mined_until;
        let logs: Vec<_> = inventory.logs().filter(begins_before).cloned().collect();
        let start = start(&logs, cursor);
        Self { until, mined_until, start, logs }
    }

    /// What LogMiner is started over. In range mode it finds the logs itself.
    pub fn mining_start(&self, is_range_mode: bool) -> MiningStart {
        let end = match self.mined_until {
            Scn::MAX => Scn::MAX,
            until => until.previous(),
        };
        let logs = if is_range_mode { Vec::new() } else { self.logs.clone() };
        MiningStart { logs, start: self.start, end, dictionary: Dictionary::Online }
    }
}

/// Rows of a log have SCNs from its first one on, late ones too: a private strand is written to its log
/// before the switch at the latest. So with marks LogMiner begins where the oldest log does. Without, the
/// SCN alone says where to begin.
fn start(logs: &[RedoLog], cursor: &Cursor) -> Scn {
    let first = logs.iter().map(|log| log.first).min();
    match cursor.marks {
        Marks::None => cursor.scn,
        Marks::AnyThread(_) | Marks::Threads(_) => {
            first.map_or(cursor.scn, |first| first.min(cursor.scn))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::LogPlace;
    use crate::{RedoAddress, RedoThread};
    use std::collections::BTreeMap;

    fn log(thread: u32, sequence: u64, first: u64, next: u64) -> RedoLog {
        RedoLog {
            thread: RedoThread(thread),
            sequence,
            first: Scn(first),
            next: if next == 0 { Scn::MAX } else { Scn(next) },
            name: String::new(),
            place: LogPlace::Online,
            begins_dictionary: false,
            ends_dictionary: false,
        }
    }

    fn inventory(logs: &[RedoLog], horizon: Scn) -> Inventory {
        let mut threads: BTreeMap<RedoThread, Vec<RedoLog>> = BTreeMap::new();
        logs.iter().for_each(|log| threads.entry(log.thread).or_default().push(log.clone()));
        Inventory { threads, horizon }
    }

    fn marked(scn: u64) -> Cursor {
        let marks = Marks::AnyThread(RedoAddress::start_of_log(1));
        Cursor { scn: Scn(scn), marks }
    }

    #[test]
    fn at_the_end_of_a_log_nothing_beyond_is_mined() {
        let inventory = inventory(&[log(1, 1, 10, 20), log(1, 2, 20, 0)], Scn::MAX);
        let plan = Plan::new(&inventory, &marked(15), Scn(20));
        assert_eq!((plan.mined_until, plan.start, plan.logs.len()), (Scn(20), Scn(10), 1));
        assert_eq!(plan.mining_start(false).end, Scn(19));
    }

    #[test]
    fn a_log_that_goes_on_is_mined_to_its_end_and_the_others_as_far() {
        let logs = [log(1, 1, 10, 20), log(1, 2, 20, 30), log(1, 3, 30, 40), log(2, 7, 5, 35)];
        let plan = Plan::new(&inventory(&logs, Scn(35)), &marked(15), Scn(20));
        assert_eq!((plan.mined_until, plan.start), (Scn(35), Scn(5)));
        let sequences: Vec<_> = plan.logs.iter().map(|log| log.sequence).collect();
        assert_eq!(sequences, [1, 2, 3, 7]);
    }

    #[test]
    fn a_log_that_is_written_is_mined_without_an_end() {
        let plan = Plan::new(&inventory(&[log(1, 1, 10, 0)], Scn::MAX), &marked(15), Scn(20));
        assert_eq!(plan.mining_start(false).end, Scn::MAX);
        assert!(plan.mining_start(true).logs.is_empty());
    }

    #[test]
    fn a_start_from_an_scn_begins_there() {
        let cursor = Cursor { scn: Scn(15), marks: Marks::None };
        let plan = Plan::new(&inventory(&[log(1, 1, 10, 0)], Scn::MAX), &cursor, Scn(20));
        assert_eq!(plan.start, Scn(15));
    }
}
