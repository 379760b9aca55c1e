//! Which logs are chosen, and how far they reach.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::mining::inventory::{Inventory, Need, choose};
use crate::mining::safe_end::safe_end;
use crate::mining::{CaptureMode, MiningError};
use crate::session::{LogPlace, RedoLog, ThreadState};
use crate::{Code, Cursor, Marks, OracleError, RedoAddress, RedoThread, Scn};

const ARCHIVED: LogPlace = LogPlace::Archived { is_purged: false };
const PURGED: LogPlace = LogPlace::Archived { is_purged: true };

fn log(thread: u32, sequence: u64, first: u64, next: u64, place: LogPlace) -> RedoLog {
    RedoLog {
        thread: RedoThread(thread),
        sequence,
        first: Scn(first),
        next: if next == 0 { Scn::MAX } else { Scn(next) },
        name: format!("/{thread}_{sequence}_{place:?}"),
        place,
        begins_dictionary: false,
        ends_dictionary: false,
    }
}

fn thread(thread: u32, is_enabled: bool, is_open: bool) -> ThreadState {
    ThreadState { thread: RedoThread(thread), is_enabled, is_open }
}

fn open(threads: u32) -> Vec<ThreadState> {
    (1..=threads).map(|number| thread(number, true, true)).collect()
}

fn at(scn: u64) -> Cursor {
    Cursor { scn: Scn(scn), marks: Marks::None }
}

struct Asked {
    cursor: Cursor,
    threads: Vec<ThreadState>,
    capture: CaptureMode,
    knows_open: bool,
}

impl Asked {
    fn online(cursor: Cursor, threads: u32) -> Self {
        let capture = CaptureMode::Online;
        Self { cursor, threads: open(threads), capture, knows_open: true }
    }

    fn archive_only(cursor: Cursor, threads: u32) -> Self {
        Self { capture: CaptureMode::ArchiveOnly, ..Self::online(cursor, threads) }
    }

    /// All that is listed is all there ever was.
    fn choose(&self, listed: &[RedoLog]) -> Result<Inventory, OracleError> {
        let need = Need {
            cursor: &self.cursor,
            threads: &self.threads,
            capture: self.capture,
            knows_open: self.knows_open,
        };
        let mut end_before = |first: &RedoLog| {
            let is_it =
                |log: &&RedoLog| log.thread == first.thread && log.sequence + 1 == first.sequence;
            Ok(listed.iter().find(is_it).map(|log| log.next))
        };
        choose(listed, &need, &mut end_before).map_err(|error| match error {
            MiningError::Stop(error) => error,
            MiningError::Session(error) => panic!("{error}"),
        })
    }
}

fn names(inventory: &Inventory) -> Vec<&str> {
    inventory.logs().map(|log| log.name.as_str()).collect()
}

// L4: one log both in the archive and online.
#[test]
fn one_copy_of_a_log_is_chosen_and_a_readable_one() {
    let listed = [
        log(1, 1, 100, 110, PURGED),
        log(1, 1, 100, 110, LogPlace::Online),
        log(1, 2, 110, 120, LogPlace::Online),
        log(1, 2, 110, 120, ARCHIVED),
        log(1, 3, 120, 0, LogPlace::Online),
    ];
    let inventory = Asked::online(at(100), 1).choose(&listed).unwrap();
    assert_eq!(
        names(&inventory),
        ["/1_1_Online", "/1_2_Archived { is_purged: false }", "/1_3_Online"]
    );
    assert_eq!((inventory.horizon, inventory.settled()), (Scn::MAX, Scn::MAX));
}

#[test]
fn a_deleted_log_that_was_read_is_not_missed() {
    let listed = [log(1, 1, 100, 110, PURGED), log(1, 2, 110, 0, LogPlace::Online)];
    assert_eq!(Asked::online(at(110), 1).choose(&listed).unwrap().logs().count(), 1);
    let error = Asked::online(at(109), 1).choose(&listed).unwrap_err();
    assert_eq!(error.code, Code::LogPurged);
}

