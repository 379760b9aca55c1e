//! Putting a compacted segment in the place of those that it was made of, so that a crash at any point
//! leaves the old ones or the new one, as Kafka does it.
//!
//! The new segment is written and synced under names that end with `.cleaned`, which a start removes. Once
//! its data is called `.swap` and the folder is synced, it counts: a start that finds it removes what it
//! replaces and gives it its name. Its end is that of the last segment it replaces, since the last batch of
//! a group stays.

use std::path::PathBuf;
use std::sync::Arc;

use crate::LogError;
use crate::checkpoint::Place;
use crate::cut::KINDS;
use crate::durable_file::{self, with_ending};
use crate::file_name::{self, FileKind};
use crate::fs::OpenMode;
use crate::partition::Partition;
use crate::scan::{Depth, Scan, Step};
use crate::segment::Segment;

/// What the files of a segment are called that is not whole yet.
pub(crate) const CLEANED: &str = ".cleaned";

/// What the data of a segment is called that takes the place of others.
pub(crate) const SWAP: &str = ".swap";

/// What is made anew with the data, or from it.
const INDEXES: [FileKind; 3] =
    [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex];

impl Partition {
    /// Puts `new`, which is finished, in the place of `old`; false if those are not there any more. Holds
    /// appends up for two syncs of the folder.
    ///
    /// # Errors
    /// Of the disk. The old ones stay then, or the partition is poisoned and finds the new one when it
    /// reopens.
    pub(crate) fn swap(&self, old: &[Arc<Segment>], new: &Segment) -> Result<bool, LogError> {
        let (base, tip) = (new.base_offset, new.tip());
        // Retention, cuts and deletion hold it, too.
        let _writer = self.writer.lock();
        let Some(at) = self.place_of(old).filter(|_| self.check_usable().is_ok()) else {
            self.place.remove_cleaned(base);
            return Ok(false);
        };
        self.place.begin_swap(base)?;
        let replaced: Vec<i64> = old.iter().map(|segment| segment.base_offset).collect();
        let fs = self.place.fs.as_ref();
        let segment = self
            .place
            .end_swap(base, &replaced)
            .and_then(|()| Segment::indexed(fs, &self.place.dir, base, tip))
            .and_then(|segment| {
                segment.ok_or_else(|| new.damaged(0, "its indexes do not fit".to_owned()))
            })
            .map_err(|error| self.poison(&error))?;
        self.segments.write().splice(at..at + old.len(), [Arc::new(segment)]);
        self.share.set(self.size());
        Ok(true)
    }

    /// Where these segments stand, one behind the other.
    fn place_of(&self, old: &[Arc<Segment>]) -> Option<usize> {
        let segments = self.segments.read();
        let first = old.first()?;
        let at = segments.iter().position(|segment| Arc::ptr_eq(segment, first))?;
        let there = segments.get(at..at + old.len())?;
        there.iter().zip(old).all(|(one, other)| Arc::ptr_eq(one, other)).then_some(at)
    }
}

impl Place {
    fn path(&self, base: i64, kind: FileKind) -> PathBuf {
        file_name::path(&self.dir, base, kind)
    }

    fn rename(&self, from: PathBuf, to: PathBuf) -> Result<(), LogError> {
        self.fs.rename(&from, &to).map_err(LogError::io("rename", &from))
    }

    /// From here on the new segment counts, or after an error the old ones do.
    fn begin_swap(&self, base: i64) -> Result<(), LogError> {
        let log = self.path(base, FileKind::Log);
        let swap = with_ending(&log, SWAP);
        let begun = self.rename(with_ending(&log, CLEANED), swap.clone()).and_then(|()| {
            // What is replaced must not go before this is safe.
            site!("swap.folder", self.sync_dir())
        });
        begun.inspect_err(|_| {
            // A power loss may bring it back: it says the same as what it would replace, and whatever
            // changes that syncs the folder first.
            let _ = durable_file::remove_if_there(self.fs.as_ref(), &swap);
            self.remove_cleaned(base);
        })
    }

