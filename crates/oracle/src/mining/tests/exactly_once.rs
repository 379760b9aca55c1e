//! Whatever threads write and however they are read, each row is applied once and in the order of its
//! thread's log.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{from, from_scn, miner_with};
use crate::mining::fake::{Fake, Fault, error, row, transaction};
use crate::mining::{Miner, MiningSettings, Step};
use crate::row::{Operation, RedoRow};
use crate::session::{ErrorClass, OpenTransaction};
use crate::{Scn, TransactionKey};

/// What happens next.
#[derive(Clone, Debug)]
enum Act {
    /// A change whose redo is written at once.
    Write,
    /// A change whose redo waits in a private strand.
    Hold,
    /// A strand is written.
    Flush,
    /// The first piece of a long statement.
    BeginStatement,
    /// Its last piece.
    EndStatement,
    /// A COMMIT row without an address, of an earlier change.
    WriteWithoutAddress,
    /// A CREATE TABLE whose transaction ends at once, or later.
    Ddl { stays_open: bool },
    /// The DDL's transaction ends.
    EndDdl,
    /// The thread goes on in the next log.
    Switch,
    /// The same, and the next log is in the catalog only later.
    BeginSwitch,
    /// See `BeginSwitch`.
    EndSwitch,
    /// The instance is stopped.
    Close,
    /// The instance starts again.
    Open,
    /// The clock runs.
    Tick,
    /// A step is read and applied.
    Step,
    /// A step fails after so many rows.
    Fail(usize),
    /// A step is read and not applied.
    Forget,
    /// The task starts again from its cursor.
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => Just(Act::Write),
        5 => Just(Act::Hold),
        3 => Just(Act::Flush),
        1 => Just(Act::BeginStatement),
        2 => Just(Act::EndStatement),
        1 => Just(Act::WriteWithoutAddress),
        1 => any::<bool>().prop_map(|stays_open| Act::Ddl { stays_open }),
        1 => Just(Act::EndDdl),
        3 => Just(Act::Switch),
        1 => Just(Act::BeginSwitch),
        1 => Just(Act::EndSwitch),
        1 => Just(Act::Close),
        1 => Just(Act::Open),
        3 => Just(Act::Tick),
        10 => Just(Act::Step),
        2 => (0_usize..4).prop_map(Act::Fail),
        1 => Just(Act::Forget),
        1 => Just(Act::Restart),
    ]
}

/// A thread, as the test drives it.
#[derive(Default)]
struct Driven {
    strands: Vec<u64>,
    statement: Option<RedoRow>,
    /// First SCN of a log that is written and not listed.
    unlisted: Option<u64>,
    is_closed: bool,
    applied: Vec<RedoRow>,
}

struct Run {
    fake: Fake,
    miner: Miner,
    threads: BTreeMap<u32, Driven>,
    /// Rows without an address, by SCN.
    without_address: BTreeMap<u64, bool>,
    number: u32,
    retries: u32,
    settings: MiningSettings,
}

impl Run {
    fn new(threads: u32, max_logs: u32) -> Self {
        let settings = MiningSettings {
            is_rac_enabled: threads > 1,
            max_logs_per_step: max_logs,
            ..MiningSettings::default()
        };
        let mut fake = Fake::new(threads);
        let miner = miner_with(&mut fake, from_scn(100), settings.clone());
        let threads = (1..=threads).map(|thread| (thread, Driven::default())).collect();
        let without_address = BTreeMap::new();
        Self { fake, miner, threads, without_address, number: 0, retries: 0, settings }
    }

    fn key(&mut self) -> TransactionKey {
        self.number += 1;
        transaction(self.number)
    }

    fn act(&mut self, thread: u32, act: &Act) {
        match act {
            Act::Step => drop(self.step()),
            Act::Fail(rows) => self.fail(*rows),
            Act::Forget => drop(super::step(&mut self.miner, &mut self.fake).unwrap()),
            Act::Restart => self.restart(),
            Act::Tick => drop(self.fake.tick()),
            Act::EndDdl => self.fake.open.clear(),
            Act::Open => self.open(thread),
            _ if !self.threads[&thread].is_closed => self.write(thread, act),
            _ => {}
        }
    }

