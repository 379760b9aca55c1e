//! Reads redo step by step.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::row::{ObjectId, RedoRow};
use crate::session::{
    Dictionary, ErrorClass, Identity, MiningStart, RedoLog, RowQuery, Session, SessionError,
};
use crate::{Code, Cursor, Marks, OracleError, RedoThread, Scn, TransactionKey};

use super::advance::Advance;
use super::dictionary_build::{logs_with_dictionary, unavailable_in_range_mode};
use super::failure::{MiningError, unreadable};
use super::objects::{CapturedObjects, TableChanges, named_table};
use super::plan::Plan;
use super::safe_end::safe_end;
use super::settings::MiningSettings;
use super::start_scope::StartScope;
use super::step::{StagedStep, Step, StepEnd};
use super::step_reader::{ReadWith, StepReader};
use super::survey::{list, survey};
use super::table_filter::TableFilter;
use super::topology::Topology;
use super::window::Window;

/// After so many failures of one step in a row the task stops.
const RETRIES: u32 = 20;

/// Where mining begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MiningFrom {
    /// How far redo was read.
    pub cursor: Cursor,
    /// What is kept of what lies before a first start.
    pub scope: Option<StartScope>,
    /// The database that the position belongs to; `None` at a first start.
    pub identity: Option<Identity>,
}

/// Transactions that are open in the buffer, by which rows that name only a slot are told.
pub type OpenKeys<'a> = &'a mut dyn Iterator<Item = TransactionKey>;

/// Reads redo step by step. A step is read whole, then applied by the caller; only then does the cursor
/// move. So whatever fails while a step is read, the same rows come again, and no other ones.
#[derive(Debug)]
pub struct Miner {
    settings: MiningSettings,
    topology: Topology,
    objects: CapturedObjects,
    changes: TableChanges,
    at: Advance,
    scope: Option<StartScope>,
    window: Window,
    retries: u32,
    /// The session was opened then.
    opened: Instant,
    /// The session has to be opened anew, see [`ErrorClass::OutOfMemory`].
    is_exhausted: bool,
    /// A DDL ended the step before, and the objects have to be looked up again.
    refresh: Option<RedoRow>,
    /// What has to be read by the dictionary in the redo.
    lagging: Option<Plan>,
    /// Objects of its rows whose table is not known.
    unnamed: BTreeSet<ObjectId>,
}

impl Miner {
    /// Checks the database and looks up the objects that are captured.
    ///
    /// # Errors
    /// CDC-5001 for a database that does not fit; see [`MiningError`].
    pub fn new(
        session: &mut dyn Session,
        settings: MiningSettings,
        filter: TableFilter,
        from: MiningFrom,
    ) -> Result<Self, MiningError> {
        let topology =
            Topology::probe(session, &settings, from.identity).map_err(MiningError::settle)?;
        topology.check_marks(&from.cursor.marks)?;
        let window = Window::new(settings.max_logs_per_step, settings.target_latency);
        let mut miner = Self {
            settings,
            topology,
            objects: CapturedObjects::new(filter),
            changes: TableChanges::default(),
            at: Advance::resume(from.cursor),
            scope: from.scope,
            window,
            retries: 0,
            opened: Instant::now(),
            is_exhausted: false,
            refresh: None,
            lagging: None,
            unnamed: BTreeSet::new(),
        };
        miner.look_up_objects(session, None).map_err(|error| MiningError::from(error).settle())?;
        Ok(miner)
    }

    /// How far redo was read and applied.
    pub const fn cursor(&self) -> &Cursor {
        self.at.cursor()
    }

    /// The database that is mined.
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The objects that are captured, and their tables. They stay as they are while a step is applied.
    pub const fn objects(&self) -> &CapturedObjects {
        &self.objects
    }

    /// Tables that came and went since this was asked before.
    pub fn take_table_changes(&mut self) -> TableChanges {
        std::mem::take(&mut self.changes)
    }

    /// Reads the next step.
    ///
    /// # Errors
    /// [`MiningError::Stop`], or a lost connection: then [`Miner::reconnect`], and the step again.
    pub fn step(
        &mut self,
        session: &mut dyn Session,
        open: OpenKeys<'_>,
    ) -> Result<Step, MiningError> {
        self.lagging = None;
        self.unnamed.clear();
        let step = self.try_step(session, open);
        self.settle(step)
    }

