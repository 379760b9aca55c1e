//! A small database for tests: redo threads whose logs are written, switched and archived, and a
//! LogMiner that hides what lies outside of its range, as the worst one would.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

use crate::row::{ClientSession, ObjectId, Operation, RedoRow};
use crate::session::{
    ArchiveDestination, Database, ErrorClass, Identity, LogPlace, LogQuery, MiningStart, OpenMode,
    OpenTransaction, RedoLog, Role, RowMark, RowQuery, Session, SessionError, TableObject,
    ThreadState,
};
use crate::{RedoAddress, RedoPoint, RedoThread, Scn, TableLayout, TableName, TransactionKey, Xid};

/// The one captured object.
pub(crate) const OBJECT: ObjectId = ObjectId { container: 0, number: 77 };

pub(crate) fn transaction(number: u32) -> TransactionKey {
    TransactionKey { container: 0, xid: Xid { usn: 1, slot: number, sequence: number } }
}

pub(crate) fn table(name: &str) -> TableName {
    TableName { pdb: None, owner: "HR".to_owned(), table: name.to_owned() }
}

/// A row in block `block` of log 1 of its thread.
pub(crate) fn row(
    thread: u32,
    scn: u64,
    block: u64,
    operation: Operation,
    transaction: TransactionKey,
) -> RedoRow {
    let address = RedoAddress { sequence: 1, block, byte: 16, ssn: 0 };
    RedoRow {
        at: RedoPoint { thread: RedoThread(thread), scn: Scn(scn), address: Some(address) },
        transaction,
        operation,
        is_undo: false,
        is_continued: false,
        status: 0,
        info: None,
        time_us: 0,
        object: OBJECT,
        object_version: 1,
        pdb: None,
        owner: Some("HR".to_owned()),
        table: Some("EMP".to_owned()),
        row_id: "AAAR9zAAHAAAACrAAB".to_owned(),
        user: Some("HR".to_owned()),
        session: ClientSession::default(),
        sql_redo: Some(format!("row {thread}/{block}")),
    }
}

pub(crate) fn error(ora: u32, class: ErrorClass) -> SessionError {
    SessionError { ora: Some(ora), class, message: format!("ORA-{ora:05}: told to fail") }
}

/// A record of a log.
#[derive(Clone, Debug)]
struct Record {
    sequence: u64,
    row: RedoRow,
}

/// A redo thread.
#[derive(Clone, Debug)]
struct Lane {
    state: ThreadState,
    sequence: u64,
    block: u64,
    records: Vec<Record>,
}

/// What is to fail, and when.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The next read, after so many rows.
    AfterRows(usize, SessionError),
    /// The next start of LogMiner.
    AtStart(SessionError),
    /// The next look at the clock.
    AtClock(SessionError),
}

/// See the module. What a test wants to look at or to change is open to it.
pub(crate) struct Fake {
    pub(crate) about: Database,
    pub(crate) scn: u64,
    pub(crate) logs: Vec<RedoLog>,
    pub(crate) destinations: Vec<ArchiveDestination>,
    pub(crate) open: Vec<OpenTransaction>,
    pub(crate) objects: Vec<TableObject>,
    pub(crate) faults: VecDeque<Fault>,
    pub(crate) starts: Vec<MiningStart>,
    pub(crate) queries: Vec<RowQuery>,
    pub(crate) reconnects: u32,
    lanes: BTreeMap<RedoThread, Lane>,
}

impl Fake {
    /// A primary with so many open threads, at SCN 100; each writes its log 1.
    pub(crate) fn new(threads: u32) -> Self {
        let mut fake = Self {
            about: about(),
            scn: 100,
            logs: Vec::new(),
            destinations: vec![ArchiveDestination {
                id: 1,
                name: "LOG_ARCHIVE_DEST_1".to_owned(),
                is_usable: true,
            }],
            open: Vec::new(),
            objects: vec![TableObject { id: OBJECT, table: table("EMP") }],
            faults: VecDeque::new(),
            starts: Vec::new(),
            queries: Vec::new(),
            reconnects: 0,
            lanes: BTreeMap::new(),
        };
        (1..=threads).for_each(|thread| fake.add_thread(thread));
        fake
    }

    pub(crate) fn add_thread(&mut self, thread: u32) {
        let thread = RedoThread(thread);
        let state = ThreadState { thread, is_enabled: true, is_open: true };
        self.lanes.insert(thread, Lane { state, sequence: 1, block: 0, records: Vec::new() });
        self.logs.push(online(thread, 1, self.scn));
    }

