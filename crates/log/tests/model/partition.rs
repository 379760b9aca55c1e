//! What is known of one partition, and what must be true of it.

use std::path::PathBuf;

use bytes::Bytes;
use highwater_log::{Flush, Partition, PartitionState, Visible, Watermarks};

use crate::client::Client;
use crate::entry::{self, Stored};
use crate::fs::ModelFs;
use crate::naive;
use crate::transactions::Replay;

/// How a life ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Closed,
    /// Closed while the disk refused things: each partition cleanly or not.
    HalfClosed,
    Killed,
    PowerLost,
}

#[derive(Debug)]
pub struct PartitionModel {
    pub dir: PathBuf,
    pub flush: Flush,
    pub interval: usize,
    pub log_start: i64,
    /// What must be in the log, from the log start on.
    pub stored: Vec<Stored>,
    /// What was in the log before it, below the log start.
    pub removed: Vec<Stored>,
    /// The greatest high watermark seen; what lies below must stay.
    pub shown: i64,
    /// The greatest last stable offset seen.
    pub stable: i64,
    /// Of whoever writes markers now.
    pub coordinator_epoch: i32,
    pub epoch: i32,
    pub poisoned: bool,
    pub clients: Vec<Client>,
    /// Batches whose append was interrupted by the crash, or failed half way: the last one in the log
    /// may be one of them.
    pub maybe_stored: Vec<Stored>,
    /// A log start that a crash interrupted.
    pub maybe_start: Option<i64>,
    /// A log start, and what lay below the new one, that a power loss may bring back.
    pub maybe_back: Option<(i64, Vec<Stored>)>,
    /// A truncation that was interrupted: it is completed when the partition reopens, or after a crash
    /// perhaps not at all.
    pub maybe_cut: Option<i64>,
}

impl PartitionModel {
    pub fn new(dir: PathBuf, flush: Flush, interval: usize, clients: Vec<Client>) -> Self {
        Self {
            dir,
            flush,
            interval,
            log_start: 0,
            stored: Vec::new(),
            removed: Vec::new(),
            shown: 0,
            stable: 0,
            coordinator_epoch: 0,
            epoch: 0,
            poisoned: false,
            clients,
            maybe_stored: Vec::new(),
            maybe_start: None,
            maybe_back: None,
            maybe_cut: None,
        }
    }

    /// What all that was ever appended and not cut says of transactions.
    pub fn replay(&self) -> Replay {
        Replay::of(self.removed.iter().chain(&self.stored))
    }

    pub fn end(&self) -> i64 {
        self.stored.last().map_or(self.log_start, Stored::next).max(self.log_start)
    }

    /// After any operation that went well or was refused.
    pub fn observe(&mut self, partition: &Partition) {
        let now = partition.watermarks_now();
        if now.state != PartitionState::Online {
            assert_eq!(now.state, PartitionState::Poisoned, "{:?}", self.dir);
            self.poisoned = true;
            return;
        }
        assert!(!self.poisoned, "it came back unseen");
        assert_eq!(now.log_end, self.end(), "log end of {:?}", self.dir);
        assert_eq!(now.leader_epoch, self.epoch);
        self.see(now);
    }

    fn see(&mut self, now: Watermarks) {
        assert!(
            now.high_watermark >= self.shown,
            "the high watermark went back: {now:?} {}",
            self.shown
        );
        assert!(now.high_watermark <= now.log_end);
        assert!(now.log_start <= now.high_watermark);
        if self.flush != Flush::Durable {
            assert_eq!(now.high_watermark, now.log_end);
        }
        self.shown = now.high_watermark;
        if self.flush == Flush::Durable {
            self.maybe_stored.retain(|maybe| maybe.base >= now.high_watermark);
        }
        self.start_at(now.log_start);
        let stable = self.replay().last_stable(self.log_start, self.shown);
        assert_eq!(now.last_stable_offset, stable, "{:?}", self.dir);
        assert!(stable >= self.stable, "the last stable offset went back from {}", self.stable);
        self.stable = stable;
        for client in &mut self.clients {
            client.acknowledge(self.shown);
        }
    }

    pub fn start_at(&mut self, log_start: i64) {
        assert!(log_start >= self.log_start, "the log start went back");
        if log_start > self.log_start && self.maybe_start.is_some() {
            let gone = self.stored.iter().filter(|stored| stored.next() <= log_start).cloned();
            self.maybe_back.get_or_insert((self.log_start, Vec::new())).1.extend(gone);
        }
        self.log_start = log_start;
        let kept = self.stored.partition_point(|stored| stored.next() <= log_start);
        self.removed.extend(self.stored.drain(..kept));
    }

