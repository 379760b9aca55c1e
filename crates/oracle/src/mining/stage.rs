//! The rows of a step between reading and applying.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::{Code, OracleError};

use super::row_codec;
use super::staged_row::StagedRow;

/// Bytes in front of each frame: its length and its checksum.
const HEAD: usize = 8;

/// Collects the rows of a step. A step is applied only when it was read whole, so that one that fails
/// in its middle leaves nothing behind. Above the bound rows go to a file without a name, which is gone
/// with the process.
#[derive(Debug)]
pub struct Stage {
    memory: VecDeque<StagedRow>,
    bytes: usize,
    max_bytes: usize,
    directory: Option<PathBuf>,
    file: Option<Overflow>,
}

#[derive(Debug)]
struct Overflow {
    file: BufWriter<File>,
    rows: u64,
    frame: Vec<u8>,
}

impl Stage {
    /// An empty stage. Its file, if it needs one, is made in this directory, or where the system has
    /// its temporary files.
    pub const fn new(max_bytes: usize, directory: Option<PathBuf>) -> Self {
        Self { memory: VecDeque::new(), bytes: 0, max_bytes, directory, file: None }
    }

    /// Takes the next row.
    ///
    /// # Errors
    /// CDC-4001 if the file cannot be written.
    pub fn push(&mut self, row: StagedRow) -> Result<(), OracleError> {
        let bytes = row.row().bytes();
        if self.file.is_none() && self.bytes + bytes <= self.max_bytes {
            self.bytes += bytes;
            self.memory.push_back(row);
            return Ok(());
        }
        self.write(&row).map_err(|error| unwritable(self.directory.as_deref(), &error))
    }

    fn write(&mut self, row: &StagedRow) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(Overflow::new(self.directory.as_deref())?);
        }
        self.file.as_mut().map_or(Ok(()), |file| file.write(row))
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.file.is_none()
    }

    /// Bytes of memory that rows take.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rows, to be read once.
    ///
    /// # Errors
    /// CDC-4001 if the file cannot be written.
    pub fn finish(self) -> Result<StagedRows, OracleError> {
        let directory = self.directory;
        let file = self.file.map(Overflow::finish).transpose();
        let file = file.map_err(|error| unwritable(directory.as_deref(), &error))?;
        Ok(StagedRows { memory: self.memory, file })
    }
}

fn unwritable(directory: Option<&Path>, error: &io::Error) -> OracleError {
    let place = directory.map_or("the system's temporary directory".into(), Path::to_string_lossy);
    OracleError::new(
        Code::BufferExhausted,
        format!("the rows of a step cannot be written to {place}: {error}"),
        "give its volume more space, or set cdc.buffer.spill.dir to another one",
    )
}

impl Overflow {
    fn new(directory: Option<&Path>) -> io::Result<Self> {
        let file = match directory {
            Some(directory) => tempfile::tempfile_in(directory)?,
            None => tempfile::tempfile()?,
        };
        Ok(Self { file: BufWriter::new(file), rows: 0, frame: Vec::new() })
    }

    fn write(&mut self, row: &StagedRow) -> io::Result<()> {
        self.frame.clear();
        row_codec::encode(row, &mut self.frame);
        let length = u32::try_from(self.frame.len()).map_err(io::Error::other)?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&checksum(length, &self.frame).to_le_bytes())?;
        self.file.write_all(&self.frame)?;
        self.rows += 1;
        Ok(())
    }

    fn finish(self) -> io::Result<Frames> {
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let bytes = file.stream_position()?;
        file.rewind()?;
        Ok(Frames { file: BufReader::new(file), bytes, rows: self.rows })
    }
}

/// Of the length, too: a damaged one must not be believed.
fn checksum(length: u32, frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length.to_le_bytes()), frame)
}

/// The rows of a step in the order in which they were staged. They are read once.
#[derive(Debug)]
pub struct StagedRows {
    memory: VecDeque<StagedRow>,
    file: Option<Frames>,
}

#[derive(Debug)]
struct Frames {
    file: BufReader<File>,
    /// Bytes that are left.
    bytes: u64,
    /// Rows that are left.
    rows: u64,
}

impl StagedRows {
    /// How many rows are left.
    pub fn len(&self) -> u64 {
        self.memory.len() as u64 + self.file.as_ref().map_or(0, |file| file.rows)
    }

    /// Whether no rows are left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Iterator for StagedRows {
    type Item = Result<StagedRow, OracleError>;

    /// CDC-3002 if the file is not what was written.
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.memory.pop_front() {
            return Some(Ok(row));
        }
        let file = self.file.as_mut().filter(|file| file.rows > 0)?;
        let row = file.read();
        file.rows = if row.is_ok() { file.rows - 1 } else { 0 };
        Some(row.map_err(|what| damaged(&what)))
    }
}

