//! The simulation as a test holds it: it lets the database go on, opens sessions, plans faults and
//! tells the truth.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_oracle::{RedoThread, Scn, SessionError, TableName};
use parking_lot::Mutex;

use crate::capture::SimSession;
use crate::client::Done;
use crate::database::Database;
use crate::fault::{Call, FaultPlan, Faults, Moment};
use crate::settings::SimulationSettings;
use crate::table::{StoredRow, Table};
use crate::truth::{self, Definition, OpenNow, RowImage, ThreadHistory};

/// A simulated database. Clones are the same one.
///
/// What it is after n actions depends on nothing but its settings and n, however it is read meanwhile.
#[derive(Clone)]
pub struct Simulation {
    database: Arc<Mutex<Database>>,
    faults: Arc<Mutex<Faults>>,
}

impl Simulation {
    /// A database that has done nothing yet.
    pub fn new(settings: SimulationSettings) -> Self {
        let faults = Faults::new(&settings);
        let database = Database::new(settings);
        Self { database: Arc::new(Mutex::new(database)), faults: Arc::new(Mutex::new(faults)) }
    }

    /// A database that has done so many actions.
    pub fn at(settings: SimulationSettings, actions: u64) -> Self {
        let simulation = Self::new(settings);
        simulation.run(actions);
        simulation
    }

    /// One action: of a client, or of the database itself.
    pub fn step(&self) {
        self.database.lock().step();
    }

    /// So many actions.
    pub fn run(&self, actions: u64) {
        let mut database = self.database.lock();
        (0..actions).for_each(|_| database.step());
    }

    /// Goes on until so many actions were done; does nothing when they were.
    pub fn run_to(&self, actions: u64) {
        let mut database = self.database.lock();
        while database.actions < actions {
            database.step();
        }
    }

    /// Goes on until every thread has switched its log so many times.
    pub(crate) fn run_until_switched(&self, switches: u64) {
        let mut database = self.database.lock();
        let wanted: Vec<_> =
            database.threads.iter().map(|redo| redo.current().sequence + switches).collect();
        let is_due = |database: &Database| {
            let threads = database.threads.iter().zip(&wanted);
            threads.into_iter().any(|(redo, wanted)| redo.current().sequence < *wanted)
        };
        let generation = database.generation;
        while is_due(&database) && database.generation == generation {
            database.step();
        }
    }

    /// How many actions were done.
    pub fn actions(&self) -> u64 {
        self.database.lock().actions
    }

    /// A session with the database.
    pub fn session(&self) -> SimSession {
        SimSession::new(self.clone(), Arc::clone(&self.database), Arc::clone(&self.faults))
    }

    /// `CURRENT_SCN`, without a session.
    pub fn scn(&self) -> Scn {
        self.database.lock().clock.scn()
    }

    /// From now on no read is disturbed, and no call fails by chance.
    pub fn calm(&self) {
        self.faults.lock().calm();
    }

    /// Whether nothing that passes keeps redo from being read: no pluggable database is closed, and the
    /// newest logs are listed.
    pub fn is_readable(&self) -> bool {
        let database = self.database.lock();
        let is_listed = |redo: &crate::redo::RedoLogs| redo.hidden_until <= database.actions;
        database.check_pdbs().is_ok() && database.threads.iter().all(is_listed)
    }

    /// The next call of this kind, by any session, fails.
    pub fn fail_next(&self, call: Call, moment: Moment, error: SessionError) {
        self.faults.lock().plan(call, moment, error);
    }

    /// Calls fail by a plan from now on; `None` ends it.
    pub fn plan_faults(&self, plan: Option<FaultPlan>) {
        self.faults.lock().seed(plan);
    }

    /// Switches the log of a thread, as `ALTER SYSTEM SWITCH LOGFILE` does. It is no action of the
    /// simulation: a run that does it has redo of its own.
    pub fn switch_log(&self, thread: RedoThread) {
        self.database.lock().switch(thread);
    }

    /// Deletes the archived logs of a thread below a sequence; the catalog says so.
    pub fn purge_logs(&self, thread: RedoThread, below: u64) {
        self.database.lock().archive.purge(thread, below);
    }

    /// Deletes the files of an archived log; the catalog does not know it.
    pub fn remove_files(&self, thread: RedoThread, sequence: u64) {
        self.database.lock().archive.remove_files(thread, sequence);
    }

    /// What each thread has committed to captured tables, by the redo order of its COMMIT rows, without
    /// the excluded user.
    pub fn history(&self) -> Vec<ThreadHistory> {
        let database = self.database.lock();
        let excluded = &database.settings.excluded_user;
        let of_thread =
            |(redo, book): (&crate::redo::RedoLogs, &Vec<truth::Entry>)| ThreadHistory {
                thread: redo.thread,
                transactions: book
                    .iter()
                    .filter(|entry| {
                        !entry.changes.is_empty() && entry.user.as_ref() != Some(excluded)
                    })
                    .map(truth::Entry::committed)
                    .collect(),
            };
        database.threads.iter().zip(&database.books).map(of_thread).collect()
    }

    /// Statements on captured tables that changed their definition, or their rows without redo of
    /// theirs, in the order in which they were done.
    pub fn definitions(&self) -> Vec<Definition> {
        self.database.lock().definitions.clone()
    }

    /// The committed rows of each captured table, by key, without those of the excluded user.
    pub fn tables_now(&self) -> BTreeMap<TableName, Vec<RowImage>> {
        let database = self.database.lock();
        let captured =
            database.tables.iter().enumerate().filter(|(_, it)| it.is_captured && !it.is_dropped);
        captured
            .map(|(number, table)| {
                (table.layout.name.clone(), database.committed_rows(number, table))
            })
            .collect()
    }

    /// The rows of each captured table before the first redo, without those of the excluded user.
    pub fn tables_first(&self) -> BTreeMap<TableName, Vec<RowImage>> {
        Self::new(self.database.lock().settings.clone()).tables_now()
    }

    /// Transactions that are open now, those of the excluded user, too.
    pub fn open_now(&self) -> Vec<OpenNow> {
        let database = self.database.lock();
        let clients = database.clients.iter();
        let is_captured = |done: &&Done| {
            database.tables.get(done.change.table).is_some_and(|table| table.is_captured)
        };
        let open = clients.filter_map(|client| {
            let open = client.transaction.as_ref()?;
            Some(OpenNow {
                key: open.key(),
                thread: client.thread,
                start: open.start,
                user: client.user.clone(),
                changes: open.done.iter().filter(is_captured).count(),
            })
        });
        open.collect()
    }
}

impl Database {
    /// The rows of a table without what open transactions have done to it.
    fn committed_rows(&self, number: usize, table: &Table) -> Vec<RowImage> {
        let mut rows = table.rows.clone();
        let open = self.clients.iter().filter_map(|client| client.transaction.as_ref());
        for done in open.flat_map(|open| open.done.iter().rev()) {
            if done.change.table == number {
                match &done.before {
                    Some(row) => rows.insert(done.place, row.clone()),
                    None => rows.remove(&done.place),
                };
            }
        }
        let mut rows: Vec<&StoredRow> = rows.values().filter(|row| !row.is_excluded).collect();
        rows.sort_by_key(|row| table.key_number(&row.image));
        rows.into_iter().map(|row| truth::image(&table.layout, &row.image, |_| true)).collect()
    }
}
