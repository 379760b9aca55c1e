//! Reads the journal when a task starts, in two passes over its topic: the first finds which chunks
//! count, the second gives their frames, one chunk at a time.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use super::entry::Start;
use super::journal::{Journal, JournalSettings, Journaled};
use super::journal_payload::{begin, end, frames};
use super::journal_record::{ChunkHead, ChunkKey, JournalRecord, damaged};
use super::spill_frame::Frame;
use crate::{OracleError, RedoAddress, RedoPoint, RedoThread, Scn, TransactionKey};

/// What the stored position says to the journal.
pub trait StoredPosition {
    /// Its journal generation.
    fn generation(&self) -> u64;

    /// From where redo of a thread is read again, inclusive.
    fn resume(&self, thread: RedoThread) -> RedoPoint;

    /// Whether its ledger has the transaction: it was released or discarded.
    fn is_released(&self, key: TransactionKey) -> bool;
}

/// The first pass: the chunks that are in the topic. The last record of a key is the one that counts.
#[derive(Debug)]
pub struct JournalIndex {
    server: String,
    chunks: BTreeMap<ChunkKey, Found>,
}

/// A chunk in the topic.
#[derive(Debug)]
struct Found {
    /// Which record it is.
    place: u64,
    head: ChunkHead,
}

/// A transaction and a number of its chunks.
type ChunkId = (TransactionKey, u32);

/// Why chunks of the journal are not used. None of them is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StaleChunks {
    /// Chunks of a start of which no position was stored.
    pub unacknowledged: u64,
    /// Chunks that a later start has written again.
    pub superseded: u64,
    /// Chunks all of whose rows are mined again.
    pub mined_again: u64,
    /// Chunks of transactions that were released or discarded.
    pub released: u64,
}

/// The second pass: the frames of the chunks that count.
#[derive(Debug)]
pub struct JournalPlan {
    /// Chunks that count and are not read so far.
    unread: BTreeMap<ChunkId, (ChunkKey, Found)>,
    transactions: HashMap<TransactionKey, Journaled>,
    starts: Vec<(TransactionKey, Start)>,
    tombstones: Vec<JournalRecord>,
    stale: StaleChunks,
}

impl JournalIndex {
    /// An index for the connector with this `cdc.topic.prefix`.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server: server.into(), chunks: BTreeMap::new() }
    }

    /// Takes a record; `place` is its offset in the topic.
    ///
    /// # Errors
    /// CDC-4002 when it cannot be read.
    pub fn add(&mut self, place: u64, record: &JournalRecord) -> Result<(), OracleError> {
        let key = ChunkKey::decode(&record.key)?;
        if key.server != self.server {
            return Ok(());
        }
        match &record.value {
            Some(value) => {
                let (head, _) = ChunkHead::decode(&key, value)?;
                self.chunks.insert(key, Found { place, head });
            }
            None => drop(self.chunks.remove(&key)),
        }
        Ok(())
    }

    /// Which chunks count with this position. `now` is the time from which transactions are due again.
    ///
    /// # Errors
    /// CDC-4002 when a chunk is missing among those of a transaction.
    pub fn plan(
        self,
        position: &dyn StoredPosition,
        now: Instant,
    ) -> Result<JournalPlan, OracleError> {
        let mut plan = JournalPlan {
            unread: BTreeMap::new(),
            transactions: HashMap::new(),
            starts: Vec::new(),
            tombstones: Vec::new(),
            stale: StaleChunks::default(),
        };
        // From the last chunk of a transaction to its first, and of one number from the newest on.
        for (key, found) in self.chunks.into_iter().rev() {
            match plan.staleness(&key, &found.head, position) {
                Some(counted) => {
                    *counted += 1;
                    plan.tombstones.push(key.tombstone());
                }
                None => {
                    plan.unread.insert((key.transaction, key.number), (key, found));
                }
            }
        }
        plan.join(now)?;
        Ok(plan)
    }
}

impl JournalPlan {
    /// Where a chunk that does not count is counted.
    fn staleness(
        &mut self,
        key: &ChunkKey,
        head: &ChunkHead,
        position: &dyn StoredPosition,
    ) -> Option<&mut u64> {
        let stale = &mut self.stale;
        if key.generation > position.generation() {
            Some(&mut stale.unacknowledged)
        } else if position.is_released(key.transaction) {
            Some(&mut stale.released)
        } else if is_mined_again(&head.first, &position.resume(head.thread())) {
            Some(&mut stale.mined_again)
        } else if self.unread.contains_key(&(key.transaction, key.number)) {
            Some(&mut stale.superseded)
        } else {
            None
        }
    }

