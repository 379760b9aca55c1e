//! What compaction keeps of each batch. Pure; the rules are Kafka's (KIP-58, KIP-98, KIP-354, KIP-534).

use std::collections::HashMap;

use bytes::Bytes;
use highwater_protocol::records::{Batch, BatchError, BatchHeader, DECOMPRESSED_MAX, RecordRef};

use crate::EndMarker;
use crate::cleaned_transactions::{CleanedTransactions, MarkerFate};
use crate::offset_map::OffsetMap;
use crate::producer::Kept;
use crate::transaction_index::Entry;

/// What is left of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// All of it.
    AsItIs,
    /// This batch in its place.
    Written(Bytes),
    Nothing,
}

/// The decision over a log, batch by batch from the front.
#[derive(Debug)]
pub(crate) struct Keeper<'a> {
    map: &'a OffsetMap,
    now_ms: i64,
    delete_retention_ms: i64,
    transactions: CleanedTransactions,
    last: HashMap<i64, Kept>,
    entries: Vec<Entry>,
}

impl<'a> Keeper<'a> {
    /// `aborted` are the transactions of the log that were aborted.
    pub(crate) fn new(
        map: &'a OffsetMap,
        aborted: &[Entry],
        now_ms: i64,
        delete_retention_ms: i64,
    ) -> Self {
        Self {
            map,
            now_ms,
            delete_retention_ms,
            transactions: CleanedTransactions::new(aborted),
            last: HashMap::new(),
            entries: Vec::new(),
        }
    }

    /// What the producers sent last, as it is now: those batches stay, if only as empty ones, so that
    /// sequence numbers are known also to who reads the log without a snapshot.
    pub(crate) fn set_producers(&mut self, kept: Vec<Kept>) {
        self.last = kept.into_iter().map(|kept| (kept.producer_id, kept)).collect();
    }

    /// The entries for the transaction index of what was gone through since the last call.
    pub(crate) fn take_entries(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }

    /// Decides about the next batch. The last one of a segment stays, if only as an empty one: a segment
    /// ends where the next one begins.
    pub(crate) fn keep(&mut self, batch: &Batch, is_last: bool) -> Result<Left, BatchError> {
        let header = &batch.header;
        let marker_may_go = header.is_control() && self.marker_may_go(batch);
        let goes = if header.is_control() {
            marker_may_go && header.delete_horizon().is_some_and(|horizon| horizon <= self.now_ms)
        } else {
            self.transactions.meets_batch(header)
        };
        if goes {
            return Ok(self.emptied(batch, is_last));
        }
        let selection = batch.select(DECOMPRESSED_MAX, |record| self.keeps(header, record))?;
        if selection.is_empty() {
            return Ok(self.emptied(batch, is_last));
        }
        let waits = selection.has_tombstone() || marker_may_go;
        let horizon = (waits && header.delete_horizon().is_none())
            .then(|| self.now_ms.saturating_add(self.delete_retention_ms));
        if selection.is_whole() && horizon.is_none() {
            return Ok(Left::AsItIs);
        }
        Ok(Left::Written(selection.rewrite(horizon)?))
    }

    fn marker_may_go(&mut self, batch: &Batch) -> bool {
        let kind = EndMarker::parse(batch).map(|marker| marker.kind);
        match self.transactions.meets_marker(&batch.header, kind) {
            MarkerFate::MayGo => true,
            MarkerFate::Stays(entry) => {
                self.entries.extend(entry);
                false
            }
        }
    }

    fn keeps(&self, header: &BatchHeader, record: RecordRef<'_>) -> bool {
        if header.is_control() || record.offset >= self.map.end() {
            return true;
        }
        // Without a key: the topic was not compacted when it came.
        let Some(key) = record.key else { return false };
        let is_newest = self.map.newest(key).is_none_or(|newest| record.offset >= newest);
        let waits = || header.delete_horizon().is_none_or(|horizon| self.now_ms < horizon);
        is_newest && (record.has_value || waits())
    }

