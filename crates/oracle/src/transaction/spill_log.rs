//! The changes and undos of one transaction in their order: the newest in memory, and older ones in a
//! file once the transaction was spilled.

use std::ops::Range;

use super::spill_file::{SpillDirectory, SpillError, SpillFile};
use super::spill_frame::{Frame, Head, TableDictionary, encode_change, encode_undo};
use super::spill_reader::{FrameReader, InFile, damaged};
use super::survivors::{Blocks, Mark};
use super::undo::{ChangeKey, Undo};
use crate::{Change, OracleError, TransactionKey};

/// A spilled transaction gathers so much before it writes.
const WRITE_BYTES: usize = if cfg!(test) { 300 } else { 64 << 10 };

/// Frames are read back from the newest in blocks of about so many bytes.
const BLOCK_BYTES: u64 = if cfg!(test) { 400 } else { 64 << 10 };

/// About what a table costs in a dictionary.
const TABLE_BYTES: usize = 48;

/// Frames in their order. An offset counts the bytes of all frames before; it does not change when
/// frames move to the file.
#[derive(Debug, Default)]
pub(super) struct FrameLog {
    file: Option<SpillFile>,
    memory: Vec<u8>,
    tables: TableDictionary,
    changes: u64,
    undos: u64,
    longest: u64,
    /// Starts of the blocks after the first, which starts at 0.
    blocks: Vec<BlockStart>,
}

#[derive(Clone, Copy, Debug, Default)]
struct BlockStart {
    offset: u64,
    /// Number of the first change from there on.
    change: u64,
}

impl FrameLog {
    /// How many changes there are, taken back or not.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// How many undos there are.
    pub(super) const fn undos(&self) -> u64 {
        self.undos
    }

    /// Bytes of all frames.
    pub(super) fn len(&self) -> u64 {
        self.spilled() + self.memory.len() as u64
    }

    /// Bytes in the file.
    pub(super) fn spilled(&self) -> u64 {
        self.file.as_ref().map_or(0, SpillFile::len)
    }

    /// Bytes that moving to the file would free.
    pub(super) const fn spillable(&self) -> usize {
        self.memory.len()
    }

    /// Bytes of memory.
    pub(super) const fn memory(&self) -> usize {
        self.memory.capacity()
            + self.blocks.capacity() * size_of::<BlockStart>()
            + self.tables.len() * TABLE_BYTES
    }

    /// Adds a change.
    pub(super) fn push(&mut self, change: &Change) {
        self.start_block();
        let before = self.memory.len();
        encode_change(change, &mut self.tables, &mut self.memory);
        self.changes += 1;
        self.longest = self.longest.max((self.memory.len() - before) as u64);
    }

    /// Adds an undo.
    pub(super) fn push_undo(&mut self, undo: &Undo) {
        let before = self.memory.len();
        encode_undo(undo, &mut self.tables, &mut self.memory);
        self.undos += 1;
        self.longest = self.longest.max((self.memory.len() - before) as u64);
    }

    fn start_block(&mut self) {
        let last = self.blocks.last().copied().unwrap_or_default();
        let offset = self.len();
        if offset - last.offset >= BLOCK_BYTES {
            self.blocks.push(BlockStart { offset, change: self.changes });
        }
    }

    /// Whether a spilled transaction has gathered enough to write.
    pub(super) const fn is_write_due(&self) -> bool {
        self.file.is_some() && self.memory.len() >= WRITE_BYTES
    }

    /// Moves all frames to the file.
    pub(super) fn spill(
        &mut self,
        key: TransactionKey,
        directory: &mut SpillDirectory,
    ) -> Result<(), SpillError> {
        let file = self.file.get_or_insert_with(|| directory.file(key));
        file.append(&self.memory)?;
        self.memory.clear();
        self.memory.shrink_to(WRITE_BYTES);
        Ok(())
    }

