//! What the transaction coordinator does by itself: it reads back its state at start, aborts what is open for
//! too long, and forgets transactional ids that are idle.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use highwater_log::now_ms;
use tokio::time::sleep;

use crate::blocking::blocking;
use crate::transaction_log::{self, Logged};
use crate::transactional_id::TransactionalId;
use crate::transactions::{Entry, Ids, Shared, refused};
use crate::{CoordinatorError, StateEntry, transaction_counters};

/// The first pause before the state is read back again after an error, and the longest.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Ids forgotten with one batch.
const FORGOTTEN_AT_ONCE: usize = 1000;

impl Shared {
    /// Runs until it is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        self.load().await;
        loop {
            sleep(self.config.sweep_interval).await;
            self.sweep(now_ms()).await;
        }
    }

    async fn load(self: &Arc<Self>) {
        let mut pause = PAUSE;
        loop {
            let shared = Arc::clone(self);
            match blocking(move || shared.read_back()).await {
                Ok(ids) => return self.take_up(ids),
                Err(error) => {
                    let code = error.code();
                    tracing::error!(code, %error, "transactions cannot go on: their state cannot be read");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Blocks on the disk.
    fn read_back(&self) -> Result<Ids, CoordinatorError> {
        let mut ids = Ids::new();
        let mut broken = None;
        self.topic.read_back(|entry| {
            let StateEntry::Record { offset, record, .. } = entry else { return };
            match transaction_log::parse(&record) {
                Ok(Some(Logged { transactional_id, metadata: Some(metadata) })) => {
                    let slot = TransactionalId::stored(metadata);
                    ids.insert(transactional_id.clone(), Entry::new(transactional_id, slot));
                }
                Ok(Some(Logged { transactional_id, metadata: None })) => {
                    ids.remove(&transactional_id);
                }
                Ok(None) => {}
                Err(reason) => {
                    broken.get_or_insert((offset, reason));
                }
            }
        })?;
        match broken {
            None => Ok(ids),
            Some((offset, reason)) => {
                Err(CoordinatorError::Unreadable { topic: self.topic.name(), offset, reason })
            }
        }
    }

    /// What was ending goes on to its end.
    fn take_up(self: &Arc<Self>, ids: Ids) {
        let mut ending = Vec::new();
        for entry in ids.values() {
            let slot = entry.slot.lock();
            transaction_counters::moved(false, slot.is_open());
            if slot.stands().is_some_and(|stands| stands.state.ending().is_some()) {
                ending.push(Arc::clone(entry));
            }
        }
        transaction_counters::ids(ids.len());
        *self.ids.lock() = Some(ids);
        self.loaded.send_replace(true);
        for entry in ending {
            self.complete_later(&entry);
        }
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        let ids = self.ids.lock();
        ids.iter().flat_map(|ids| ids.values().cloned()).collect()
    }

    /// Aborts what is open for too long and forgets what is idle.
    pub(crate) async fn sweep(self: &Arc<Self>, now_ms: i64) {
        let since_ms = now_ms.saturating_sub(millis(self.config.id_expiration));
        let mut idle = Vec::new();
        let mut bytes = 0;
        for entry in self.entries() {
            let (timed_out, expired) = {
                let mut slot = entry.slot.lock();
                bytes += entry.transactional_id.len() + slot.bytes();
                let stands = slot.stands();
                let timed_out = stands.is_some_and(|stands| stands.is_timed_out(now_ms));
                (timed_out, slot.expire(since_ms))
            };
            if expired {
                idle.push(entry);
            } else if timed_out {
                self.abort(entry, now_ms).await;
            }
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        for some in idle.chunks(FORGOTTEN_AT_ONCE) {
            self.forget(some).await;
        }
        transaction_counters::ids(self.ids.lock().as_ref().map_or(0, Ids::len));
    }

    async fn abort(self: &Arc<Self>, entry: Arc<Entry>, now_ms: i64) {
        let plan = move |slot: &mut TransactionalId| Ok(slot.time_out(now_ms));
        // What could not be stored is tried with the next sweep.
        let Ok(Some(fenced)) = self.change(Arc::clone(&entry), plan).await else { return };
        tracing::warn!(
            transactional_id = entry.transactional_id,
            producer_id = fenced.producer.id,
            timeout_ms = fenced.timeout_ms,
            "a transaction was open for longer than its producer allowed: it is aborted"
        );
        transaction_counters::timed_out();
        self.complete_later(&entry);
    }

    /// Stores that the ids are forgotten, and takes them off the list.
    async fn forget(self: &Arc<Self>, idle: &[Arc<Entry>]) {
        let records: Vec<_> =
            idle.iter().map(|entry| transaction_log::tombstone(&entry.transactional_id)).collect();
        let shared = Arc::clone(self);
        let appended = blocking(move || shared.topic.append(&records, None, now_ms())).await;
        let stored = match appended {
            Ok(written) => written.durable().await,
            Err(error) => Err(error),
        };
        if let Err(error) = &stored {
            refused(error);
        }
        let mut ids = self.ids.lock();
        for entry in idle {
            let mut slot = entry.slot.lock();
            if stored.is_err() {
                slot.lost();
                continue;
            }
            slot.written();
            if let Some(ids) = ids.as_mut() {
                ids.remove(&entry.transactional_id);
            }
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
