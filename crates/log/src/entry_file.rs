//! A file of entries of one size, in rising order: what the indexes are made of.
//!
//! Nothing is mapped into memory (rule L2); a look-up is a binary search of small reads, which the page
//! cache answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::LogError;
use crate::fs::{File, FileSystem, OpenMode};

/// Space set aside ahead of an index, in bytes.
const AHEAD: u64 = 4096;

/// Entries among which one look-up searches in memory: a page of them costs as little to read as one.
const NEAR: u64 = 256;

/// A file of entries of `N` bytes. One thread appends, any may read.
#[derive(Debug)]
pub(crate) struct EntryFile<const N: usize> {
    path: PathBuf,
    file: Arc<dyn File>,
    count: AtomicU64,
    allocated: AtomicU64,
}

impl<const N: usize> EntryFile<N> {
    /// Opens an existing file; None if its length is no multiple of an entry.
    pub(crate) fn open(fs: &dyn FileSystem, path: &Path) -> Result<Option<Self>, LogError> {
        let file = fs.open(path, OpenMode::Write).map_err(LogError::io("open", path))?;
        let len = file.len().map_err(LogError::io("read", path))?;
        let whole = len % N as u64 == 0;
        Ok(whole.then(|| Self {
            path: path.to_owned(),
            file,
            count: AtomicU64::new(len / N as u64),
            allocated: AtomicU64::new(len),
        }))
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// The entry of that number, which must be below [`EntryFile::count`].
    pub(crate) fn get(&self, number: u64) -> Result<[u8; N], LogError> {
        let mut entry = [0; N];
        self.fill(&mut entry, number)?;
        Ok(entry)
    }

    /// Reads entries from that number on, all of which must be below [`EntryFile::count`].
    fn fill(&self, entries: &mut [u8], number: u64) -> Result<(), LogError> {
        let position = number * N as u64;
        let read =
            self.file.read_at(entries, position).map_err(LogError::io("read", &self.path))?;
        if read == entries.len() {
            return Ok(());
        }
        Err(LogError::Damaged {
            path: self.path.clone(),
            position,
            reason: "it ends inside an entry that was there".to_owned(),
        })
    }

    pub(crate) fn last(&self) -> Result<Option<[u8; N]>, LogError> {
        self.count().checked_sub(1).map(|number| self.get(number)).transpose()
    }

    /// The last entry for which `before` holds; all for which it does must come first.
    pub(crate) fn floor(
        &self,
        before: impl Fn(&[u8; N]) -> bool,
    ) -> Result<Option<[u8; N]>, LogError> {
        self.partition_point(before)?.checked_sub(1).map(|number| self.get(number)).transpose()
    }

    /// How many entries there are for which `before` holds; all for which it does must come first.
    pub(crate) fn partition_point(
        &self,
        before: impl Fn(&[u8; N]) -> bool,
    ) -> Result<u64, LogError> {
        let (mut low, mut high) = (0, self.count());
        while high - low > NEAR {
            let middle = low + (high - low) / 2;
            if before(&self.get(middle)?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut near = vec![[0; N]; usize::try_from(high - low).unwrap_or(0)];
        self.fill(near.as_flattened_mut(), low)?;
        Ok(low + near.partition_point(before) as u64)
    }

    /// All entries, as they stand in the file.
    pub(crate) fn content(&self) -> Result<Vec<u8>, LogError> {
        let mut content = vec![0; usize::try_from(self.count()).unwrap_or(0) * N];
        let read = self.file.read_at(&mut content, 0).map_err(LogError::io("read", &self.path))?;
        content.truncate(read);
        Ok(content)
    }

    /// Sets space aside for `entries` more.
    pub(crate) fn reserve(&self, entries: u64) -> Result<(), LogError> {
        let end = (self.count() + entries) * N as u64;
        let allocated = self.allocated.load(Ordering::Relaxed);
        if end > allocated {
            let more = (end - allocated).max(AHEAD);
            self.file.allocate(allocated, more).map_err(LogError::io("grow", &self.path))?;
            self.allocated.store(allocated + more, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) fn push(&self, entry: [u8; N]) -> Result<(), LogError> {
        let count = self.count();
        self.file.write_at(&entry, count * N as u64).map_err(LogError::io("write", &self.path))?;
        self.count.store(count + 1, Ordering::Release);
        Ok(())
    }

    /// Forgets what was pushed after there were `count` entries.
    pub(crate) fn undo_to(&self, count: u64) -> Result<(), LogError> {
        // Also where none was counted: part of one may have been written.
        self.count.store(count.min(self.count()), Ordering::Release);
        self.trim()
    }

    /// Cuts the file to its entries and gives back the space set aside.
    pub(crate) fn trim(&self) -> Result<(), LogError> {
        let len = self.count() * N as u64;
        site!("index.cut", self.file.set_len(len)).map_err(LogError::io("cut", &self.path))?;
        self.allocated.store(len, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<(), LogError> {
        site!("index.data", self.file.sync_data()).map_err(LogError::io("sync", &self.path))
    }
}
