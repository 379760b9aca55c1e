//! The engine: mines redo step by step, keeps open transactions, and delivers those that commit.
//!
//! It runs on a thread of its own and does one thing after the other. A step is read whole and then
//! applied, so a failure while reading leaves nothing half done; what is asked of the database while a
//! step is applied is asked again until it answers.

mod applying;
mod defining;
mod emitting;
mod giving_up;
mod house;
mod lob_rows;
mod opening;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use highwater_connector::SourceRecord;
use thiserror::Error;

use crate::delivery::{Delivery, Output};
use crate::mining::reconnect::Backoff;
use crate::mining::table_filter::{ColumnFilter, TableFilter};
use crate::mining::{Miner, MiningError, MiningSettings, StagedStep, Step};
use crate::outlet::{Closed, Outlet};
use crate::position::{OpenBounds, Progress};
use crate::schema::{KeyRules, Layouts};
use crate::session::{ErrorClass, Session, SessionError};
use crate::transaction::age::AgeLimit;
use crate::transaction::buffer::{Buffer, BufferSettings};
use crate::transaction::lob_assembler::{LobAssembler, LobSettings};
use crate::transaction::orphans::{OrphanSettings, OrphanWatch};
use crate::{OracleError, Scn, TableName, TransactionKey};

pub use opening::EngineStart;

/// How an engine works.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// How redo is mined.
    pub mining: MiningSettings,
    /// How much open transactions may hold.
    pub buffer: BufferSettings,
    /// How large objects are handled.
    pub lobs: LobSettings,
    /// How keys are chosen.
    pub keys: KeyRules,
    /// Which tables are captured.
    pub tables: TableFilter,
    /// Which columns are left out.
    pub columns: ColumnFilter,
    /// How long transactions may be open.
    pub age: AgeLimit,
    /// When orphans are looked for.
    pub orphans: OrphanSettings,
    /// How records are made.
    pub output: Output,
    /// How long nothing may be delivered before a heartbeat is (`cdc.heartbeat.interval.ms`); `None`
    /// for none.
    pub heartbeat_interval: Option<Duration>,
}

/// Why an engine does not go on.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Stopped {
    /// An error that a person or a restart has to cure.
    #[error(transparent)]
    Failed(#[from] OracleError),
    /// The task was stopped.
    #[error(transparent)]
    Closed(#[from] Closed),
}

/// What a turn of the engine did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// A step was applied; more redo may be there.
    Moved,
    /// There was nothing to read, or it cannot be read now: wait a little.
    Idle,
}

/// How far an engine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineProgress {
    /// First SCN that was not read.
    pub mined_to: Scn,
    /// The least SCN that a restart reads from, once what was delivered is safe.
    pub resume: Scn,
    /// Open transactions with captured changes.
    pub open_transactions: usize,
    /// What they take in memory, bytes.
    pub buffered_bytes: u64,
    /// What they take on disk, bytes.
    pub spilled_bytes: u64,
    /// Whether the database cannot be asked now.
    pub is_lost: bool,
}

/// Mines one database and puts what commits into an outlet.
pub struct Engine<O> {
    settings: EngineSettings,
    session: Box<dyn Session>,
    miner: Miner,
    layouts: Layouts,
    buffer: Buffer,
    lobs: LobAssembler,
    orphans: OrphanWatch,
    progress: Progress,
    delivery: Delivery,
    outlet: O,
    /// Made, and not put into the outlet so far.
    records: Vec<SourceRecord>,
    /// When something was delivered last.
    said: Instant,
    backoff: Backoff,
    /// Since when the database is lost.
    lost: Option<Instant>,
    /// Tables whose rows in the present step have an earlier layout than the dictionary's.
    lagging: BTreeSet<TableName>,
}

/// Records that are put into the outlet at once, about.
const BATCH: usize = 256;

