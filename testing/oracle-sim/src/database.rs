//! The simulated database: everything that it is at a moment.

use std::sync::Arc;

use highwater_oracle::{
    ClientSession, Identity, LogPlace, LogQuery, RedoLog, RedoPoint, RedoThread, Scn,
};

use crate::archive::{Archive, DESTINATIONS};
use crate::client::{Client, OpenTransaction};
use crate::clock::Clock;
use crate::dictionary::Build;
use crate::quirk::Quirk;
use crate::random::Random;
use crate::record::{Actor, Content, Form, Record};
use crate::redo::{Log, RedoLogs};
use crate::schema;
use crate::settings::SimulationSettings;
use crate::table::{StoredRow, Table};
use crate::truth::{Definition, Entry};
use crate::undo::UndoSegments;

/// Sequence of the first log of thread 1. Other threads are a little behind, so that sequences overlap.
const FIRST_SEQUENCE: u64 = 44;

/// The database.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) settings: SimulationSettings,
    pub(crate) random: Random,
    pub(crate) clock: Clock,
    /// Actions that were done.
    pub(crate) actions: u64,
    pub(crate) identity: Identity,
    pub(crate) tables: Vec<Table>,
    pub(crate) clients: Vec<Client>,
    pub(crate) undo: UndoSegments,
    pub(crate) threads: Vec<RedoLogs>,
    pub(crate) archive: Archive,
    /// Commits of each thread, by redo order.
    pub(crate) books: Vec<Vec<Entry>>,
    pub(crate) definitions: Vec<Definition>,
    pub(crate) builds: Vec<Build>,
    /// The table that a DDL waits for.
    pub(crate) awaited: Option<usize>,
    /// Until so many actions were done a pluggable database is closed.
    pub(crate) closed_until: u64,
    /// When the logs are reset, if ever.
    reset_at: Option<u64>,
    /// How often the instance was started: sessions of an earlier one are broken.
    pub(crate) generation: u64,
}

