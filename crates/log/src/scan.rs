//! Going through the batches of a segment from front to back, through one window of memory.

use std::path::Path;

use highwater_protocol::records::{BatchHeader, HEADER_SIZE};

use crate::LogError;
use crate::fs::File;

/// Bytes read at a time. A batch may be larger: then its checksum is computed piece by piece.
const WINDOW: u64 = 256 * 1024;

/// The first byte that a batch's CRC covers; the CRC itself stands before it.
const CRC_FROM: u64 = 21;

/// How often a search for a batch may read everything over again.
const PATIENCE: u64 = 8;

/// What stands at a position.
#[derive(Debug)]
pub(crate) enum Step {
    /// A whole batch.
    Batch { header: BatchHeader, position: u64 },
    /// The end.
    End,
    /// Bytes that are no whole batch.
    Broken { position: u64, reason: String },
}

/// Whether content is checked or only headers are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    Headers,
    Checksums,
}

/// A walk over `position..end` of a file of batches.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    path: &'a Path,
    file: &'a dyn File,
    depth: Depth,
    position: u64,
    end: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        path: &'a Path,
        file: &'a dyn File,
        depth: Depth,
        from: u64,
        end: u64,
    ) -> Self {
        Self { path, file, depth, position: from, end, window: Vec::new(), window_at: from }
    }

    /// The next batch.
    pub(crate) fn step(&mut self) -> Result<Step, LogError> {
        let position = self.position;
        let left = self.end.saturating_sub(position);
        if left == 0 {
            return Ok(Step::End);
        }
        let front = self.bytes(position, left.min(HEADER_SIZE as u64))?;
        let header = match BatchHeader::parse(front) {
            Ok(header) => header,
            Err(error) => return Ok(Step::Broken { position, reason: error.to_string() }),
        };
        let size = header.size() as u64;
        if size > left {
            let reason = format!("a batch of {size} bytes begins where only {left} are left");
            return Ok(Step::Broken { position, reason });
        }
        if self.depth == Depth::Checksums
            && self.checksum(position + CRC_FROM, position + size)? != header.crc
        {
            return Ok(Step::Broken { position, reason: "its checksum is wrong".to_owned() });
        }
        self.position += size;
        Ok(Step::Batch { header, position })
    }

    /// Whether a whole batch of an offset above `offset` begins at `from` or anywhere behind it. True also
    /// where that would take too long to tell: bytes can be made to look like many large batches.
    pub(crate) fn holds_batch(&mut self, from: u64, offset: i64) -> Result<bool, LogError> {
        let mut patience = (self.end.saturating_sub(from)).max(WINDOW) * PATIENCE;
        for position in from..(self.end + 1).saturating_sub(HEADER_SIZE as u64) {
            let front = self.bytes(position, HEADER_SIZE as u64)?;
            let Ok(header) = BatchHeader::parse(front) else { continue };
            let size = header.size() as u64;
            if header.base_offset <= offset || size > self.end - position {
                continue;
            }
            if self.checksum(position + CRC_FROM, position + size)? == header.crc {
                return Ok(true);
            }
            // The window was filled twice for it at least.
            let Some(left) = patience.checked_sub(size + WINDOW) else { return Ok(true) };
            patience = left;
        }
        Ok(false)
    }

    fn checksum(&mut self, from: u64, to: u64) -> Result<u32, LogError> {
        let (mut sum, mut position) = (0, from);
        while position < to {
            let piece = self.bytes(position, (to - position).min(WINDOW))?;
            sum = crc32c::crc32c_append(sum, piece);
            position += piece.len() as u64;
        }
        Ok(sum)
    }

    /// `len` bytes at `position`; at most [`WINDOW`], and within the file.
    fn bytes(&mut self, position: u64, len: u64) -> Result<&[u8], LogError> {
        let held = self.window_at..self.window_at + self.window.len() as u64;
        if position < held.start || position + len > held.end {
            self.fill(position)?;
        }
        let from = usize::try_from(position - self.window_at).unwrap_or(usize::MAX);
        let to = from.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
        self.window.get(from..to).ok_or_else(|| LogError::Damaged {
            path: self.path.to_owned(),
            position,
            reason: "it became shorter while it was read".to_owned(),
        })
    }

    fn fill(&mut self, position: u64) -> Result<(), LogError> {
        let wanted = self.end.saturating_sub(position).min(WINDOW);
        self.window.resize(usize::try_from(wanted).unwrap_or(0), 0);
        self.window_at = position;
        let read = self
            .file
            .read_at(&mut self.window, position)
            .map_err(LogError::io("read", self.path))?;
        self.window.truncate(read);
        Ok(())
    }
}
