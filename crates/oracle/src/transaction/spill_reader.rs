//! Reads frames back: first those in a file, then those in memory.

use std::fs::File;
use std::io::{BufReader, Read};

use super::spill_file::SpillFile;
use super::spill_frame::{FrameError, HEADER, check_payload, read_header, split_frame};
use crate::{Code, OracleError};

const READ_BYTES: usize = 64 << 10;

/// Payloads of frames, checked, from the first to the last. `M` holds those in memory.
#[derive(Debug)]
pub(super) struct FrameReader<M> {
    file: Option<FilePart>,
    memory: M,
    at: usize,
    has_failed: bool,
}

#[derive(Debug)]
struct FilePart {
    reader: BufReader<File>,
    name: String,
    left: u64,
    longest: u64,
    payload: Vec<u8>,
}

/// Where frames lie in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFile<'a> {
    /// The file.
    pub(super) file: &'a SpillFile,
    /// Where the first of them begins.
    pub(super) offset: u64,
    /// Length of the longest payload that was written: no damaged length makes us ask for more.
    pub(super) longest: u64,
}

impl<M: AsRef<[u8]>> FrameReader<M> {
    /// A reader of a file, and of memory from `at` on behind it.
    pub(super) fn new(file: Option<InFile<'_>>, memory: M, at: usize) -> Result<Self, OracleError> {
        let file = file.filter(|part| part.offset < part.file.len());
        let file = file.map(FilePart::open).transpose()?;
        Ok(Self { file, memory, at, has_failed: false })
    }

    /// The next payload; `None` at the end, and after an error.
    pub(super) fn next_payload(&mut self) -> Result<Option<&[u8]>, OracleError> {
        if self.has_failed {
            return Ok(None);
        }
        let read = match &mut self.file {
            Some(file) if file.left > 0 => file.read(),
            _ => next_in_memory(self.memory.as_ref(), &mut self.at),
        };
        self.has_failed = read.is_err();
        read
    }
}

fn next_in_memory<'a>(memory: &'a [u8], at: &mut usize) -> Result<Option<&'a [u8]>, OracleError> {
    let mut rest = &memory[*at..];
    if rest.is_empty() {
        return Ok(None);
    }
    let payload = split_frame(&mut rest).map_err(|error| damaged("memory", error))?;
    *at = memory.len() - rest.len();
    Ok(Some(payload))
}

impl FilePart {
    fn open(part: InFile<'_>) -> Result<Self, OracleError> {
        let InFile { file, offset, longest } = part;
        let opened = file.open(offset).map_err(|error| damaged(&file.name(), error))?;
        let reader = BufReader::with_capacity(READ_BYTES, opened);
        let left = file.len() - offset;
        Ok(Self { reader, name: file.name(), left, longest, payload: Vec::new() })
    }

    fn read(&mut self) -> Result<Option<&[u8]>, OracleError> {
        let mut header = [0; HEADER];
        self.reader.read_exact(&mut header).map_err(|error| damaged(&self.name, error))?;
        let (length, checksum) = read_header(&header);
        let rest = self.left.saturating_sub(HEADER as u64);
        if length > rest.min(self.longest) {
            return Err(damaged(&self.name, FrameError::Cut));
        }
        self.left = rest - length;
        self.payload.resize(length as usize, 0);
        self.reader.read_exact(&mut self.payload).map_err(|error| damaged(&self.name, error))?;
        check_payload(&self.payload, checksum).map_err(|error| damaged(&self.name, error))?;
        Ok(Some(&self.payload))
    }
}

/// The error of frames that cannot be read back.
pub(super) fn damaged(place: &str, why: impl std::fmt::Display) -> OracleError {
    OracleError::new(
        Code::Corruption,
        format!("changes of an open transaction cannot be read back from {place}: {why}"),
        "check the volume of cdc.buffer.spill.dir, then restart the task: it reads the redo again",
    )
}