    /// Frames from an offset at which one begins.
    pub(super) fn read(&self, offset: u64) -> Result<Frames<'_>, OracleError> {
        let at = offset.saturating_sub(self.spilled()) as usize;
        let reader = FrameReader::new(in_file(&self.file, offset, self.longest), &self.memory, at)?;
        Ok(Frames { reader, tables: &self.tables })
    }

    /// Takes the log apart for reading it once from the first.
    pub(super) fn into_changes(self) -> Result<LoggedChanges, OracleError> {
        let reader = FrameReader::new(in_file(&self.file, 0, self.longest), self.memory, 0)?;
        Ok(LoggedChanges { reader, tables: self.tables, _file: self.file })
    }

    fn block_start(&self, block: usize) -> BlockStart {
        block.checked_sub(1).map_or(BlockStart::default(), |index| self.blocks[index])
    }
}

fn in_file(file: &Option<SpillFile>, offset: u64, longest: u64) -> Option<InFile<'_>> {
    file.as_ref().map(|file| InFile { file, offset, longest })
}

impl Blocks for FrameLog {
    fn blocks(&self) -> usize {
        self.blocks.len() + 1
    }

    fn numbers(&self, block: usize) -> Range<u64> {
        let end = self.blocks.get(block).map_or(self.changes, |next| next.change);
        self.block_start(block).change..end
    }

    fn marks(&self, block: usize) -> Result<Vec<Mark>, OracleError> {
        let BlockStart { offset, change } = self.block_start(block);
        let end = self.blocks.get(block).map_or(self.len(), |next| next.offset);
        let (mut frames, mut number, mut marks) = (self.read(offset)?, change, Vec::new());
        let mut at = offset;
        while at < end {
            let (mark, length) = frames.next_mark(number)?;
            number += u64::from(matches!(mark, Mark::Change(_)));
            marks.push(mark);
            at += length;
        }
        Ok(marks)
    }
}

/// The changes of a log that is read once; its file is removed when this is dropped.
#[derive(Debug)]
pub(super) struct LoggedChanges {
    reader: FrameReader<Vec<u8>>,
    tables: TableDictionary,
    _file: Option<SpillFile>,
}

impl LoggedChanges {
    /// The next change that is wanted: each is asked for, in order. What is not wanted is not decoded.
    pub(super) fn next_wanted(
        &mut self,
        mut is_wanted: impl FnMut() -> bool,
    ) -> Result<Option<Change>, OracleError> {
        while let Some(payload) = self.reader.next_payload()? {
            if Head::is_undo(payload) || !is_wanted() {
                continue;
            }
            let frame = Frame::from_payload(payload, &self.tables);
            if let Frame::Change(change) = frame.map_err(|error| damaged("its frames", error))? {
                return Ok(Some(change));
            }
        }
        Ok(None)
    }
}

/// Frames of a transaction, oldest first: changes, also those that were taken back since, and undos.
#[derive(Debug)]
pub struct Frames<'a> {
    reader: FrameReader<&'a Vec<u8>>,
    tables: &'a TableDictionary,
}

impl Frames<'_> {
    /// What the next frame names, and its length.
    fn next_mark(&mut self, number: u64) -> Result<(Mark, u64), OracleError> {
        let payload = self.reader.next_payload()?;
        let payload = payload.ok_or_else(|| damaged("its frames", "some are missing"))?;
        let head = Head::of(payload).map_err(|error| damaged("its frames", error))?;
        let (verb, image, row_id) = (head.verb, head.image, head.row_id.into());
        let mark = if head.is_undo {
            Mark::Undo { verb, row_id }
        } else {
            let table = self.tables.name(head.table).cloned();
            let table = table.ok_or_else(|| damaged("its frames", "a table is not known"))?;
            Mark::Change(ChangeKey { number, verb, image, table, row_id })
        };
        Ok((mark, Head::frame_length(payload)))
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, OracleError> {
        let Some(payload) = self.reader.next_payload()? else { return Ok(None) };
        let frame = Frame::from_payload(payload, self.tables);
        frame.map(Some).map_err(|error| damaged("its frames", error))
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Frame, OracleError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_frame().transpose()
    }
}
