//! Files for what does not fit the memory: one a transaction, removed when it is dropped.
//!
//! They are no durable state, and are not synced: a restart reads the redo again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::meter::{Held, Meter};
use crate::TransactionKey;

/// The suffix by which a directory's own files are known.
const SUFFIX: &str = "spill";

/// Where spill files are made, and how much they may hold in all.
#[derive(Debug)]
pub(super) struct SpillDirectory {
    path: PathBuf,
    max_bytes: u64,
    used: Meter,
    made: u64,
}

/// Why bytes could not be moved to disk.
#[derive(Debug, Error)]
pub(super) enum SpillError {
    /// The bound of all files is reached.
    #[error("{wanted} bytes more would make {} of {max} bytes", used + wanted)]
    Full {
        /// Bytes of all files.
        used: u64,
        /// Bytes that should be added.
        wanted: u64,
        /// The bound.
        max: u64,
    },
    /// The volume is full, or fails.
    #[error("{path}: {error}")]
    Io {
        /// The file or directory.
        path: String,
        /// What the system says.
        error: io::Error,
    },
}

impl SpillDirectory {
    /// Makes the directory where it is not, and removes the files that an earlier start left there.
    pub(super) fn open(path: &Path, max_bytes: u64) -> Result<Self, SpillError> {
        let open = || {
            fs::create_dir_all(path)?;
            fs::read_dir(path)?.try_for_each(|file| remove_stale(&file?.path()))
        };
        open().map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), max_bytes, used: Meter::default(), made: 0 })
    }

    /// A file that is made with its first bytes.
    pub(super) fn file(&mut self, key: TransactionKey) -> SpillFile {
        self.made += 1;
        let name = format!("{}-{}-{}.{SUFFIX}", key.container, key.xid, self.made);
        let path = self.path.join(name);
        SpillFile {
            path,
            max_bytes: self.max_bytes,
            used: self.used.clone(),
            held: self.used.holder(),
        }
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.used.bytes()
    }
}

fn remove_stale(file: &Path) -> io::Result<()> {
    if file.extension().is_some_and(|suffix| suffix == SUFFIX) {
        fs::remove_file(file)
    } else {
        Ok(())
    }
}

fn failed(path: &Path, error: io::Error) -> SpillError {
    SpillError::Io { path: path.display().to_string(), error }
}

/// A file that grows at its end. It is opened where it is used, so that thousands of transactions hold
/// no descriptor.
#[derive(Debug)]
pub(super) struct SpillFile {
    path: PathBuf,
    max_bytes: u64,
    used: Meter,
    held: Held,
}

impl SpillFile {
    /// How long it is.
    pub(super) const fn len(&self) -> u64 {
        self.held.bytes()
    }

    /// Its name, for errors.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes at the end. After an error the length is what it was, and the same bytes may be tried
    /// again.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), SpillError> {
        let (used, wanted) = (self.used.bytes(), bytes.len() as u64);
        if used.saturating_add(wanted) > self.max_bytes {
            return Err(SpillError::Full { used, wanted, max: self.max_bytes });
        }
        self.write(bytes).map_err(|error| failed(&self.path, error))?;
        self.held.set(self.len() + wanted);
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = match self.len() {
            0 => File::create(&self.path)?,
            _ => OpenOptions::new().write(true).open(&self.path)?,
        };
        file.seek(SeekFrom::Start(self.len()))?;
        file.write_all(bytes)
    }

    /// Opens it for reading from an offset.
    pub(super) fn open(&self, offset: u64) -> io::Result<File> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(file)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if self.len() > 0 {
            // What cannot be removed now is stale at the next start, and removed then.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let files = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_of_an_earlier_start_are_removed_and_others_are_not() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("made/here");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("0-1.2.3-1.spill"), "stale").unwrap();
        fs::write(path.join("notes.txt"), "mine").unwrap();
        SpillDirectory::open(&path, 100).unwrap();
        assert_eq!(names(&path), ["notes.txt"]);
    }

    #[test]
    fn a_file_lives_as_long_as_it_is_held() {
        let temporary = tempfile::tempdir().unwrap();
        let mut directory = SpillDirectory::open(temporary.path(), 100).unwrap();
        let mut file = directory.file("3:5.12.614".parse().unwrap());
        assert!(names(temporary.path()).is_empty());
        file.append(b"one").unwrap();
        file.append(b" two").unwrap();
        assert_eq!(names(temporary.path()), ["3-5.12.614-1.spill"]);
        assert_eq!((file.len(), directory.bytes()), (7, 7));
        let mut read = String::new();
        file.open(4).unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read, "two");
        drop(file);
        assert!(names(temporary.path()).is_empty());
        assert_eq!(directory.bytes(), 0);
    }

    #[test]
    fn the_bound_is_one_of_all_files() {
        let temporary = tempfile::tempdir().unwrap();
        let mut directory = SpillDirectory::open(temporary.path(), 10).unwrap();
        let (mut one, mut other) =
            (directory.file("1.1.1".parse().unwrap()), directory.file("1.1.2".parse().unwrap()));
        one.append(&[0; 6]).unwrap();
        other.append(&[0; 4]).unwrap();
        let full = one.append(&[0; 1]).unwrap_err();
        assert_eq!(full.to_string(), "1 bytes more would make 11 of 10 bytes");
        drop(other);
        one.append(&[0; 4]).unwrap();
    }
}
