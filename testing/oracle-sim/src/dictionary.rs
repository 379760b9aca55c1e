//! Dictionaries that are built into the redo.

use highwater_oracle::{Dictionary, MiningStart, RedoThread, SessionError};

use crate::database::Database;
use crate::fault::ora;
use crate::reader::AddedLog;
use crate::statement::Names;

/// A dictionary in the redo (`DBMS_LOGMNR_D.BUILD`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Build {
    thread: RedoThread,
    first: u64,
    last: u64,
    /// `DATA_OBJV#` of each table when it was built.
    versions: Vec<u64>,
}

/// The dictionary by which rows are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Knowledge {
    /// That of now.
    Online,
    /// One in the redo; DDL after it is followed.
    Built(Build),
}

impl Database {
    /// Builds a dictionary, which takes two logs. After it the logs of all threads are switched
    /// (`ALTER SYSTEM ARCHIVE LOG CURRENT`).
    pub(crate) fn build_dictionary(&mut self) {
        let thread = self.any_thread();
        self.switch(thread);
        let Some(first) = self.mark_log(thread, true) else { return };
        self.switch(thread);
        let Some(last) = self.mark_log(thread, false) else { return };
        let versions = self.tables.iter().map(|table| table.layout.version).collect();
        self.builds.push(Build { thread, first, last, versions });
        let threads: Vec<_> = self.threads.iter().map(|redo| redo.thread).collect();
        threads.into_iter().for_each(|thread| self.switch(thread));
    }

    fn mark_log(&mut self, thread: RedoThread, is_begin: bool) -> Option<u64> {
        let redo = self.threads.iter_mut().find(|redo| redo.thread == thread)?;
        redo.mark_dictionary(is_begin);
        Some(redo.current().sequence)
    }

    /// The dictionary of a start. One in the redo must be in the added logs, whole.
    pub(crate) fn knowledge(
        &self,
        start: &MiningStart,
        added: &[AddedLog],
    ) -> Result<Knowledge, SessionError> {
        if start.dictionary == Dictionary::Online {
            return Ok(Knowledge::Online);
        }
        let is_added = |build: &&Build| {
            (build.first..=build.last).all(|sequence| {
                added.iter().any(|log| log.thread == build.thread && log.sequence == sequence)
            })
        };
        let newest = self.builds.iter().rev().find(is_added).filter(|_| !self.settings.is_in_pdb);
        let built = newest.map(|build| Knowledge::Built(build.clone()));
        built.ok_or_else(|| ora(1371, "Complete LogMiner dictionary not found"))
    }

    /// The names that a row of an object gets.
    pub(crate) fn names(
        &self,
        table: usize,
        object: u64,
        version: u64,
        knowledge: &Knowledge,
    ) -> Names {
        match (knowledge, self.tables.get(table)) {
            (Knowledge::Online, Some(it)) if it.is_dropped || !it.objects.contains(&object) => {
                Names::Lost
            }
            (Knowledge::Online, Some(it)) if it.layout.version != version => Names::Generic,
            (Knowledge::Built(build), _)
                if build.versions.get(table).is_some_and(|built| version < *built) =>
            {
                Names::Generic
            }
            _ => Names::Known,
        }
    }
}