impl Database {
    pub(crate) fn new(settings: SimulationSettings) -> Self {
        let threads = settings.threads.clamp(1, 3);
        let clock = Clock::new();
        let redo = |thread| {
            let sequence = FIRST_SEQUENCE - 2 * u64::from(thread);
            RedoLogs::new(RedoThread(thread), sequence, clock.scn())
        };
        let mut database = Self {
            random: Random::new(settings.seed),
            actions: 0,
            identity: Identity {
                dbid: 1_700_000_000 + settings.seed % 1_000_000,
                resetlogs: Scn(1),
            },
            tables: schema::tables(&settings),
            clients: clients(&settings, threads),
            undo: UndoSegments::default(),
            threads: (1..=threads).map(redo).collect(),
            archive: Archive::default(),
            books: (0..threads).map(|_| Vec::new()).collect(),
            definitions: Vec::new(),
            builds: Vec::new(),
            awaited: None,
            closed_until: 0,
            reset_at: settings.has(Quirk::NewIncarnation).then_some(400 + settings.seed % 400),
            generation: 0,
            clock,
            settings,
        };
        database.fill_tables();
        database
    }

    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.settings.has(quirk)
    }

    /// Rows that were there before the first redo.
    fn fill_tables(&mut self) {
        let scn = self.clock.advance();
        for table in &mut self.tables {
            for _ in 0..self.settings.first_rows {
                let (key, place) = (table.fresh_key(), table.fresh_place());
                let image = table.random_row(key, &mut self.random);
                let (object, row_id) = table.place(key, place);
                let row = StoredRow {
                    row_id,
                    object,
                    image,
                    locked_by: None,
                    changed: scn,
                    is_excluded: false,
                };
                table.rows.insert(place, row);
            }
        }
    }

    pub(crate) fn redo(&self, thread: RedoThread) -> Option<&RedoLogs> {
        self.threads.iter().find(|redo| redo.thread == thread)
    }

    fn redo_mut(&mut self, thread: RedoThread) -> Option<&mut RedoLogs> {
        self.threads.iter_mut().find(|redo| redo.thread == thread)
    }

    /// A redo record of this moment.
    pub(crate) fn stamp(&mut self, actor: &Arc<Actor>, rows: Vec<Content>, form: Form) -> Record {
        let scn = self.clock.tick(&mut self.random);
        Record { scn, time_us: self.clock.time_us(), actor: Arc::clone(actor), rows, form }
    }

    /// Adds a record to a transaction's redo.
    pub(crate) fn emit(
        &mut self,
        thread: RedoThread,
        open: &mut OpenTransaction,
        rows: Vec<Content>,
        form: Form,
    ) {
        let record = self.stamp(&open.actor, rows, form);
        open.strand.push(record);
        let is_full = open.strand.len() >= self.settings.strand_records;
        if is_full || !self.has(Quirk::LateStrands) {
            self.flush(thread, open);
        }
    }

    /// Writes a transaction's strand to the log.
    pub(crate) fn flush(&mut self, thread: RedoThread, open: &mut OpenTransaction) {
        for record in open.strand.drain(..) {
            self.write(thread, record);
        }
    }

    pub(crate) fn write(&mut self, thread: RedoThread, record: Record) -> RedoPoint {
        let scn = record.scn;
        match self.redo_mut(thread) {
            Some(redo) => redo.write(record),
            None => RedoPoint { thread, scn, address: None },
        }
    }

    /// Switches every log that is full.
    pub(crate) fn switch_full_logs(&mut self) {
        let bytes = self.settings.log_bytes;
        let full: Vec<_> = self
            .threads
            .iter()
            .filter(|redo| redo.is_full(bytes))
            .map(|redo| redo.thread)
            .collect();
        for thread in full {
            self.switch(thread);
        }
    }

    /// Opens the database with RESETLOGS when it is time.
    pub(crate) fn reset_when_due(&mut self) {
        if self.reset_at.is_some_and(|action| action == self.actions) {
            self.reset_logs();
        }
    }

    /// Switches a thread's log: all its strands are written to the old one first.
    pub(crate) fn switch(&mut self, thread: RedoThread) {
        self.flush_strands(thread);
        let next = self.clock.advance();
        let delay = self.settings.archive_delay;
        let first = self.actions + self.random.between(1, delay.max(1));
        let due = [first, first + self.random.below(delay + 1)];
        let is_lagging = self.is_time_for(Quirk::LaggingLog, 2);
        let hidden_until = if is_lagging { self.actions + self.random.between(2, 8) } else { 0 };
        let Some(redo) = self.threads.iter_mut().find(|redo| redo.thread == thread) else { return };
        let old = redo.current().sequence;
        redo.switch(next);
        redo.hidden_until = hidden_until;
        if let Some(log) = redo.log(old) {
            self.archive.enqueue(thread, log, due);
        }
        self.archive_logs();
    }

    fn flush_strands(&mut self, thread: RedoThread) {
        for client in 0..self.clients.len() {
            let Some(client) = self.clients.get_mut(client).filter(|it| it.thread == thread) else {
                continue;
            };
            let strand = client.transaction.as_mut().map(|open| std::mem::take(&mut open.strand));
            for record in strand.into_iter().flatten() {
                self.write(thread, record);
            }
        }
    }

    /// Archives what is due or about to be overwritten, and deletes what is too old.
    pub(crate) fn archive_logs(&mut self) {
        let oldest: Vec<_> =
            self.threads.iter().map(|redo| (redo.thread, self.oldest_online(redo))).collect();
        let is_overwritten = |log: &RedoLog| {
            oldest.iter().any(|(thread, online)| log.thread == *thread && log.sequence < *online)
        };
        self.archive.copy(self.actions, &is_overwritten);
        if let Some(kept) = self.settings.kept_logs {
            for (thread, online) in &oldest {
                self.archive.purge(*thread, online.saturating_sub(kept));
            }
        }
        self.forget_logs(&oldest);
    }

    /// Content that is in no file any more.
    fn forget_logs(&mut self, oldest: &[(RedoThread, u64)]) {
        for (redo, (thread, online)) in self.threads.iter_mut().zip(oldest) {
            let archive = &self.archive;
            redo.logs
                .retain(|sequence, _| *sequence >= *online || archive.holds(*thread, *sequence));
        }
    }

    /// The oldest sequence that an online log still holds.
    fn oldest_online(&self, redo: &RedoLogs) -> u64 {
        (redo.current().sequence + 1).saturating_sub(self.settings.online_logs.max(2))
    }

    /// Whether an online log still holds this sequence.
    pub(crate) fn is_online(&self, redo: &RedoLogs, sequence: u64) -> bool {
        (self.oldest_online(redo)..=redo.current().sequence).contains(&sequence)
    }

    /// Online logs, the current one last, unless it does not show yet.
    pub(crate) fn online_logs(&self, redo: &RedoLogs) -> Vec<RedoLog> {
        let is_hidden = self.actions < redo.hidden_until;
        let sequences = self.oldest_online(redo)..=redo.current().sequence - u64::from(is_hidden);
        sequences
            .filter_map(|sequence| Some(self.online_log(redo.thread, redo.log(sequence)?)))
            .collect()
    }

    fn online_log(&self, thread: RedoThread, log: &Log) -> RedoLog {
        RedoLog {
            thread,
            sequence: log.sequence,
            first: log.first,
            next: log.next.unwrap_or(Scn::MAX),
            name: format!(
                "/redo/t{thread}_g{}.log",
                log.sequence % self.settings.online_logs.max(2)
            ),
            place: LogPlace::Online,
            begins_dictionary: log.dictionary[0],
            ends_dictionary: log.dictionary[1],
        }
    }

    /// Logs that overlap a range, copies among them.
    pub(crate) fn logs(&self, query: &LogQuery) -> Vec<RedoLog> {
        let overlaps = |log: &RedoLog| log.next > query.from && log.first <= query.to;
        let online = self.threads.iter().flat_map(|redo| self.online_logs(redo));
        let archived = self.archive.logs.iter().filter(|it| it.destination == query.destination);
        let online = online.filter(|_| query.with_online);
        online.chain(archived.map(|it| it.log.clone())).filter(overlaps).collect()
    }
}

fn clients(settings: &SimulationSettings, threads: u32) -> Vec<Client> {
    let containers = schema::containers(settings);
    let client = |number: usize| {
        let (container, pdb) =
            containers.get(number % containers.len()).cloned().unwrap_or((0, None));
        let of_thread = u32::try_from(number).unwrap_or(0) / settings.clients.max(1);
        Client {
            number,
            thread: RedoThread(1 + of_thread),
            container,
            pdb,
            user: user(settings, number),
            session: ClientSession {
                number: 100 + u32::try_from(number).unwrap_or(0),
                serial: 1,
                client_id: None,
            },
            transaction: None,
        }
    };
    (0..(threads * settings.clients.max(1)) as usize).map(client).collect()
}

/// One client in six is of the user that is left out.
fn user(settings: &SimulationSettings, number: usize) -> String {
    match number % 6 {
        5 => settings.excluded_user.clone(),
        odd if odd % 2 == 1 => "SHOP".to_owned(),
        _ => "CLERK".to_owned(),
    }
}

/// The archive destinations, by number.
pub(crate) fn destinations() -> impl Iterator<Item = u32> {
    DESTINATIONS.into_iter()
}
