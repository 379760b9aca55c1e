//! An open file, read on from a position: the blocking half of the source task.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use highwater_connector::{AllowedPaths, ConnectorError, identity};

use crate::error;
use crate::lines::Lines;

/// Bytes asked for at once.
const CHUNK: usize = 256 << 10;

/// Bytes of lines in one batch, from which on it is full.
const BATCH_BYTES: usize = 1 << 20;

/// What a connector reads, and within which bounds.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) path: PathBuf,
    pub(crate) allowed: AllowedPaths,
    /// Lines in one batch.
    pub(crate) batch: usize,
    /// Bytes of the longest line.
    pub(crate) longest: usize,
    /// Key that says so.
    pub(crate) longest_key: &'static str,
}

/// A line, and the position behind it.
pub(crate) type Line = (Arc<str>, u64);

/// Whether a line begins at this byte of the file.
///
/// # Errors
/// When the file must not be opened, or cannot be read.
pub(crate) fn begins_line(path: &Path, allowed: &AllowedPaths, position: u64) -> io::Result<bool> {
    let Some(before) = position.checked_sub(1) else { return Ok(true) };
    let mut file = allowed.open(path, OpenOptions::new().read(true))?;
    file.seek(SeekFrom::Start(before))?;
    let mut around = Vec::new();
    file.take(2).read_to_end(&mut around)?;
    Ok(match around.as_slice() {
        [b'\n', ..] => true,
        // Both make one end.
        [b'\r', after, ..] => *after != b'\n',
        _ => false,
    })
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Reader {
    bounds: Bounds,
    file: File,
    /// Where the next line begins.
    position: u64,
    lines: Lines,
    chunk: Box<[u8]>,
}

impl Reader {
    /// Opens the file where `position` says; `None` while it is not there.
    ///
    /// # Errors
    /// When it must not be opened, cannot be, or ends before the position.
    pub(crate) fn open(bounds: Bounds, position: u64) -> Result<Option<Self>, ConnectorError> {
        let path = &bounds.path;
        let failed = |error: &std::io::Error| error::failed(path, "read", error);
        let mut file = match bounds.allowed.open(path, OpenOptions::new().read(true)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| failed(&error))?,
        };
        let length = file.metadata().map_err(|error| failed(&error))?.len();
        if length < position {
            return Err(error::truncated(path, position, length));
        }
        file.seek(SeekFrom::Start(position)).map_err(|error| failed(&error))?;
        let chunk = vec![0; CHUNK].into_boxed_slice();
        Ok(Some(Self { bounds, file, position, lines: Lines::default(), chunk }))
    }

    /// The next lines, none at the end of the file.
    ///
    /// # Errors
    /// When the file was cut or exchanged, or a line cannot be delivered. Lines before that one come
    /// first.
    pub(crate) fn read(&mut self) -> Result<Vec<Line>, ConnectorError> {
        let mut lines = Vec::new();
        let mut bytes = 0;
        while lines.len() < self.bounds.batch && bytes < BATCH_BYTES {
            match self.next_line() {
                Ok(Some(line)) => {
                    bytes += line.0.len();
                    lines.push(line);
                }
                // The line is asked for again with the next batch.
                Err(_) if !lines.is_empty() => break,
                Err(error) => return Err(error),
                Ok(None) if self.fill()? => {}
                Ok(None) => break,
            }
        }
        if lines.is_empty() {
            self.check_end()?;
        }
        Ok(lines)
    }

    fn next_line(&mut self) -> Result<Option<Line>, ConnectorError> {
        let Bounds { path, longest, longest_key, .. } = &self.bounds;
        let begin = self.position;
        let unfinished = self.lines.unfinished();
        let Some((line, taken)) = self.lines.peek() else {
            return match unfinished > *longest {
                true => Err(error::too_long(path, begin, longest_key, *longest)),
                false => Ok(None),
            };
        };
        if line.len() > *longest {
            return Err(error::too_long(path, begin, longest_key, *longest));
        }
        let Ok(line) = std::str::from_utf8(line) else {
            return Err(error::not_text(path, begin));
        };
        let line = Arc::from(line);
        self.lines.pass(taken);
        self.position += taken as u64;
        Ok(Some((line, self.position)))
    }

    /// Reads on; false at the end of the file.
    fn fill(&mut self) -> Result<bool, ConnectorError> {
        let read = self.file.read(&mut self.chunk);
        let read = read.map_err(|error| error::failed(&self.bounds.path, "read", &error))?;
        self.lines.push(self.chunk.get(..read).unwrap_or_default());
        Ok(read > 0)
    }

    /// Whether the end of the file is the end of what bears its name.
    fn check_end(&self) -> Result<(), ConnectorError> {
        let path = &self.bounds.path;
        let open = self.file.metadata().map_err(|error| error::failed(path, "read", &error))?;
        let read_to = self.position + self.lines.unfinished() as u64;
        if open.len() < read_to {
            return Err(error::truncated(path, read_to, open.len()));
        }
        match path.metadata() {
            Ok(found) if identity(&found) != identity(&open) => {
                Err(error::replaced(path, self.position))
            }
            // One that was removed is read on, as whoever still writes to it wants it.
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    struct Bench {
        dir: tempfile::TempDir,
    }

    impl Bench {
        fn new(text: &[u8]) -> Self {
            let bench = Self { dir: tempfile::tempdir().unwrap() };
            std::fs::write(bench.path(), text).unwrap();
            bench
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join("lines")
        }

        fn open(&self, position: u64) -> Result<Option<Reader>, ConnectorError> {
            let allowed = AllowedPaths::new("the.setting", [self.dir.path().to_owned()]);
            let (batch, longest, longest_key) = (3, 10, "line.max.bytes");
            Reader::open(
                Bounds { path: self.path(), allowed, batch, longest, longest_key },
                position,
            )
        }

        fn reader(&self) -> Reader {
            self.open(0).unwrap().unwrap()
        }

        fn append(&self, text: &[u8]) {
            let mut file = OpenOptions::new().append(true).open(self.path()).unwrap();
            file.write_all(text).unwrap();
        }
    }

    fn line(text: &str, position: u64) -> Line {
        (text.into(), position)
    }

    #[test]
    fn lines_come_in_batches_with_the_position_behind_each() {
        let bench = Bench::new("a\nb\nč\nd\nunfinished".as_bytes());
        let mut reader = bench.reader();
        assert_eq!(reader.read().unwrap(), [line("a", 2), line("b", 4), line("č", 7)]);
        assert_eq!(reader.read().unwrap(), [line("d", 9)]);
        assert_eq!(reader.read().unwrap(), []);
        bench.append(b"\n");
        assert_eq!(reader.read().unwrap(), [line("unfinished", 20)]);
        let mut later = bench.open(7).unwrap().unwrap();
        assert_eq!(later.read().unwrap()[0], line("d", 9));
    }

    #[test]
    fn a_file_that_was_cut_stops_by_name_at_the_start_and_while_it_is_read() {
        let bench = Bench::new(b"a\nb\n");
        assert_eq!(bench.open(5).unwrap_err().code, "FILE_TRUNCATED");
        let mut reader = bench.reader();
        reader.read().unwrap();
        std::fs::write(bench.path(), "c\n").unwrap();
        let error = reader.read().unwrap_err();
        assert_eq!(error.code, "FILE_TRUNCATED");
        assert!(error.what.contains("holds 2 bytes, but was read up to byte 4"), "{error}");
    }

    #[test]
    fn a_file_that_was_exchanged_is_read_to_its_end_and_then_stops_by_name() {
        let bench = Bench::new(b"a\n");
        let mut reader = bench.reader();
        std::fs::rename(bench.path(), bench.dir.path().join("rotated")).unwrap();
        assert_eq!(reader.read().unwrap(), [line("a", 2)]);
        assert_eq!(reader.read().unwrap(), [], "no other bears its name yet");
        std::fs::write(bench.path(), "c\n").unwrap();
        assert_eq!(reader.read().unwrap_err().code, "FILE_REPLACED");
    }

    #[test]
    fn what_cannot_be_delivered_stops_by_name_behind_what_can() {
        let bench = Bench::new(b"a\n\xff\n");
        let mut reader = bench.reader();
        assert_eq!(reader.read().unwrap(), [line("a", 2)]);
        for _ in 0..2 {
            assert_eq!(reader.read().unwrap_err().code, "FILE_NOT_TEXT", "and stays so");
        }
        let bench = Bench::new(b"a\nlonger than ten");
        let mut reader = bench.reader();
        assert_eq!(reader.read().unwrap(), [line("a", 2)]);
        let error = reader.read().unwrap_err();
        assert_eq!(error.code, "FILE_LINE_TOO_LONG");
        assert!(error.what.contains("begins at byte 2"), "{error}");
        assert!(error.what.contains("line.max.bytes, which is 10"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_there_is_waited_for() {
        let bench = Bench::new(b"");
        std::fs::remove_file(bench.path()).unwrap();
        assert!(bench.open(0).unwrap().is_none());
        std::fs::write(bench.path(), "a\n").unwrap();
        assert!(bench.open(0).unwrap().is_some());
    }
}