    pub(crate) fn state(&mut self, thread: u32) -> &mut ThreadState {
        &mut self.lanes.get_mut(&RedoThread(thread)).unwrap().state
    }

    /// The next SCN.
    pub(crate) fn tick(&mut self) -> u64 {
        self.scn += 1;
        self.scn
    }

    /// Writes a row with a new SCN.
    pub(crate) fn write(
        &mut self,
        thread: u32,
        operation: Operation,
        key: TransactionKey,
    ) -> RedoRow {
        let scn = self.tick();
        self.write_late(thread, scn, operation, key)
    }

    /// Writes a row whose change was made at an earlier SCN.
    pub(crate) fn write_late(
        &mut self,
        thread: u32,
        scn: u64,
        operation: Operation,
        key: TransactionKey,
    ) -> RedoRow {
        let row = row(thread, scn, self.next_block(thread), operation, key);
        self.write_row(row)
    }

    pub(crate) fn next_block(&self, thread: u32) -> u64 {
        self.lanes[&RedoThread(thread)].block + 1
    }

    /// Writes a row as it is, but for the sequence of its address.
    pub(crate) fn write_row(&mut self, mut row: RedoRow) -> RedoRow {
        let lane = self.lanes.get_mut(&row.at.thread).unwrap();
        lane.block += 1;
        if let Some(address) = &mut row.at.address {
            address.sequence = lane.sequence;
        }
        lane.records.push(Record { sequence: lane.sequence, row: row.clone() });
        row
    }

    /// Ends a thread's log and archives it; the thread goes on in the next one.
    pub(crate) fn switch(&mut self, thread: u32) {
        let next = self.end_log(thread);
        self.list_log(thread, next);
    }

    /// Ends a thread's log and archives it. What the thread writes next is in a log that is not in the
    /// catalog yet; its first SCN is returned.
    pub(crate) fn end_log(&mut self, thread: u32) -> u64 {
        let next = self.tick();
        let lane = self.lanes.get_mut(&RedoThread(thread)).unwrap();
        let sequence = lane.sequence;
        lane.sequence += 1;
        lane.block = 0;
        let log = self.log(thread, sequence);
        log.next = Scn(next);
        log.place = LogPlace::Archived { is_purged: false };
        log.name = format!("/arch/{thread}_{sequence}.arc");
        next
    }

    /// Lists the log that a thread writes.
    pub(crate) fn list_log(&mut self, thread: u32, first: u64) {
        let sequence = self.lanes[&RedoThread(thread)].sequence;
        self.logs.push(online(RedoThread(thread), sequence, first));
    }

    pub(crate) fn log(&mut self, thread: u32, sequence: u64) -> &mut RedoLog {
        let is_it = |log: &&mut RedoLog| log.thread.0 == thread && log.sequence == sequence;
        self.logs.iter_mut().find(is_it).unwrap()
    }

    /// All rows of a thread in the order of its log.
    pub(crate) fn written(&self, thread: u32) -> Vec<RedoRow> {
        let lane = &self.lanes[&RedoThread(thread)];
        lane.records.iter().map(|record| record.row.clone()).collect()
    }

    fn take_fault(&mut self, is_it: impl Fn(&Fault) -> bool) -> Option<Fault> {
        self.faults.pop_front_if(|fault| is_it(fault))
    }
}

fn about() -> Database {
    Database {
        identity: Identity { dbid: 4711, resetlogs: Scn(1) },
        name: "FAKE".to_owned(),
        version: "19.22.0.0.0".to_owned(),
        is_cdb_root: false,
        is_in_pdb: false,
        is_archiving: true,
        has_supplemental_logging: true,
        role: Role::Primary,
        open_mode: OpenMode::ReadWrite,
    }
}

fn online(thread: RedoThread, sequence: u64, first: u64) -> RedoLog {
    RedoLog {
        thread,
        sequence,
        first: Scn(first),
        next: Scn::MAX,
        name: format!("/redo/{thread}_{sequence}.log"),
        place: LogPlace::Online,
        begins_dictionary: false,
        ends_dictionary: false,
    }
}

impl Session for Fake {
    fn database(&mut self) -> Result<Database, SessionError> {
        Ok(self.about.clone())
    }

    fn current_scn(&mut self) -> Result<Scn, SessionError> {
        match self.take_fault(|fault| matches!(fault, Fault::AtClock(_))) {
            Some(Fault::AtClock(error)) => Err(error),
            _ => Ok(Scn(self.scn)),
        }
    }

