//! Transactions worked out from the batches alone, the slow way: whose are open, what a reader at
//! read_committed may see, what the files must say.

use std::collections::BTreeMap;

use highwater_log::{Aborted, MarkerKind, Partition, ProducerState};

use crate::entry::{self, Kind, Stored};

/// A transaction that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    pub id: i64,
    pub first: i64,
    /// Offset of its marker.
    pub last: i64,
    pub kind: MarkerKind,
    /// First offset of the oldest transaction that was open behind the marker; else what follows it.
    pub stable: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Known {
    epoch: i16,
    last_sequence: i32,
    coordinator_epoch: i32,
    open: Option<i64>,
}

/// What all batches from the first on say.
#[derive(Clone, Default, Debug)]
pub struct Replay {
    producers: BTreeMap<i64, Known>,
    pub ended: Vec<Ended>,
}

impl Replay {
    pub fn of<'a>(history: impl IntoIterator<Item = &'a Stored>) -> Self {
        let mut replay = Self::default();
        history.into_iter().for_each(|stored| replay.take(stored));
        replay
    }

    fn take(&mut self, stored: &Stored) {
        let (id, epoch) = match stored.kind {
            Kind::Plain => return,
            Kind::Numbered { id, epoch, .. } | Kind::Marker { id, epoch, .. } => (id, epoch),
        };
        let fresh = Known { epoch, last_sequence: -1, coordinator_epoch: -1, open: None };
        let known = self.producers.entry(id).or_insert(fresh);
        if known.epoch != epoch {
            (known.epoch, known.last_sequence) = (epoch, -1);
        }
        match stored.kind {
            Kind::Plain => {}
            Kind::Numbered { sequence, transactional, .. } => {
                known.last_sequence = sequence + stored.records.len() as i32 - 1;
                if transactional {
                    known.open.get_or_insert(stored.base);
                }
            }
            Kind::Marker { kind, coordinator_epoch, .. } => {
                known.coordinator_epoch = coordinator_epoch;
                let first = known.open.take();
                let stable = self.first_open().unwrap_or(stored.next());
                let ended = |first| Ended { id, first, last: stored.base, kind, stable };
                self.ended.extend(first.map(ended));
            }
        }
    }

    fn first_open(&self) -> Option<i64> {
        self.producers.values().filter_map(|known| known.open).min()
    }

    /// Where a reader at read_committed ends, if `shown` is where others do.
    pub fn last_stable(&self, log_start: i64, shown: i64) -> i64 {
        let ended = self.ended.iter().filter(|ended| ended.last >= shown).map(|ended| ended.first);
        let first = ended.chain(self.first_open()).min().unwrap_or(shown);
        first.max(log_start).min(shown)
    }

    pub fn coordinator_epoch(&self, id: i64) -> i32 {
        self.producers.get(&id).map_or(-1, |known| known.coordinator_epoch)
    }

    pub fn epoch(&self, id: i64) -> i16 {
        self.producers.get(&id).map_or(-1, |known| known.epoch)
    }

    pub fn is_open(&self, id: i64) -> bool {
        self.producers.get(&id).is_some_and(|known| known.open.is_some())
    }

    /// Whether the record is to be seen at read_committed.
    fn is_committed(&self, stored: &Stored) -> bool {
        match stored.kind {
            Kind::Plain => true,
            Kind::Marker { .. } => false,
            Kind::Numbered { transactional, .. } if !transactional => true,
            Kind::Numbered { id, .. } => self.ended.iter().any(|ended| {
                ended.id == id
                    && ended.kind == MarkerKind::Commit
                    && (ended.first..ended.last).contains(&stored.base)
            }),
        }
    }

    /// The transaction index of the segment that holds these offsets.
    pub fn index(&self, base: i64, end: i64) -> Vec<u8> {
        let here =
            |ended: &&Ended| ended.kind == MarkerKind::Abort && (base..end).contains(&ended.last);
        let entry = |ended: &Ended| {
            let fields = [ended.id, ended.first, ended.last, ended.stable];
            [0, 0].into_iter().chain(fields.into_iter().flat_map(i64::to_be_bytes))
        };
        self.ended.iter().filter(here).flat_map(entry).collect()
    }

    /// What the log knows of its producers must be this.
    pub fn check_producers(&self, partition: &Partition) {
        let state = |state: ProducerState| {
            let known = Known {
                epoch: state.producer_epoch,
                last_sequence: state.last_sequence,
                coordinator_epoch: state.coordinator_epoch,
                open: state.transaction_start,
            };
            (state.producer_id, known)
        };
        let found: BTreeMap<_, _> = partition.producer_states().into_iter().map(state).collect();
        assert_eq!(found, self.producers);
        let oldest = partition.oldest_open_transaction().map(|open| open.first_offset);
        assert_eq!(oldest, self.first_open());
    }

    /// A consumer at read_committed gets what was committed, all of it, and nothing else.
    pub fn check_committed(&self, partition: &Partition, kept: &[Stored], most: usize) {
        let now = partition.watermarks_now();
        let seen = consume(partition, now.log_start, most);
        let stable = now.last_stable_offset;
        let due = kept
            .iter()
            .filter(|stored| stored.base.max(now.log_start) < stable && self.is_committed(stored));
        assert_eq!(seen, due.cloned().collect::<Vec<_>>());
    }
}

/// All that a consumer at read_committed is given, by Kafka's rule: a batch of a transaction is passed
/// over from the first offset of an aborted one up to its marker.
fn consume(partition: &Partition, from: i64, most: usize) -> Vec<Stored> {
    let (mut seen, mut offset) = (Vec::new(), from);
    loop {
        let (bytes, mut waiting) = partition.read_committed(offset, most, true).unwrap();
        if bytes.is_empty() {
            return seen;
        }
        let mut passed: Vec<i64> = Vec::new();
        for stored in entry::parse(bytes) {
            waiting.retain(|aborted: &Aborted| {
                let begun = aborted.first_offset < stored.next();
                if begun {
                    passed.push(aborted.producer_id);
                }
                !begun
            });
            offset = stored.next();
            match stored.kind {
                Kind::Marker { id, kind: MarkerKind::Abort, .. } => {
                    // Of several transactions of one producer the first ends here.
                    if let Some(at) = passed.iter().position(|passed| *passed == id) {
                        passed.remove(at);
                    }
                }
                Kind::Marker { .. } => {}
                Kind::Numbered { id, transactional: true, .. } if passed.contains(&id) => {}
                Kind::Plain | Kind::Numbered { .. } => seen.push(stored),
            }
        }
    }
}
