//! Tests of the queue against a model of an idempotent broker.

use std::collections::VecDeque;

use highwater_protocol::records::{Batch, DECOMPRESSED_MAX};
use proptest::prelude::*;

use super::*;

const PRODUCER: Producer = Producer { id: 7, epoch: 0, transactional: false };

fn record(value: u64) -> OutgoingRecord {
    OutgoingRecord {
        topic: Arc::from("trail"),
        partition: Some(0),
        key: None,
        value: Some(Bytes::from(value.to_string())),
        headers: vec![("hw".into(), Bytes::from_static(b"{}"))],
    }
}

/// A queue whose batches hold two records or three.
fn queue() -> Queue {
    /// Room for a batch's header, two records as they are encoded, and a third as it is measured.
    const LIMIT: usize = 160;
    Queue::new(Arc::from("trail"), 0, LIMIT)
}

fn push(queue: &mut Queue, values: std::ops::RangeInclusive<u64>) {
    for value in values {
        queue.push(&record(value), Book::Records, value, Instant::now());
    }
}

fn next(queue: &mut Queue) -> Option<(i32, Bytes)> {
    queue.next(PRODUCER, Instant::now(), Duration::ZERO).unwrap()
}

/// What a partition's leader keeps of one producer, and its log.
#[derive(Default)]
struct Broker {
    log: Vec<u64>,
    expected: i32,
    /// First sequence number and base offset.
    remembered: VecDeque<(i32, i64)>,
    /// More records make a batch too large.
    most: i32,
}

impl Broker {
    fn admits(&self, batch: &Bytes) -> bool {
        Batch::parse(batch).unwrap().header.record_count <= self.most
    }

    /// The base offset of a batch that is taken or known, `None` for one out of order.
    fn take(&mut self, batch: &Bytes) -> Option<i64> {
        let batch = Batch::parse(batch).unwrap();
        batch.verify_crc().unwrap();
        let first = batch.header.base_sequence;
        if let Some((_, offset)) = self.remembered.iter().find(|(known, _)| *known == first) {
            return Some(*offset);
        }
        if first != self.expected {
            return None;
        }
        let offset = i64::try_from(self.log.len()).unwrap();
        for record in batch.records(DECOMPRESSED_MAX).unwrap() {
            let value = record.unwrap().value.unwrap();
            self.log.push(std::str::from_utf8(&value).unwrap().parse().unwrap());
        }
        self.expected = after(first, batch.header.record_count as u64);
        self.remembered.push_back((first, offset));
        if self.remembered.len() > IN_FLIGHT {
            self.remembered.pop_front();
        }
        Some(offset)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(u64),
    Send,
    /// The connection has no room for the next batch.
    Full,
    /// The oldest request arrives and is answered.
    Answer,
    /// The oldest request is refused in a way that passes.
    Refuse,
    /// The connection ends behind so many requests that arrived.
    Cut(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u64..8).prop_map(Step::Push),
        4 => Just(Step::Send),
        1 => Just(Step::Full),
        6 => Just(Step::Answer),
        1 => Just(Step::Refuse),
        1 => (0usize..6).prop_map(Step::Cut),
    ]
}

/// A queue, its broker and the wire between them.
struct World {
    queue: Queue,
    broker: Broker,
    wire: VecDeque<(i32, Bytes)>,
    pushed: u64,
    /// Sequence and offset of each record called stored.
    stored: Vec<(u64, i64)>,
}

