//! Archived logs: copied some time after the switch, to two destinations, and deleted at last.

use highwater_oracle::{LogPlace, RedoLog, RedoThread};

use crate::redo::Log;

/// `DEST_ID` of each archive destination.
pub(crate) const DESTINATIONS: [u32; 2] = [1, 2];

/// A row of `V$ARCHIVED_LOG`.
#[derive(Clone, Debug)]
pub(crate) struct ArchivedLog {
    pub(crate) destination: u32,
    pub(crate) log: RedoLog,
    /// Whether the file is there; the catalog may not know that it is gone.
    pub(crate) has_file: bool,
}

/// A log that waits to be copied.
#[derive(Clone, Debug)]
struct Waiting {
    destination: u32,
    due: u64,
    log: RedoLog,
}

/// The archiver and its catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Archive {
    pub(crate) logs: Vec<ArchivedLog>,
    waiting: Vec<Waiting>,
}

impl Archive {
    /// A log was switched: it is to be copied to each destination when so many actions were done.
    pub(crate) fn enqueue(&mut self, thread: RedoThread, log: &Log, due: [u64; 2]) {
        let waiting = DESTINATIONS.into_iter().zip(due).map(|(destination, due)| {
            let name = format!("/arch{destination}/t{thread}_s{}.arc", log.sequence);
            Waiting { destination, due, log: archived(thread, log, name) }
        });
        self.waiting.extend(waiting);
    }

    /// Copies what is due, and whatever was `forced`: a log that is to be overwritten. With `kept`,
    /// older ones are deleted.
    pub(crate) fn copy(&mut self, actions: u64, forced: &dyn Fn(&RedoLog) -> bool) {
        let is_due = |waiting: &Waiting| waiting.due <= actions || forced(&waiting.log);
        let (due, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(is_due);
        self.waiting = waiting;
        let due: Vec<Waiting> = due;
        self.logs.extend(due.into_iter().map(|Waiting { destination, log, .. }| ArchivedLog {
            destination,
            log,
            has_file: true,
        }));
    }

    /// Deletes logs below a sequence, as RMAN does: the catalog says so.
    pub(crate) fn purge(&mut self, thread: RedoThread, below: u64) {
        let old = self
            .logs
            .iter_mut()
            .filter(|archived| archived.log.thread == thread && archived.log.sequence < below);
        for archived in old {
            archived.has_file = false;
            archived.log.place = LogPlace::Archived { is_purged: true };
        }
    }

    /// Deletes the files of a log behind RMAN's back: the catalog does not say so.
    pub(crate) fn remove_files(&mut self, thread: RedoThread, sequence: u64) {
        let is_it = |archived: &&mut ArchivedLog| {
            archived.log.thread == thread && archived.log.sequence == sequence
        };
        self.logs.iter_mut().filter(is_it).for_each(|archived| archived.has_file = false);
    }

    /// Whether the content of a log is still anywhere in the archive, or will be.
    pub(crate) fn holds(&self, thread: RedoThread, sequence: u64) -> bool {
        let is_it = |log: &RedoLog| log.thread == thread && log.sequence == sequence;
        self.logs.iter().any(|archived| archived.has_file && is_it(&archived.log))
            || self.waiting.iter().any(|waiting| is_it(&waiting.log))
    }

    /// The file of this name.
    pub(crate) fn file(&self, name: &str) -> Option<&ArchivedLog> {
        self.logs.iter().rev().find(|archived| archived.log.name == name)
    }
}

fn archived(thread: RedoThread, log: &Log, name: String) -> RedoLog {
    RedoLog {
        thread,
        sequence: log.sequence,
        first: log.first,
        next: log.next.unwrap_or(log.first),
        name,
        place: LogPlace::Archived { is_purged: false },
        begins_dictionary: log.dictionary[0],
        ends_dictionary: log.dictionary[1],
    }
}
