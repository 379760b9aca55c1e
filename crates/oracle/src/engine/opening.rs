//! The start of an engine: at the stored position, or at the first one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use highwater_connector::{SourceOffset, TableDescription};

use super::{BATCH, Engine, EngineSettings, Stopped};
use crate::delivery::{Delivery, HeartbeatReason};
use crate::mining::first_start::FirstStart;
use crate::mining::reconnect::Backoff;
use crate::mining::topology::Topology;
use crate::mining::{Miner, MiningFrom, StartScope};
use crate::outlet::Outlet;
use crate::position::{Position, Progress, ResumePoint, StartFloor};
use crate::schema::{LayoutVersion, Layouts};
use crate::session::Session;
use crate::transaction::buffer::Buffer;
use crate::transaction::lob_assembler::LobAssembler;
use crate::transaction::orphans::OrphanWatch;
use crate::{OracleError, RedoThread};

/// What an engine begins with.
#[derive(Clone, Debug, Default)]
pub struct EngineStart {
    /// The stored offset; `None` at the first start.
    pub offset: Option<SourceOffset>,
    /// All table descriptions that are stored.
    pub tables: Vec<TableDescription>,
}

impl<O: Outlet> Engine<O> {
    /// Opens an engine where the stored offset says. Its first record is a heartbeat with the position
    /// that it starts from.
    ///
    /// # Errors
    /// When the database is another one or cannot be captured, the offset cannot be read, or redo is
    /// missing.
    pub fn open(
        settings: EngineSettings,
        mut session: Box<dyn Session>,
        start: EngineStart,
        outlet: O,
    ) -> Result<Self, Stopped> {
        let (position, scope) = begin(&settings, &mut *session, start.offset.as_ref())?;
        let from =
            MiningFrom { cursor: position.cursor(), scope, identity: Some(position.base.identity) };
        let filter = settings.tables.clone();
        let miner = Miner::new(&mut *session, settings.mining.clone(), filter, from)
            .map_err(OracleError::from)?;
        let progress = Progress::start(position, &threads(miner.topology()))?;
        let columns = settings.columns.clone();
        let is_excluded = move |table: &_, column: &str| columns.excludes(table, column);
        let mut layouts = Layouts::new(settings.keys.clone(), Arc::new(is_excluded));
        let stored = start.tables.iter().map(LayoutVersion::read).collect::<Result<Vec<_>, _>>()?;
        layouts.restore(stored, miner.cursor());
        let mut engine = Self {
            session,
            layouts,
            buffer: Buffer::new(&settings.buffer)?,
            lobs: LobAssembler::new(settings.lobs),
            orphans: OrphanWatch::new(settings.orphans, Instant::now()),
            progress,
            delivery: Delivery::new(settings.output.clone(), &start.tables),
            outlet,
            records: Vec::with_capacity(BATCH * 2),
            said: Instant::now(),
            backoff: Backoff::new(settings.mining.retry_max_time),
            lost: None,
            lagging: BTreeSet::new(),
            miner,
            settings,
        };
        engine.meet_captured()?;
        engine.say_heartbeat(HeartbeatReason::Start);
        Ok(engine)
    }

    /// The position that it starts from. At a first start it has to be stored before any turn: without
    /// it, a restart would be a first one again, and what lies between be lost.
    pub fn position(&self) -> SourceOffset {
        self.progress.position().write()
    }

    fn meet_captured(&mut self) -> Result<(), Stopped> {
        self.miner.take_table_changes();
        for table in self.miner.objects().tables() {
            self.meet(&table)?;
        }
        Ok(())
    }
}

/// The position to begin at, and what is kept of redo before a first start.
fn begin(
    settings: &EngineSettings,
    session: &mut dyn Session,
    offset: Option<&SourceOffset>,
) -> Result<(Position, Option<StartScope>), Stopped> {
    let topology = Topology::probe(session, &settings.mining, None).map_err(OracleError::from)?;
    let identity = topology.database.identity;
    let Some(offset) = offset else {
        let first =
            FirstStart::take(session, &settings.mining, &topology).map_err(OracleError::from)?;
        let floor = first.scope.as_ref().map(|scope| StartFloor {
            scn: scope.floor,
            open_scn: scope.listed,
            open: scope.open.clone(),
        });
        let resume = ResumePoint { scn: first.cursor.scn, address: None };
        let position = Position::first(identity, resume, floor, &threads(&topology));
        return Ok((position, first.scope));
    };
    let position = Position::read(offset)?;
    position.check_identity(identity)?;
    let scope = position.floor().map(|StartFloor { scn, open_scn, open }| StartScope {
        floor: *scn,
        listed: *open_scn,
        open: open.clone(),
    });
    Ok((position, scope))
}

fn threads(topology: &Topology) -> BTreeSet<RedoThread> {
    topology.enabled.iter().copied().collect()
}
