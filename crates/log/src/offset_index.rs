//! The offset index (`.index`): where in a segment an offset lies, one entry every
//! `index.interval.bytes`.

use std::path::Path;

use crate::LogError;
use crate::entry_file::EntryFile;
use crate::fs::FileSystem;

/// Bytes of an entry.
pub(crate) const ENTRY: usize = 8;

/// Kafka's offset index: offset relative to the segment's first, position; both 32 bits, big-endian.
/// An entry names the last offset of a batch and the position where that batch begins.
#[derive(Debug)]
pub(crate) struct OffsetIndex {
    base_offset: i64,
    file: EntryFile<ENTRY>,
}

impl OffsetIndex {
    pub(crate) fn open(
        fs: &dyn FileSystem,
        path: &Path,
        base_offset: i64,
    ) -> Result<Option<Self>, LogError> {
        Ok(EntryFile::open(fs, path)?.map(|file| Self { base_offset, file }))
    }

    /// The position from which a walk finds `offset`.
    pub(crate) fn position_before(&self, offset: i64) -> Result<u64, LogError> {
        let floor = self.file.floor(|entry| self.decode(entry).0 <= offset)?;
        Ok(floor.map_or(0, |entry| self.decode(&entry).1))
    }

    /// The last position at or before `position` where the index knows a batch to begin.
    pub(crate) fn floor_position(&self, position: u64) -> Result<u64, LogError> {
        let floor = self.file.floor(|entry| self.decode(entry).1 <= position)?;
        Ok(floor.map_or(0, |entry| self.decode(&entry).1))
    }

    /// The last entry: last offset of a batch, position where it begins.
    pub(crate) fn last(&self) -> Result<Option<(i64, u64)>, LogError> {
        Ok(self.file.last()?.map(|entry| self.decode(&entry)))
    }

    pub(crate) fn push(&self, last_offset: i64, position: u64) -> Result<(), LogError> {
        self.file.push(encode(self.base_offset, last_offset, position))
    }

    fn decode(&self, entry: &[u8; ENTRY]) -> (i64, u64) {
        let [a, b, c, d, e, f, g, h] = *entry;
        let relative = u32::from_be_bytes([a, b, c, d]);
        (self.base_offset + i64::from(relative), u64::from(u32::from_be_bytes([e, f, g, h])))
    }

    pub(crate) fn file(&self) -> &EntryFile<ENTRY> {
        &self.file
    }
}

/// One entry. Offsets and positions of a segment fit into 31 bits: it is rolled before they do not.
pub(crate) fn encode(base_offset: i64, last_offset: i64, position: u64) -> [u8; ENTRY] {
    let relative = u32::try_from(last_offset - base_offset).unwrap_or(u32::MAX).to_be_bytes();
    let position = u32::try_from(position).unwrap_or(u32::MAX).to_be_bytes();
    let mut entry = [0; ENTRY];
    for (byte, value) in entry.iter_mut().zip(relative.into_iter().chain(position)) {
        *byte = value;
    }
    entry
}