    fn try_step(
        &mut self,
        session: &mut dyn Session,
        open: OpenKeys<'_>,
    ) -> Result<Step, MiningError> {
        self.renew(session)?;
        if let Some(ddl) = self.refresh.take() {
            let looked_up = self.look_up_objects(session, Some(&ddl));
            if looked_up.is_err() {
                self.refresh = Some(ddl);
            }
            looked_up?;
        }
        let Some(plan) = self.plan(session)? else { return Ok(Step::Idle) };
        let start = plan.mining_start(self.topology.is_range_mode);
        self.read(session, plan, &start, open)
    }

    /// A LogMiner session takes ever more memory of the server, which only its end gives back.
    fn renew(&mut self, session: &mut dyn Session) -> Result<(), MiningError> {
        if self.is_exhausted || self.opened.elapsed() >= self.settings.session_max_age {
            session.end_mining();
            self.try_reconnect(session)?;
        }
        Ok(())
    }

    fn look_up_objects(
        &mut self,
        session: &mut dyn Session,
        ddl: Option<&RedoRow>,
    ) -> Result<(), SessionError> {
        let listed = session.table_objects()?;
        let asked = session.current_scn()?;
        let changes = self.objects.refresh(listed, ddl.and_then(named_table).as_ref());
        if ddl.is_none_or(|ddl| self.objects.may_gain_by(ddl)) {
            self.objects.may_have_missed(asked);
        }
        self.changes.added.extend(changes.added);
        self.changes.removed.extend(changes.removed);
        Ok(())
    }

    fn plan(&self, session: &mut dyn Session) -> Result<Option<Plan>, MiningError> {
        let cursor = self.cursor();
        let survey = survey(session, &self.settings, &self.topology, cursor)?;
        let inventory = &survey.inventory;
        let is_standby = self.topology.is_standby();
        let safe = safe_end(inventory, self.settings.capture, is_standby, survey.current);
        if safe <= cursor.scn {
            return Ok(None);
        }
        let until = self.window.end(cursor.scn, safe, inventory.logs());
        Ok(Some(Plan::new(inventory, cursor, until)))
    }

    fn read(
        &mut self,
        session: &mut dyn Session,
        plan: Plan,
        start: &MiningStart,
        open: OpenKeys<'_>,
    ) -> Result<Step, MiningError> {
        let began = Instant::now();
        let mut reader = StepReader::new(ReadWith {
            objects: &self.objects,
            only_thread: self.only_thread(),
            until: plan.until,
            dictionary: start.dictionary,
            before: &self.at,
            scope: self.scope.as_ref(),
            open,
            settings: &self.settings,
        });
        session.start_mining(start).map_err(|error| unreadable(error, &start.logs))?;
        let rows = session.rows(&self.query(&plan), &mut |row| reader.take(row));
        rows.map_err(|error| unreadable(error, &start.logs))?;
        let is_ddl_open = reader.is_cut()
            && session.open_transactions()?.iter().any(|open| reader.is_ddl_of(open));
        let step = reader.finish(&self.own_logs(&plan), is_ddl_open)?;
        if matches!(&step, Step::Rows(step) if step.is_whole) {
            self.window.completed(began.elapsed());
        }
        self.note_lagging(plan, &step)?;
        Ok(step)
    }

    /// What has no address, and reached its log late, is found by SCN in the logs that are read anyway;
    /// a thread that has no mark yet begins at the cursor.
    fn query(&self, plan: &Plan) -> RowQuery {
        let cursor = self.cursor();
        let is_marked =
            |thread| matches!(&cursor.marks, Marks::Threads(it) if it.contains_key(thread));
        let from = match plan.logs.iter().all(|log| is_marked(&log.thread)) {
            true => plan.start,
            false => cursor.scn,
        };
        RowQuery {
            marks: self.at.row_marks(),
            from,
            until: plan.mined_until,
            objects: self.objects.ids().into_iter().chain(self.unnamed.iter().copied()).collect(),
            unnamed_until: self.objects.unnamed_until(),
            excluded_users: self.settings.excluded_users.clone(),
        }
    }

    /// The one thread that may be met; `None` where all may.
    fn only_thread(&self) -> Option<RedoThread> {
        match self.settings.is_rac_enabled {
            true => None,
            false => self.topology.enabled.first().copied(),
        }
    }

