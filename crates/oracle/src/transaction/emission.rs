//! The surviving changes of a committed transaction, read one after the other.

use super::fates::{Fate, Fates};
use super::meter::Held;
use super::spill_log::LoggedChanges;
use super::spill_reader::damaged;
use crate::{Change, LobValue, OracleError};

/// Changes that survived. Their memory and their file are given back when it is dropped.
pub(super) struct SurvivingChanges {
    pub(super) log: LoggedChanges,
    pub(super) fates: Fates,
    /// How many changes were logged.
    pub(super) logged: u64,
    /// Number of the change that is read next.
    pub(super) next: u64,
    pub(super) _memory: Held,
}

impl SurvivingChanges {
    fn read(&mut self) -> Result<Option<Change>, OracleError> {
        let (fates, next) = (&self.fates, &mut self.next);
        let change = self.log.next_wanted(|| {
            *next += 1;
            fates.get(*next - 1) != Fate::Removed
        })?;
        if change.is_none() && self.next < self.logged {
            let why = format!("it ends after {} of {} changes", self.next, self.logged);
            self.next = self.logged;
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

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if read.is_err() {
            self.next = self.logged;
        }
        read.transpose()
    }
}
