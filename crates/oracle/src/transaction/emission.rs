//! The surviving changes of a committed transaction, read one after the other.

use super::fates::{Fate, Fates};
use super::meter::Held;
use super::spill_log::LoggedChanges;
use super::spill_reader::damaged;
use crate::{Change, LobValue, OracleError};

/// Changes that survived. Their memory and their file are given back when it is dropped.
pub(super) struct SurvivingChanges {
    log: LoggedChanges,
    fates: Fates,
    /// How many changes were logged.
    logged: u64,
    /// Number of the change that is read next.
    next: u64,
    has_failed: bool,
    _memory: Held,
}

impl SurvivingChanges {
    /// The changes of a log, of which `logged` were written, by their fates.
    pub(super) const fn new(log: LoggedChanges, fates: Fates, logged: u64, memory: Held) -> Self {
        Self { log, fates, logged, next: 0, has_failed: false, _memory: memory }
    }

    fn read(&mut self) -> Result<Option<Change>, OracleError> {
        let (fates, next) = (&self.fates, &mut self.next);
        let change = self.log.next_wanted(|| {
            *next += 1;
            fates.get(*next - 1) != Fate::Removed
        })?;
        if change.is_none() && self.next < self.logged {
            let why = format!("it ends after {} of {} changes", self.next, self.logged);
            return Err(damaged("its frames", why));
        }
        Ok(change.map(|change| self.fated(change)))
    }

    fn fated(&self, mut change: Change) -> Change {
        if self.fates.get(self.next - 1) == Fate::Downgraded {
            for lob in &mut change.lobs {
                lob.value = LobValue::Unavailable;
            }
        }
        change
    }
}

impl Iterator for SurvivingChanges {
    type Item = Result<Change, OracleError>;

    /// After an error there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let read = self.read();
        self.has_failed = read.is_err();
        read.transpose()
    }
}
