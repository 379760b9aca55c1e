//! The real binary, killed again and again in the middle of everything that clients do at once, and judged in
//! the end (rules L1, L4): other people's producers and consumers (librdkafka), transactions that are committed,
//! aborted and left alone, pipelines, groups, compaction, retention and deletion.
//!
//! `HW_CASES` is the number of kills, at most 500; `HW_SEED` draws others.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests"
)]

mod damage;
mod idempotent;
mod indexes;
mod judge;
mod ledger;
mod load;
mod members;
mod numbers;
mod pipeline;
#[path = "../../../../testing/power-loss/power_loss.rs"]
mod power_loss;
mod reading;
mod run;
mod server;
mod topics;
mod transactional;

use judge::Ending;
use ledger::{Ledger, Outcome};
use run::Run;
use server::End;
use topics::{AGED, COMPACTED, COPIES};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn crash(end: End, kills: u64) {
    let kills = number("HW_CASES").unwrap_or(kills).min(500);
    let seed = number("HW_SEED").unwrap_or(1);
    let mut run = Run::new(end, seed);
    run.live(kills);
    let ending = run.finish();
    let ledger = run.ledger();
    println!(
        "seed {seed}, {end:?} {kills} times, {} in transactions: {}",
        run.in_flight,
        summary(&ledger, &ending)
    );
    let faults = judge::judge(&ledger, &ending);
    let some = faults.get(..10).unwrap_or(&faults);
    assert!(faults.is_empty(), "{} faults, among them {some:#?}", faults.len());
    run.check_log();
    check_load(&ledger, &ending, kills);
    let compared = indexes::compare(&run.data_dir());
    assert!(compared.files > 50, "{} files", compared.files);
    assert!(compared.different.is_empty(), "{:#?}", compared.different);
    damage::is_noticed(&ledger, &ending);
    damage::of_an_index_is_noticed(&run.data_dir());
}

fn summary(ledger: &Ledger, ending: &Ending) -> String {
    let [committed, aborted, unknown] =
        [Outcome::Committed, Outcome::Aborted, Outcome::Unknown].map(|one| ledger.ended(one));
    let copies: usize = COPIES.places().map(|at| ending.committed.records[&at].len()).sum();
    let (acknowledged, failures) = (ledger.acknowledged.len(), ledger.failures.len());
    format!(
        "{acknowledged} records acknowledged, {committed} transactions committed, {aborted} aborted, \
         {unknown} unknown, {copies} copies, {failures} clients failed"
    )
}

/// A load in which nothing happened proves nothing.
fn check_load(ledger: &Ledger, ending: &Ending, kills: u64) {
    assert!(ledger.ended(Outcome::Committed) > 10 && ledger.ended(Outcome::Aborted) > 5);
    assert!(!ledger.group.is_empty(), "the group committed nothing");
    assert!(ledger.failures.len() as u64 <= kills, "{:#?}", ledger.failures);
    for place in AGED.places() {
        assert!(ending.committed.ranges[&place].low > 0, "{place:?}: nothing went");
    }
    for place in COMPACTED.places() {
        let high = ending.uncommitted.ranges[&place].high;
        let left = ending.uncommitted.records[&place].len() as i64;
        assert!(left < high * 3 / 4, "{place:?}: {left} of {high} are left");
    }
}

#[test]
fn what_was_answered_and_shown_survives_kills_under_load() {
    crash(End::Killed, 14);
}

#[test]
fn what_was_answered_and_shown_survives_power_losses_under_load() {
    crash(End::PowerLost, 6);
}