    fn write(&mut self, thread: u32, act: &Act) {
        match act {
            Act::Write => {
                let key = self.key();
                drop(self.fake.write(thread, Operation::Insert, key));
            }
            Act::Hold => {
                let scn = self.fake.tick();
                self.driven(thread).strands.push(scn);
            }
            Act::Flush => self.flush(thread),
            Act::BeginStatement => self.begin_statement(thread),
            Act::EndStatement => self.end_statement(thread),
            Act::WriteWithoutAddress => self.write_without_address(thread),
            Act::Ddl { stays_open } => self.ddl(thread, *stays_open),
            Act::Switch => {
                let first = self.end_log(thread);
                self.fake.list_log(thread, first);
            }
            Act::BeginSwitch => {
                let first = self.end_log(thread);
                self.driven(thread).unlisted = Some(first);
            }
            Act::EndSwitch => self.end_switch(thread),
            Act::Close => self.close(thread),
            _ => unreachable!(),
        }
    }

    fn driven(&mut self, thread: u32) -> &mut Driven {
        self.threads.get_mut(&thread).unwrap()
    }

    fn flush(&mut self, thread: u32) {
        for scn in std::mem::take(&mut self.driven(thread).strands) {
            let key = self.key();
            self.fake.write_late(thread, scn, Operation::Insert, key);
        }
    }

    fn begin_statement(&mut self, thread: u32) {
        if self.threads[&thread].statement.is_none() {
            let key = self.key();
            let block = self.fake.next_block(thread);
            let scn = self.fake.tick();
            let piece = row(thread, scn, block, Operation::Update, key);
            let piece = self.fake.write_row(RedoRow { is_continued: true, ..piece });
            self.driven(thread).statement = Some(piece);
        }
    }

    fn end_statement(&mut self, thread: u32) {
        if let Some(piece) = self.driven(thread).statement.take() {
            let sql_redo = Some("; its end".to_owned());
            self.fake.write_row(RedoRow { is_continued: false, sql_redo, ..piece });
        }
    }

    fn write_without_address(&mut self, thread: u32) {
        let key = self.key();
        let oldest = self.driven(thread).strands.first().copied();
        let scn = oldest.unwrap_or_else(|| self.fake.tick());
        let mut row = row(thread, scn, 0, Operation::Commit, key);
        row.at.address = None;
        self.fake.write_row(row);
        self.without_address.insert(scn, false);
    }

    fn ddl(&mut self, thread: u32, stays_open: bool) {
        let key = self.key();
        let scn = self.fake.tick();
        let block = self.fake.next_block(thread);
        let sql_redo = Some(format!("create table t{block} (id number)"));
        self.fake.write_row(RedoRow { sql_redo, ..row(thread, scn, block, Operation::Ddl, key) });
        if stays_open {
            self.fake.open.push(OpenTransaction { key, start: Scn(scn) });
        }
    }

    /// What waits in a thread is written before its log ends.
    fn end_log(&mut self, thread: u32) -> u64 {
        self.end_switch(thread);
        self.end_statement(thread);
        self.flush(thread);
        self.fake.end_log(thread)
    }

    fn end_switch(&mut self, thread: u32) {
        if let Some(first) = self.driven(thread).unlisted.take() {
            self.fake.list_log(thread, first);
        }
    }

    fn close(&mut self, thread: u32) {
        if self.threads.len() > 1 {
            self.end_log(thread);
            self.fake.state(thread).is_open = false;
            self.driven(thread).is_closed = true;
        }
    }

    fn open(&mut self, thread: u32) {
        if std::mem::take(&mut self.driven(thread).is_closed) {
            let first = self.fake.tick();
            self.fake.list_log(thread, first);
            self.fake.state(thread).is_open = true;
        }
    }