    fn take_maybe_stored(&mut self, last: Option<&Stored>) {
        let maybe = std::mem::take(&mut self.maybe_stored);
        let Some(last) = last else { return };
        let same = |maybe: &Stored| {
            (maybe.base, maybe.kind, &maybe.records) == (last.base, last.kind, &last.records)
        };
        if maybe.iter().any(same) && !self.stored.contains(last) {
            let safe = if self.flush == Flush::Durable { self.shown } else { 0 };
            assert!(last.base >= safe, "it took the place of a batch that was shown");
            assert_eq!(last.epoch, self.epoch);
            self.stored.retain(|stored| stored.base < last.base);
            self.stored.push(last.clone());
        }
    }

    /// The power loss took back a log start that never was safe.
    fn take_maybe_back(&mut self, log_start: i64) {
        let Some((before, mut stored)) = self.maybe_back.take() else { return };
        if log_start < self.log_start {
            assert!(log_start >= before);
            stored.retain(|stored| stored.next() > log_start);
            stored.append(&mut self.stored);
            self.stored = stored;
            self.removed.retain(|removed| removed.next() <= log_start);
            self.log_start = log_start;
            self.stable = self.stable.min(log_start);
        }
    }

    /// A log start that was asked for and refused may have come to the disk all the same.
    fn take_maybe_start(&mut self, log_start: i64) {
        if let Some(most) = self.maybe_start.take().filter(|_| log_start > self.log_start) {
            assert!(log_start <= most, "{log_start} is above {most}");
            self.start_at(log_start);
        }
    }

    /// Everything at or behind `offset` is gone, and that was asked for.
    pub fn cut(&mut self, offset: i64) {
        self.stored.retain(|stored| stored.next() <= offset);
        self.maybe_stored.clear();
        self.shown = self.shown.min(self.end());
        self.stable = 0;
        for client in &mut self.clients {
            client.begin_again();
        }
    }

    /// It was poisoned and reopened itself.
    pub fn revived(&mut self, partition: &Partition) {
        let now = partition.watermarks_now();
        assert!(now.leader_epoch > self.epoch, "a cut without a new epoch");
        self.maybe_stored.clear();
        if let Some(to) = self.maybe_cut.take() {
            self.cut(to);
        }
        self.take_maybe_start(now.log_start);
        if self.flush != Flush::Durable {
            self.shown = self.shown.min(now.log_end);
            self.stable = 0;
            self.clients.iter_mut().for_each(Client::begin_again);
        }
        self.keep_prefix(&read_all(partition), now.log_end);
        self.epoch = now.leader_epoch;
        self.poisoned = false;
        self.see(now);
    }

    /// A new life: what was found?
    pub fn reopened(&mut self, fs: &ModelFs, partition: &Partition, end: End, closed: bool) {
        let now = partition.watermarks_now();
        assert_eq!(now.state, PartitionState::Online, "{:?}: {:?}", self.dir, partition.flush());
        let poisoned = std::mem::take(&mut self.poisoned);
        if end == End::PowerLost {
            self.take_maybe_back(now.log_start);
        }
        self.take_maybe_start(now.log_start);
        assert_eq!(now.log_start, self.log_start);
        let cut = self.maybe_cut.take();
        if let Some(to) = cut {
            self.shown = self.shown.min(to);
            self.stable = 0;
        }
        let found = read_all(partition);
        self.take_maybe_stored(found.last());
        let whole = matches!(end, End::Closed | End::Killed) && !poisoned && cut.is_none();
        if whole {
            assert_eq!(found.len(), self.stored.len(), "{:?} lost records to {end:?}", self.dir);
        }
        if self.flush != Flush::Durable && !whole {
            self.shown = self.shown.min(now.log_end);
            self.stable = 0;
        }
        let may_lose = self.flush != Flush::Durable && end != End::Closed;
        assert!(now.leader_epoch >= self.epoch);
        if may_lose {
            let raised = now.leader_epoch > self.epoch || closed;
            assert!(raised, "an unclean start under the old epoch");
            // A client that was told of records which are gone now must not go on as if they were there.
            self.clients.iter_mut().for_each(Client::begin_again);
        }
        if cut.is_some() {
            self.clients.iter_mut().for_each(Client::begin_again);
        }
        self.keep_prefix(&found, now.log_end);
        self.epoch = now.leader_epoch;
        assert_eq!(now.high_watermark, now.log_end, "all that was found is shown");
        self.see(now);
        self.check_files(fs);
        self.check_transactions(partition, 500);
    }

