//! What LogMiner reads: the records of the added logs, thread by thread, the threads merged by SCN.

use std::collections::VecDeque;

use highwater_oracle::{LogPlace, RedoLog, RedoRow, RedoThread, Scn, SessionError};

use crate::database::Database;
use crate::dictionary::Knowledge;
use crate::fault::ora;
use crate::query::Wanted;
use crate::redo::{Log, Written};
use crate::render;

/// A log that was added to LogMiner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AddedLog {
    pub(crate) thread: RedoThread,
    pub(crate) sequence: u64,
    pub(crate) name: String,
    pub(crate) is_online: bool,
}

/// What LogMiner was started over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mining {
    pub(crate) logs: Vec<AddedLog>,
    pub(crate) start: Scn,
    pub(crate) end: Scn,
    pub(crate) knowledge: Knowledge,
}

/// A read of `V$LOGMNR_CONTENTS`. The database may go on between two rows.
#[derive(Debug)]
pub(crate) struct Reader {
    start: Scn,
    end: Scn,
    lanes: Vec<Lane>,
    select: Select,
}

/// Which rows are given, and with which names.
#[derive(Debug)]
struct Select {
    wanted: Wanted,
    knowledge: Knowledge,
}

/// The logs of one thread.
#[derive(Debug, Default)]
struct Lane {
    logs: VecDeque<AddedLog>,
    record: usize,
    /// The highest SCN so far, by which threads are merged.
    running: Scn,
    ready: VecDeque<RedoRow>,
}

impl Reader {
    pub(crate) fn new(mining: &Mining, wanted: Wanted) -> Self {
        let mut logs = mining.logs.clone();
        logs.sort_by_key(|log| (log.thread, log.sequence));
        logs.dedup_by_key(|log| (log.thread, log.sequence));
        let lanes = logs.chunk_by(|one, other| one.thread == other.thread);
        let lane =
            |logs: &[AddedLog]| Lane { logs: logs.iter().cloned().collect(), ..Lane::default() };
        let select = Select { wanted, knowledge: mining.knowledge.clone() };
        Self { start: mining.start, end: mining.end, lanes: lanes.map(lane).collect(), select }
    }

    /// The next row; `None` when there is none now.
    pub(crate) fn next(&mut self, database: &Database) -> Result<Option<RedoRow>, SessionError> {
        for lane in &mut self.lanes {
            lane.fill(database, self.start, self.end, &self.select)?;
        }
        let ready = self.lanes.iter_mut().filter(|lane| !lane.ready.is_empty());
        Ok(ready.min_by_key(|lane| lane.running).and_then(|lane| lane.ready.pop_front()))
    }
}

impl Lane {
    /// Reads on until there is a row that is wanted.
    fn fill(
        &mut self,
        database: &Database,
        start: Scn,
        end: Scn,
        select: &Select,
    ) -> Result<(), SessionError> {
        while self.ready.is_empty() {
            let Some(added) = self.logs.front() else { break };
            let log = database.read_log(added)?;
            match log.records.get(self.record) {
                Some(written) => {
                    self.record += 1;
                    self.running = self.running.max(written.record.scn);
                    if (start..=end).contains(&written.record.scn) {
                        self.ready.extend(rows(database, added, written, select));
                    }
                }
                None if self.logs.len() > 1 => {
                    self.logs.pop_front();
                    self.record = 0;
                }
                None => break,
            }
        }
        Ok(())
    }
}

fn rows(database: &Database, added: &AddedLog, written: &Written, select: &Select) -> Vec<RedoRow> {
    let names = |table, object, version| database.names(table, object, version, &select.knowledge);
    let mut rows = render::rows(added.thread, written, added.is_online, &names);
    rows.retain(|row| select.wanted.wants(row));
    rows
}

impl Database {
    /// A log's content, unless its file is gone or holds another log by now.
    fn read_log(&self, added: &AddedLog) -> Result<&Log, SessionError> {
        let log = self.redo(added.thread).and_then(|redo| redo.log(added.sequence));
        match log {
            Some(log) if self.has_file(added) => Ok(log),
            _ if added.is_online => Err(ora(
                310,
                &format!(
                    "archived log contains another sequence; {} required: {}",
                    added.sequence, added.name
                ),
            )),
            _ => Err(ora(308, &format!("cannot open archived log '{}'", added.name))),
        }
    }

    fn has_file(&self, added: &AddedLog) -> bool {
        if added.is_online {
            let redo = self.redo(added.thread);
            return redo.is_some_and(|redo| self.is_online(redo, added.sequence));
        }
        self.archive.file(&added.name).is_some_and(|file| file.has_file)
    }

    /// `ADD_LOGFILE`.
    pub(crate) fn add_log(&self, log: &RedoLog) -> Result<AddedLog, SessionError> {
        let added = AddedLog {
            thread: log.thread,
            sequence: log.sequence,
            name: log.name.clone(),
            is_online: log.place == LogPlace::Online,
        };
        match (added.is_online, self.has_file(&added)) {
            (_, true) => Ok(added),
            // The member is there, but holds a newer log: the range is not in any log that was added.
            (true, false) => {
                Err(missing(&format!("{} does not hold sequence {}", log.name, log.sequence)))
            }
            (false, false) => Err(ora(
                1284,
                &format!("file {} cannot be opened\nORA-00308: cannot open it", log.name),
            )),
        }
    }
}

/// ORA-01291.
pub(crate) fn missing(what: &str) -> SessionError {
    ora(1291, &format!("missing log file: {what}"))
}