    /// Logs of the threads that may be met: others get no mark.
    fn own_logs(&self, plan: &Plan) -> Vec<RedoLog> {
        let only = self.only_thread();
        let is_own = |log: &&RedoLog| only.is_none_or(|only| only == log.thread);
        plan.logs.iter().filter(is_own).cloned().collect()
    }

    fn note_lagging(&mut self, plan: Plan, step: &Step) -> Result<(), OracleError> {
        match step {
            Step::Lagging { .. } if self.topology.is_range_mode => Err(unavailable_in_range_mode()),
            Step::Lagging { objects, .. } => {
                self.lagging = Some(plan);
                self.unnamed.clone_from(objects);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads the step that was found lagging, by the newest dictionary in the redo before it.
    ///
    /// # Errors
    /// CDC-6001 without such a dictionary, or if that does not decode the rows either; else as
    /// [`Miner::step`].
    pub fn replay(
        &mut self,
        session: &mut dyn Session,
        open: OpenKeys<'_>,
    ) -> Result<Step, MiningError> {
        let step = match self.lagging.clone() {
            Some(plan) => self.try_replay(session, plan, open),
            None => self.try_step(session, open),
        };
        self.settle(step)
    }

    fn try_replay(
        &mut self,
        session: &mut dyn Session,
        plan: Plan,
        open: OpenKeys<'_>,
    ) -> Result<Step, MiningError> {
        let threads = session.threads()?;
        let listed = list(session, &self.topology, Scn(0), Scn::MAX)?;
        let logs = logs_with_dictionary(&listed, &plan, &threads, self.settings.capture)?;
        let start = MiningStart { logs, dictionary: Dictionary::Redo, ..plan.mining_start(true) };
        self.read(session, plan, &start, open)
    }

    /// A step was applied: the cursor moves.
    pub fn applied(&mut self, step: StagedStep) {
        self.at = step.after;
        self.lagging = None;
        self.unnamed.clear();
        if let StepEnd::Cut(ddl) = step.ended_by {
            self.refresh = Some(*ddl);
        }
    }

    /// Opens the session again and checks that it is the same database, of a shape that is captured.
    /// What was read and not applied is read again.
    ///
    /// # Errors
    /// CDC-5001 for another database or incarnation; see [`MiningError`].
    pub fn reconnect(&mut self, session: &mut dyn Session) -> Result<(), MiningError> {
        self.try_reconnect(session).map_err(MiningError::settle)
    }

    fn try_reconnect(&mut self, session: &mut dyn Session) -> Result<(), MiningError> {
        session.reconnect()?;
        let identity = self.topology.database.identity;
        self.topology = Topology::probe(session, &self.settings, Some(identity))?;
        self.topology.check_marks(&self.cursor().marks)?;
        self.opened = Instant::now();
        self.is_exhausted = false;
        Ok(())
    }

    /// Says what an error of the database means for the step.
    fn settle(&mut self, step: Result<Step, MiningError>) -> Result<Step, MiningError> {
        match step {
            Ok(Step::Retry(reason)) => self.retry(reason),
            Ok(step) => {
                if matches!(step, Step::Rows(_)) {
                    self.retries = 0;
                }
                Ok(step)
            }
            Err(MiningError::Session(error)) => self.settle_error(error),
            Err(stop) => Err(stop),
        }
    }

    fn settle_error(&mut self, error: SessionError) -> Result<Step, MiningError> {
        match error.class {
            ErrorClass::StepRetry => self.retry(error.message),
            ErrorClass::Timeout => self.time_out(&error),
            ErrorClass::OutOfMemory => {
                self.is_exhausted = true;
                self.time_out(&error)
            }
            _ => Err(MiningError::Session(error).settle()),
        }
    }

    fn time_out(&mut self, error: &SessionError) -> Result<Step, MiningError> {
        self.window.timed_out(&error.message)?;
        Ok(Step::TimedOut)
    }

    fn retry(&mut self, reason: String) -> Result<Step, MiningError> {
        self.retries += 1;
        if self.retries <= RETRIES {
            return Ok(Step::Retry(reason));
        }
        let scn = self.cursor().scn;
        Err(OracleError::new(
            Code::MiningStepRetry,
            format!("the step at SCN {scn} failed {} times in a row: {reason}", self.retries),
            "see whether the archiver is stuck, and whether the online logs are overwritten before              they are archived; then restart the task",
        )
        .into())
    }
}
