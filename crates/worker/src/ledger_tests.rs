//! The ledger against a model: any order of sends, acknowledgements, idle positions, stores,
//! answers and failures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use highwater_connector::{Generation, Hw, SourceOffset, Tail};
use highwater_kafka::Acknowledgement;
use proptest::prelude::*;

use super::*;

fn position(ordinal: u64) -> Arc<dyn Position> {
    let mut offset = SourceOffset::default();
    offset.set("at", ordinal);
    Arc::new(offset)
}

fn ordinal(offset: &SourceOffset) -> u64 {
    offset.number("at").unwrap().unsigned_abs()
}

fn hw(ordinal: u64) -> Hw {
    Hw {
        generation: Generation::from_bits(1),
        lane: None,
        position: format!("{ordinal:08}"),
        index: 0,
        part: 0,
        commit_time_us: None,
        table_version: None,
        xid: None,
        count: None,
    }
}

fn ack(sequence: u64, partition: i32, offset: i64) -> Acknowledgement {
    Acknowledgement { sequence, topic: "shop".into(), partition, offset }
}

#[derive(Clone, Debug)]
enum Step {
    Send { partition: i32 },
    Acknowledge,
    LeaveOut,
    Idle,
    Store,
    StoreExplicit,
    Answer { safe: bool },
    WrongAcknowledgement,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_i32).prop_map(|partition| Step::Send { partition }),
        6 => Just(Step::Acknowledge),
        2 => Just(Step::Idle),
        3 => Just(Step::LeaveOut),
        4 => Just(Step::Store),
        1 => Just(Step::StoreExplicit),
        4 => prop::bool::weighted(0.95).prop_map(|safe| Step::Answer { safe }),
        1 => Just(Step::WrongAcknowledgement),
    ]
}

/// What must hold, kept in the plainest way.
#[derive(Default)]
struct Model {
    /// Next position of the source.
    at: u64,
    /// Sent and not acknowledged: sequence, ordinal, partition.
    in_flight: Vec<(u64, u64, i32)>,
    sequence: u64,
    /// Number of records acknowledged; their log offset.
    acknowledged: i64,
    /// Newest ordinal below which everything is acknowledged or was no record.
    covered: u64,
    /// The last record of each partition since the offset record before.
    touched: BTreeMap<i32, (i64, u64)>,
    tail: BTreeMap<i32, (i64, u64)>,
    /// The offset record on its way, and whether the source may be told once it is safe.
    storing: Option<(u64, bool)>,
    stored: u64,
    failed: bool,
    /// Whether offset and records share a transaction, and the last record that was sent in it.
    in_transactions: bool,
    last_sent: u64,
}

impl Model {
    fn next(&mut self) -> u64 {
        self.at += 1;
        self.at
    }

    fn begin(&mut self, pending: &Pending, tell: bool) -> Result<(), TestCaseError> {
        let offset = ordinal(&pending.offset);
        prop_assert!(offset <= self.covered, "{offset} stored, {} is safe", self.covered);
        prop_assert!(offset >= self.stored, "{offset} stored after {}", self.stored);
        if !self.touched.is_empty() {
            self.tail = std::mem::take(&mut self.touched);
        }
        let tail: BTreeMap<_, _> = pending
            .tail
            .0
            .iter()
            .map(|entry| (entry.partition, (entry.offset, entry.id.clone())))
            .collect();
        let expected: BTreeMap<_, _> = self
            .tail
            .iter()
            .map(|(partition, (offset, at))| {
                (*partition, (*offset, hw(*at).record_id().to_string()))
            })
            .collect();
        prop_assert_eq!(tail, expected);
        self.storing = Some((offset, tell));
        Ok(())
    }
}