    /// What is in the log must be the first part of what was appended, and all that was shown.
    fn keep_prefix(&mut self, found: &[Stored], log_end: i64) {
        assert_eq!(found.last().map_or(self.log_start, Stored::next).max(self.log_start), log_end);
        assert!(
            log_end >= self.shown,
            "{:?}: shown to {}, ends at {log_end}",
            self.dir,
            self.shown
        );
        assert!(found.len() <= self.stored.len(), "{:?}: more than was appended", self.dir);
        assert_eq!(found, &self.stored[..found.len()], "{:?}", self.dir);
        self.stored.truncate(found.len());
        for client in &mut self.clients {
            client.disconnect();
            client.look_up(&self.stored, self.log_start);
        }
    }

    /// The same, read through the log.
    pub fn check_content(&self, partition: &Partition) {
        assert_eq!(read_all(partition), self.stored, "{:?}", self.dir);
    }

    /// What a reader at read_committed gets, and what is known of producers.
    pub fn check_transactions(&self, partition: &Partition, most: usize) {
        let replay = self.replay();
        replay.check_producers(partition);
        replay.check_committed(partition, &self.stored, most);
    }

    /// Every index says what the data says.
    pub fn check_files(&self, fs: &ModelFs) {
        let replay = self.replay();
        let segments = entry::segments(fs, &self.dir);
        for (number, (base, batches)) in segments.iter().enumerate() {
            let closed = number + 1 < segments.len();
            let file =
                |kind: &str| fs.content(&self.dir.join(format!("{base:020}.{kind}"))).unwrap();
            let due = naive::offset_index(*base, batches, self.interval);
            assert_eq!(file("index"), due, "{:?} {base} offset index", self.dir);
            let end = batches.last().map_or(*base, Stored::next);
            let aborted = fs.content(&self.dir.join(format!("{base:020}.txnindex")));
            assert!(!closed || aborted.is_some(), "{:?} {base} transaction index", self.dir);
            assert_eq!(
                aborted.unwrap_or_default(),
                replay.index(*base, end),
                "{:?} {base}",
                self.dir
            );
            check_time_index(&file("timeindex"), *base, batches, &due, closed);
        }
    }

    pub fn check_unique(&self) {
        let data = self.stored.iter().filter(|stored| !stored.is_marker());
        let mut tags: Vec<Bytes> = data.map(Stored::tag).collect();
        let count = tags.len();
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), count, "a batch stands twice in {:?}", self.dir);
    }
}

/// An entry stands at each point of the offset index where the greatest timestamp has risen since the
/// last one; a clean end may have put one more in between.
fn check_time_index(file: &[u8], base: i64, batches: &[Stored], offsets: &[u8], closed: bool) {
    let entries: Vec<(i64, i64)> = file
        .chunks(12)
        .map(|entry| {
            let timestamp = i64::from_be_bytes(entry[..8].try_into().unwrap());
            let relative = u32::from_be_bytes(entry[8..].try_into().unwrap());
            (timestamp, base + i64::from(relative))
        })
        .collect();
    let possible = naive::greatest_so_far(batches);
    assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0));
    for entry in &entries {
        assert!(possible.contains(entry), "{entry:?} is not among {possible:?}");
    }
    for point in offsets.chunks(8) {
        let indexed = base + i64::from(u32::from_be_bytes(point[..4].try_into().unwrap()));
        let due = possible.iter().rev().find(|(_, last)| *last <= indexed);
        if let Some(due) = due {
            assert!(entries.contains(due), "{due:?} is missing in {entries:?}");
        }
    }
    if closed {
        assert_eq!(entries.last(), possible.last(), "a closed segment ends with its greatest");
    }
}

/// The whole log from its start.
pub fn read_all(partition: &Partition) -> Vec<Stored> {
    let mut all: Vec<Stored> = Vec::new();
    let mut offset = partition.watermarks_now().log_start;
    loop {
        let bytes = partition.read(offset, 1 << 20, true, Visible::LogEnd).unwrap();
        if bytes.is_empty() {
            return all;
        }
        all.extend(entry::parse(bytes));
        offset = all[all.len() - 1].next();
    }
}
