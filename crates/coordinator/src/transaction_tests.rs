//! Any history of producers, lost writes, time-outs and crashes, and what must hold in each.

use std::collections::BTreeSet;

use highwater_protocol::{ErrorCode, TopicPartition};
use proptest::prelude::*;

use crate::transaction::{
    Init, NO_EPOCH, Producer, TransactionMetadata, TransactionResult, TransactionState,
};
use crate::transactional_id::TransactionalId;

const PARTITIONS: i32 = 3;
const TIMEOUT: i32 = 10;
const EXPIRATION: i64 = 1000;

#[derive(Clone, Debug)]
enum Op {
    /// A new instance takes the transactional id.
    Init,
    /// The newest instance does a whole transaction, up to the answer to its EndTxn.
    Transact(BTreeSet<i32>, TransactionResult),
    /// An instance asks for its epoch to be raised.
    Resume(usize),
    Add(usize, BTreeSet<i32>),
    Produce(usize, i32),
    End(usize, TransactionResult),
    /// What is being written is safe on disk, or not at all.
    Settle(bool),
    Mark(i32),
    Complete,
    Wait(i64),
    Sweep,
    /// `true`: what was being written had reached the disk.
    Crash(bool),
}

fn op() -> impl Strategy<Value = Op> {
    // Mostly the newest instance, sometimes one that was fenced.
    let who = prop_oneof![6 => Just(0_usize), 1 => 1..4_usize];
    let partition = 0..PARTITIONS;
    let result = prop_oneof![Just(TransactionResult::Commit), Just(TransactionResult::Abort)];
    let partitions = prop::collection::btree_set(partition.clone(), 1..3);
    prop_oneof![
        1 => Just(Op::Init),
        3 => (partitions.clone(), result.clone())
            .prop_map(|(partitions, result)| Op::Transact(partitions, result)),
        1 => who.clone().prop_map(Op::Resume),
        4 => (who.clone(), partitions)
            .prop_map(|(who, partitions)| Op::Add(who, partitions)),
        6 => (who.clone(), partition.clone()).prop_map(|(who, at)| Op::Produce(who, at)),
        3 => (who, result).prop_map(|(who, result)| Op::End(who, result)),
        12 => prop::bool::weighted(0.9).prop_map(Op::Settle),
        6 => partition.prop_map(Op::Mark),
        4 => Just(Op::Complete),
        1 => prop_oneof![0..30_i64, 900..1200_i64].prop_map(Op::Wait),
        1 => Just(Op::Sweep),
        1 => any::<bool>().prop_map(Op::Crash),
    ]
}

/// What lies in a partition.
#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Data { producer: Producer, transaction: u64 },
    Marker { producer: Producer, result: TransactionResult },
}

/// What is being written, and what its answer will be.
struct Writing {
    next: TransactionMetadata,
    answer: Answer,
}

enum Answer {
    /// To an InitProducerId.
    Init,
    /// To an AddPartitionsToTxn.
    Added(Producer, u64),
    Ended(Producer, u64, TransactionResult),
    None,
}

#[derive(Default)]
struct World {
    id: TransactionalId,
    disk: Option<TransactionMetadata>,
    writing: Option<Writing>,
    partitions: [Vec<Entry>; PARTITIONS as usize],
    instances: Vec<Producer>,
    next_id: i64,
    now: i64,
    /// Counts transactions; each time one begins.
    transaction: u64,
    /// How transactions were said to end.
    answered: Vec<(u64, TransactionResult)>,
    /// How their markers say that they ended.
    marked: Vec<(u64, TransactionResult)>,
    commits: usize,
    /// Which transaction each instance takes its own to be, from its first partition to its end.
    believed: Vec<(Producer, u64)>,
}

fn partition(index: i32) -> TopicPartition {
    TopicPartition::new("t", index)
}

impl World {
    fn step(&mut self, op: &Op) {
        match op {
            Op::Init => self.init(None),
            Op::Transact(partitions, result) => {
                self.add(0, partitions);
                self.settle(true);
                partitions.iter().for_each(|at| self.produce(0, *at));
                self.end(0, *result);
                self.settle(true);
            }
            Op::Resume(who) => {
                if let Some(producer) = self.instance(*who) {
                    self.init(Some(producer));
                }
            }
            Op::Add(who, indexes) => self.add(*who, indexes),
            Op::Produce(who, at) => self.produce(*who, *at),
            Op::End(who, result) => self.end(*who, *result),
            Op::Settle(stored) => self.settle(*stored),
            Op::Mark(at) => self.mark(*at),
            Op::Complete => self.complete(),
            Op::Wait(ms) => self.now += ms,
            Op::Sweep => self.sweep(),
            Op::Crash(stored) => self.crash(*stored),
        }
        self.check();
    }

