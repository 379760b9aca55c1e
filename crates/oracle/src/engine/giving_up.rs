//! Open transactions whose end is not waited for any more: those that are too old, and orphans.

use std::time::{Duration, Instant};

use super::house::now_ms;
use super::{Engine, Stopped};
use crate::TransactionKey;
use crate::delivery::{DeadLetter, OpsEvent, OpsKind};
use crate::outlet::Outlet;
use crate::transaction::entry::EntrySummary;
use crate::transaction::orphans::{OpenInDatabase, Suspect};

impl<O: Outlet> Engine<O> {
    pub(super) fn give_up(&mut self) -> Result<(), Stopped> {
        self.discard_old()?;
        self.release_orphans()
    }

    fn discard_old(&mut self) -> Result<(), Stopped> {
        let now = Instant::now();
        for key in self.settings.age.check(self.buffer.entries(), now)? {
            let Some(entry) = self.buffer.get(key) else { continue };
            let age_ms = millis(entry.age(now));
            let letter =
                DeadLetter::discarded(key, (entry.first(), entry.last()), entry.changes(), age_ms);
            let mut details = details(&entry.summary());
            details.push(("age_ms", age_ms.to_string()));
            self.release(key);
            let open = self.open_work();
            let position = self.progress.safe(&open, self.miner.cursor());
            self.records.push(self.delivery.dead_letter(&letter, position, now_ms()));
            self.say(&OpsEvent::new(OpsKind::TransactionDiscarded, details));
        }
        Ok(())
    }

    fn release_orphans(&mut self) -> Result<(), Stopped> {
        if !self.orphans.is_due(self.buffer.entries(), Instant::now()) {
            return Ok(());
        }
        let open = self.ask(|session| session.open_transactions())?;
        let transactions = open.into_iter().map(|open| open.key).collect();
        // After the list: what is not in it ended at or below this SCN.
        let scn = self.ask(|session| session.current_scn())?;
        let database = OpenInDatabase { transactions: &transactions, scn };
        let (mined, entries) = (self.miner.cursor().scn, self.buffer.entries());
        let suspects = self.orphans.check(database, mined, entries, Instant::now());
        for suspect in suspects {
            self.release_orphan(&suspect)?;
        }
        Ok(())
    }

    fn release_orphan(&mut self, suspect: &Suspect) -> Result<(), Stopped> {
        if let Some(client) = &suspect.session
            && self.ask(|session| session.is_alive(client))?
        {
            return Ok(());
        }
        self.orphans.orphan(suspect)?;
        self.release(suspect.transaction.key);
        let details = details(&suspect.transaction);
        self.say(&OpsEvent::new(OpsKind::TransactionOrphanReleased, details));
        Ok(())
    }

    /// Drops a transaction. The ledger names it from here on, so that its COMMIT is not taken for that of
    /// a whole one.
    fn release(&mut self, key: TransactionKey) {
        self.lobs.forget(key);
        self.buffer.rollback(key);
        self.progress.release(key);
    }
}

fn details(transaction: &EntrySummary) -> Vec<(&'static str, String)> {
    let mut details = vec![
        ("xid", transaction.key.to_string()),
        ("first_scn", transaction.first.scn.to_string()),
        ("events", transaction.changes.to_string()),
    ];
    details.extend(transaction.user.clone().map(|user| ("user", user)));
    details
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
