//! Finds transactions whose end will never be read: their sessions are gone, and the database does not
//! know them any more.
//!
//! Nothing is asked here. The caller reads the database and brings the answers, so that a check that
//! fails half way has changed nothing.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::entry::{Entry, EntrySummary};
use crate::{ClientSession, Code, OracleError, Scn, TransactionKey};

/// What is done with an orphan (`cdc.transaction.orphan.action`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrphanAction {
    /// It is dropped as if it were rolled back; a COMMIT that comes all the same stops the task.
    Release,
    /// The task stops.
    Fail,
}

/// When orphans are looked for, and what is done with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrphanSettings {
    /// `cdc.transaction.orphan.check.interval.ms`; younger transactions are not looked at.
    pub interval: Duration,
    /// See [`OrphanAction`].
    pub action: OrphanAction,
}

/// What the database says at a check.
#[derive(Clone, Copy, Debug)]
pub struct OpenInDatabase<'a> {
    /// Transactions that are open in any instance (`GV$TRANSACTION`).
    pub transactions: &'a HashSet<TransactionKey>,
    /// Its current SCN, read after `transactions`: what is not among them ended at or below it.
    pub scn: Scn,
}

/// A transaction that the database does not know and whose end was not read where it must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suspect {
    /// The transaction.
    pub transaction: EntrySummary,
    /// The session that must be gone, too; `None` where no START row named it.
    pub session: Option<ClientSession>,
}

/// Looks for orphans, which takes two checks at least.
#[derive(Debug)]
pub struct OrphanWatch {
    settings: OrphanSettings,
    checked: Instant,
    /// Transactions that were absent at the last check, with the SCN of the first of its absences.
    absent: HashMap<TransactionKey, Scn>,
}

impl OrphanWatch {
    /// The first check is due an interval from now.
    pub fn new(settings: OrphanSettings, now: Instant) -> Self {
        Self { settings, checked: now, absent: HashMap::new() }
    }

    /// Whether the database must be asked.
    pub fn is_due<'a>(&self, entries: impl IntoIterator<Item = &'a Entry>, now: Instant) -> bool {
        now.saturating_duration_since(self.checked) >= self.settings.interval
            && entries.into_iter().any(|entry| self.is_old(entry, now))
    }

    fn is_old(&self, entry: &Entry, now: Instant) -> bool {
        entry.age(now) > self.settings.interval
    }

    /// Takes what the database says. `mined` is the first SCN that was not read, the lowest over all
    /// threads. Returns those that may be orphans: each that has a session is one if that session is
    /// gone.
    pub fn check<'a>(
        &mut self,
        database: OpenInDatabase<'_>,
        mined: Scn,
        entries: impl IntoIterator<Item = &'a Entry>,
        now: Instant,
    ) -> Vec<Suspect> {
        let old = entries.into_iter().filter(|entry| self.is_old(entry, now));
        let absent = old.filter(|entry| !database.transactions.contains(&entry.key()));
        let (mut suspects, mut absences) = (Vec::new(), HashMap::new());
        for entry in absent {
            let before = self.absent.get(&entry.key()).copied();
            if before.is_some_and(|absence| mined > absence) {
                suspects.push(suspect(entry));
            }
            absences.insert(entry.key(), before.unwrap_or(database.scn));
        }
        (self.absent, self.checked) = (absences, now);
        suspects
    }

    /// What becomes of a suspect that has no session, or whose session is gone: `Ok` if it is to be
    /// dropped.
    ///
    /// # Errors
    /// CDC-7002 where the action is to stop.
    pub fn orphan(&self, suspect: &Suspect) -> Result<(), OracleError> {
        match self.settings.action {
            OrphanAction::Release => Ok(()),
            OrphanAction::Fail => Err(lost(&suspect.transaction)),
        }
    }
}

/// Numbers of a session are 0 where LogMiner does not know it.
fn suspect(entry: &Entry) -> Suspect {
    let session = entry.start().map(|start| &start.session);
    let session = session.filter(|session| session.number != 0).cloned();
    Suspect { transaction: entry.summary(), session }
}

fn lost(transaction: &EntrySummary) -> OracleError {
    OracleError::new(
        Code::OrphanTransaction,
        format!(
            "transaction {transaction} has no end in the redo, the database does not know it, and its \
             session is gone"
        ),
        "set cdc.transaction.orphan.action to release, or move the offset past it",
    )
}

#[cfg(test)]
mod tests {
    use super::super::buffer_model::{buffer, change, key, point};
    use super::super::entry::Start;
    use super::*;
    use crate::Verb;

    const MINUTE: Duration = Duration::from_secs(60);

    struct Check {
        held: super::super::buffer_model::Held,
        watch: OrphanWatch,
        begun: Instant,
    }