// L1
#[test]
fn a_gap_in_one_of_several_threads_is_named() {
    let listed = [
        log(1, 1, 100, 0, LogPlace::Online),
        log(2, 7, 100, 110, ARCHIVED),
        log(2, 10, 130, 0, LogPlace::Online),
    ];
    let error = Asked::online(at(100), 2).choose(&listed).unwrap_err();
    assert_eq!(error.code, Code::LogGap);
    assert!(error.what.contains("thread 2 are missing: sequences 8 to 9"), "{error}");
    assert!(error.what.contains("SCNs 110 to 129"), "{error}");
}

#[test]
fn redo_before_the_first_log_is_missed() {
    let listed = [log(1, 5, 120, 0, LogPlace::Online)];
    let error = Asked::online(at(100), 1).choose(&listed).unwrap_err();
    assert_eq!(error.code, Code::LogGap);
    assert!(error.what.contains("up to sequence 4, with SCNs 100 to 119"), "{error}");
}

#[test]
fn a_log_that_begins_late_is_the_next_one_if_the_mark_lies_in_it() {
    let listed = [log(1, 5, 120, 0, LogPlace::Online)];
    let marked = |sequence| {
        let marks = [(RedoThread(1), RedoAddress::start_of_log(sequence))].into();
        Asked::online(Cursor { marks: Marks::Threads(marks), ..at(100) }, 1)
    };
    assert!(marked(5).choose(&listed).is_ok());
    let error = marked(4).choose(&listed).unwrap_err();
    assert!(error.what.contains("missing: sequence 4,"), "{error}");
}

#[test]
fn a_log_that_begins_late_is_the_next_one_if_the_one_before_ended_in_time() {
    let listed = |end| [log(1, 4, 90, end, ARCHIVED), log(1, 5, 120, 0, LogPlace::Online)];
    let asked = Asked::online(at(100), 1);
    assert!(asked.choose(&listed(100)).is_ok());
    assert!(asked.choose(&[log(1, 1, 120, 0, LogPlace::Online)]).is_ok(), "the first of all");
}

// A log may end at the very SCN up to which it was read while it was written.
#[test]
fn a_log_that_ended_at_the_cursor_is_read_again_while_the_mark_is_in_it() {
    let listed = [log(1, 4, 90, 100, ARCHIVED), log(1, 5, 100, 0, LogPlace::Online)];
    let count = |sequence| {
        let marks = [(RedoThread(1), RedoAddress::start_of_log(sequence))].into();
        let asked = Asked::online(Cursor { marks: Marks::Threads(marks), ..at(100) }, 1);
        asked.choose(&listed).unwrap().logs().count()
    };
    assert_eq!((count(4), count(5)), (2, 1));
}

#[test]
fn an_open_thread_whose_next_log_is_not_listed_bounds_the_range() {
    let listed = [log(1, 1, 100, 110, ARCHIVED), log(2, 1, 100, 0, LogPlace::Online)];
    let asked = Asked::online(at(100), 2);
    let inventory = asked.choose(&listed).unwrap();
    assert_eq!((inventory.horizon, inventory.settled()), (Scn(110), Scn(100)));
    let alone = Asked::online(at(100), 1).choose(&listed[..1]).unwrap();
    assert_eq!(alone.settled(), Scn(110));
    assert_eq!(Asked::online(at(110), 1).choose(&[]).unwrap().settled(), Scn(110));
}

#[test]
fn a_closed_thread_bounds_nothing() {
    let listed = [log(1, 1, 100, 0, LogPlace::Online), log(2, 1, 100, 110, ARCHIVED)];
    for state in [thread(2, true, false), thread(2, false, false)] {
        let threads = vec![thread(1, true, true), state];
        let asked = Asked { threads, ..Asked::online(at(100), 1) };
        let inventory = asked.choose(&listed).unwrap();
        assert_eq!((inventory.horizon, inventory.logs().count()), (Scn::MAX, 2));
    }
}