    fn instance(&self, who: usize) -> Option<Producer> {
        self.instances.iter().rev().nth(who).copied()
    }

    fn init(&mut self, resumes: Option<Producer>) {
        let init = Init { timeout_ms: TIMEOUT, resumes, now_ms: self.now };
        let next_id = &mut self.next_id;
        let new_id = || {
            *next_id += 1;
            Ok(*next_id)
        };
        if let Ok(next) = self.id.init(init, new_id) {
            self.writing = Some(Writing { next, answer: Answer::Init });
        }
    }

    fn add(&mut self, who: usize, indexes: &BTreeSet<i32>) {
        let Some(producer) = self.instance(who) else { return };
        let partitions = indexes.iter().map(|index| partition(*index)).collect();
        let begins = !self.id.is_open();
        if let Ok(Some(next)) = self.id.add(producer, partitions, self.now) {
            assert_eq!(next.state, TransactionState::Ongoing);
            if begins {
                self.transaction += 1;
            }
            let answer = Answer::Added(producer, self.transaction);
            self.writing = Some(Writing { next, answer });
        }
    }

    /// An instance that was not told of an end is in the transaction in which it began.
    fn believe(&mut self, producer: Producer, transaction: u64) {
        match self.believed.iter().find(|(one, _)| *one == producer) {
            Some((_, believed)) => assert_eq!(*believed, transaction, "it ended unnoticed"),
            None => self.believed.push((producer, transaction)),
        }
    }

    /// As a partition takes a batch: verified, and of no older epoch than it knows.
    fn produce(&mut self, who: usize, at: i32) {
        let Some(producer) = self.instance(who) else { return };
        let log = &mut self.partitions[at as usize];
        if known_epoch(log, producer.id) > producer.epoch {
            return;
        }
        if self.id.verify(producer, &partition(at)).is_ok() {
            log.push(Entry::Data { producer, transaction: self.transaction });
        }
    }

    fn end(&mut self, who: usize, result: TransactionResult) {
        let Some(producer) = self.instance(who) else { return };
        match self.id.end(producer, result, self.now) {
            Ok(Some(next)) => {
                let answer = Answer::Ended(producer, self.transaction, result);
                self.writing = Some(Writing { next, answer });
            }
            // Asked again: it must have ended so.
            Ok(None) => {
                assert!(
                    self.marked.iter().all(|(one, how)| *one != self.transaction || *how == result)
                );
            }
            Err(_) => {}
        }
    }

    fn settle(&mut self, stored: bool) {
        let Some(writing) = self.writing.take() else { return };
        if !stored {
            self.id.lost();
            return;
        }
        self.disk = Some(writing.next.clone());
        self.id.written();
        match writing.answer {
            Answer::Init if writing.next.state == TransactionState::Empty => {
                self.instances.push(writing.next.producer);
            }
            Answer::Added(producer, transaction) => self.believe(producer, transaction),
            Answer::Ended(producer, transaction, result) => {
                self.believed.retain(|(one, _)| *one != producer);
                self.commits += usize::from(result == TransactionResult::Commit);
                self.answered.push((transaction, result));
            }
            Answer::Init | Answer::None => {}
        }
    }

    fn ending(&self) -> Option<(Producer, TransactionResult)> {
        let stands = self.id.stands()?;
        Some((stands.producer, stands.state.ending()?))
    }

    fn mark(&mut self, at: i32) {
        let Some((producer, result)) = self.ending() else { return };
        if !self.id.stands().unwrap().partitions.contains(&partition(at)) {
            return;
        }
        let log = &mut self.partitions[at as usize];
        assert!(known_epoch(log, producer.id) <= producer.epoch, "a marker of an older epoch");
        if let Some(transaction) = open(log) {
            self.marked.push((transaction, result));
        }
        log.push(Entry::Marker { producer, result });
        self.id.marked(&partition(at));
    }

    /// The note that a transaction is complete is not waited for.
    fn complete(&mut self) {
        if self.ending().is_some() && self.id.stands().unwrap().partitions.is_empty() {
            let next = self.id.complete(self.now).unwrap();
            self.id.written();
            // Which record of the two is the last on disk after a crash is not known; that of the complete
            // transaction is the harder one only for what follows, and that is written behind it.
            if self.now % 2 == 0 {
                self.disk = Some(next);
            }
        }
    }

    fn sweep(&mut self) {
        if let Some(next) = self.id.time_out(self.now) {
            self.writing = Some(Writing { next, answer: Answer::None });
        } else if self.id.expire(self.now - EXPIRATION) {
            assert!(open_anywhere(&self.partitions).is_none(), "forgotten with a transaction open");
            self.id.written();
            assert!(self.id.is_forgotten());
            self.id = TransactionalId::default();
            self.disk = None;
        }
    }