    fn fail(&mut self, rows: usize) {
        let failure = error(310, ErrorClass::StepRetry);
        self.fake.faults.push_back(Fault::AfterRows(rows, failure));
        assert!(!matches!(self.step(), Some(Step::Rows(_))), "a step that failed has no rows");
        self.fake.faults.clear();
    }

    /// From the cursor, whose rows come again, as they may not have been delivered.
    fn restart(&mut self) {
        let cursor = self.miner.cursor().clone();
        for (thread, driven) in &mut self.threads {
            let mark = cursor.mark(crate::RedoThread(*thread));
            if driven.applied.last().is_some_and(|row| row.at.address == mark) {
                driven.applied.pop();
            }
        }
        self.miner = miner_with(&mut self.fake, from(cursor), self.settings.clone());
    }

    /// `None` if rows were applied.
    fn step(&mut self) -> Option<Step> {
        let step = super::step(&mut self.miner, &mut self.fake).unwrap();
        let Step::Rows(mut step) = step else {
            self.end_a_retry();
            return Some(step);
        };
        for row in step.rows.by_ref() {
            let row = row.unwrap().row().clone();
            if row.at.address.is_some() {
                self.driven(row.at.thread.0).applied.push(row);
            } else {
                self.without_address.insert(row.at.scn.0, true);
            }
        }
        self.miner.applied(*step);
        self.retries = 0;
        None
    }

    /// A statement is not left unfinished for ever.
    fn end_a_retry(&mut self) {
        self.retries += 1;
        if self.retries > 10 {
            let threads: Vec<u32> = self.threads.keys().copied().collect();
            threads.into_iter().for_each(|thread| self.end_statement(thread));
        }
    }

    /// Lets everything be written and read.
    fn finish(&mut self) {
        for thread in self.threads.keys().copied().collect::<Vec<_>>() {
            self.open(thread);
            self.end_switch(thread);
            self.end_statement(thread);
            self.flush(thread);
        }
        self.fake.open.clear();
        self.fake.tick();
        let idle = (0..1000).find(|_| matches!(self.step(), Some(Step::Idle)));
        assert!(idle.is_some(), "the end is never reached");
    }

    /// What a thread has written, its statements joined.
    fn expected(&self, thread: u32) -> Vec<RedoRow> {
        let mut rows: Vec<RedoRow> = Vec::new();
        for row in self.fake.written(thread).into_iter().filter(|row| row.at.address.is_some()) {
            match rows.iter_mut().find(|earlier| earlier.at == row.at) {
                Some(first) => {
                    first.sql_redo.as_mut().unwrap().push_str(row.sql_redo.as_deref().unwrap());
                    first.is_continued = false;
                }
                None => rows.push(row),
            }
        }
        rows
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for (thread, driven) in &self.threads {
            let points = |rows: &[RedoRow]| -> Vec<_> {
                rows.iter().map(|row| (row.at.address, row.sql_redo.clone())).collect()
            };
            prop_assert_eq!(points(&driven.applied), points(&self.expected(*thread)));
        }
        let missed: Vec<_> = self.without_address.iter().filter(|(_, seen)| !**seen).collect();
        prop_assert!(missed.is_empty(), "rows without an address are missed: {:?}", missed);
        Ok(())
    }
}

/// How many histories are tried; `HW_CASES` scales proofs.
fn cases() -> u32 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn every_row_is_applied_once_and_in_the_order_of_its_log(
        threads in 1_u32..4,
        max_logs in 1_u32..5,
        acts in prop::collection::vec((any::<prop::sample::Index>(), act()), 1..80),
    ) {
        let mut run = Run::new(threads, max_logs);
        for (index, act) in &acts {
            let thread = u32::try_from(index.index(threads as usize)).unwrap() + 1;
            run.act(thread, act);
        }
        run.finish();
        run.check()?;
    }
}