#[test]
fn the_last_log_of_a_thread_that_was_disabled_long_ago_is_left_out() {
    let listed = [log(1, 1, 100, 0, LogPlace::Online), log(2, 1, 10, 0, LogPlace::Online)];
    let threads = vec![thread(1, true, true), thread(2, false, false)];
    let asked = Asked { threads, ..Asked::online(at(100), 1) };
    assert_eq!(asked.choose(&listed).unwrap().logs().count(), 1);
}

// L4: the slower thread bounds both.
#[test]
fn from_the_archive_alone_the_slowest_thread_bounds_the_range() {
    let listed = [
        log(1, 1, 100, 600, ARCHIVED),
        log(1, 2, 600, 700, ARCHIVED),
        log(1, 3, 700, 0, LogPlace::Online),
        log(2, 1, 100, 200, ARCHIVED),
        log(2, 2, 200, 0, LogPlace::Online),
    ];
    let inventory = Asked::archive_only(at(100), 2).choose(&listed).unwrap();
    assert_eq!(inventory.horizon, Scn(200));
    // Log 1 of thread 1 goes on beyond: its rows above 200 must not be hidden in front of later ones.
    assert_eq!(inventory.settled(), Scn(100));
    let later = Asked::archive_only(at(100), 2)
        .choose(&[&listed[..4], &[log(2, 2, 200, 650, ARCHIVED)]].concat())
        .unwrap();
    assert_eq!((later.horizon, later.settled()), (Scn(650), Scn(600)));
}

#[test]
fn from_the_archive_alone_a_closed_thread_is_waited_for_until_its_last_log_is_archived() {
    let threads = vec![thread(1, true, true), thread(2, true, false)];
    let asked = Asked { threads, ..Asked::archive_only(at(100), 1) };
    let one = log(1, 1, 100, 600, ARCHIVED);
    let waiting = [one.clone(), log(2, 1, 100, 200, LogPlace::Online)];
    assert_eq!(asked.choose(&waiting).unwrap().horizon, Scn(100));
    let archived = [one, log(2, 1, 100, 200, ARCHIVED)];
    assert_eq!(asked.choose(&archived).unwrap().horizon, Scn(600));
}

#[test]
fn on_a_standby_no_thread_counts_as_closed() {
    let threads = vec![thread(1, true, false), thread(2, true, false)];
    let asked = Asked { threads, knows_open: false, ..Asked::archive_only(at(100), 1) };
    let listed = [log(1, 1, 100, 600, ARCHIVED), log(2, 1, 100, 600, ARCHIVED)];
    assert_eq!(asked.choose(&listed).unwrap().horizon, Scn(600));
    let one = log(1, 1, 100, 600, ARCHIVED);
    assert_eq!(asked.choose(&[one]).unwrap().horizon, Scn(100));
}

#[test]
fn the_safe_end_by_mode() {
    let end = |asked: Asked, listed: &[RedoLog], is_standby| {
        let inventory = asked.choose(listed).unwrap();
        safe_end(&inventory, asked.capture, is_standby, Scn(550))
    };
    let current = [log(1, 1, 100, 0, LogPlace::Online)];
    assert_eq!(end(Asked::online(at(100), 1), &current, false), Scn(550));
    let ahead = [log(1, 1, 100, 600, ARCHIVED)];
    assert_eq!(end(Asked::archive_only(at(100), 1), &ahead, false), Scn(600));
    assert_eq!(end(Asked::archive_only(at(100), 1), &ahead, true), Scn(550));
    let behind = [log(1, 1, 100, 300, ARCHIVED)];
    assert_eq!(end(Asked::archive_only(at(100), 1), &behind, true), Scn(300));
    assert_eq!(end(Asked::online(at(100), 1), &behind, false), Scn(300));
}

