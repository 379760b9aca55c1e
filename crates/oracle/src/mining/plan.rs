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
