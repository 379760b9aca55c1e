//! Where a saved position resumes (rule S2): a decision from facts, without I/O.

use highwater_kafka::{EpochEnd, Watermarks};

use crate::fingerprint::Fingerprint;
use crate::position::Place;

/// What is known of the log; [`decide`] says which fact it lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) edges: Watermarks,
    pub(crate) record: Option<Found>,
    pub(crate) epoch: Option<Epoch>,
    /// Whether the log was given its time to catch up.
    pub(crate) held: bool,
}

/// What stands at the offset of the position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// A record, with its fingerprint if it is one of a trail.
    Record(Option<Fingerprint>),
    /// No record: compacted away.
    Nothing,
}

/// What the log says of the position's leader epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Epoch {
    /// The answer of OffsetForLeaderEpoch.
    pub(crate) end: EpochEnd,
    /// The epoch in force, when the log says it.
    pub(crate) current: Option<i32>,
}

/// What to do with a saved position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// Find out what stands at the offset.
    AskRecord,
    /// Find out where the epoch ended.
    AskEpoch,
    /// Wait for the log to reach the offset.
    Hold,
    /// Go on at this offset.
    Resume(i64),
    /// What follows the position is no longer kept.
    Gone,
    /// The log no longer holds what the position was given for.
    HistoryChanged,
    /// The log has not reached the position.
    AheadOfLog,
}

/// Decides, or says what must be known to decide.
pub(crate) fn decide(place: &Place, facts: &Facts) -> Decision {
    if place.offset >= facts.edges.last_stable {
        ahead(place, facts)
    } else if place.offset < facts.edges.log_start {
        below(place, facts)
    } else {
        inside(place, facts)
    }
}

/// Above the end: either the log was cut and went on differently, or it is late.
fn ahead(place: &Place, facts: &Facts) -> Decision {
    let Some(Epoch { end, current }) = facts.epoch else { return Decision::AskEpoch };
    let left = current.is_some_and(|current| current > place.leader_epoch)
        || (end.end_offset >= 0 && end.end_offset < facts.edges.high_watermark);
    match (left && end.end_offset <= place.offset, facts.held) {
        (true, _) => Decision::HistoryChanged,
        (false, false) => Decision::Hold,
        (false, true) => Decision::AheadOfLog,
    }
}

/// Below the start: gone, unless the very next record is the first that is kept. A client that had
/// come to the end of a trail whose records all aged since has missed nothing.
fn below(place: &Place, facts: &Facts) -> Decision {
    if place.offset + 1 != facts.edges.log_start {
        return Decision::Gone;
    }
    match facts.epoch {
        None => Decision::AskEpoch,
        Some(epoch) if epoch.holds(place) => Decision::Resume(place.offset + 1),
        Some(_) => Decision::Gone,
    }
}

/// Inside: the record itself is the proof; where compaction took it, its epoch is.
fn inside(place: &Place, facts: &Facts) -> Decision {
    match (facts.record, facts.epoch) {
        (None, _) => Decision::AskRecord,
        (Some(Found::Record(fingerprint)), _) if fingerprint == Some(place.fingerprint) => {
            Decision::Resume(place.offset + 1)
        }
        (Some(Found::Record(_)), _) => Decision::HistoryChanged,
        (Some(Found::Nothing), None) => Decision::AskEpoch,
        (Some(Found::Nothing), Some(epoch)) if epoch.holds(place) => {
            Decision::Resume(place.offset + 1)
        }
        (Some(Found::Nothing), Some(_)) => Decision::HistoryChanged,
    }
}

