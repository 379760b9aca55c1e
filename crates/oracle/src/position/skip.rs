//! Which changes of a commit were acknowledged before.

use std::cmp::Ordering;

use super::{CommitPoint, Lane, ResumePoint};
use crate::{Code, OracleError, Scn};

/// What is left out of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Skip {
    /// Nothing: all of it is delivered.
    Nothing,
    /// So many changes at its beginning, and not all.
    First(u64),
    /// All of it.
    Whole,
}

impl Skip {
    const fn first(changes: u64, size: u64) -> Self {
        match changes {
            0 => Self::Nothing,
            _ if changes >= size => Self::Whole,
            _ => Self::First(changes),
        }
    }
}

/// What to skip of a commit with `size` changes in its thread's lane. `floor` is the SCN of a first
/// start that still holds; `resumed` is the point that the thread was resumed from, where it is
/// checked (see [`check_floor`]).
///
/// # Errors
/// CDC-7003 as [`check_floor`].
pub(super) fn rule(
    commit: &CommitPoint,
    size: u64,
    lane: &Lane,
    floor: Option<Scn>,
    resumed: Option<ResumePoint>,
) -> Result<Skip, OracleError> {
    match &lane.mark {
        Some(mark) => match order(commit, &mark.commit) {
            Ordering::Less => return Ok(Skip::Whole),
            Ordering::Equal if mark.acknowledged.is_all() => return Ok(Skip::Whole),
            Ordering::Equal => return Ok(Skip::first(mark.acknowledged.changes(), size)),
            Ordering::Greater => {}
        },
        None if floor.is_some_and(|floor| commit.at.scn < floor) => return Ok(Skip::Whole),
        None => {}
    }
    resumed.map_or(Ok(()), |resumed| check_floor(commit, resumed))?;
    Ok(Skip::Nothing)
}

/// Order of a commit beside the mark of its thread: redo order, and SCN only where an address is
/// missing. Another commit at the mark's own address is the row before it, which lent the mark its
/// address. Another of the mark's SCN may stand on either side of it: to deliver it twice is better
/// than to lose it.
fn order(commit: &CommitPoint, mark: &CommitPoint) -> Ordering {
    if is_same(commit, mark) {
        return Ordering::Equal;
    }
    match (commit.at.address, mark.at.address) {
        (Some(commit), Some(mark)) => commit.cmp(&mark).then(Ordering::Less),
        _ => commit.at.scn.cmp(&mark.at.scn).then(Ordering::Greater),
    }
}

/// The id alone is not enough: it is used again after it has wrapped.
fn is_same(commit: &CommitPoint, mark: &CommitPoint) -> bool {
    let is_same_row = commit.at.address.is_some() && commit.at.address == mark.at.address;
    commit.key == mark.key && (commit.at.scn == mark.at.scn || is_same_row)
}

