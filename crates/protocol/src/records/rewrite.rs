//! Writing a batch anew: by another codec, with some of its records, or with none.
//!
//! Compaction keeps the header's base offset, last offset and producer, so that offsets and sequence
//! numbers are those that were given; count, greatest timestamp and CRC are made again. Where records
//! without value begin to wait for their removal, the base timestamp becomes the time until which they
//! wait and bit 6 of the attributes says so (KIP-534).

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use super::batch::crc;
use super::builder::{put_length, put_varlong, varlong_size};
use super::cursor::Cursor;
use super::header::{CRC_AT, CRC_FROM};
use super::walk::{RecordView, Walk};
use super::{Batch, BatchError, BatchHeader, Compression, HEADER_SIZE, TimestampType};

/// What decides about a record: no copy is made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Its offset.
    pub offset: i64,
    /// Its timestamp, in milliseconds since 1970, or -1.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// False for a tombstone.
    pub has_value: bool,
}

/// Some of the records of a batch.
#[derive(Clone, Debug)]
pub struct Selection {
    header: BatchHeader,
    body: Bytes,
    /// Timestamp and place of each record that was chosen.
    chosen: Vec<(i64, Range<usize>)>,
    has_tombstone: bool,
}

impl Batch {
    /// Goes through the records. `limit` as for [`Batch::records`].
    ///
    /// # Errors
    /// Those of [`Batch::records`], and a malformed record.
    pub fn each_record(
        &self,
        limit: usize,
        mut each: impl FnMut(RecordRef<'_>),
    ) -> Result<(), BatchError> {
        let body = self.body(limit)?;
        let mut walk = Walk::new(&self.header);
        while let Some(record) = walk.next(&body) {
            each(RecordRef::of(&record?));
        }
        Ok(())
    }

    /// Chooses records. `limit` as for [`Batch::records`].
    ///
    /// # Errors
    /// Those of [`Batch::records`], and a malformed record.
    pub fn select(
        &self,
        limit: usize,
        mut keep: impl FnMut(RecordRef<'_>) -> bool,
    ) -> Result<Selection, BatchError> {
        let body = self.body(limit)?;
        let (mut chosen, mut has_tombstone) = (Vec::new(), false);
        let mut walk = Walk::new(&self.header);
        let mut from = 0;
        while let Some(record) = walk.next(&body) {
            let record = RecordRef::of(&record?);
            let place = from..walk.at();
            from = place.end;
            if keep(record) {
                has_tombstone |= !record.has_value;
                chosen.push((record.timestamp, place));
            }
        }
        Ok(Selection { header: self.header, body, chosen, has_tombstone })
    }

    /// The batch without its records, with this greatest timestamp.
    pub fn emptied(&self, max_timestamp: i64) -> Bytes {
        let mut header = self.header.with_compression(Compression::None);
        header.set_delete_horizon(None);
        (header.base_timestamp, header.max_timestamp) = (-1, max_timestamp);
        header.record_count = 0;
        assemble(header, &[])
    }

    /// The batch under another codec; None for the codec's own level. `limit` as for
    /// [`Batch::records`].
    ///
    /// # Errors
    /// Those of [`Batch::records`], and [`BatchError::Compressed`] if the codec fails.
    pub fn recompressed(
        &self,
        codec: Compression,
        level: Option<i32>,
        limit: usize,
    ) -> Result<Bytes, BatchError> {
        let body = codec.compress_at(level, &self.body(limit)?)?;
        Ok(assemble(self.header.with_compression(codec), &body))
    }
}

impl Selection {
    /// How many records were chosen.
    pub fn len(&self) -> usize {
        self.chosen.len()
    }

    /// True if none was.
    pub fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// True if all were.
    pub fn is_whole(&self) -> bool {
        usize::try_from(self.header.record_count) == Ok(self.len())
    }

    /// Whether a record without value was chosen.
    pub fn has_tombstone(&self) -> bool {
        self.has_tombstone
    }

    /// A batch of the records chosen, under the codec of the old one. With a `horizon` it says that its
    /// tombstones and markers go after that time; without one it keeps what it said.
    ///
    /// # Errors
    /// [`BatchError::Compressed`] if the codec fails.
    pub fn rewrite(&self, horizon: Option<i64>) -> Result<Bytes, BatchError> {
        let mut header = self.header;
        let mut body = BytesMut::with_capacity(self.body.len());
        for (timestamp, place) in &self.chosen {
            let record = self.body.get(place.clone()).unwrap_or_default();
            match horizon {
                None => body.put_slice(record),
                Some(base) => put_with_delta(&mut body, record, timestamp.wrapping_sub(base)),
            }
        }
        if horizon.is_some() {
            header.set_delete_horizon(horizon);
        }
        if header.timestamp_type() == TimestampType::CreateTime {
            header.max_timestamp = self.chosen.iter().map(|chosen| chosen.0).max().unwrap_or(-1);
        }
        header.record_count = i32::try_from(self.len()).unwrap_or(i32::MAX);
        match header.compression()? {
            Compression::None => Ok(assemble(header, &body)),
            codec => Ok(assemble(header, &codec.compress(&body)?)),
        }
    }
}

impl<'a> RecordRef<'a> {
    fn of(view: &RecordView<'a>) -> Self {
        Self {
            offset: view.time.offset,
            timestamp: view.time.timestamp,
            key: view.key,
            has_value: view.value.is_some(),
        }
    }
}

/// Copies a record, which the walk has found whole, with another timestamp delta.
fn put_with_delta(out: &mut BytesMut, record: &[u8], delta: i64) {
    let mut cursor = Cursor(Cursor(record).bytes().unwrap_or_default());
    let attributes = cursor.byte().unwrap_or_default();
    cursor.varlong();
    put_length(out, 1 + varlong_size(delta) + cursor.0.len());
    out.put_u8(attributes);
    put_varlong(out, delta);
    out.put_slice(cursor.0);
}

/// The batch of a header and its body as it is stored; length and CRC are set.
fn assemble(mut header: BatchHeader, body: &[u8]) -> Bytes {
    header.set_body_size(body.len());
    let mut batch = BytesMut::with_capacity(HEADER_SIZE + body.len());
    batch.put_slice(&header.to_bytes());
    batch.put_slice(body);
    let crc = crc(&batch);
    if let Some(field) = batch.get_mut(CRC_AT..CRC_FROM) {
        field.copy_from_slice(&crc.to_be_bytes());
    }
    batch.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{BatchBuilder, DECOMPRESSED_MAX, Record};
    use super::*;

    fn records(batch: &Batch) -> Vec<Record> {
        batch.verify_crc().unwrap();
        batch.records(DECOMPRESSED_MAX).unwrap().map(Result::unwrap).collect()
    }

    fn greatest(records: &[Record]) -> i64 {
        records.iter().map(|record| record.timestamp).max().unwrap_or(-1)
    }

    prop_compose! {
        fn any_batch()(
            codec in prop::sample::select(&Compression::ALL[..]),
            base in 0..1_000_000i64,
            records in prop::collection::vec(
                (0..2_000_000_000_000i64, prop::option::of("[a-c]{0,3}"), prop::option::of("[x-z]{0,40}")),
                1..12,
            ),
        ) -> Batch {
            let mut builder =
                BatchBuilder::new(codec).base_offset(base).leader_epoch(3).producer(9, 1, 40);
            for (time, key, value) in &records {
                let header = [(Bytes::from_static(b"h"), Some(Bytes::from_static(b"v")))];
                let (key, value) = (key.as_ref(), value.as_ref());
                builder.push(*time, key.map(String::as_bytes), value.map(String::as_bytes), &header);
            }
            Batch::parse(&builder.build().unwrap()).unwrap()
        }
    }

    proptest! {
        #[test]
        fn what_was_chosen_stays_as_it_was(
            batch in any_batch(),
            chosen in any::<u16>(),
            horizon in prop::option::of(0..4_000_000_000_000i64),
        ) {
            let before = records(&batch);
            let mut number = 0u32;
            let selection = batch.select(DECOMPRESSED_MAX, |_| {
                number += 1;
                chosen >> (number - 1) & 1 == 1
            }).unwrap();
            let due: Vec<Record> = before
                .iter()
                .enumerate()
                .filter(|(number, _)| chosen >> number & 1 == 1)
                .map(|(_, record)| record.clone())
                .collect();
            prop_assert_eq!(selection.is_empty(), due.is_empty());
            prop_assert_eq!(selection.is_whole(), due.len() == before.len());
            let tombstone = due.iter().any(|record| record.value.is_none());
            prop_assert_eq!(selection.has_tombstone(), tombstone);
            prop_assume!(!due.is_empty());
            let after = Batch::parse(&selection.rewrite(horizon).unwrap()).unwrap();
            prop_assert_eq!(records(&after), due.clone());
            let (old, new) = (batch.header, after.header);
            prop_assert_eq!(new.delete_horizon(), horizon);
            prop_assert_eq!(new.max_timestamp, greatest(&due));
            prop_assert_eq!(new.record_count as usize, due.len());
            let kept = |header: BatchHeader| (
                header.base_offset, header.last_offset(), header.partition_leader_epoch,
                header.producer_id, header.producer_epoch, header.base_sequence,
                header.compression().unwrap(),
            );
            prop_assert_eq!(kept(new), kept(old));
            // A second pass over what a horizon was set for keeps it.
            let again = after.select(DECOMPRESSED_MAX, |_| true).unwrap().rewrite(None).unwrap();
            let again = Batch::parse(&again).unwrap();
            prop_assert_eq!(again.header.delete_horizon(), horizon);
            prop_assert_eq!(records(&again), due);
        }

        #[test]
        fn an_emptied_batch_keeps_offsets_and_producer(batch in any_batch()) {
            let empty = Batch::parse(&batch.emptied(77)).unwrap();
            prop_assert_eq!(records(&empty), vec![]);
            let (old, new) = (batch.header, empty.header);
            prop_assert_eq!((new.record_count, new.max_timestamp, new.size()), (0, 77, HEADER_SIZE));
            prop_assert_eq!((new.base_offset, new.last_offset()), (old.base_offset, old.last_offset()));
            prop_assert_eq!((new.producer_id, new.base_sequence), (old.producer_id, old.base_sequence));
        }

        #[test]
        fn another_codec_changes_no_record(
            batch in any_batch(),
            codec in prop::sample::select(&Compression::ALL[..]),
        ) {
            let other = batch.recompressed(codec, None, DECOMPRESSED_MAX).unwrap();
            let other = Batch::parse(&other).unwrap();
            prop_assert_eq!(records(&other), records(&batch));
            prop_assert_eq!(other.header.compression().unwrap(), codec);
            prop_assert_eq!(other.header.max_timestamp, batch.header.max_timestamp);
        }
    }
}