impl Epoch {
    /// Whether the log had the position's epoch beyond the position's offset.
    fn holds(&self, place: &Place) -> bool {
        self.end.leader_epoch == place.leader_epoch && self.end.end_offset > place.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ContractHash;

    const MINE: Fingerprint = Fingerprint([1; 8]);
    const OTHER: Fingerprint = Fingerprint([2; 8]);

    fn place(offset: i64, leader_epoch: i32) -> Place {
        Place { offset, leader_epoch, contract: ContractHash([0; 8]), fingerprint: MINE }
    }

    fn log(log_start: i64, end: i64) -> Facts {
        let edges = Watermarks { log_start, high_watermark: end, last_stable: end };
        Facts { edges, record: None, epoch: None, held: false }
    }

    fn epoch(leader_epoch: i32, end_offset: i64, current: Option<i32>) -> Option<Epoch> {
        Some(Epoch { end: EpochEnd { leader_epoch, end_offset }, current })
    }

    #[test]
    fn the_same_record_resumes_behind_it() {
        let facts = log(0, 10);
        assert_eq!(decide(&place(5, 3), &facts), Decision::AskRecord);
        let facts = Facts { record: Some(Found::Record(Some(MINE))), ..facts };
        assert_eq!(decide(&place(5, 3), &facts), Decision::Resume(6));
        assert_eq!(decide(&place(0, 3), &facts), Decision::Resume(1));
        assert_eq!(decide(&place(9, 3), &facts), Decision::Resume(10));
    }

    #[test]
    fn another_record_is_another_history() {
        for found in [Some(OTHER), None] {
            let facts = Facts { record: Some(Found::Record(found)), ..log(0, 10) };
            assert_eq!(decide(&place(5, 3), &facts), Decision::HistoryChanged);
        }
    }

    #[test]
    fn a_compacted_record_resumes_while_its_epoch_covers_it() {
        let facts = Facts { record: Some(Found::Nothing), ..log(0, 10) };
        assert_eq!(decide(&place(5, 3), &facts), Decision::AskEpoch);
        let covered = Facts { epoch: epoch(3, 6, Some(4)), ..facts };
        assert_eq!(decide(&place(5, 3), &covered), Decision::Resume(6));
        for lost in [epoch(3, 5, Some(4)), epoch(2, 9, Some(4)), epoch(-1, -1, None)] {
            let facts = Facts { epoch: lost, ..facts };
            assert_eq!(decide(&place(5, 3), &facts), Decision::HistoryChanged, "{lost:?}");
        }
    }

    #[test]
    fn above_the_end_an_ended_epoch_is_told_at_once() {
        let facts = log(0, 10);
        assert_eq!(decide(&place(10, 3), &facts), Decision::AskEpoch);
        for ended in [epoch(3, 8, Some(4)), epoch(3, 10, Some(4)), epoch(2, 8, Some(4))] {
            let facts = Facts { epoch: ended, ..facts };
            assert_eq!(decide(&place(10, 3), &facts), Decision::HistoryChanged, "{ended:?}");
        }
        let silent = Facts { epoch: epoch(3, 8, None), ..facts };
        assert_eq!(decide(&place(10, 3), &silent), Decision::HistoryChanged);
    }

    #[test]
    fn above_the_end_of_the_same_epoch_it_waits_and_then_refuses() {
        for same in [epoch(3, 10, Some(3)), epoch(2, 10, Some(2)), epoch(3, 10, None)] {
            let waiting = Facts { epoch: same, ..log(0, 10) };
            assert_eq!(decide(&place(12, 3), &waiting), Decision::Hold, "{same:?}");
            let held = Facts { held: true, ..waiting };
            assert_eq!(decide(&place(12, 3), &held), Decision::AheadOfLog, "{same:?}");
        }
    }

    #[test]
    fn an_ended_epoch_that_reaches_beyond_the_position_holds_it_still() {
        // Its record is in the log and not readable yet.
        let waiting = Facts { epoch: epoch(3, 15, Some(4)), ..log(0, 10) };
        assert_eq!(decide(&place(12, 3), &waiting), Decision::Hold);
    }

    #[test]
    fn below_the_start_it_is_gone() {
        let facts = Facts { epoch: epoch(3, 20, Some(3)), ..log(10, 20) };
        assert_eq!(decide(&place(8, 3), &facts), Decision::Gone);
        assert_eq!(decide(&place(0, 3), &facts), Decision::Gone);
    }

    #[test]
    fn just_below_the_start_nothing_is_missing_while_the_epoch_is_known() {
        let facts = log(10, 10);
        assert_eq!(decide(&place(9, 3), &facts), Decision::AskEpoch);
        let known = Facts { epoch: epoch(3, 10, Some(3)), ..facts };
        assert_eq!(decide(&place(9, 3), &known), Decision::Resume(10));
        let unknown = Facts { epoch: epoch(-1, -1, Some(4)), ..facts };
        assert_eq!(decide(&place(9, 3), &unknown), Decision::Gone);
    }
}