    fn crash(&mut self, stored: bool) {
        if stored {
            self.settle(true);
        }
        self.writing = None;
        let restored = |disk: TransactionMetadata| {
            TransactionalId::stored(TransactionMetadata { last_epoch: NO_EPOCH, ..disk })
        };
        self.id = self.disk.clone().map_or_else(TransactionalId::default, restored);
    }

    fn check(&self) {
        // One transaction at a time: what is open in any partition is of the newest one.
        for log in &self.partitions {
            if let Some(transaction) = open(log) {
                assert_eq!(transaction, self.transaction, "an older transaction is still open");
                assert!(self.id.is_open(), "open data, and its coordinator does not know");
            }
        }
        // Commit and abort exclude each other.
        for (transaction, result) in &self.answered {
            let other = |(one, how): &&(u64, _)| one == transaction && how != result;
            assert_eq!(self.marked.iter().find(other), None, "answered {result:?}");
        }
    }

    /// Everything that was begun comes to its end.
    fn finish(&mut self) {
        self.settle(true);
        for at in 0..PARTITIONS {
            self.mark(at);
        }
        self.complete();
        self.check();
        if self.id.stands().is_some_and(|stands| stands.state != TransactionState::Ongoing) {
            assert_eq!(open_anywhere(&self.partitions), None);
        }
    }
}

fn known_epoch(log: &[Entry], id: i64) -> i16 {
    let epoch = |entry: &Entry| match entry {
        Entry::Data { producer, .. } | Entry::Marker { producer, .. } => {
            (producer.id == id).then_some(producer.epoch)
        }
    };
    log.iter().rev().find_map(epoch).unwrap_or(NO_EPOCH)
}

/// The transaction of the data that has no marker behind it.
fn open(log: &[Entry]) -> Option<u64> {
    match log.last()? {
        Entry::Data { transaction, .. } => Some(*transaction),
        Entry::Marker { .. } => None,
    }
}

fn open_anywhere(partitions: &[Vec<Entry>]) -> Option<u64> {
    partitions.iter().find_map(|log| open(log))
}

#[test]
fn any_history_keeps_a_transaction_whole() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: crate::cases(1000),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let commits = std::cell::Cell::new(0);
    let histories = prop::collection::vec(op(), 1..120);
    let run = runner.run(&histories, |ops| {
        let mut world = World::default();
        [Op::Init, Op::Settle(true)].iter().for_each(|op| world.step(op));
        ops.iter().for_each(|op| world.step(op));
        world.finish();
        commits.set(commits.get() + world.commits);
        Ok(())
    });
    run.unwrap();
    assert!(
        commits.get() as u32 > crate::cases(1000) / 2,
        "{} commits prove nothing",
        commits.get()
    );
}

fn init(resumes: Option<Producer>) -> Init {
    Init { timeout_ms: TIMEOUT, resumes, now_ms: 1 }
}

fn no_id() -> Result<i64, ErrorCode> {
    panic!("no id is needed")
}

/// A transactional id whose producer has this epoch, at rest.
fn at_epoch(epoch: i16) -> TransactionMetadata {
    let first = TransactionMetadata::first(7, init(None));
    TransactionMetadata { producer: Producer { id: 7, epoch }, ..first }
}

#[test]
fn each_init_raises_the_epoch_and_fences_the_one_before() {
    let stands = at_epoch(4);
    let next = stands.init(init(None), no_id).unwrap();
    assert_eq!(next.producer, Producer { id: 7, epoch: 5 });
    assert_eq!(next.check_producer(stands.producer), Err(ErrorCode::PRODUCER_FENCED));
    let stranger = Producer { id: 8, epoch: 5 };
    assert_eq!(next.check_producer(stranger), Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING));
}

/// KIP-360.
#[test]
fn a_producer_that_resumes_is_answered_the_same_twice() {
    let old = Producer { id: 7, epoch: 4 };
    let raised = at_epoch(4).init(init(Some(old)), no_id).unwrap();
    assert_eq!(raised.producer.epoch, 5);
    let again = raised.init(init(Some(old)), no_id).unwrap();
    assert_eq!(again.producer, raised.producer, "the first answer was lost");
    let taken = raised.init(init(None), no_id).unwrap();
    assert_eq!(taken.init(init(Some(old)), no_id), Err(ErrorCode::PRODUCER_FENCED));
    assert_eq!(
        taken.init(init(Some(raised.producer)), no_id),
        Err(ErrorCode::PRODUCER_FENCED),
        "another producer came between"
    );
    let stranger = Producer { id: 9, epoch: 5 };
    assert_eq!(raised.init(init(Some(stranger)), no_id), Err(ErrorCode::PRODUCER_FENCED));
}