/// Checks that a commit which is not at or before the mark of its thread lies at or after the point
/// that the thread was resumed from. Only several threads are checked.
///
/// Rows are selected by address from the point on, so a lower commit is seen only where a point is an
/// SCN without address: after a first start, a hand edit, or a row with an address of all zeros. Then
/// redo of the thread below that SCN was left out of the first step, or all of it was read from the
/// lower SCN of another thread. A commit that reaches the log late, under a lower SCN, may have lost
/// its first changes so, and delivering the rest would publish it in part. While the floor of a first
/// start holds it is skipped instead.
///
/// # Errors
/// CDC-7003 when it lies before.
fn check_floor(commit: &CommitPoint, resumed: ResumePoint) -> Result<(), OracleError> {
    if !resumed.is_after(&commit.at) {
        return Ok(());
    }
    let CommitPoint { key, at } = commit;
    let from = resumed.address.map(|address| format!(" ({address})")).unwrap_or_default();
    Err(OracleError::new(
        Code::CommitBelowFloor,
        format!(
            "transaction {key} commits at SCN {} of redo thread {}, below SCN {}{from}, from which \
             the thread was resumed, and was not acknowledged: some of its changes may not have been \
             read",
            at.scn, at.thread, resumed.scn
        ),
        format!(
            "stop the connector, move resume_scn to the first change of the transaction, at or below \
             SCN {}, and resume it; what was acknowledged is not delivered again",
            at.scn
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{Acknowledged, CommitMark};
    use super::*;
    use crate::{RedoAddress, RedoPoint, RedoThread, TransactionKey, Xid};

    fn commit(sequence: u32, scn: u64, block: Option<u64>) -> CommitPoint {
        let address = block.map(|block| RedoAddress { sequence: 7, block, byte: 16, ssn: 0 });
        CommitPoint {
            key: TransactionKey { container: 3, xid: Xid { usn: 1, slot: 2, sequence } },
            at: RedoPoint { thread: RedoThread(1), scn: Scn(scn), address },
        }
    }

    fn lane(mark: Option<CommitPoint>, acknowledged: Acknowledged) -> Lane {
        let mark = mark.map(|commit| CommitMark { commit, acknowledged });
        Lane { thread: RedoThread(1), resume: ResumePoint::default(), mark }
    }

    const TWO_OF_THREE: Acknowledged = Acknowledged::First { changes: 2, of: Some(3) };

    #[test]
    fn redo_order_decides_and_not_the_scn() {
        let lane = lane(Some(commit(5, 100, Some(20))), TWO_OF_THREE);
        let rule = |commit| rule(&commit, 3, &lane, None, None).unwrap();
        assert_eq!(rule(commit(4, 120, Some(19))), Skip::Whole);
        assert_eq!(rule(commit(5, 100, Some(20))), Skip::First(2));
        assert_eq!(rule(commit(6, 80, Some(21))), Skip::Nothing);
    }

    #[test]
    fn without_an_address_the_scn_decides_and_a_tie_is_delivered() {
        for (mark, address) in [(None, Some(21)), (Some(20), None), (None, None)] {
            let lane = lane(Some(commit(5, 100, mark)), Acknowledged::All);
            let rule = |commit| rule(&commit, 3, &lane, None, None).unwrap();
            assert_eq!(rule(commit(9, 99, address)), Skip::Whole);
            assert_eq!(rule(commit(5, 100, address)), Skip::Whole);
            for other in [4, 6] {
                assert_eq!(rule(commit(other, 100, address)), Skip::Nothing);
            }
            assert_eq!(rule(commit(5, 101, address)), Skip::Nothing);
        }
    }

    #[test]
    fn the_row_that_lent_its_address_stands_before_the_mark() {
        let lane = lane(Some(commit(5, 100, Some(20))), TWO_OF_THREE);
        let rule = |commit| rule(&commit, 3, &lane, None, None).unwrap();
        assert_eq!(rule(commit(9, 130, Some(20))), Skip::Whole);
        assert_eq!(rule(commit(5, 100, None)), Skip::First(2));
    }

    #[test]
    fn more_than_there_is_counts_as_all() {
        let of = |changes, of, size| {
            let lane = lane(Some(commit(5, 100, Some(20))), Acknowledged::First { changes, of });
            rule(&commit(5, 100, Some(20)), size, &lane, None, None).unwrap()
        };
        assert_eq!(of(4, None, 3), Skip::Whole);
        assert_eq!(of(3, None, 3), Skip::Whole);
        assert_eq!(of(2, None, 3), Skip::First(2));
        assert_eq!(of(0, Some(3), 3), Skip::Nothing);
        // All was acknowledged of what was captured then.
        assert_eq!(of(3, Some(3), 5), Skip::Whole);
    }

    #[test]
    fn without_a_mark_only_the_floor_of_a_first_start_skips() {
        let lane = lane(None, Acknowledged::All);
        let rule = |scn, floor: Option<u64>| {
            rule(&commit(5, scn, Some(1)), 3, &lane, floor.map(Scn), None).unwrap()
        };
        assert_eq!(rule(99, Some(100)), Skip::Whole);
        assert_eq!(rule(100, Some(100)), Skip::Nothing);
        assert_eq!(rule(99, None), Skip::Nothing);
    }

    #[test]
    fn a_commit_below_the_point_that_was_resumed_from_stops() {
        let lane = lane(None, Acknowledged::All);
        let check = |commit, resumed| rule(&commit, 3, &lane, None, Some(resumed));
        let by_scn = ResumePoint { scn: Scn(100), address: None };
        let error = check(commit(5, 99, Some(30)), by_scn).unwrap_err();
        assert_eq!(error.code, Code::CommitBelowFloor);
        assert!(error.what.contains("SCN 99") && error.what.contains("SCN 100"), "{error}");
        assert_eq!(check(commit(5, 100, Some(30)), by_scn), Ok(Skip::Nothing));
        let by_address = ResumePoint { address: commit(0, 0, Some(30)).at.address, ..by_scn };
        assert_eq!(check(commit(5, 99, Some(30)), by_address), Ok(Skip::Nothing));
        assert!(check(commit(5, 101, Some(29)), by_address).is_err());
        assert!(check(commit(5, 99, None), by_address).is_err());
    }

    #[test]
    fn what_was_acknowledged_is_not_checked() {
        let resumed = Some(ResumePoint { scn: Scn(200), address: None });
        let none = Acknowledged::First { changes: 0, of: Some(3) };
        let lane = lane(Some(commit(5, 100, Some(20))), none);
        let rule = |commit| rule(&commit, 3, &lane, Some(Scn(150)), resumed);
        assert_eq!(rule(commit(4, 90, Some(19))), Ok(Skip::Whole));
        assert_eq!(rule(commit(5, 100, Some(20))), Ok(Skip::Nothing));
        assert!(rule(commit(6, 199, Some(21))).is_err());
    }

    #[test]
    fn before_a_first_start_a_commit_is_skipped_and_not_checked() {
        let lane = lane(None, Acknowledged::All);
        let resumed = Some(ResumePoint { scn: Scn(100), address: None });
        let rule = rule(&commit(5, 99, Some(30)), 3, &lane, Some(Scn(100)), resumed);
        assert_eq!(rule, Ok(Skip::Whole));
    }

    #[test]
    fn a_commit_is_known_by_its_row_where_its_scn_was_not_stored() {
        let lane = lane(Some(commit(5, 0, Some(20))), TWO_OF_THREE);
        let rule = |commit| rule(&commit, 3, &lane, None, None);
        assert_eq!(rule(commit(5, 100, Some(20))), Ok(Skip::First(2)));
        assert_eq!(rule(commit(5, 100, Some(30))), Ok(Skip::Nothing));
    }
}