    /// Removes what is replaced and gives the new files their names.
    fn end_swap(&self, base: i64, replaced: &[i64]) -> Result<(), LogError> {
        self.remove_replaced(base, replaced)?;
        for kind in INDEXES {
            let path = self.path(base, kind);
            self.rename(with_ending(&path, CLEANED), path)?;
        }
        // Old indexes must not stand beside new data.
        site!("swap_indexes.folder", self.sync_dir())?;
        let log = self.path(base, FileKind::Log);
        // Not synced: until it is, a start finds the swap and ends it; whatever changes the segment syncs
        // the folder first.
        self.rename(with_ending(&log, SWAP), log)
    }

    /// The indexes of the first segment, whose data is replaced by the rename, and all of the others.
    fn remove_replaced(&self, base: i64, replaced: &[i64]) -> Result<(), LogError> {
        let fs = self.fs.as_ref();
        for kind in INDEXES {
            durable_file::remove_if_there(fs, &self.path(base, kind))?;
        }
        for (other, kind) in replaced.iter().flat_map(|base| KINDS.map(|kind| (*base, kind))) {
            if other != base {
                durable_file::remove_if_there(fs, &self.path(other, kind))?;
            }
        }
        Ok(())
    }

    /// Removes the files of a segment that is not to be. One that is left over goes at the next start.
    pub(crate) fn remove_cleaned(&self, base: i64) {
        for kind in INDEXES.into_iter().chain([FileKind::Log]) {
            let path = with_ending(&self.path(base, kind), CLEANED);
            let _ = durable_file::remove_if_there(self.fs.as_ref(), &path);
        }
    }

    /// Ends swaps that a crash interrupted, and removes what was not whole.
    pub(crate) fn end_swaps(&self) -> Result<(), LogError> {
        let entries = self.fs.list(&self.dir).map_err(LogError::io("list", &self.dir))?;
        let names = || entries.iter().map(|entry| entry.name.as_str());
        for name in names().filter(|name| name.ends_with(CLEANED)) {
            durable_file::remove_if_there(self.fs.as_ref(), &self.dir.join(name))?;
        }
        let bases = |name: &str| file_name::parse(name).map(|(base, _)| base);
        for base in names().filter_map(|name| name.strip_suffix(SWAP)).filter_map(bases) {
            let end = self.swap_end(base)?;
            tracing::info!(
                partition = self.name(),
                base,
                end,
                "a compaction that was interrupted is ended"
            );
            // The name may come from the page cache alone: what it replaces must not go before it is safe.
            site!("swap_seen.folder", self.sync_dir())?;
            let replaced: Vec<i64> =
                names().filter_map(bases).filter(|other| (base..end).contains(other)).collect();
            self.remove_replaced(base, &replaced)?;
            // Old indexes must not stand beside new data; they are made again.
            site!("swap_found.folder", self.sync_dir())?;
            let log = self.path(base, FileKind::Log);
            self.rename(with_ending(&log, SWAP), log)?;
        }
        Ok(())
    }

    /// The offset behind the last batch of a segment that is to be swapped in.
    fn swap_end(&self, base: i64) -> Result<i64, LogError> {
        let path = with_ending(&self.path(base, FileKind::Log), SWAP);
        let file = self.fs.open(&path, OpenMode::Read).map_err(LogError::io("open", &path))?;
        let len = file.len().map_err(LogError::io("read", &path))?;
        let mut scan = Scan::new(&path, file.as_ref(), Depth::Checksums, 0, len);
        let mut end = base;
        loop {
            match scan.step()? {
                Step::Batch { header, .. } => end = header.next_offset(),
                Step::End => return Ok(end),
                Step::Broken { position, reason } => {
                    return Err(LogError::Damaged { path, position, reason });
                }
            }
        }
    }
}