/// What there is of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Copies {
    None,
    Purged,
    Readable,
    PurgedAndReadable,
}

fn copies() -> impl Strategy<Value = Copies> {
    prop_oneof![
        1 => Just(Copies::None),
        1 => Just(Copies::Purged),
        8 => Just(Copies::Readable),
        2 => Just(Copies::PurgedAndReadable),
    ]
}

/// Logs of ten SCNs each from 100 on, by sequence from 1 on, and the one being written behind them.
fn listed(thread: u32, copies: &[Copies]) -> Vec<RedoLog> {
    let mut logs = Vec::new();
    for (sequence, copies) in (1..).zip(copies) {
        let first = 90 + sequence * 10;
        let places: &[LogPlace] = match copies {
            Copies::None => &[],
            Copies::Purged => &[PURGED],
            Copies::Readable => &[ARCHIVED],
            Copies::PurgedAndReadable => &[PURGED, LogPlace::Online],
        };
        logs.extend(places.iter().map(|place| log(thread, sequence, first, first + 10, *place)));
    }
    let sequence = copies.len() as u64 + 1;
    logs.push(log(thread, sequence, 90 + sequence * 10, 0, LogPlace::Online));
    logs
}

/// The code that the first thread with a fault has, with the sequence at fault.
fn fault(copies: &[Copies], from: u64) -> Option<(Code, u64)> {
    let needed: Vec<(u64, Copies)> = (1..)
        .zip(copies.iter().copied())
        .filter(|(sequence, _)| 100 + sequence * 10 > from)
        .collect();
    let first = |wanted: Copies| needed.iter().find(|it| it.1 == wanted).map(|it| it.0);
    let purged = first(Copies::Purged).map(|sequence| (Code::LogPurged, sequence));
    purged.or_else(|| first(Copies::None).map(|sequence| (Code::LogGap, sequence)))
}

proptest! {
    #[test]
    fn the_chosen_logs_cover_the_range_or_an_error_names_the_hole(
        threads in prop::collection::vec(prop::collection::vec(copies(), 0..8), 1..4),
        from in 100_u64..190,
    ) {
        let numbered: BTreeMap<u32, &Vec<Copies>> = (1..).zip(&threads).collect();
        let all: Vec<RedoLog> =
            numbered.iter().flat_map(|(thread, copies)| listed(*thread, copies)).collect();
        let asked = Asked::online(at(from), u32::try_from(threads.len()).unwrap());
        let fault = numbered.iter().find_map(|(thread, copies)| Some((thread, fault(copies, from)?)));
        match (asked.choose(&all), fault) {
            (Ok(inventory), None) => {
                for (thread, copies) in &numbered {
                    let logs = &inventory.threads[&RedoThread(*thread)];
                    let begin = 100 + copies.len() as u64 * 10;
                    prop_assert!(logs[0].first.0 <= from.max(begin.min(from)));
                    prop_assert!(logs.iter().all(|log| log.place != PURGED && log.next.0 > from));
                    prop_assert!(logs.windows(2).all(|pair| pair[0].next == pair[1].first));
                    prop_assert_eq!(logs.last().unwrap().next, Scn::MAX);
                }
            }
            (Err(error), Some((thread, (code, sequence)))) => {
                prop_assert_eq!(error.code, code);
                prop_assert!(error.what.contains(&format!("thread {thread}")), "{}", error);
                let is_first = error.what.contains("up to sequence");
                let names = error.what.contains(&format!("sequence {sequence},"))
                    || error.what.contains(&format!("sequences {sequence} to"))
                    || error.what.contains(&format!("log {sequence} of"));
                prop_assert!(is_first || names, "{} in {}", sequence, error);
            }
            (chosen, fault) => prop_assert!(false, "{:?} where {:?}", chosen, fault),
        }
    }
}
