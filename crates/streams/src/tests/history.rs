//! The central property: whatever the source's history, wherever it crashed and delivered again,
//! and however often the client left and came back, the client sees each generation's history in
//! order, once; and a record's `pos` is the same on every path.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use highwater_connector::{Generation, Hw};
use highwater_kafka::ReadRecord;
use proptest::prelude::*;
use tokio::sync::Semaphore;

use super::memory::MemoryLog;
use super::trails::{TRAIL, hw, insert, record};
use crate::batch::Batch;
use crate::begin::{Begin, ConnectionRequest};
use crate::config::Limits;
use crate::encoding::Encoding;
use crate::feed::{Feed, Outcome, View};
use crate::opening::Opening;
use crate::qos::QualityOfService;
use crate::trail::Log;

/// Writes a trail as a source does that crashes and is made to deliver again.
struct Source {
    log: Arc<MemoryLog>,
    generation: u64,
    /// Next event of each lane in this run.
    next: Vec<u64>,
    /// First event of each lane in this generation.
    first: Vec<u64>,
    snapshot_rows: u64,
}

impl Source {
    fn new(lanes: usize) -> Self {
        let log = MemoryLog::new();
        log.make(TRAIL, 1);
        Self { log, generation: 1, next: vec![0; lanes], first: vec![0; lanes], snapshot_rows: 0 }
    }

    /// One step, chosen by a byte. Lanes other than the one in the low digits go on as they are,
    /// so that after a crash they come in another order than before.
    fn step(&mut self, choice: u8) {
        let (kind, how) = (choice % 8, u64::from(choice / 8));
        match kind {
            0 => self.go_back(how),
            1 if how.is_multiple_of(3) => {
                self.go_back(how / 3);
                self.generation += 1;
                self.first.clone_from(&self.next);
            }
            2 => self.append_snapshot_row(),
            _ => self.append_event(usize::from(kind) % self.next.len()),
        }
    }

    /// A restart from a position below what was delivered.
    fn go_back(&mut self, how: u64) {
        let lanes = self.next.iter_mut().zip(&self.first).zip(0..);
        for ((next, first), lane) in lanes {
            *next = next.saturating_sub((how >> lane) % 7).max(*first);
        }
    }

    fn append_event(&mut self, lane: usize) {
        let ordinal = self.next[lane];
        self.next[lane] += 1;
        let hw = Hw {
            generation: Generation::from_bits(self.generation),
            lane: Some(format!("lane {lane}")),
            position: format!("{lane}/{:04}", ordinal / 3),
            index: ordinal % 3,
            table_version: None,
            ..hw(0, 0)
        };
        self.log.append(TRAIL, record(&hw, &insert(ordinal)));
    }

    fn append_snapshot_row(&mut self) {
        self.snapshot_rows += 1;
        let hw = Hw {
            generation: Generation::from_bits(self.generation),
            lane: None,
            position: "snapshot".to_owned(),
            index: self.snapshot_rows,
            table_version: None,
            ..hw(0, 0)
        };
        self.log.append(TRAIL, record(&hw, &insert(self.snapshot_rows)));
    }
}

/// What a client must see, by a set of identities rather than by marks.
fn expected(trail: &[ReadRecord]) -> Vec<i64> {
    let mut seen = HashSet::new();
    trail
        .iter()
        .filter(|record| {
            let hw = Hw::decode(record.header("hw").unwrap()).unwrap();
            seen.insert(hw.record_id())
        })
        .map(|record| record.offset)
        .collect()
}

/// A client that stores the last position and comes back with it.
struct Client {
    log: Arc<dyn Log>,
    trail: Vec<ReadRecord>,
    view: View,
    qos: QualityOfService,
    pos: Option<String>,
    seen: Vec<i64>,
    positions: BTreeMap<i64, String>,
}

impl Client {
    fn new(log: &Arc<MemoryLog>, qos: QualityOfService) -> Self {
        let view = log.view(Encoding::default());
        let trail = log.records(TRAIL);
        let log: Arc<dyn Log> = log.clone();
        let (pos, seen, positions) = (None, Vec::new(), BTreeMap::new());
        Self { log, trail, view, qos, pos, seen, positions }
    }

    /// Connects, processes up to `most` records, and leaves.
    async fn visit(&mut self, begin: Begin, most: usize) {
        let (limits, scans) = (Limits::default(), Semaphore::new(1));
        let request =
            ConnectionRequest { begin, quality_of_service: self.qos, on_gone: self.qos.on_gone() };
        let mut opening = Opening::new(&self.log, &self.view, &limits, &scans).await.unwrap();
        let start = opening.start(&request).await.unwrap();
        let mut feed = Feed::new(self.view.clone(), self.qos, start.marks);
        let from = usize::try_from(start.begin.offset).unwrap();
        let mut processed = 0;
        for record in &self.trail[from..] {
            if processed == most {
                break;
            }
            let mut batch = Batch::default();
            if feed.take(record, &mut batch).unwrap() == Outcome::Sent {
                let sent = batch.take().unwrap().last.unwrap();
                self.seen.push(sent.offset);
                let before = self.positions.insert(sent.offset, sent.pos.clone());
                assert!(before.is_none_or(|before| before == sent.pos), "pos changed");
                self.pos = Some(sent.pos);
                processed += 1;
            }
        }
    }

