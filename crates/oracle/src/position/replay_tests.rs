//! Proof over random histories: what was acknowledged and what is delivered after it are together the
//! history, each thread exactly and in order.

use proptest::prelude::*;

use highwater_connector::{OffsetChange, OffsetVerdict, SourceOffset};

use super::model::*;
use super::*;
use crate::{Scn, TransactionKey};

/// A number of test histories that `HW_CASES` scales.
fn cases() -> u32 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}

fn identity() -> Identity {
    Identity { dbid: 1_234_567_890, resetlogs: Scn(1) }
}

fn first(history: &History, floor: Option<StartFloor>) -> SourceOffset {
    Position::first(identity(), START, floor, &history.threads()).write()
}

/// Commits below the floor are left out until the first of their thread that is not.
fn expected(history: &History, floor: Option<Scn>) -> Delivered {
    let mut begun = BTreeSet::new();
    history.changes(|commit, _| {
        if floor.is_none_or(|floor| commit.at.scn >= floor) {
            begun.insert(commit.at.thread);
        }
        begun.contains(&commit.at.thread)
    })
}

/// One life in which `count` of all records, at random, are acknowledged: what was delivered, and the
/// offset that was stored.
fn first_life(history: &History, draws: &mut Draws) -> (Delivered, SourceOffset) {
    let offset = first(history, None);
    let emissions = run(history, &offset, None, draws).unwrap();
    let count = draws.below(emissions.len()) + 1;
    let mut delivered = empty(history);
    acknowledge(&emissions, count, &mut delivered, &mut Vec::new(), draws);
    (delivered, stored(&emissions[count - 1].position.offset()))
}

fn empty(history: &History) -> Delivered {
    history.threads().into_iter().map(|thread| (thread, Vec::new())).collect()
}

/// What a life from this offset delivers.
fn delivered_from(history: &History, offset: &SourceOffset, draws: &mut Draws) -> Delivered {
    let emissions = run(history, offset, None, draws).unwrap();
    let mut delivered = empty(history);
    acknowledge(&emissions, emissions.len(), &mut delivered, &mut Vec::new(), draws);
    delivered
}

fn joined(mut before: Delivered, after: Delivered) -> Delivered {
    for (thread, changes) in after {
        before.entry(thread).or_default().extend(changes);
    }
    before
}

/// The SCNs from the least to beyond the greatest of a history.
fn scn_of(history: &History, draws: &mut Draws) -> Scn {
    let (least, most) = history.rows().fold((Scn::MAX, Scn(0)), |(least, most), row| {
        (least.min(row.at.scn), most.max(row.at.scn))
    });
    Scn(least.0 + draws.below((most.0 - least.0) as usize + 3) as u64)
}

/// The edits of the page: another SCN without address, the last commit kept or removed.
fn edit(offset: &SourceOffset, scn: Scn, forgets: bool) -> SourceOffset {
    let mut edited = offset.clone();
    edited.set("resume_scn", scn.0);
    edited.0.shift_remove("resume_rs_id");
    edited.0.shift_remove("resume_ssn");
    if forgets {
        for field in ["scn", "xid", "thread", "rs_id", "ssn"] {
            edited.0.shift_remove(&format!("last_commit_{field}"));
        }
        edited.set("event_index", 0);
    }
    edited
}

