//! Rule P1 across crashes: exactly the suffix that no stored offset covers is sent again, and
//! nothing is lost.

use std::collections::HashSet;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::bench::{Bench, PATIENCE, config};
use crate::gate::Gate;
use crate::source::{Place, Server, events_before};
use crate::trail::{self, Row};

/// Lives of one history; `HW_CASES` scales it (rule T2).
fn lives() -> u64 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(20)
}

/// What must hold of a trail, whatever happened on the way.
pub(crate) fn check(rows: &[Row], server: &Server) {
    let mut seen = HashSet::new();
    let first: Vec<_> =
        rows.iter().map(|row| row.place).filter(|place| seen.insert(*place)).collect();
    assert_eq!(first, events_before(server.end()), "lost, or out of order");

    for (run, start) in server.state().starts.iter().enumerate() {
        let origin = start.offset.as_ref().and_then(Place::of).unwrap_or_default();
        assert!(Some(origin) >= start.told, "run {run} forgot what the source was told");
        let sent: Vec<_> = rows.iter().filter(|row| row.run == run).map(|row| row.place).collect();
        let mut expected = origin;
        for place in sent {
            assert_eq!(place, expected, "run {run} did not go on at its stored offset {origin:?}");
            expected = place.next();
        }
        let begun = rows.iter().position(|row| row.run == run).unwrap_or(rows.len());
        let before: HashSet<_> = rows[..begun].iter().map(|row| row.place).collect();
        for place in events_before(origin) {
            assert!(before.contains(&place), "run {run} began behind {place:?}, which is not safe");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_anywhere_loses_nothing_and_sends_the_uncovered_suffix_again() {
    let bench = Bench::start(Server::new(0, 7)).await;
    let mut random = StdRng::seed_from_u64(0x5EED);
    for life in 0..lives() {
        bench.server.state().committed += 40;
        let mut settings = bench.config();
        settings.offset_flush_interval = Duration::from_millis(random.random_range(10..60));
        let polled = bench.server.after_polled(random.random_range(1..90));
        let doomed = bench.doomed(settings).await;
        if life == 0 {
            doomed.api().create("a", config("shop")).await.expect(201);
        }
        tokio::time::timeout(PATIENCE, polled).await.unwrap();
        doomed.crash();
    }
    let life = bench.life().await;
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;

    let rows = trail::rows(&bench.reader, "shop").await;
    check(&rows, &bench.server);
    let generations: HashSet<_> = rows.iter().map(|row| row.generation).collect();
    assert_eq!(generations.len(), 1, "a crash minted a generation");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_between_acknowledgement_and_offset_write_sends_again_what_was_not_covered() {
    let bench = Bench::start(Server::new(10, 7)).await;
    let (gate, writers) = Gate::after(usize::MAX);
    let mut settings = bench.config();
    settings.writers = writers;
    let doomed = bench.doomed(settings).await;
    doomed.api().create("a", config("shop")).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    gate.close();
    bench.server.state().committed += 30;
    tokio::time::timeout(PATIENCE, gate.reached()).await.unwrap();
    doomed.crash();

    let before = trail::rows(&bench.reader, "shop").await;
    let stored = trail::offset_rows(&bench.reader).await;
    let stored = stored.last().and_then(|row| Place::of(row.offset.as_ref()?)).unwrap();
    let uncovered: Vec<_> =
        before.iter().filter(|row| row.place >= stored).map(|row| row.id.clone()).collect();
    assert!(!uncovered.is_empty(), "the kill fell where nothing was at stake");
    assert!(bench.server.state().told.last() <= Some(&stored));

    let life = bench.life().await;
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;
    let rows = trail::rows(&bench.reader, "shop").await;
    check(&rows, &bench.server);
    let mut seen = HashSet::new();
    let again: Vec<_> =
        rows.iter().filter(|row| !seen.insert(row.id.clone())).map(|row| row.id.clone()).collect();
    assert_eq!(again, uncovered, "not exactly the uncovered suffix came again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orderly_end_sends_nothing_twice_and_stands_at_a_transactions_end() {
    let bench = Bench::start(Server::new(0, 3)).await;
    for life in 0..5_u64 {
        bench.server.state().committed += 40;
        let polled = bench.server.after_polled(10 + life);
        let running = bench.life().await;
        if life == 0 {
            running.api.create("a", config("shop")).await.expect(201);
        }
        tokio::time::timeout(PATIENCE, polled).await.unwrap();
        running.worker.shutdown().await;
    }
    let running = bench.life().await;
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    running.worker.shutdown().await;

    let rows = trail::rows(&bench.reader, "shop").await;
    check(&rows, &bench.server);
    assert_eq!(rows.len(), events_before(bench.server.end()).len(), "something came twice");
    for start in bench.server.state().starts.iter().skip(1) {
        let origin = start.offset.as_ref().and_then(Place::of).unwrap();
        assert_eq!(origin.event, 0, "it was ended inside transaction {}", origin.tx);
        assert_eq!(start.tables, 1, "the table description did not come back");
    }
}