    /// Puts the chunks of each transaction together: their numbers have no hole, and each goes on where
    /// the one before it ends.
    fn join(&mut self, now: Instant) -> Result<(), OracleError> {
        for (key, Found { head, .. }) in self.unread.values() {
            let journaled = self.transactions.entry(key.transaction).or_insert_with(|| {
                self.starts.extend(head.start.clone().map(|start| (key.transaction, start)));
                Journaled {
                    chunks: Vec::new(),
                    last: head.first,
                    changes: 0,
                    written: now,
                    restored: BTreeMap::new(),
                }
            });
            let before = journaled.chunks.last().map(|_| journaled.last);
            let missing = journaled.chunks.len();
            if key.number as usize != missing {
                return Err(damaged(key, &format!("chunk {missing} before it is missing")));
            }
            if head.after.map(place) != before.map(place) {
                return Err(damaged(key, &"it does not go on where the chunk before it ends"));
            }
            journaled.chunks.push(key.generation);
            journaled.last = head.last;
            journaled.changes += head.events;
        }
        Ok(())
    }

    /// Tombstones of the chunks that do not count. They are the first records that the task gives out,
    /// under the stored position as it was loaded, before any record with the new generation.
    pub fn tombstones(&self) -> &[JournalRecord] {
        &self.tombstones
    }

    /// How many chunks do not count, and why.
    pub const fn stale(&self) -> StaleChunks {
        self.stale
    }

    /// Transactions that come back.
    pub fn transactions(&self) -> impl Iterator<Item = TransactionKey> + '_ {
        self.transactions.keys().copied()
    }

    /// START rows of transactions that come back, for the buffer before their frames.
    pub fn starts(&self) -> &[(TransactionKey, Start)] {
        &self.starts
    }

    /// Takes a record again; `place` is its offset in the topic. The frames of a chunk that counts are
    /// added to the buffer in this order.
    ///
    /// # Errors
    /// CDC-4002 when the chunk is damaged.
    pub fn frames(
        &mut self,
        place: u64,
        record: &JournalRecord,
    ) -> Result<Option<(TransactionKey, Vec<Frame>)>, OracleError> {
        let Some(value) = &record.value else { return Ok(None) };
        let key = ChunkKey::decode(&record.key)?;
        let id = (key.transaction, key.number);
        let found = self.unread.get(&id);
        if !found.is_some_and(|(wanted, found)| *wanted == key && found.place == place) {
            return Ok(None);
        }
        self.check_order(&key)?;
        self.unread.remove(&id);
        let (head, payload) = ChunkHead::decode(&key, value)?;
        let frames = frames(&key, &head, &payload)?;
        if let Some(journaled) = self.transactions.get_mut(&key.transaction) {
            frames.iter().for_each(|frame| restore(&mut journaled.restored, frame));
        }
        Ok(Some((key.transaction, frames)))
    }

    fn check_order(&self, key: &ChunkKey) -> Result<(), OracleError> {
        let first = (key.transaction, 0)..(key.transaction, key.number);
        match self.unread.range(first).next() {
            Some(((_, earlier), _)) => {
                Err(damaged(key, &format!("it stands before chunk {earlier} in the topic")))
            }
            None => Ok(()),
        }
    }

    /// The journal of this start, of this generation, once all records were taken again. The buffer is
    /// told then that [`transactions`](Self::transactions) are journaled.
    ///
    /// # Errors
    /// CDC-4002 when chunks that count were not among them.
    pub fn into_journal(
        self,
        settings: JournalSettings,
        generation: u64,
    ) -> Result<Journal, OracleError> {
        if let Some((key, _)) = self.unread.values().next() {
            return Err(damaged(key, &"it was there and is gone"));
        }
        Ok(Journal::with(settings, generation, self.transactions))
    }
}

/// What names a row of a transaction.
const fn place(point: RedoPoint) -> (Scn, Option<RedoAddress>) {
    (point.scn, point.address)
}

/// Whether redo is read again from before a chunk that begins at `first`. Without an address that is not
/// told by the SCN, as redo may lie late under an earlier one: the chunk is used then, and its rows are
/// left out when they come.
fn is_mined_again(first: &RedoPoint, resume: &RedoPoint) -> bool {
    first.address.zip(resume.address).is_some_and(|(first, resume)| first >= resume)
}

/// Counts a frame to what the journal gave.
fn restore(restored: &mut BTreeMap<RedoThread, RedoAddress>, frame: &Frame) {
    let Some(address) = end(frame).address.or(begin(frame).address) else { return };
    let through = restored.entry(begin(frame).thread).or_insert(address);
    *through = address.max(*through);
}