impl<O: Outlet> Engine<O> {
    /// Reads one step and applies it. After an error the engine is of no use any more: the step may be half
    /// applied, and a new one goes on from the stored position.
    ///
    /// # Errors
    /// See [`Stopped`].
    pub fn turn(&mut self) -> Result<Turn, Stopped> {
        let read = self.read();
        let turn = match read {
            Ok(Step::Rows(step)) => {
                self.lost = None;
                self.backoff.reset();
                self.apply(*step)?;
                Turn::Moved
            }
            Ok(Step::Idle | Step::Retry(_) | Step::TimedOut | Step::Lagging { .. }) => Turn::Idle,
            Err(MiningError::Session(error)) => {
                self.recover(&error)?;
                Turn::Moved
            }
            Err(MiningError::Stop(error)) => return Err(error.into()),
        };
        self.give_up()?;
        self.keep_house()?;
        self.flush()?;
        Ok(turn)
    }

    /// How far it is.
    pub fn progress(&self) -> EngineProgress {
        EngineProgress {
            mined_to: self.miner.cursor().scn,
            resume: self.progress.resume_scn(),
            open_transactions: self.buffer.len(),
            buffered_bytes: self.buffer.memory_bytes(),
            spilled_bytes: self.buffer.spilled_bytes(),
            is_lost: self.lost.is_some(),
        }
    }

    fn read(&mut self) -> Result<Step, MiningError> {
        self.lagging.clear();
        let step = self.miner.step(&mut *self.session, &mut open_keys(&self.buffer, &self.lobs))?;
        let Step::Lagging { tables, .. } = step else { return Ok(step) };
        self.lagging = tables;
        self.miner.replay(&mut *self.session, &mut open_keys(&self.buffer, &self.lobs))
    }

    fn apply(&mut self, mut step: StagedStep) -> Result<(), Stopped> {
        self.meet_tables()?;
        for row in step.rows.by_ref() {
            self.row(row?)?;
        }
        self.miner.applied(step);
        Ok(())
    }

    /// Asks the database, again and again while it is lost.
    fn ask<T>(
        &mut self,
        mut question: impl FnMut(&mut dyn Session) -> Result<T, SessionError>,
    ) -> Result<T, Stopped> {
        loop {
            match question(&mut *self.session) {
                Ok(answer) => return Ok(answer),
                Err(error) => self.recover(&error)?,
            }
        }
    }

    /// Waits and connects again, after an error that this may cure.
    fn recover(&mut self, error: &SessionError) -> Result<(), Stopped> {
        if !matches!(error.class, ErrorClass::Transient | ErrorClass::StepRetry) {
            return Err(crate::mining::ora::stop(error).into());
        }
        let lost = *self.lost.get_or_insert_with(Instant::now);
        let pause = self.backoff.next(lost.elapsed(), jitter(lost), error)?;
        self.flush()?;
        self.outlet.wait(pause)?;
        match self.miner.reconnect(&mut *self.session) {
            Ok(()) | Err(MiningError::Session(_)) => Ok(()),
            Err(MiningError::Stop(error)) => Err(error.into()),
        }
    }

    /// Points at or before all open work.
    fn open_work(&self) -> OpenBounds {
        self.buffer.open_bounds().chain(self.lobs.open().map(|(_, at)| at)).collect()
    }

    fn flush(&mut self) -> Result<(), Closed> {
        if self.records.is_empty() { Ok(()) } else { self.outlet.put(&mut self.records) }
    }

    fn flush_if_full(&mut self) -> Result<(), Closed> {
        if self.records.len() < BATCH { Ok(()) } else { self.flush() }
    }
}

/// Open transactions, those whose only change waits for its large objects among them.
fn open_keys<'a>(
    buffer: &'a Buffer,
    lobs: &'a LobAssembler,
) -> impl Iterator<Item = TransactionKey> + 'a {
    buffer.entries().map(|entry| entry.key()).chain(lobs.open().map(|(key, _)| key))
}

/// Some number, so that tasks which lost one database do not all come back at once.
fn jitter(since: Instant) -> u32 {
    since.elapsed().subsec_nanos().wrapping_mul(2_654_435_761)
}
