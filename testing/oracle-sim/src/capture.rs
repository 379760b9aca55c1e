//! The session of a capture engine: every answer comes from the simulated database.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use highwater_oracle::{
    ArchiveDestination, ClientSession, Database as About, LogQuery, MiningStart, OpenMode,
    OpenTransaction, RedoLog, RedoRow, Role, RowQuery, Scn, Session, SessionError, TableLayout,
    TableName, TableObject, ThreadState,
};
use parking_lot::Mutex;

use crate::database::{self, Database};
use crate::fault::{Call, Disturbance, Faults, Moment, ora};
use crate::query::Wanted;
use crate::reader::{AddedLog, Mining, Reader, missing};
use crate::simulation::Simulation;

/// Called before each row of a read with the number of rows given so far, to let the database go on.
pub type BetweenRows = Box<dyn FnMut(&Simulation, u64) + Send>;

/// A session with the simulated database. Several may be open at once.
pub struct SimSession {
    simulation: Simulation,
    database: Arc<Mutex<Database>>,
    faults: Arc<Mutex<Faults>>,
    mining: Option<Mining>,
    between_rows: Option<BetweenRows>,
    /// The instance that it was opened with.
    generation: u64,
}

impl SimSession {
    pub(crate) fn new(
        simulation: Simulation,
        database: Arc<Mutex<Database>>,
        faults: Arc<Mutex<Faults>>,
    ) -> Self {
        let generation = database.lock().generation;
        Self { simulation, database, faults, mining: None, between_rows: None, generation }
    }

    /// What happens in the database while rows are read.
    #[must_use]
    pub fn between_rows(mut self, happens: impl FnMut(&Simulation, u64) + Send + 'static) -> Self {
        self.between_rows = Some(Box::new(happens));
        self
    }

    /// A call that gives no rows.
    fn call<T>(
        &self,
        call: Call,
        answer: impl FnOnce(&Database) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        if let Some((_, error)) = self.faults.lock().next(call) {
            return Err(error);
        }
        let database = self.database.lock();
        self.check(&database)?;
        answer(&database)
    }

    /// Whether the instance is still that of the session.
    fn check(&self, database: &Database) -> Result<(), SessionError> {
        match self.generation == database.generation {
            true => Ok(()),
            false => Err(ora(3113, "end-of-file on communication channel")),
        }
    }

    /// What happens between two rows.
    fn pause(&mut self, disturbance: &mut Option<Disturbance>, given: u64) {
        if let Some(due) = disturbance.take_if(|due| due.after <= given) {
            self.simulation.run_until_switched(due.switches);
        }
        if let Some(happens) = &mut self.between_rows {
            happens(&self.simulation, given);
        }
    }

    /// The next row; an error when the session, or what it needs, is gone.
    fn next_row(&self, reader: &mut Reader) -> Result<Option<RedoRow>, SessionError> {
        let database = self.database.lock();
        self.check(&database)?;
        database.check_pdbs()?;
        reader.next(&database)
    }
}

impl Session for SimSession {
    fn database(&mut self) -> Result<About, SessionError> {
        self.call(Call::Database, |database| Ok(database.about()))
    }

    fn current_scn(&mut self) -> Result<Scn, SessionError> {
        self.call(Call::CurrentScn, |database| Ok(database.clock.scn()))
    }

    fn threads(&mut self) -> Result<Vec<ThreadState>, SessionError> {
        self.call(Call::Threads, |database| {
            let state = |thread| ThreadState { thread, is_enabled: true, is_open: true };
            Ok(database.threads.iter().map(|redo| state(redo.thread)).collect())
        })
    }

    fn archive_destinations(&mut self) -> Result<Vec<ArchiveDestination>, SessionError> {
        let destination =
            |id| ArchiveDestination { id, name: format!("LOG_ARCHIVE_DEST_{id}"), is_usable: true };
        self.call(Call::ArchiveDestinations, |_| {
            Ok(database::destinations().map(destination).collect())
        })
    }

    fn logs(&mut self, query: &LogQuery) -> Result<Vec<RedoLog>, SessionError> {
        self.call(Call::Logs, |database| Ok(database.logs(query)))
    }

    fn start_mining(&mut self, start: &MiningStart) -> Result<(), SessionError> {
        self.mining = None;
        self.mining = Some(self.call(Call::StartMining, |database| database.start_mining(start))?);
        Ok(())
    }