fn apply(model: &mut Model, ledger: &mut Ledger, step: &Step) -> Result<(), TestCaseError> {
    match step {
        Step::Send { partition } => {
            let at = model.next();
            model.sequence += 1;
            model.in_flight.push((model.sequence, at, *partition));
            model.last_sent = at;
            ledger.sent(model.sequence, Some(hw(at)), position(at));
        }
        Step::Acknowledge if !model.in_flight.is_empty() => {
            let (sequence, at, partition) = model.in_flight.remove(0);
            let accepted = ledger.acknowledged(&ack(sequence, partition, model.acknowledged));
            prop_assert!(accepted.is_ok());
            model.touched.insert(partition, (model.acknowledged, at));
            model.acknowledged += 1;
            model.covered = model.in_flight.first().map_or(model.at, |next| next.1 - 1);
        }
        Step::Acknowledge => {}
        Step::LeaveOut => {
            let at = model.next();
            if model.in_flight.is_empty() {
                model.covered = at;
            }
            ledger.left_out(position(at));
        }
        Step::Idle => {
            let at = model.next();
            if model.in_flight.is_empty() {
                model.covered = at;
            }
            ledger.idle(position(at));
        }
        Step::Store => {
            if let Some(pending) = ledger.store() {
                prop_assert!(!model.failed && model.storing.is_none());
                let offset = ordinal(&pending.offset);
                prop_assert!(
                    !model.in_transactions || offset >= model.last_sent,
                    "{offset} would be committed with record {}",
                    model.last_sent
                );
                model.begin(&pending, true)?;
            }
        }
        Step::StoreExplicit => {
            let at = model.next();
            let mut offset = SourceOffset::default();
            offset.set("at", at);
            if let Some(pending) = ledger.store_explicit(offset) {
                prop_assert!(!model.failed && model.storing.is_none());
                prop_assert!(model.in_flight.is_empty(), "stored over what is in flight");
                model.covered = at;
                model.begin(&pending, false)?;
            }
        }
        Step::Answer { safe: true } => {
            let told = ledger.stored(Instant::now()).map(|position| ordinal(&position.offset()));
            match model.storing.take() {
                Some((offset, tell)) if !model.failed => {
                    model.stored = offset;
                    prop_assert_eq!(told, tell.then_some(offset));
                }
                _ => prop_assert_eq!(told, None, "told what is not stored"),
            }
        }
        Step::Answer { safe: false } => {
            ledger.failed();
            model.failed = true;
        }
        Step::WrongAcknowledgement => {
            prop_assert!(ledger.acknowledged(&ack(u64::MAX, 0, 0)).is_err());
            model.failed = true;
            model.in_flight.clear();
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_is_stored_before_it_is_safe_nor_told_before_it_is_stored(
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut model = Model::default();
        let mut ledger = Ledger::new(Cover::Acknowledged, Tail::default(), Instant::now());
        for step in &steps {
            apply(&mut model, &mut ledger, step)?;
            if model.failed {
                prop_assert!(ledger.store().is_none(), "stored after a failure");
                prop_assert!(ledger.stored(Instant::now()).is_none(), "told after a failure");
                return Ok(());
            }
        }
    }

    /// What a transaction makes visible, the offset in it covers: no more and no less.
    #[test]
    fn in_a_transaction_no_record_is_without_the_offset_that_covers_it(
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut model = Model { in_transactions: true, ..Model::default() };
        let mut ledger = Ledger::new(Cover::All, Tail::default(), Instant::now());
        for step in &steps {
            apply(&mut model, &mut ledger, step)?;
            if model.failed {
                prop_assert!(ledger.store().is_none(), "stored after a failure");
                prop_assert!(ledger.stored(Instant::now()).is_none(), "told after a failure");
                return Ok(());
            }
        }
    }

    /// Nothing is left behind either: once all is acknowledged, the newest position is stored.
    #[test]
    fn what_is_acknowledged_is_stored_in_the_end(
        steps in prop::collection::vec(
            prop_oneof![
                (0..2_i32).prop_map(|partition| Step::Send { partition }),
                Just(Step::Acknowledge),
                Just(Step::Idle),
                Just(Step::LeaveOut),
                Just(Step::Store),
                Just(Step::Answer { safe: true }),
            ],
            1..60,
        ),
    ) {
        let mut model = Model::default();
        let mut ledger = Ledger::new(Cover::Acknowledged, Tail::default(), Instant::now());
        for step in &steps {
            apply(&mut model, &mut ledger, step)?;
        }
        while !model.in_flight.is_empty() {
            apply(&mut model, &mut ledger, &Step::Acknowledge)?;
        }
        for step in [Step::Answer { safe: true }, Step::Store, Step::Answer { safe: true }] {
            apply(&mut model, &mut ledger, &step)?;
        }
        prop_assert_eq!(model.stored, model.at);
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_acknowledged_position_is_due_after_the_interval() {
    let start = Instant::now();
    let mut ledger = Ledger::new(Cover::Acknowledged, Tail::default(), start);
    ledger.sent(1, None, position(1));
    assert!(!ledger.is_due(start + 9 * SECOND, SECOND), "nothing is acknowledged");
    ledger.acknowledged(&ack(1, 0, 0)).unwrap();
    assert!(!ledger.is_due(start + SECOND / 2, SECOND));
    assert!(ledger.is_due(start + SECOND, SECOND));
}

#[test]
fn an_idle_position_is_due_at_most_once_a_second_and_never_over_records_in_flight() {
    let start = Instant::now();
    let mut ledger = Ledger::new(Cover::Acknowledged, Tail::default(), start);
    ledger.idle(position(1));
    let short = Duration::from_millis(10);
    assert!(!ledger.is_due(start + SECOND / 2, short));
    assert!(ledger.is_due(start + SECOND, short));
    ledger.sent(1, None, position(2));
    ledger.idle(position(3));
    assert!(!ledger.is_due(start + 9 * SECOND, short), "a record is in flight");
}

#[test]
fn a_record_that_is_left_out_waits_for_those_before_it() {
    let mut ledger = Ledger::new(Cover::Acknowledged, Tail::default(), Instant::now());
    ledger.left_out(position(1));
    assert_eq!(ordinal(&ledger.store().unwrap().offset), 1, "nothing is before it");
    ledger.stored(Instant::now());
    ledger.sent(1, None, position(2));
    ledger.left_out(position(3));
    assert!(ledger.store().is_none(), "record 2 is in flight");
    ledger.acknowledged(&ack(1, 0, 0)).unwrap();
    assert_eq!(ordinal(&ledger.store().unwrap().offset), 3);
}

#[test]
fn an_offset_only_write_repeats_the_tail() {
    let mut ledger = Ledger::new(Cover::Acknowledged, Tail::default(), Instant::now());
    ledger.sent(1, Some(hw(1)), position(1));
    ledger.acknowledged(&ack(1, 0, 17)).unwrap();
    let first = ledger.store().unwrap();
    assert_eq!(first.tail.0[0].offset, 17);
    assert!(ledger.stored(Instant::now()).is_some());
    ledger.idle(position(2));
    assert_eq!(ledger.store().unwrap().tail, first.tail);
}

#[test]
fn a_second_store_waits_for_the_answer_to_the_first() {
    let mut ledger = Ledger::new(Cover::Acknowledged, Tail::default(), Instant::now());
    ledger.idle(position(1));
    assert!(ledger.store().is_some());
    ledger.idle(position(2));
    assert!(ledger.store().is_none());
    ledger.stored(Instant::now());
    assert!(ledger.store().is_some());
}
