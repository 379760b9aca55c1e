//! Reads the rows of one step.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::row::{ObjectId, Operation, RedoRow};
use crate::session::{Dictionary, OpenTransaction, RedoLog};
use crate::{Code, OracleError, RedoPoint, RedoThread, Scn, TableName, TransactionKey};

use super::advance::Advance;
use super::dictionary_build::{still_generic, still_unnamed};
use super::lagging::is_lagging;
use super::objects::{CapturedObjects, is_of_table};
use super::settings::MiningSettings;
use super::slots::Slots;
use super::stage::Stage;
use super::start_scope::StartScope;
use super::statement_join::StatementJoin;
use super::step::{StagedStep, Step, StepEnd};

/// What the rows of a step are read with.
pub(super) struct ReadWith<'a> {
    pub(super) objects: &'a CapturedObjects,
    /// The thread that may be met; `None` for all.
    pub(super) only_thread: Option<RedoThread>,
    /// First SCN that is not read.
    pub(super) until: Scn,
    pub(super) dictionary: Dictionary,
    /// The cursor, by which rows are told that were applied before.
    pub(super) before: &'a Advance,
    pub(super) scope: Option<&'a StartScope>,
    /// Transactions that are open in the buffer.
    pub(super) open: &'a mut dyn Iterator<Item = TransactionKey>,
    pub(super) settings: &'a MiningSettings,
}

/// Reads the rows of one step.
pub(super) struct StepReader<'a> {
    objects: &'a CapturedObjects,
    only_thread: Option<RedoThread>,
    until: Scn,
    dictionary: Dictionary,
    before: &'a Advance,
    after: Advance,
    join: StatementJoin,
    /// Bytes that rows may take which wait for the end of a statement.
    join_max_bytes: usize,
    slots: Slots,
    scope: Option<&'a StartScope>,
    stage: Stage,
    /// A row above the end of the step was seen.
    is_over: bool,
    lagging: BTreeSet<TableName>,
    /// Objects of rows whose table is not known.
    unnamed: BTreeSet<ObjectId>,
    /// The DDL that ended the step. It is not staged yet.
    ddl: Option<RedoRow>,
    failure: Option<OracleError>,
}

/// How far a step was read.
struct Reached {
    scn: Scn,
    ended_by: StepEnd,
    /// Why it ended before its range did, and whether that passes by itself.
    held_back: Option<Step>,
}

impl<'a> StepReader<'a> {
    pub(super) fn new(with: ReadWith<'a>) -> Self {
        let ReadWith { settings, .. } = with;
        Self {
            objects: with.objects,
            only_thread: with.only_thread,
            until: with.until,
            dictionary: with.dictionary,
            before: with.before,
            after: with.before.clone(),
            join: StatementJoin::default(),
            join_max_bytes: settings.stage_max_bytes,
            slots: Slots::new(with.open),
            scope: with.scope,
            stage: Stage::new(settings.stage_max_bytes, settings.stage_directory.clone()),
            is_over: false,
            lagging: BTreeSet::new(),
            unnamed: BTreeSet::new(),
            ddl: None,
            failure: None,
        }
    }