    fn rows(
        &mut self,
        query: &RowQuery,
        take: &mut dyn FnMut(RedoRow) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        let fault = self.faults.lock().next(Call::Rows);
        let Some(mining) = &self.mining else {
            return Err(ora(
                1306,
                "LogMiner must be started before a SELECT from V$LOGMNR_CONTENTS",
            ));
        };
        let mut reader = Reader::new(mining, Wanted::new(query));
        let online_logs = self.database.lock().settings.online_logs;
        let mut disturbance = self.faults.lock().disturbance(online_logs);
        let mut given = 0;
        loop {
            if let Some((moment, error)) = &fault
                && is_due(*moment, given)
            {
                return Err(error.clone());
            }
            self.pause(&mut disturbance, given);
            let Some(row) = self.next_row(&mut reader)? else { break };
            given += 1;
            if take(row).is_break() {
                return Ok(());
            }
        }
        fault.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn end_mining(&mut self) {
        self.mining = None;
    }

    fn open_transactions(&mut self) -> Result<Vec<OpenTransaction>, SessionError> {
        self.call(Call::OpenTransactions, |database| {
            let open = database.clients.iter().filter_map(|client| client.transaction.as_ref());
            Ok(open.map(|open| OpenTransaction { key: open.key(), start: open.start }).collect())
        })
    }

    fn is_alive(&mut self, session: &ClientSession) -> Result<bool, SessionError> {
        self.call(Call::IsAlive, |database| {
            let is_it =
                |own: &ClientSession| own.number == session.number && own.serial == session.serial;
            Ok(database.clients.iter().any(|client| is_it(&client.session)))
        })
    }

    fn table_objects(&mut self) -> Result<Vec<TableObject>, SessionError> {
        self.call(Call::TableObjects, |database| Ok(database.table_objects()))
    }

    fn layout(&mut self, table: &TableName) -> Result<Option<TableLayout>, SessionError> {
        self.call(Call::Layout, |database| {
            let mut tables = database.tables.iter().filter(|it| !it.is_dropped);
            Ok(tables.find(|it| it.layout.name == *table).map(crate::table::Table::dictionary))
        })
    }

    fn scn_at(&mut self, time_us: i64) -> Result<Option<Scn>, SessionError> {
        self.call(Call::ScnAt, |database| Ok(database.clock.scn_at(time_us)))
    }

    fn reconnect(&mut self) -> Result<(), SessionError> {
        self.mining = None;
        self.generation = self.database.lock().generation;
        self.call(Call::Reconnect, |_| Ok(()))
    }
}

const fn is_due(moment: Moment, given: u64) -> bool {
    match moment {
        Moment::Before => true,
        Moment::AfterRows(rows) => given >= rows,
        Moment::AtEnd => false,
    }
}

impl Database {
    fn about(&self) -> About {
        About {
            identity: self.identity,
            name: "SIM".to_owned(),
            version: "19.22.0.0.0".to_owned(),
            is_cdb_root: self.settings.pdb_count() > 0 && !self.settings.is_in_pdb,
            is_in_pdb: self.settings.is_in_pdb,
            is_archiving: true,
            has_supplemental_logging: true,
            role: Role::Primary,
            open_mode: OpenMode::ReadWrite,
        }
    }

    fn start_mining(&self, start: &MiningStart) -> Result<Mining, SessionError> {
        if self.settings.is_in_pdb && !start.logs.is_empty() {
            return Err(ora(65_040, "operation not allowed from within a pluggable database"));
        }
        self.check_pdbs()?;
        let logs = match start.logs.is_empty() {
            true => self.find_logs(start.start, start.end)?,
            false => start.logs.clone(),
        };
        let added = logs.iter().map(|log| self.add_log(log)).collect::<Result<Vec<_>, _>>()?;
        let knowledge = self.knowledge(start, &added)?;
        covers(&logs, &added, start)?;
        Ok(Mining { logs: added, start: start.start, end: start.end, knowledge })
    }

    /// Range mode: the database chooses, from every destination.
    fn find_logs(&self, start: Scn, end: Scn) -> Result<Vec<RedoLog>, SessionError> {
        let query = |destination| LogQuery { from: start, to: end, destination, with_online: true };
        let listed =
            database::destinations().flat_map(|destination| self.logs(&query(destination)));
        let mut logs: Vec<_> = listed.filter(|log| self.add_log(log).is_ok()).collect();
        logs.sort_by_key(|log| (log.thread, log.sequence));
        logs.dedup_by_key(|log| (log.thread, log.sequence));
        let is_begun = |thread| logs.iter().any(|log| log.thread == thread && log.first <= start);
        match self.threads.iter().all(|redo| is_begun(redo.thread)) {
            true => Ok(logs),
            false => Err(missing(&format!("nothing holds {start}"))),
        }
    }

    fn table_objects(&self) -> Vec<TableObject> {
        let tables = self.tables.iter().filter(|table| !table.is_dropped);
        let objects = tables.flat_map(|table| {
            let own = [table.own];
            let numbers: BTreeSet<_> = table.objects.iter().copied().chain(own).collect();
            numbers.into_iter().map(|number| TableObject {
                id: highwater_oracle::ObjectId { container: table.container, number },
                table: table.layout.name.clone(),
            })
        });
        objects.collect()
    }
}

/// Whether the added logs hold the range, each thread without a gap.
fn covers(logs: &[RedoLog], added: &[AddedLog], start: &MiningStart) -> Result<(), SessionError> {
    let begins = logs.iter().any(|log| log.first <= start.start);
    let ends = start.end == Scn::MAX || logs.iter().any(|log| log.next >= start.end);
    if !begins || !ends {
        return Err(missing(&format!("no added log holds {} to {}", start.start, start.end)));
    }
    let mut held: Vec<_> = added.iter().map(|log| (log.thread, log.sequence)).collect();
    held.sort_unstable();
    held.dedup();
    let gap = held.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1 + 1 != pair[1].1);
    match gap {
        Some(pair) => Err(missing(&format!("thread {} after sequence {}", pair[0].0, pair[0].1))),
        None => Ok(()),
    }
}
