//! The redo log of a thread: records in the order in which they were written.

use std::collections::BTreeMap;

use highwater_oracle::{RedoAddress, RedoPoint, RedoThread, Scn};

use crate::record::Record;

/// Bytes of redo in a block of 512, after its header.
const BLOCK: u64 = 496;
const HEADER: u64 = 16;

/// A record where it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    pub(crate) address: RedoAddress,
    pub(crate) record: Record,
}

/// A log: from one switch to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Log {
    pub(crate) sequence: u64,
    pub(crate) first: Scn,
    /// `NEXT_CHANGE#`, once it was switched.
    pub(crate) next: Option<Scn>,
    pub(crate) records: Vec<Written>,
    /// Whether a dictionary begins in it, and ends.
    pub(crate) dictionary: [bool; 2],
    bytes: u64,
}

impl Log {
    const fn new(sequence: u64, first: Scn) -> Self {
        Self { sequence, first, next: None, records: Vec::new(), dictionary: [false; 2], bytes: 0 }
    }
}

/// The logs of a thread whose content is still anywhere.
#[derive(Clone, Debug)]
pub(crate) struct RedoLogs {
    pub(crate) thread: RedoThread,
    pub(crate) logs: BTreeMap<u64, Log>,
    current: Log,
    /// Until so many actions were done the newest log is not in `V$LOG`.
    pub(crate) hidden_until: u64,
}

impl RedoLogs {
    pub(crate) const fn new(thread: RedoThread, sequence: u64, first: Scn) -> Self {
        Self { thread, logs: BTreeMap::new(), current: Log::new(sequence, first), hidden_until: 0 }
    }

    /// The log being written to.
    pub(crate) const fn current(&self) -> &Log {
        &self.current
    }

    /// The log of this sequence.
    pub(crate) fn log(&self, sequence: u64) -> Option<&Log> {
        if sequence == self.current.sequence {
            return Some(&self.current);
        }
        self.logs.get(&sequence)
    }

    /// Whether the log is full.
    pub(crate) const fn is_full(&self, bytes: u64) -> bool {
        self.current.bytes >= bytes
    }

    /// Appends a record.
    pub(crate) fn write(&mut self, record: Record) -> RedoPoint {
        let log = &mut self.current;
        let address = RedoAddress {
            sequence: log.sequence,
            block: 2 + log.bytes / BLOCK,
            byte: u32::try_from(HEADER + log.bytes % BLOCK).unwrap_or(u32::MAX),
            ssn: 0,
        };
        log.bytes += record.bytes().max(1);
        let point = RedoPoint { thread: self.thread, scn: record.scn, address: Some(address) };
        log.records.push(Written { address, record });
        point
    }

    /// A dictionary begins or ends in the current log.
    pub(crate) const fn mark_dictionary(&mut self, is_begin: bool) {
        let [begins, ends] = &mut self.current.dictionary;
        *(if is_begin { begins } else { ends }) = true;
    }

    /// Goes on in the next log. Everything that is to be in the old one was written.
    pub(crate) fn switch(&mut self, next: Scn) {
        let new = Log::new(self.current.sequence + 1, next);
        let mut old = std::mem::replace(&mut self.current, new);
        old.next = Some(next);
        self.logs.insert(old.sequence, old);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use highwater_oracle::{ClientSession, TransactionKey};

    use super::*;
    use crate::record::{Actor, Content, Form};

    fn record(scn: u64) -> Record {
        let actor = Actor {
            key: TransactionKey::default(),
            user: None,
            session: ClientSession::default(),
            pdb: None,
        };
        // 8 * 60 bytes.
        let rows = vec![Content::Commit; 8];
        Record { scn: Scn(scn), time_us: 0, actor: Arc::new(actor), rows, form: Form::default() }
    }

    #[test]
    fn addresses_rise_whatever_the_scn() {
        let mut redo = RedoLogs::new(RedoThread(1), 42, Scn(5));
        let points: Vec<_> = [9, 7, 8].map(|scn| redo.write(record(scn))).into();
        let texts: Vec<_> = points.iter().map(|at| at.address.unwrap().rs_id()).collect();
        assert_eq!(
            texts,
            ["0x00002a.00000002.0010", "0x00002a.00000002.01f0", "0x00002a.00000003.01e0"]
        );
    }

    #[test]
    fn a_log_begins_where_the_one_before_it_ends() {
        let mut redo = RedoLogs::new(RedoThread(1), 42, Scn(5));
        redo.write(record(7));
        redo.switch(Scn(10));
        assert_eq!(redo.log(42).unwrap().next, Some(Scn(10)));
        assert_eq!((redo.current().sequence, redo.current().first), (43, Scn(10)));
        assert_eq!(redo.write(record(10)).address.unwrap().rs_id(), "0x00002b.00000002.0010");
    }
}