    fn emptied(&self, batch: &Batch, is_last: bool) -> Left {
        let header = &batch.header;
        match (self.is_last_of_producer(header), is_last) {
            (false, false) => Left::Nothing,
            _ if header.record_count == 0 => Left::AsItIs,
            // Without its record it would tell neither the epoch that it brought nor its coordinator's, and a
            // start that finds no snapshot would take batches of the epoch before. Kafka empties it.
            (true, _) if header.is_control() => Left::AsItIs,
            // As Kafka has it: the greatest timestamp may be that of a record which is gone.
            (true, _) => Left::Written(batch.emptied(header.max_timestamp)),
            (false, true) => Left::Written(batch.emptied(-1)),
        }
    }

    fn is_last_of_producer(&self, header: &BatchHeader) -> bool {
        let last = self.last.get(&header.producer_id);
        last.is_some_and(|last| match last.last_offset {
            ..0 => header.is_control() && header.producer_epoch == last.epoch,
            offset => !header.is_control() && header.last_offset() == offset,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use highwater_protocol::records::{BatchBuilder, Compression, Record};
    use proptest::prelude::*;

    use super::*;

    const NOW: i64 = 1_800_000_000_000;
    const RETENTION: i64 = 1000;

    type Sent = (u8, Option<u8>);

    /// One batch a list of records: key and value.
    fn log(batches: &[Vec<Sent>]) -> Vec<Batch> {
        let mut base = 0;
        let mut log = Vec::new();
        for records in batches {
            let mut builder = BatchBuilder::new(Compression::None).base_offset(base);
            for (number, (key, value)) in records.iter().enumerate() {
                let value = value.map(|value| [value]);
                let time = base + number as i64;
                builder.push(time, Some(&[*key]), value.as_ref().map(|value| &value[..]), &[]);
            }
            base += records.len() as i64;
            log.push(Batch::parse(&builder.build().unwrap()).unwrap());
        }
        log
    }

    fn records(batch: &Batch) -> Vec<Record> {
        batch.verify_crc().unwrap();
        batch.records(DECOMPRESSED_MAX).unwrap().map(Result::unwrap).collect()
    }

    fn all(log: &[Batch]) -> Vec<Record> {
        log.iter().flat_map(records).collect()
    }

    /// A pass over the whole log, which knows of what lies in `dirty..end`.
    fn pass(log: &[Batch], dirty: i64, end: i64, now_ms: i64) -> Vec<Batch> {
        let mut map = OffsetMap::new(1 << 20, 1000, dirty);
        for record in all(log).iter().filter(|record| (dirty..end).contains(&record.offset)) {
            assert!(map.put(record.key.as_deref().unwrap(), record.offset));
        }
        map.reach(end);
        let mut keeper = Keeper::new(&map, &[], now_ms, RETENTION);
        let mut left = Vec::new();
        for (number, batch) in log.iter().enumerate() {
            match keeper.keep(batch, number + 1 == log.len()).unwrap() {
                Left::AsItIs => left.push(batch.clone()),
                Left::Written(bytes) => left.push(Batch::parse(&bytes).unwrap()),
                Left::Nothing => {}
            }
        }
        left
    }

    proptest! {
        /// For each key the newest record below the end of the passes is there and no older one; what lies
        /// above is untouched; a tombstone is there until its time is over; nothing changes its offset.
        #[test]
        fn each_key_keeps_its_newest_record(
            batches in prop::collection::vec(
                prop::collection::vec((0..6u8, prop::option::of(0..9u8)), 1..5), 1..12),
            first in 0..20i64,
            second in 0..40i64,
        ) {
            let before = log(&batches);
            let sent = all(&before);
            let log_end = sent.len() as i64;
            let first = first.min(log_end);
            let second = second.clamp(first, log_end);
            let once = pass(&before, 0, first, NOW);
            let twice = pass(&once, first, second, NOW + 1);
            let late = pass(&twice, second, second, NOW + 1 + RETENTION);
            let newest: BTreeMap<_, _> = sent
                .iter()
                .filter(|record| record.offset < second)
                .map(|record| (record.key.clone(), record.offset))
                .collect();
            let stays = |record: &&Record| {
                record.offset >= second || newest[&record.key] == record.offset
            };
            let due: Vec<Record> = sent.iter().filter(stays).cloned().collect();
            prop_assert_eq!(all(&twice), due.clone(), "tombstones wait");
            let has_value = |record: &Record| record.offset >= second || record.value.is_some();
            let due: Vec<Record> = due.into_iter().filter(has_value).collect();
            prop_assert_eq!(all(&late), due, "tombstones are gone");
            prop_assert_eq!(late.last().unwrap().header.next_offset(), log_end);
            for batch in &late {
                let greatest = records(batch).iter().map(|record| record.timestamp).max();
                prop_assert_eq!(batch.header.max_timestamp, greatest.unwrap_or(-1));
            }
        }
    }

    #[test]
    fn the_last_batch_of_a_producer_stays_as_an_empty_one() {
        let mut map = OffsetMap::new(1 << 10, 10, 0);
        assert!(map.put(b"key", 50));
        map.reach(60);
        let mut builder = BatchBuilder::new(Compression::Lz4).base_offset(10).producer(7, 2, 30);
        builder.push(5, Some(b"key"), Some(b"value"), &[]);
        builder.push(9, Some(b"key"), None, &[]);
        let batch = Batch::parse(&builder.build().unwrap()).unwrap();
        let mut keeper = Keeper::new(&map, &[], NOW, RETENTION);
        assert_eq!(keeper.keep(&batch, false).unwrap(), Left::Nothing);
        let mut kept = Kept {
            producer_id: 7,
            epoch: 2,
            last_sequence: 31,
            last_offset: 11,
            offset_delta: 1,
            seen_ms: NOW,
            coordinator_epoch: -1,
            open: None,
        };
        keeper.set_producers(vec![kept]);
        let Left::Written(bytes) = keeper.keep(&batch, false).unwrap() else { panic!("it went") };
        let empty = Batch::parse(&bytes).unwrap();
        assert_eq!((empty.header.record_count, empty.header.last_offset()), (0, 11));
        assert_eq!((empty.header.base_sequence, empty.header.max_timestamp), (30, 9));
        assert_eq!(keeper.keep(&empty, false).unwrap(), Left::AsItIs);
        kept.last_offset = 80;
        keeper.set_producers(vec![kept]);
        assert_eq!(keeper.keep(&empty, false).unwrap(), Left::Nothing, "it sent another one");
    }

    #[test]
    fn a_marker_goes_when_its_time_is_over_and_nothing_of_its_transaction_is_left() {
        let map = OffsetMap::new(1 << 10, 10, 60);
        let marker = crate::EndMarker {
            producer_id: 7,
            producer_epoch: 2,
            kind: crate::MarkerKind::Commit,
            coordinator_epoch: 0,
        };
        let marker = Batch::parse(&marker.to_batch(5).unwrap()).unwrap();
        let keep = |marker: &Batch, now_ms: i64| {
            Keeper::new(&map, &[], now_ms, RETENTION).keep(marker, false).unwrap()
        };
        let Left::Written(bytes) = keep(&marker, NOW) else { panic!("no horizon was set") };
        let waiting = Batch::parse(&bytes).unwrap();
        assert_eq!(waiting.header.delete_horizon(), Some(NOW + RETENTION));
        assert_eq!(records(&waiting), records(&marker));
        assert_eq!(keep(&waiting, NOW + RETENTION - 1), Left::AsItIs);
        assert_eq!(keep(&waiting, NOW + RETENTION), Left::Nothing);
        let mut keeper = Keeper::new(&map, &[], NOW + RETENTION, RETENTION);
        assert!(matches!(keeper.keep(&waiting, true).unwrap(), Left::Written(_)), "the last one");
    }
}