    impl Check {
        /// Transaction 1 with a session, and 2 without, both open from the start.
        fn new(action: OrphanAction) -> Self {
            let begun = Instant::now();
            let mut held = buffer(u64::MAX, 0);
            let session = ClientSession { number: 41, serial: 7, client_id: None };
            let user = Some("SCOTT".to_owned());
            held.buffer.start(key(1), Start { at: point(0), user, session });
            for transaction in [1, 2] {
                let change = change(u64::from(transaction), Verb::Insert, "AAAR3qAAEAAAACXAA1");
                held.buffer.add(key(transaction), change, begun).unwrap();
            }
            let settings = OrphanSettings { interval: 5 * MINUTE, action };
            Self { held, watch: OrphanWatch::new(settings, begun), begun }
        }

        fn check(&mut self, minute: u32, open: &[u8], scn: u64, mined: u64) -> Vec<String> {
            let transactions = open.iter().map(|&number| key(number)).collect();
            let database = OpenInDatabase { transactions: &transactions, scn: Scn(scn) };
            let (entries, now) = (self.held.buffer.entries(), self.begun + minute * MINUTE);
            let suspects = self.watch.check(database, Scn(mined), entries, now);
            let mut names: Vec<String> = suspects
                .iter()
                .map(|suspect| {
                    let session = suspect.session.as_ref().map(|session| session.number);
                    format!("{} {session:?}", suspect.transaction.key)
                })
                .collect();
            names.sort();
            names
        }
    }

    const BOTH: [&str; 2] = ["3:5.1.614 Some(41)", "3:5.2.614 None"];

    #[test]
    fn it_takes_two_absences_and_redo_past_the_first() {
        let mut check = Check::new(OrphanAction::Release);
        assert!(check.check(6, &[], 5_000, 4_000).is_empty(), "absent once");
        assert!(check.check(11, &[], 6_000, 5_000).is_empty(), "its end may be at 5,000");
        assert_eq!(check.check(16, &[], 7_000, 5_001), BOTH);
        assert_eq!(check.check(21, &[], 8_000, 5_001), BOTH, "asked again while it lives");
    }

    #[test]
    fn one_that_is_seen_again_begins_anew() {
        let mut check = Check::new(OrphanAction::Release);
        check.check(6, &[2], 5_000, 4_000);
        assert!(check.check(11, &[1, 2], 6_000, 5_900).is_empty());
        assert!(check.check(16, &[2], 7_000, 6_900).is_empty());
        assert!(
            check.check(21, &[2], 8_000, 7_000).is_empty(),
            "absent at 7,000 for the first time"
        );
        assert_eq!(check.check(26, &[2], 9_000, 7_001), [BOTH[0]]);
    }

    #[test]
    fn young_transactions_are_not_looked_at() {
        let mut check = Check::new(OrphanAction::Release);
        assert!(check.check(5, &[], 5_000, 4_900).is_empty());
        assert!(check.check(6, &[], 6_000, 5_900).is_empty(), "the first check did not count");
        assert_eq!(check.check(7, &[], 7_000, 6_001), BOTH);
    }

    #[test]
    fn one_that_has_ended_is_forgotten() {
        let mut check = Check::new(OrphanAction::Release);
        check.check(6, &[], 5_000, 4_000);
        check.held.buffer.rollback(key(1));
        assert_eq!(check.check(11, &[], 6_000, 5_900), [BOTH[1]]);
        let again = change(9, Verb::Insert, "AAAR3qAAEAAAACXAA1");
        check.held.buffer.add(key(1), again, check.begun).unwrap();
        assert_eq!(check.check(16, &[], 7_000, 6_900), [BOTH[1]]);
    }

    #[test]
    fn the_database_is_asked_when_something_is_old_and_an_interval_has_passed() {
        let mut check = Check::new(OrphanAction::Release);
        let is_due = |check: &Check, minute| {
            let now = check.begun + minute * MINUTE;
            check.watch.is_due(check.held.buffer.entries(), now)
        };
        assert!(!is_due(&check, 5) && is_due(&check, 6));
        check.check(6, &[1, 2], 5_000, 4_000);
        assert!(!is_due(&check, 10) && is_due(&check, 11));
        check.held.buffer.rollback(key(1));
        check.held.buffer.rollback(key(2));
        assert!(!is_due(&check, 11));
    }

    #[test]
    fn an_orphan_is_released_or_stops_the_task_by_name() {
        for action in [OrphanAction::Release, OrphanAction::Fail] {
            let check = Check::new(action);
            let suspect = suspect(check.held.buffer.get(key(1)).unwrap());
            match check.watch.orphan(&suspect) {
                Ok(()) => assert_eq!(action, OrphanAction::Release),
                Err(error) => {
                    assert_eq!((action, error.code), (OrphanAction::Fail, Code::OrphanTransaction));
                    assert!(error.what.contains("3:5.1.614 (user SCOTT, from SCN 1001, 1 changes"));
                }
            }
        }
    }
}
