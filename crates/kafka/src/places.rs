//! The partitions that a consumer holds: where it stands in each, and what it has fetched and not
//! given yet. Decides alone what is fetched next and what is given.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use highwater_protocol::TopicPartition;
use tokio::sync::watch;

use crate::reader::{Fetched, ReadRecord, Watermarks};

/// Where a consumer stands in a partition.
#[derive(Debug)]
struct Place {
    /// The next offset to fetch.
    next_fetch: i64,
    /// Fetched and not given.
    waiting: VecDeque<ReadRecord>,
    edges: watch::Receiver<Watermarks>,
    /// Whether the log is still to say that it has this offset: after each move, and after each of its
    /// own, since a log that was cut would otherwise grow past it unseen.
    unproven: bool,
    /// Whether the partition was deleted.
    gone: bool,
}

impl Place {
    /// The next offset to give.
    fn position(&self) -> i64 {
        self.waiting.front().map_or(self.next_fetch, |record| record.offset)
    }

    fn has_more(&self) -> bool {
        let beyond = self.edges.borrow().last_stable > self.next_fetch;
        !self.gone && self.waiting.is_empty() && (self.unproven || beyond)
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Places {
    held: BTreeMap<TopicPartition, Place>,
    /// Who was fetched last: the others come first, so that a busy partition starves none.
    last: Option<TopicPartition>,
    records: usize,
    bytes: usize,
}

impl Places {
    pub(crate) fn insert(
        &mut self,
        partition: TopicPartition,
        offset: i64,
        edges: watch::Receiver<Watermarks>,
    ) {
        let (waiting, unproven, gone) = (VecDeque::new(), true, false);
        let place = Place { next_fetch: offset, waiting, edges, unproven, gone };
        self.held.insert(partition, place);
    }

    /// Lets go of everything, and says of what.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn partitions(&self) -> impl Iterator<Item = &TopicPartition> {
        self.held.keys()
    }

    pub(crate) fn position(&self, partition: &TopicPartition) -> Option<i64> {
        self.held.get(partition).map(Place::position)
    }

    /// Offsets up to the ends of all partitions.
    pub(crate) fn lag(&self) -> i64 {
        let behind = |place: &Place| place.edges.borrow().last_stable - place.position();
        self.held.values().filter(|place| !place.gone).map(|place| behind(place).max(0)).sum()
    }

    /// Goes on at another offset; false when the partition is not held.
    pub(crate) fn seek(&mut self, partition: &TopicPartition, offset: i64) -> bool {
        let Some(place) = self.held.get_mut(partition) else { return false };
        self.records -= place.waiting.len();
        self.bytes -= place.waiting.iter().map(size).sum::<usize>();
        place.waiting.clear();
        (place.next_fetch, place.unproven) = (offset, true);
        true
    }

    /// What to fetch next, and from which offset, while less is waiting than these bounds.
    pub(crate) fn to_fetch(&self, records: usize, bytes: usize) -> Option<(TopicPartition, i64)> {
        if self.records >= records || self.bytes >= bytes {
            return None;
        }
        let behind = match &self.last {
            Some(last) => self.held.range((Excluded(last.clone()), Unbounded)),
            None => self.held.range::<TopicPartition, _>(..),
        };
        let mut turn = behind.chain(self.held.iter());
        let (partition, place) = turn.find(|(_, place)| place.has_more())?;
        Some((partition.clone(), place.next_fetch))
    }

    /// Takes in what was fetched.
    pub(crate) fn fetched(&mut self, partition: &TopicPartition, fetched: Fetched) {
        let Some(place) = self.held.get_mut(partition) else { return };
        self.records += fetched.records.len();
        self.bytes += fetched.records.iter().map(size).sum::<usize>();
        place.waiting.extend(fetched.records);
        (place.next_fetch, place.unproven) = (fetched.next_offset, false);
        self.last = Some(partition.clone());
    }

    /// Reads a partition no longer: it was deleted.
    pub(crate) fn drop_out(&mut self, partition: &TopicPartition) {
        if let Some(place) = self.held.get_mut(partition) {
            place.gone = true;
        }
    }

    /// Gives what waits, at most so many and about so many bytes, but at least one.
    pub(crate) fn give(
        &mut self,
        records: usize,
        bytes: usize,
    ) -> Vec<(TopicPartition, ReadRecord)> {
        let mut given = Vec::new();
        let mut left = bytes;
        for (partition, place) in &mut self.held {
            while let Some(next) = place.waiting.front().map(size) {
                if !given.is_empty() && (given.len() >= records || next > left) {
                    return given;
                }
                left = left.saturating_sub(next);
                (self.records, self.bytes) = (self.records - 1, self.bytes - next);
                given.extend(place.waiting.pop_front().map(|record| (partition.clone(), record)));
            }
        }
        given
    }

    /// Waits until some partition may have more to fetch; for ever when none is held.
    pub(crate) async fn changed(&mut self) {
        let open = self.held.values_mut().filter(|place| !place.gone);
        let changes = open.map(|place| {
            Box::pin(async {
                match place.edges.changed().await {
                    Ok(()) => place.unproven = true,
                    Err(_) => place.gone = true,
                }
            })
        });
        let changes: Vec<_> = changes.collect();
        if changes.is_empty() {
            std::future::pending::<()>().await;
        }
        futures_util::future::select_all(changes).await;
    }
}

/// Bytes that a record takes, about.
fn size(record: &ReadRecord) -> usize {
    const OVERHEAD: usize = 64;
    let [key, value] =
        [&record.key, &record.value].map(|part| part.as_ref().map_or(0, bytes::Bytes::len));
    let headers = record.headers.iter().map(|(name, value)| name.len() + value.len());
    OVERHEAD + key + value + headers.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(offset: i64) -> ReadRecord {
        let (key, value, headers) = (None, Some(vec![0; 36].into()), Vec::new());
        ReadRecord { offset, timestamp: 0, leader_epoch: 0, key, value, headers }
    }

    fn fetched(offsets: std::ops::Range<i64>, next_offset: i64) -> Fetched {
        let records = offsets.map(record).collect();
        Fetched { records, next_offset, watermarks: Watermarks::default() }
    }

    /// Partitions of `t` that each have records up to 100.
    fn places(count: i32) -> (Places, Vec<watch::Sender<Watermarks>>) {
        let mut places = Places::default();
        let senders = (0..count).map(|partition| {
            let edges = Watermarks { log_start: 0, high_watermark: 100, last_stable: 100 };
            let (sender, receiver) = watch::channel(edges);
            places.insert(TopicPartition::new("t", partition), 0, receiver);
            sender
        });
        let senders = senders.collect();
        (places, senders)
    }

    #[test]
    fn partitions_are_fetched_in_turn_until_enough_waits() {
        let (mut places, _senders) = places(3);
        let mut turns = Vec::new();
        while let Some((partition, offset)) = places.to_fetch(25, usize::MAX) {
            turns.push((partition.partition, offset));
            places.fetched(&partition, fetched(offset..offset + 10, offset + 10));
        }
        assert_eq!(turns, [(0, 0), (1, 0), (2, 0)]);
        assert_eq!(places.give(100, usize::MAX).len(), 30);
        assert_eq!(places.to_fetch(25, usize::MAX), Some((TopicPartition::new("t", 0), 10)));
    }

    #[test]
    fn what_is_given_is_bounded_by_number_and_bytes_and_is_never_nothing() {
        let (mut places, _senders) = places(1);
        places.fetched(&TopicPartition::new("t", 0), fetched(0..10, 10));
        assert_eq!(places.give(3, usize::MAX).len(), 3);
        assert_eq!(places.give(100, 200).len(), 2, "each takes 100");
        assert_eq!(places.give(0, 0).len(), 1);
        assert_eq!(places.give(100, usize::MAX).len(), 4);
        assert!(places.give(100, usize::MAX).is_empty());
        assert_eq!((places.records, places.bytes), (0, 0));
    }

    #[test]
    fn a_position_passes_what_holds_no_records_once_all_before_is_given() {
        let (mut places, _senders) = places(1);
        let partition = TopicPartition::new("t", 0);
        places.fetched(&partition, fetched(0..5, 7));
        assert_eq!(places.position(&partition), Some(0));
        places.give(4, usize::MAX);
        assert_eq!(places.position(&partition), Some(4));
        places.give(4, usize::MAX);
        assert_eq!(places.position(&partition), Some(7));
    }

    #[test]
    fn a_seek_drops_what_waits_there_alone() {
        let (mut places, _senders) = places(2);
        let [one, other] = [0, 1].map(|partition| TopicPartition::new("t", partition));
        places.fetched(&one, fetched(0..5, 5));
        places.fetched(&other, fetched(0..5, 5));
        assert!(places.seek(&one, 2));
        assert!(!places.seek(&TopicPartition::new("t", 9), 2));
        assert_eq!(places.to_fetch(100, usize::MAX), Some((one, 2)));
        let given = places.give(100, usize::MAX);
        assert!(given.iter().all(|(partition, _)| *partition == other) && given.len() == 5);
    }

    #[tokio::test]
    async fn a_log_that_ends_below_is_asked_once_and_again_when_it_moves() {
        let (mut places, senders) = places(1);
        let partition = TopicPartition::new("t", 0);
        places.seek(&partition, 500);
        assert_eq!(places.to_fetch(1, 1), Some((partition.clone(), 500)));
        places.fetched(&partition, fetched(0..0, 500));
        assert_eq!(places.to_fetch(1, 1), None);
        senders[0].send_modify(|edges| edges.last_stable = 90);
        places.changed().await;
        assert_eq!(places.to_fetch(1, 1), Some((partition, 500)));
    }

    #[tokio::test]
    async fn a_deleted_partition_is_waited_for_no_longer() {
        let (mut places, senders) = places(1);
        drop(senders);
        places.changed().await;
        let waits = tokio::time::timeout(std::time::Duration::from_millis(50), places.changed());
        assert!(waits.await.is_err());
        assert_eq!(places.to_fetch(1, 1), None);
    }
}