impl Frames {
    fn read(&mut self) -> Result<StagedRow, String> {
        let mut head = [0; HEAD];
        self.fill(&mut head)?;
        let [a, b, c, d, e, f, g, h] = head;
        let (length, sum) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if u64::from(length) > self.bytes {
            return Err(format!("a frame of {length} bytes, where {} are left", self.bytes));
        }
        let mut frame = vec![0; length as usize];
        self.fill(&mut frame)?;
        match checksum(length, &frame) == sum {
            true => row_codec::decode(&frame).ok_or_else(|| "a frame that is no row".to_owned()),
            false => Err("a frame with a wrong checksum".to_owned()),
        }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), String> {
        self.file.read_exact(buffer).map_err(|error| error.to_string())?;
        self.bytes = self.bytes.saturating_sub(buffer.len() as u64);
        Ok(())
    }
}

fn damaged(what: &str) -> OracleError {
    OracleError::new(
        Code::Corruption,
        format!("the file with the rows of a step is damaged: {what}"),
        "check the volume of cdc.buffer.spill.dir and restart the task: the step is read again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mining::row_codec::tests::any_row;
    use proptest::prelude::*;
    use std::io::SeekFrom;

    fn staged(rows: &[StagedRow], max_bytes: usize) -> Stage {
        let mut stage = Stage::new(max_bytes, None);
        rows.iter().for_each(|row| stage.push(row.clone()).unwrap());
        stage
    }

    fn some_rows(count: u64) -> Vec<StagedRow> {
        let row = |number| {
            let key = crate::mining::fake::transaction(1);
            let operation = crate::row::Operation::Insert;
            StagedRow::Whole(crate::mining::fake::row(1, number, number, operation, key))
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn memory_holds_what_it_may_and_the_file_the_rest() {
        let rows = some_rows(10);
        let max_bytes = rows[0].row().bytes() * 3;
        let stage = staged(&rows, max_bytes);
        assert_eq!((stage.memory.len(), stage.bytes()), (3, max_bytes));
        let read = stage.finish().unwrap();
        assert_eq!(read.len(), 10);
        assert_eq!(read.collect::<Result<Vec<_>, _>>().unwrap(), rows);
    }

    #[test]
    fn once_there_is_a_file_smaller_rows_go_to_it_too() {
        let mut rows = some_rows(3);
        let max_bytes = rows[0].row().bytes() * 2;
        let StagedRow::Whole(large) = &mut rows[1] else { unreachable!() };
        large.sql_redo = Some("x".repeat(max_bytes));
        let read = staged(&rows, max_bytes).finish().unwrap();
        assert_eq!(read.collect::<Result<Vec<_>, _>>().unwrap(), rows);
    }

    /// Changes the file behind the back of the rows.
    fn damage(rows: &mut StagedRows, change: impl FnOnce(&mut File)) {
        let file = rows.file.as_mut().unwrap().file.get_mut();
        change(file);
        file.rewind().unwrap();
    }

    fn first_error(rows: StagedRows) -> OracleError {
        let read: Vec<_> = rows.collect();
        assert!(read[..read.len() - 1].iter().all(Result::is_ok));
        read.into_iter().next_back().unwrap().unwrap_err()
    }

    #[test]
    fn a_changed_byte_anywhere_is_damage_and_ends_the_rows() {
        let length = {
            let rows = staged(&some_rows(2), 0).finish().unwrap();
            rows.file.unwrap().bytes
        };
        for at in 0..length {
            let mut rows = staged(&some_rows(2), 0).finish().unwrap();
            damage(&mut rows, |file| {
                let mut byte = [0];
                file.seek(SeekFrom::Start(at)).unwrap();
                file.read_exact(&mut byte).unwrap();
                file.seek(SeekFrom::Start(at)).unwrap();
                file.write_all(&[byte[0] ^ 0x41]).unwrap();
            });
            assert_eq!(first_error(rows).code, Code::Corruption, "byte {at}");
        }
    }

    #[test]
    fn a_file_that_was_cut_is_damage() {
        let mut rows = staged(&some_rows(2), 0).finish().unwrap();
        damage(&mut rows, |file| {
            let length = file.metadata().unwrap().len();
            file.set_len(length - 1).unwrap();
        });
        assert_eq!(first_error(rows).code, Code::Corruption);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let mut stage = Stage::new(0, Some("/nowhere/at/all".into()));
        let error = stage.push(some_rows(1).remove(0)).unwrap_err();
        assert_eq!(error.code, Code::BufferExhausted);
        assert!(error.what.contains("/nowhere/at/all"));
    }

    proptest! {
        #[test]
        fn rows_come_back_in_order_within_the_bound(
            rows in prop::collection::vec(any_row(), 0..20), max_bytes in 0_usize..4000,
        ) {
            let stage = staged(&rows, max_bytes);
            let held: usize = stage.memory.iter().map(|row| row.row().bytes()).sum();
            prop_assert!(held <= max_bytes && held == stage.bytes());
            let read: Result<Vec<_>, _> = stage.finish().unwrap().collect();
            prop_assert_eq!(read.unwrap(), rows);
        }
    }
}