    async fn resume(&mut self, most: usize) {
        let begin = self.pos.clone().map_or(Begin::Earliest, Begin::Position);
        self.visit(begin, most).await;
    }
}

/// Every path through one trail.
async fn check(source: Source, visits: &[u8]) {
    let trail = source.log.records(TRAIL);
    let mut whole = Client::new(&source.log, QualityOfService::ExactlyOnce);
    whole.resume(usize::MAX).await;
    assert_eq!(whole.seen, expected(&trail));

    let mut broken = Client::new(&source.log, QualityOfService::ExactlyOnce);
    for visit in visits {
        broken.resume(usize::from(*visit) % 9).await;
    }
    broken.resume(usize::MAX).await;
    assert_eq!(broken.seen, whole.seen);
    assert_eq!(broken.positions, whole.positions);

    let mut tolerant = Client::new(&source.log, QualityOfService::AtLeastOnce);
    tolerant.resume(usize::MAX).await;
    assert_eq!(tolerant.seen.len(), trail.len());
    for (offset, pos) in &whole.positions {
        assert_eq!(tolerant.positions[offset], *pos);
    }
    // From the position of any record, a duplicate's too, the rest is the same.
    for record in &trail {
        let pos = tolerant.positions[&record.offset].clone();
        let mut late = Client::new(&source.log, QualityOfService::ExactlyOnce);
        late.visit(Begin::Position(pos), usize::MAX).await;
        let rest: Vec<i64> =
            whole.seen.iter().copied().filter(|offset| *offset > record.offset).collect();
        assert_eq!(late.seen, rest);
        assert!(late.positions.iter().all(|(offset, pos)| whole.positions[offset] == *pos));
    }
}

/// `now` at every point: what is appended later is seen as if the client had been there.
async fn check_now(choices: &[u8], lanes: usize) {
    let mut source = Source::new(lanes);
    let (before, after) = choices.split_at(choices.len() / 2);
    before.iter().for_each(|choice| source.step(*choice));
    let end = source.log.records(TRAIL).len() as i64;
    let view = Client::new(&source.log, QualityOfService::ExactlyOnce).view;
    let log: Arc<dyn Log> = source.log.clone();
    let (limits, scans) = (Limits::default(), Semaphore::new(1));
    let mut opening = Opening::new(&log, &view, &limits, &scans).await.unwrap();
    let request = ConnectionRequest {
        begin: Begin::Now,
        quality_of_service: QualityOfService::ExactlyOnce,
        on_gone: crate::qos::OnGone::Fail,
    };
    let start = opening.start(&request).await.unwrap();
    assert_eq!(start.begin.offset, end);
    after.iter().for_each(|choice| source.step(*choice));
    let mut whole = Client::new(&source.log, QualityOfService::ExactlyOnce);
    whole.resume(usize::MAX).await;
    let mut feed = Feed::new(view, QualityOfService::ExactlyOnce, start.marks);
    for record in source.log.records(TRAIL).iter().filter(|record| record.offset >= end) {
        let mut batch = Batch::default();
        feed.take(record, &mut batch).unwrap();
        let pos = batch.take().and_then(|message| message.last).map(|sent| sent.pos);
        assert_eq!(pos.as_ref(), whole.positions.get(&record.offset));
    }
}

fn cases() -> u32 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}

fn run(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn each_generation_is_seen_once_and_in_order(
        choices in proptest::collection::vec(any::<u8>(), 0..60),
        lanes in 1_usize..4,
        visits in proptest::collection::vec(any::<u8>(), 0..12),
    ) {
        let mut source = Source::new(lanes);
        choices.iter().for_each(|choice| source.step(*choice));
        run(check(source, &visits));
    }

    #[test]
    fn now_recognises_what_is_older(
        choices in proptest::collection::vec(any::<u8>(), 0..60),
        lanes in 1_usize..4,
    ) {
        run(check_now(&choices, lanes));
    }
}

#[test]
fn the_histories_hold_what_they_are_for() {
    let mut source = Source::new(2);
    (0..=255).for_each(|choice| source.step(choice));
    let trail = source.log.records(TRAIL);
    let suppressed = trail.len() - expected(&trail).len();
    assert!(suppressed > 10, "{suppressed}");
    assert!(source.generation > 3, "{}", source.generation);
    assert!(source.snapshot_rows > 10, "{}", source.snapshot_rows);
}
