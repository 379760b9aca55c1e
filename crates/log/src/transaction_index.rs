//! The transaction index (`.txnindex`) in Kafka's format: the transactions that were aborted by markers of
//! this segment, in the order of the markers.
//!
//! A segment that was closed has the file, if only an empty one: where it is missing it was lost, and is
//! made again from the data. The active segment gets it with its first aborted transaction.

use std::path::{Path, PathBuf};

use bytes::{Buf, BufMut};
use parking_lot::RwLock;

use crate::LogError;
use crate::durable_file;
use crate::entry_file::EntryFile;
use crate::fs::{FileSystem, OpenMode};

/// Version (16 bits), then producer id, first, last and last stable offset (64 bits each), big-endian.
const ENTRY: usize = 2 + 4 * 8;

const VERSION: i16 = 0;

/// An aborted transaction: what a reader at read_committed passes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aborted {
    /// Whose.
    pub producer_id: i64,
    /// Its first offset.
    pub first_offset: i64,
    /// The offset of its marker.
    pub last_offset: i64,
}

/// An entry of the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) aborted: Aborted,
    /// The last stable offset behind the marker: no later marker aborts anything below it.
    pub(crate) last_stable_offset: i64,
}

impl Entry {
    pub(crate) fn encode(self) -> [u8; ENTRY] {
        let mut entry = [0; ENTRY];
        let mut fields = entry.as_mut_slice();
        fields.put_i16(VERSION);
        fields.put_i64(self.aborted.producer_id);
        fields.put_i64(self.aborted.first_offset);
        fields.put_i64(self.aborted.last_offset);
        fields.put_i64(self.last_stable_offset);
        entry
    }

    /// None for a version that is not known.
    pub(crate) fn decode(entry: &[u8; ENTRY]) -> Option<Self> {
        let mut fields = entry.as_slice();
        if fields.get_i16() != VERSION {
            return None;
        }
        let aborted = Aborted {
            producer_id: fields.get_i64(),
            first_offset: fields.get_i64(),
            last_offset: fields.get_i64(),
        };
        Some(Self { aborted, last_stable_offset: fields.get_i64() })
    }

    /// Whether it can be an entry of a segment of these offsets. A sector of zeros is none.
    fn fits(&self, from: i64, end: i64) -> bool {
        let Aborted { producer_id, first_offset, last_offset } = self.aborted;
        producer_id >= 0
            && (from..end).contains(&last_offset)
            && (0..last_offset).contains(&first_offset)
            && (0..=last_offset + 1).contains(&self.last_stable_offset)
    }
}

/// The transaction index of one segment. One thread appends, any may read.
#[derive(Debug)]
pub(crate) struct TransactionIndex {
    path: PathBuf,
    /// None as long as there is no file.
    file: RwLock<Option<EntryFile<ENTRY>>>,
}

impl TransactionIndex {
    /// Opens the file, if there is one that can be an index.
    pub(crate) fn open(fs: &dyn FileSystem, path: &Path) -> Result<Self, LogError> {
        let there = fs.exists(path).map_err(LogError::io("open", path))?;
        let file = if there { EntryFile::open(fs, path)? } else { None };
        Ok(Self { path: path.to_owned(), file: RwLock::new(file) })
    }

    /// Makes the file, if it is not there.
    pub(crate) fn make(&self, fs: &dyn FileSystem) -> Result<(), LogError> {
        let mut file = self.file.write();
        if file.is_none() {
            let create = fs.open(&self.path, OpenMode::Create);
            create.map_err(LogError::io("create", &self.path))?;
            *file = EntryFile::open(fs, &self.path)?;
        }
        Ok(())
    }

    /// Does not believe the file any more.
    pub(crate) fn forget(&self) {
        *self.file.write() = None;
    }

    /// Writes the entries in place of whatever is there; safe once the folder was synced.
    pub(crate) fn rewrite(&self, fs: &dyn FileSystem, entries: &[Entry]) -> Result<(), LogError> {
        let content: Vec<u8> = entries.iter().flat_map(|entry| entry.encode()).collect();
        durable_file::put(fs, &self.path, &content)?;
        *self.file.write() = EntryFile::open(fs, &self.path)?;
        Ok(())
    }

    /// Removes the file, if it is there.
    pub(crate) fn remove(&self, fs: &dyn FileSystem) -> Result<(), LogError> {
        self.forget();
        durable_file::remove_if_there(fs, &self.path)
    }