/// What `highwater offsets set` makes of an edit.
fn set(current: &SourceOffset, wanted: SourceOffset, allow_skip: bool) -> SourceOffset {
    let change = OffsetChange { current: Some(current.clone()), wanted: Some(wanted), allow_skip };
    let available = Available { identity: identity(), current: Scn::MAX, oldest: BTreeMap::new() };
    match judge(&change, &available) {
        OffsetVerdict::Accepted(Some(offset)) => stored(&offset),
        refused => panic!("{refused:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// The central property: wherever a task stops, whichever of its records are acknowledged, however
    /// the threads are interleaved after it.
    #[test]
    fn exactly_what_was_not_acknowledged_is_delivered(
        history in histories(),
        is_floored in any::<bool>(),
        is_journaling in any::<bool>(),
        lives in 1..5_usize,
        seed in any::<u64>(),
    ) {
        let mut draws = Draws(seed);
        let floor = is_floored.then(|| scn_of(&history, &mut draws));
        let rule = floor.map(|scn| StartFloor { scn, open_scn: scn, open: BTreeSet::new() });
        let mut offset = first(&history, rule);
        let (mut delivered, mut journal) = (empty(&history), Vec::new());
        for life in 1..=lives {
            let chunks = is_journaling.then(|| journal.clone());
            let emissions = run(&history, &offset, chunks.as_deref(), &mut draws).unwrap();
            let all = emissions.len();
            let count = if life == lives { all } else { draws.below(all + 1) };
            acknowledge(&emissions, count, &mut delivered, &mut journal, &mut draws);
            if let Some(last) = count.checked_sub(1) {
                offset = stored(&emissions[last].position.offset());
            }
        }
        prop_assert_eq!(delivered, expected(&history, floor));
    }

    /// The points that a life resumes from only move forward, and none lies behind open work.
    #[test]
    fn the_point_to_resume_from_never_moves_backwards(history in histories(), seed in any::<u64>()) {
        let mut draws = Draws(seed);
        let (_, offset) = first_life(&history, &mut draws);
        let mut reached = Position::read(&offset).unwrap().lanes;
        let mut open = None;
        for emission in run(&history, &offset, None, &mut draws).unwrap() {
            let lanes = Position::read(&emission.position.offset()).unwrap().lanes;
            if let What::Change(_, key, _) = emission.what {
                let is_inside = lanes.last().is_some_and(|mark| !mark.acknowledged.is_all());
                open = is_inside.then_some(key);
            }
            if open.is_some() {
                continue;
            }
            for (before, lane) in reached.iter().zip(lanes.iter()) {
                let (before, now) = (before.resume, lane.resume);
                prop_assert!(before.address <= now.address, "{:?} {:?}", before, now);
                prop_assert!(now.address.is_some() || before.scn <= now.scn);
            }
            reached = lanes;
        }
    }

    /// Mine again from an earlier SCN: what was acknowledged is still skipped.
    #[test]
    fn mining_again_from_an_earlier_scn_delivers_nothing_twice(
        history in histories(),
        earlier in 0..20_u64,
        is_set in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut draws = Draws(seed);
        let (delivered, offset) = first_life(&history, &mut draws);
        let position = Position::read(&offset).unwrap();
        let (cursor, lowest) = (position.cursor(), position.lanes.lowest().scn);
        let needed = history.rows().filter(|row| is_selected(row, &cursor)).map(|row| row.at.scn);
        let scn = Scn(needed.min().unwrap_or(lowest).min(lowest).0.saturating_sub(earlier));
        let mut edited = edit(&offset, scn, false);
        if is_set {
            edited = set(&offset, edited, false);
        }
        let again = delivered_from(&history, &edited, &mut draws);
        prop_assert_eq!(joined(delivered, again), expected(&history, None));
    }

    /// And without the last commit: from there on all is delivered again.
    #[test]
    fn without_the_last_commit_all_from_the_scn_on_is_delivered_again(
        history in histories(),
        is_set in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut draws = Draws(seed);
        let (_, offset) = first_life(&history, &mut draws);
        let scn = scn_of(&history, &mut draws);
        let mut edited = edit(&offset, scn, true);
        if is_set {
            edited = set(&offset, edited, true);
        }
        let again = delivered_from(&history, &edited, &mut draws);
        prop_assert_eq!(again, history.changes(|commit, change| {
            commit.at.scn >= scn && change.at.scn >= scn
        }));
    }

    /// Skip forward: nothing from below the SCN comes, and nothing that was acknowledged.
    #[test]
    fn skipping_forward_leaves_out_what_lies_below_and_nothing_else(
        history in histories(),
        further in 1..20_u64,
        seed in any::<u64>(),
    ) {
        let mut draws = Draws(seed);
        let (delivered, offset) = first_life(&history, &mut draws);
        let scn = Scn(Position::read(&offset).unwrap().lanes.lowest().scn.0 + further);
        let edited = set(&offset, edit(&offset, scn, false), true);
        let again = delivered_from(&history, &edited, &mut draws);
        let is_done = |key: TransactionKey| {
            let changes = |of: &Delivered| of.values().flatten().filter(|(of, _)| *of == key).count();
            changes(&delivered) == changes(&history.changes(|_, _| true))
        };
        prop_assert_eq!(again, history.changes(|commit, change| {
            !is_done(commit.key) && commit.at.scn >= scn && change.at.scn >= scn
        }));
    }
}