impl World {
    /// A world in which batches of more than `most` records are too large.
    fn new(most: i32) -> Self {
        let (queue, broker) = (queue(), Broker { most, ..Broker::default() });
        Self { queue, broker, wire: VecDeque::new(), pushed: 0, stored: Vec::new() }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Push(count) => {
                push(&mut self.queue, self.pushed + 1..=self.pushed + count);
                self.pushed += count;
            }
            Step::Send => {
                while let Some(batch) = next(&mut self.queue) {
                    self.wire.push_back(batch);
                }
                assert!(self.wire.len() <= IN_FLIGHT);
            }
            Step::Full => {
                if let Some((sequence, _)) = next(&mut self.queue) {
                    self.queue.unsent(sequence);
                }
            }
            Step::Answer => self.answer(),
            Step::Refuse => {
                if let Some((sequence, _)) = self.wire.pop_front() {
                    self.queue.failed(sequence);
                }
            }
            Step::Cut(arrived) => {
                for (at, (sequence, batch)) in std::mem::take(&mut self.wire).iter().enumerate() {
                    if at < *arrived && self.broker.admits(batch) {
                        self.broker.take(batch);
                    }
                    self.queue.failed(*sequence);
                }
            }
        }
    }

    fn answer(&mut self) {
        let Some((sequence, batch)) = self.wire.pop_front() else { return };
        if !self.broker.admits(&batch) {
            assert!(self.queue.halve(sequence).unwrap(), "a single record fits");
            return;
        }
        let Some(offset) = self.broker.take(&batch) else {
            assert!(self.queue.is_behind(sequence), "a batch without one before it is refused");
            self.queue.failed(sequence);
            return;
        };
        let mut offsets = offset..;
        for run in self.queue.stored(sequence, Instant::now()) {
            self.stored.extend((run.first..run.first + run.count).zip(offsets.by_ref()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Whatever is lost and refused on the way: in the end each record stands in the log once, in
    /// order, and was called stored once, where it stands.
    #[test]
    fn every_record_is_stored_once_and_in_order(
        steps in prop::collection::vec(step(), 1..120),
        most in 1i32..4,
    ) {
        let mut world = World::new(most);
        for step in &steps {
            world.step(step);
        }
        while world.queue.is_busy() {
            world.step(&Step::Send);
            prop_assert!(!world.wire.is_empty(), "it is stuck");
            world.step(&Step::Answer);
        }
        let all = Vec::from_iter(1..=world.pushed);
        prop_assert_eq!(&world.broker.log, &all);
        world.stored.sort_unstable();
        let offsets = 0..i64::try_from(world.pushed).unwrap();
        prop_assert_eq!(world.stored, all.into_iter().zip(offsets).collect::<Vec<_>>());
    }
}

#[test]
fn nothing_goes_past_a_batch_that_failed() {
    let mut queue = queue();
    push(&mut queue, 1..=1);
    let (first, _) = next(&mut queue).unwrap();
    queue.stored(first, Instant::now());
    push(&mut queue, 2..=20);
    let sent: Vec<i32> = std::iter::from_fn(|| next(&mut queue)).map(|(at, _)| at).collect();
    assert_eq!(sent.len(), IN_FLIGHT);
    queue.failed(sent[0]);
    assert_eq!(next(&mut queue), None, "while the fate of others is unknown");
    for sequence in &sent[1..] {
        queue.failed(*sequence);
    }
    assert_eq!(next(&mut queue).map(|(at, _)| at), Some(sent[0]));
    assert_eq!(next(&mut queue), None, "the first goes alone");
}

/// Else the broker could have forgotten the oldest, which it has, and take it for one out of order.
#[test]
fn no_batch_goes_out_five_behind_the_oldest_that_is_not_known_to_be_stored() {
    let mut queue = queue();
    push(&mut queue, 1..=40);
    let (first, _) = next(&mut queue).unwrap();
    queue.stored(first, Instant::now());
    let sent: Vec<i32> = std::iter::from_fn(|| next(&mut queue)).map(|(at, _)| at).collect();
    let [second, third, fourth, others @ ..] = &sent[..] else { panic!("five are in flight") };
    queue.failed(*second);
    queue.failed(*third);
    queue.stored(*fourth, Instant::now());
    others.iter().for_each(|sequence| queue.failed(*sequence));
    let (again, _) = next(&mut queue).unwrap();
    assert_eq!(again, *second);
    queue.stored(again, Instant::now());
    let sent: Vec<i32> = std::iter::from_fn(|| next(&mut queue)).map(|(at, _)| at).collect();
    assert_eq!((sent[0], sent.len()), (*third, 4), "the fourth is stored and counts");
}

#[test]
fn a_batch_that_is_too_large_makes_the_next_ones_smaller() {
    let mut queue = queue();
    push(&mut queue, 1..=3);
    let (sequence, batch) = next(&mut queue).unwrap();
    assert_eq!(Batch::parse(&batch).unwrap().header.record_count, 3);
    assert!(queue.halve(sequence).unwrap());
    let (first, _) = next(&mut queue).unwrap();
    assert_eq!(queue.stored(first, Instant::now()), [run(Book::Records, 1, 1)]);
    let (second, _) = next(&mut queue).unwrap();
    assert_eq!((first, second), (0, 1), "records keep their sequence numbers");
    assert_eq!(queue.stored(second, Instant::now()), [run(Book::Records, 2, 2)]);
    push(&mut queue, 4..=6);
    let (sequence, batch) = next(&mut queue).unwrap();
    assert_eq!(Batch::parse(&batch).unwrap().header.record_count, 1);
    assert!(!queue.halve(sequence).unwrap(), "a single record has no halves");
}

#[test]
fn the_records_of_both_books_are_parted_where_the_batch_is() {
    let runs = [run(Book::Records, 5, 2), run(Book::Offsets, 1, 1), run(Book::Records, 7, 3)];
    let [before, behind] = split(&runs, 4);
    assert_eq!(before, [runs[0].clone(), runs[1].clone(), run(Book::Records, 7, 1)]);
    assert_eq!(behind, [run(Book::Records, 8, 2)]);
    assert_eq!(split(&runs, 3), [runs[..2].to_vec(), runs[2..].to_vec()]);
}

fn run(book: Book, first: u64, count: u64) -> Run {
    Run { book, first, count }
}

#[test]
fn a_batch_waits_to_grow_unless_it_is_full_or_hurried() {
    let linger = Duration::from_secs(5);
    let mut queue = queue();
    let now = Instant::now();
    queue.push(&record(1), Book::Records, 1, now);
    assert!(!queue.is_ready(now, linger) && queue.is_ready(now + linger, linger));
    queue.hurry();
    assert!(queue.is_ready(now, linger));
    let (sequence, _) = queue.next(PRODUCER, now, linger).unwrap().unwrap();
    queue.stored(sequence, now);
    queue.push(&record(2), Book::Records, 2, now);
    assert!(!queue.is_ready(now, linger), "the hurry is over");
    push(&mut queue, 3..=10);
    assert!(queue.is_ready(now + Duration::from_secs(1), linger));
}

#[test]
fn a_silent_partition_begins_with_one_batch_alone() {
    let mut queue = queue();
    push(&mut queue, 1..=20);
    assert!(next(&mut queue).is_some());
    assert_eq!(next(&mut queue), None);
    queue.stored(0, Instant::now() - WARM);
    assert!(next(&mut queue).is_some());
    assert_eq!(next(&mut queue), None);
}

#[test]
fn sequence_numbers_begin_again_behind_the_greatest() {
    assert_eq!(after(0, 3), 3);
    assert_eq!(after(i32::MAX, 1), 0);
    assert_eq!(after(i32::MAX - 1, 5), 3);
}
