//! The time index (`.timeindex`): the greatest timestamp up to an offset.

use std::path::Path;

use crate::LogError;
use crate::entry_file::EntryFile;
use crate::fs::FileSystem;

/// Bytes of an entry.
pub(crate) const ENTRY: usize = 12;

/// The greatest timestamp of a segment so far, and where it was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Greatest {
    /// In milliseconds; -1 as long as no record bears one.
    pub(crate) timestamp: i64,
    /// Last offset of the first batch that reached it. Kafka calls this shallow: the record itself is
    /// found in that batch when somebody asks (since 3.8, KAFKA-16310).
    pub(crate) last_offset: i64,
    /// Position of that batch; None if only the index told and nobody asked yet.
    pub(crate) position: Option<u64>,
}

/// Kafka's time index: timestamp (64 bits), then offset relative to the segment's first (32 bits), both
/// big-endian and rising. An entry says: up to that offset nothing is later than that time.
#[derive(Debug)]
pub(crate) struct TimeIndex {
    base_offset: i64,
    file: EntryFile<ENTRY>,
}

impl TimeIndex {
    pub(crate) fn open(
        fs: &dyn FileSystem,
        path: &Path,
        base_offset: i64,
    ) -> Result<Option<Self>, LogError> {
        Ok(EntryFile::open(fs, path)?.map(|file| Self { base_offset, file }))
    }

    /// The last entry at or before `timestamp`: nothing up to its offset is later than its time.
    pub(crate) fn offset_before(&self, timestamp: i64) -> Result<Option<i64>, LogError> {
        let floor = self.file.floor(|entry| self.decode(entry).0 <= timestamp)?;
        Ok(floor.map(|entry| self.decode(&entry).1))
    }

    /// What the last entry says.
    pub(crate) fn last(&self) -> Result<Option<Greatest>, LogError> {
        Ok(self.file.last()?.map(|entry| {
            let (timestamp, last_offset) = self.decode(&entry);
            Greatest { timestamp, last_offset, position: None }
        }))
    }

    /// Appends an entry unless the last one says as much.
    pub(crate) fn push(&self, greatest: Greatest) -> Result<(), LogError> {
        if self.last()?.map_or(-1, |last| last.timestamp) >= greatest.timestamp {
            return Ok(());
        }
        self.file.push(encode(self.base_offset, greatest))
    }

    fn decode(&self, entry: &[u8; ENTRY]) -> (i64, i64) {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *entry;
        let relative = u32::from_be_bytes([i, j, k, l]);
        (i64::from_be_bytes([a, b, c, d, e, f, g, h]), self.base_offset + i64::from(relative))
    }

    pub(crate) fn file(&self) -> &EntryFile<ENTRY> {
        &self.file
    }
}

/// One entry.
pub(crate) fn encode(base_offset: i64, greatest: Greatest) -> [u8; ENTRY] {
    let relative =
        u32::try_from(greatest.last_offset - base_offset).unwrap_or(u32::MAX).to_be_bytes();
    let mut entry = [0; ENTRY];
    let bytes = greatest.timestamp.to_be_bytes().into_iter().chain(relative);
    for (byte, value) in entry.iter_mut().zip(bytes) {
        *byte = value;
    }
    entry
}