    /// Takes the next row of LogMiner; breaks when the step is read.
    pub(super) fn take(&mut self, row: RedoRow) -> ControlFlow<()> {
        match self.read(row) {
            Ok(flow) => flow,
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn read(&mut self, row: RedoRow) -> Result<ControlFlow<()>, OracleError> {
        check(&row, self.only_thread)?;
        // The first row above the end ends the step for all threads: LogMiner merges them by SCN, so
        // that what the others have below it came before. Only rows that reached their log late are
        // behind it; they come in the next step, in the order of their log. A statement that has begun
        // is read to its last piece.
        self.is_over |= row.at.scn >= self.until;
        let is_taken = !self.is_over || self.join.awaits(&row);
        if is_taken && !self.before.is_applied(&row.at) {
            self.join.push(row);
        }
        while let Some(row) = self.join.pop() {
            if self.accept(row)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let is_read = self.is_over && self.join.unfinished().is_none();
        Ok(if is_read || self.is_full() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    /// A statement whose end does not come within the bound ends the step before it.
    fn is_full(&self) -> bool {
        self.join.bytes() > self.join_max_bytes
    }

    fn accept(&mut self, row: RedoRow) -> Result<ControlFlow<()>, OracleError> {
        if row.operation == Operation::Ddl && self.objects.is_cut_by(&row) && self.keeps(&row) {
            self.ddl = Some(row);
            return Ok(ControlFlow::Break(()));
        }
        self.put(row)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Whether the scope of a first start keeps a row.
    fn keeps(&self, row: &RedoRow) -> bool {
        self.scope.is_none_or(|scope| scope.keeps(row))
    }

    /// Puts a row on the stage.
    pub(super) fn put(&mut self, row: RedoRow) -> Result<(), OracleError> {
        self.after.apply(&row.at);
        let Some(staged) = self.slots.resolve(row) else { return Ok(()) };
        if !self.keeps(staged.row()) {
            return Ok(());
        }
        if !self.is_named(staged.row())? {
            return Ok(());
        }
        if is_lagging(staged.row()) {
            self.note_lagging(staged.row())?;
        }
        // Nothing of a lagging step is applied: what is left of it is read for its tables alone.
        match self.is_lagging() {
            true => Ok(()),
            false => self.stage.push(staged),
        }
    }

    fn is_lagging(&self) -> bool {
        !self.lagging.is_empty() || !self.unnamed.is_empty()
    }

    /// Whether the table of a row is known, and captured where that was asked of the dictionary in the
    /// redo.
    fn is_named(&mut self, row: &RedoRow) -> Result<bool, OracleError> {
        let is_unnamed = self.objects.is_unnamed(row);
        match self.dictionary {
            Dictionary::Online if is_unnamed => {
                self.unnamed.insert(row.object);
                Ok(false)
            }
            Dictionary::Online => Ok(true),
            Dictionary::Redo if is_unnamed => Err(still_unnamed(row)),
            Dictionary::Redo => Ok(!is_of_table(row.operation) || self.objects.is_captured(row)),
        }
    }

    fn note_lagging(&mut self, row: &RedoRow) -> Result<(), OracleError> {
        let Some(table) = self.objects.table_of(row) else { return Ok(()) };
        match self.dictionary {
            Dictionary::Redo => Err(still_generic(&table.to_string())),
            Dictionary::Online => {
                self.lagging.insert(TableName::clone(&table));
                Ok(())
            }
        }
    }

    /// Whether a transaction is that of the DDL which ended the step. Until it has ended, too, the dictionary does not
    /// show what the DDL did, and the step has to end in front of it. (On a standby that is not known,
    /// and a DDL counts as done.)
    pub(super) fn is_ddl_of(&self, open: &OpenTransaction) -> bool {
        let ddl = self.ddl.as_ref();
        // A key is used again: who began later is another one.
        ddl.is_some_and(|ddl| ddl.transaction == open.key && open.start <= ddl.at.scn)
    }

    /// Whether a DDL ended the step.
    pub(super) const fn is_cut(&self) -> bool {
        self.ddl.is_some()
    }

    /// What came of the step. `logs` are those that were read.
    pub(super) fn finish(
        mut self,
        logs: &[RedoLog],
        is_ddl_open: bool,
    ) -> Result<Step, OracleError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.is_lagging() {
            return Ok(Step::Lagging { tables: self.lagging, objects: self.unnamed });
        }
        let reached = self.reach(is_ddl_open)?;
        self.after.complete(reached.scn, logs);
        match reached.held_back {
            Some(held_back) if self.after == *self.before => Ok(held_back),
            held_back => Ok(Step::Rows(Box::new(StagedStep {
                is_whole: held_back.is_none() && reached.ended_by == StepEnd::End,
                rows: self.stage.finish()?,
                ended_by: reached.ended_by,
                without_transaction: self.slots.dropped(),
                after: self.after,
            }))),
        }
    }

    /// A statement that is not whole is left for the next step, and so is all that is behind it in the
    /// order of LogMiner: the marks stay in front of it, and the SCN does not pass it.
    fn reach(&mut self, is_ddl_open: bool) -> Result<Reached, OracleError> {
        let before = |scn, held_back| Reached { scn, ended_by: StepEnd::End, held_back };
        match (self.ddl.take(), self.join.unfinished()) {
            (Some(ddl), _) if is_ddl_open => Ok(before(ddl.at.scn, Some(Step::Idle))),
            (Some(ddl), _) => {
                let scn = ddl.at.scn;
                self.put(ddl.clone())?;
                Ok(Reached { scn, ended_by: StepEnd::Cut(Box::new(ddl)), held_back: None })
            }
            (None, Some(at)) => Ok(before(at.scn, Some(unfinished(at)))),
            (None, None) => Ok(before(self.until, None)),
        }
    }
}

fn unfinished(at: &RedoPoint) -> Step {
    Step::Retry(format!(
        "the statement at SCN {} of thread {} has no end in what was read",
        at.scn, at.thread
    ))
}

/// What stops at once, wherever in the range it is.
fn check(row: &RedoRow, only_thread: Option<RedoThread>) -> Result<(), OracleError> {
    let at = &row.at;
    if row.operation == Operation::MissingScn {
        return Err(damaged(
            format!("redo of thread {} is missing at SCN {}: {:?}", at.thread, at.scn, row.info),
            "restore the logs around that SCN, or move the position behind it and reload the tables",
        ));
    }
    if at.address.is_none() && row.operation.is_content() {
        return Err(damaged(
            format!("a row at SCN {} of thread {} has no redo byte address", at.scn, at.thread),
            "report the server's version; without an address it cannot be told whether a row was read",
        ));
    }
    match only_thread {
        Some(only) if only != at.thread => Err(OracleError::new(
            Code::Topology,
            format!(
                "redo of thread {} at SCN {}, and thread {only} is captured",
                at.thread, at.scn
            ),
            "set cdc.rac.enabled=true, or begin again with a new snapshot on one thread",
        )),
        _ => Ok(()),
    }
}

fn damaged(what: String, remedy: &str) -> OracleError {
    OracleError::new(Code::Corruption, what, remedy)
}