    /// Whether the file is there, with nothing that a segment of these offsets cannot have.
    pub(crate) fn is_whole(&self, from: i64, end: i64) -> Result<bool, LogError> {
        let file = self.file.read();
        let Some(file) = &*file else { return Ok(false) };
        let mut due = from;
        for number in 0..file.count() {
            match Entry::decode(&file.get(number)?) {
                Some(entry) if entry.fits(due, end) => due = entry.aborted.last_offset + 1,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    pub(crate) fn count(&self) -> u64 {
        self.file.read().as_ref().map_or(0, EntryFile::count)
    }

    /// Sets space aside for one more entry, making the file if it is not there.
    pub(crate) fn reserve(&self, fs: &dyn FileSystem) -> Result<(), LogError> {
        self.make(fs)?;
        self.file.read().as_ref().map_or(Ok(()), |file| file.reserve(1))
    }

    /// Appends an entry, for which space was set aside.
    pub(crate) fn push(&self, entry: Entry) -> Result<(), LogError> {
        self.file.read().as_ref().map_or(Ok(()), |file| file.push(entry.encode()))
    }

    /// Forgets what was pushed after there were `count` entries.
    pub(crate) fn undo_to(&self, count: u64) -> Result<(), LogError> {
        self.file.read().as_ref().map_or(Ok(()), |file| file.undo_to(count))
    }

    /// Cuts the file to its entries.
    pub(crate) fn trim(&self) -> Result<(), LogError> {
        self.file.read().as_ref().map_or(Ok(()), EntryFile::trim)
    }

    pub(crate) fn sync(&self) -> Result<(), LogError> {
        self.file.read().as_ref().map_or(Ok(()), EntryFile::sync)
    }

    /// Adds all entries.
    pub(crate) fn entries(&self, into: &mut Vec<Entry>) -> Result<(), LogError> {
        let file = self.file.read();
        let Some(file) = &*file else { return Ok(()) };
        for number in 0..file.count() {
            into.extend(Entry::decode(&file.get(number)?));
        }
        Ok(())
    }

    /// Adds the aborted transactions that have records or their marker in `from..to`; true if no later
    /// segment has more of them.
    pub(crate) fn collect(
        &self,
        from: i64,
        to: i64,
        into: &mut Vec<Aborted>,
    ) -> Result<bool, LogError> {
        let file = self.file.read();
        let Some(file) = &*file else { return Ok(false) };
        let ended = |entry: &[u8; ENTRY]| {
            Entry::decode(entry).is_some_and(|entry| entry.aborted.last_offset < from)
        };
        for number in file.partition_point(ended)?..file.count() {
            let Some(entry) = Entry::decode(&file.get(number)?) else { continue };
            if entry.aborted.first_offset < to {
                into.push(entry.aborted);
            }
            if entry.last_stable_offset >= to {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::RealFileSystem;

    fn entry(producer_id: i64, first_offset: i64, last_offset: i64, lso: i64) -> Entry {
        let aborted = Aborted { producer_id, first_offset, last_offset };
        Entry { aborted, last_stable_offset: lso }
    }

    #[test]
    fn the_layout_is_kafkas_and_comes_back() {
        let bytes = entry(1, 2, 3, 4).encode();
        let mut due = vec![0, 0];
        (1..=4i64).for_each(|field| due.extend(field.to_be_bytes()));
        assert_eq!(bytes.as_slice(), due);
        assert_eq!(Entry::decode(&bytes), Some(entry(1, 2, 3, 4)));
        let mut other = bytes;
        other[1] = 1;
        assert_eq!(Entry::decode(&other), None);
    }

    #[test]
    fn what_overlaps_is_found_and_the_search_ends_where_it_may() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000000000000000000.txnindex");
        let index = TransactionIndex::open(&RealFileSystem, &path).unwrap();
        assert!(!index.is_whole(0, 100).unwrap(), "it is missing");
        assert!(!index.collect(0, 100, &mut Vec::new()).unwrap());
        // Producer 2 stays open from 5 to 40, and holds the last stable offset there.
        let entries =
            [entry(1, 0, 9, 5), entry(3, 12, 20, 5), entry(2, 5, 40, 41), entry(1, 50, 60, 61)];
        for entry in entries {
            index.reserve(&RealFileSystem).unwrap();
            index.push(entry).unwrap();
        }
        assert!(index.is_whole(0, 61).unwrap());
        assert!(!index.is_whole(10, 61).unwrap() && !index.is_whole(0, 60).unwrap());
        let find = |from, to| {
            let mut found = Vec::new();
            let complete = index.collect(from, to, &mut found).unwrap();
            (found.iter().map(|found| found.first_offset).collect::<Vec<_>>(), complete)
        };
        assert_eq!(find(0, 3), (vec![0], true));
        assert_eq!(find(10, 15), (vec![12, 5], true));
        assert_eq!(find(21, 41), (vec![5], true));
        assert_eq!(find(41, 45), (vec![], true));
        assert_eq!(find(41, 62), (vec![50], false));
        index.undo_to(1).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 34);
    }

    #[test]
    fn zeros_and_entries_out_of_order_are_no_index() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("i");
        let whole = |entries: &[Entry]| {
            let index = TransactionIndex::open(&RealFileSystem, &path).unwrap();
            index.rewrite(&RealFileSystem, entries).unwrap();
            index.is_whole(0, 100).unwrap()
        };
        assert!(whole(&[]) && whole(&[entry(0, 0, 1, 2)]));
        assert!(!whole(&[entry(0, 0, 0, 0)]));
        assert!(!whole(&[entry(0, 0, 9, 10), entry(1, 3, 9, 10)]));
        std::fs::write(&path, [0; 33]).unwrap();
        let torn = TransactionIndex::open(&RealFileSystem, &path).unwrap();
        assert!(!torn.is_whole(0, 100).unwrap());
    }
}