    fn threads(&mut self) -> Result<Vec<ThreadState>, SessionError> {
        Ok(self.lanes.values().map(|lane| lane.state).collect())
    }

    fn archive_destinations(&mut self) -> Result<Vec<ArchiveDestination>, SessionError> {
        Ok(self.destinations.clone())
    }

    fn logs(&mut self, query: &LogQuery) -> Result<Vec<RedoLog>, SessionError> {
        let is_wanted = |log: &&RedoLog| {
            log.first <= query.to
                && log.next > query.from
                && (query.with_online || log.place != LogPlace::Online)
        };
        Ok(self.logs.iter().filter(is_wanted).cloned().collect())
    }

    fn start_mining(&mut self, start: &MiningStart) -> Result<(), SessionError> {
        self.starts.push(start.clone());
        match self.take_fault(|fault| matches!(fault, Fault::AtStart(_))) {
            Some(Fault::AtStart(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn rows(
        &mut self,
        query: &RowQuery,
        take: &mut dyn FnMut(RedoRow) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        self.queries.push(query.clone());
        let fault = self.take_fault(|fault| matches!(fault, Fault::AfterRows(..)));
        let start = self.starts.last().unwrap();
        let lanes = self.lanes.values();
        let mut lanes: Vec<Reading<'_>> = lanes.map(|lane| Reading::new(lane, start)).collect();
        let mut given = 0;
        while let Some(row) = next_row(&mut lanes) {
            if !is_wanted(row, query) {
                continue;
            }
            if let Some(Fault::AfterRows(rows, error)) = &fault
                && given >= *rows
            {
                return Err(error.clone());
            }
            given += 1;
            if take(row.clone()).is_break() {
                return Ok(());
            }
        }
        match fault {
            Some(Fault::AfterRows(_, error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn end_mining(&mut self) {}

    fn open_transactions(&mut self) -> Result<Vec<OpenTransaction>, SessionError> {
        Ok(self.open.clone())
    }

    fn is_alive(&mut self, _session: &ClientSession) -> Result<bool, SessionError> {
        Ok(true)
    }

    fn table_objects(&mut self) -> Result<Vec<TableObject>, SessionError> {
        Ok(self.objects.clone())
    }

    fn layout(&mut self, _table: &TableName) -> Result<Option<TableLayout>, SessionError> {
        Ok(None)
    }

    fn scn_at(&mut self, _: i64) -> Result<Option<Scn>, SessionError> {
        Ok(None)
    }

    fn reconnect(&mut self) -> Result<(), SessionError> {
        self.reconnects += 1;
        Ok(())
    }
}

/// The records of a thread that LogMiner shows.
struct Reading<'a> {
    records: VecDeque<&'a RedoRow>,
    /// The highest SCN so far, by which threads are merged.
    running: u64,
}

impl<'a> Reading<'a> {
    fn new(lane: &'a Lane, start: &MiningStart) -> Self {
        let is_added = |sequence: u64| {
            let is_it = |log: &RedoLog| log.thread == lane.state.thread && log.sequence == sequence;
            start.logs.is_empty() || start.logs.iter().any(is_it)
        };
        let is_shown = |record: &&Record| {
            is_added(record.sequence) && (start.start..=start.end).contains(&record.row.at.scn)
        };
        let records = lane.records.iter().filter(is_shown).map(|record| &record.row).collect();
        Self { records, running: 0 }
    }

    fn next_running(&self) -> Option<u64> {
        self.records.front().map(|row| self.running.max(row.at.scn.0))
    }
}

fn next_row<'a>(lanes: &mut [Reading<'a>]) -> Option<&'a RedoRow> {
    let ready = lanes.iter_mut().filter(|lane| !lane.records.is_empty());
    let lane = ready.min_by_key(|lane| lane.next_running())?;
    lane.running = lane.next_running()?;
    lane.records.pop_front()
}

fn is_wanted(row: &RedoRow, query: &RowQuery) -> bool {
    let is_of_thread = |mark: &&RowMark| mark.thread.is_none_or(|thread| thread == row.at.thread);
    let is_above = match (query.marks.iter().find(is_of_thread), row.at.address) {
        (Some(mark), Some(address)) if mark.is_inclusive => address >= mark.address,
        (Some(mark), Some(address)) => address > mark.address,
        _ => row.at.scn >= query.from,
    };
    let is_excluded = row.user.as_ref().is_some_and(|user| query.excluded_users.contains(user));
    is_above && row.at.scn < query.until && (!is_excluded || row.operation == Operation::Ddl)
}