#[test]
fn used_up_epochs_bring_a_new_producer_id() {
    let last = at_epoch(i16::MAX - 1);
    let next = last.init(init(None), || Ok(8)).unwrap();
    assert_eq!(next.producer, Producer { id: 8, epoch: 0 });
    let resumed = last.init(init(Some(last.producer)), || Ok(8)).unwrap();
    assert_eq!(resumed.producer, Producer { id: 8, epoch: 0 });
    let again = resumed.init(init(Some(last.producer)), no_id).unwrap();
    assert_eq!(again.producer, resumed.producer, "the first answer was lost");
    // The fence of an open transaction takes the very last epoch.
    let ongoing = last.add([partition(0)].into(), 1).unwrap().unwrap();
    let fenced = ongoing.init(init(None), no_id).unwrap();
    assert_eq!((fenced.producer.epoch, fenced.state), (i16::MAX, TransactionState::PrepareAbort));
    let complete = fenced.complete(2).unwrap();
    assert_eq!(complete.init(init(None), || Ok(8)).unwrap().producer, Producer { id: 8, epoch: 0 });
}

/// State by state: what EndTxn, AddPartitionsToTxn and InitProducerId are answered (Kafka's table).
#[test]
fn each_state_answers_as_kafka_does() {
    use TransactionResult::{Abort, Commit};
    use TransactionState as State;
    let concurrent = Err(ErrorCode::CONCURRENT_TRANSACTIONS);
    let invalid = Err(ErrorCode::INVALID_TXN_STATE);
    let cells = [
        (State::Empty, invalid, invalid, Ok(true)),
        (State::Ongoing, Ok(true), Ok(true), Ok(true)),
        (State::PrepareCommit, concurrent, invalid, concurrent),
        (State::PrepareAbort, invalid, concurrent, concurrent),
        (State::CompleteCommit, Ok(false), invalid, Ok(true)),
        (State::CompleteAbort, invalid, Ok(false), Ok(true)),
    ];
    for (state, commit, abort, add) in cells {
        let stands = TransactionMetadata { state, ..at_epoch(1) };
        let writes = |next: Result<Option<_>, ErrorCode>| next.map(|next| next.is_some());
        assert_eq!(writes(stands.end(Commit, 1)), commit, "commit in {state:?}");
        assert_eq!(writes(stands.end(Abort, 1)), abort, "abort in {state:?}");
        assert_eq!(writes(stands.add([partition(0)].into(), 1)), add, "add in {state:?}");
        let init = stands.init(init(None), no_id).map(|next| next.state);
        let expected = match state {
            State::PrepareCommit | State::PrepareAbort => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            State::Ongoing => Ok(State::PrepareAbort),
            _ => Ok(State::Empty),
        };
        assert_eq!(init, expected, "init in {state:?}");
    }
}

#[test]
fn a_partition_is_verified_while_its_transaction_is_open() {
    let producer = Producer { id: 7, epoch: 1 };
    let ongoing = at_epoch(1).add([partition(0)].into(), 1).unwrap().unwrap();
    assert_eq!(ongoing.add([partition(0)].into(), 1), Ok(None), "it is in it already");
    assert_eq!(ongoing.verify(producer, &partition(0)), Ok(()));
    assert_eq!(ongoing.verify(producer, &partition(1)), Err(ErrorCode::TRANSACTION_ABORTABLE));
    let old = Producer { epoch: 0, ..producer };
    assert_eq!(ongoing.verify(old, &partition(0)), Err(ErrorCode::PRODUCER_FENCED));
    let ending = ongoing.end(TransactionResult::Commit, 1).unwrap().unwrap();
    let concurrent = Err(ErrorCode::CONCURRENT_TRANSACTIONS);
    assert_eq!(ending.verify(producer, &partition(0)), concurrent);
    let complete = ending.complete(1).unwrap();
    assert_eq!(complete.verify(producer, &partition(0)), Err(ErrorCode::TRANSACTION_ABORTABLE));
}

#[test]
fn a_transaction_times_out_and_an_id_grows_old() {
    let ongoing = at_epoch(1).add([partition(0)].into(), 100).unwrap().unwrap();
    assert!(!ongoing.is_timed_out(100 + i64::from(TIMEOUT)));
    assert!(ongoing.is_timed_out(101 + i64::from(TIMEOUT)));
    assert!(!ongoing.is_idle(i64::MAX), "what is open does not grow old");
    assert!(at_epoch(1).is_idle(1) && !at_epoch(1).is_idle(0));
}
