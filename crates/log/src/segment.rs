//! One segment: a file of batches and its indexes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use highwater_protocol::records::{Batch, BatchHeader, HEADER_SIZE};
use parking_lot::Mutex;

use crate::LogError;
use crate::durable_file::{self, with_ending};
use crate::file_name::{self, FileKind};
use crate::fs::{File, FileSystem, OpenMode};
use crate::offset_index::OffsetIndex;
use crate::scan::{Depth, Scan};
use crate::swap::CLEANED;
use crate::time_index::{Greatest, TimeIndex};
use crate::tip::Tip;
use crate::transaction_index::{Entry, TransactionIndex};

/// Space is set aside in steps that grow with the segment, between these bounds in bytes.
const LEAST_AHEAD: u64 = 64 * 1024;
const MOST_AHEAD: u64 = 16 * 1024 * 1024;

/// A batch ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct Stamped {
    pub(crate) header: BatchHeader,
    pub(crate) bytes: Bytes,
}

/// What an append changes, as it was before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) tip: Tip,
    offsets: u64,
    times: u64,
    aborted: u64,
}

/// One segment. One thread at a time appends, any may read what the tip covers.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) base_offset: i64,
    path: PathBuf,
    log: Arc<dyn File>,
    pub(crate) offset_index: OffsetIndex,
    pub(crate) time_index: TimeIndex,
    pub(crate) transactions: TransactionIndex,
    tip: Mutex<Tip>,
    allocated: AtomicU64,
}

impl State {
    /// In the offset index and in the time index.
    pub(crate) fn entries(&self) -> (u64, u64) {
        (self.offsets, self.times)
    }
}

impl Segment {
    /// Makes an empty segment, in place of whatever stood under its names; safe once the folder was
    /// synced.
    pub(crate) fn create(
        fs: &dyn FileSystem,
        dir: &Path,
        base_offset: i64,
    ) -> Result<Self, LogError> {
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::Log] {
            durable_file::put(fs, &file_name::path(dir, base_offset, kind), &[])?;
        }
        let aborted = file_name::path(dir, base_offset, FileKind::TransactionIndex);
        durable_file::remove_if_there(fs, &aborted)?;
        Self::indexed(fs, dir, base_offset, Tip::new(base_offset))?.ok_or_else(|| {
            LogError::Damaged {
                path: dir.to_owned(),
                position: 0,
                reason: "the indexes of a new segment are not empty".to_owned(),
            }
        })
    }

    /// Makes an empty segment under the names of one that is to take the place of others. Nothing of it
    /// is safe before [`Segment::finish`].
    pub(crate) fn create_cleaned(
        fs: &dyn FileSystem,
        dir: &Path,
        base_offset: i64,
    ) -> Result<Self, LogError> {
        let path = |kind| with_ending(&file_name::path(dir, base_offset, kind), CLEANED);
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::Log] {
            let path = path(kind);
            fs.open(&path, OpenMode::Create).map_err(LogError::io("create", &path))?;
        }
        durable_file::remove_if_there(fs, &path(FileKind::TransactionIndex))?;
        let made = Self::named(fs, path, base_offset, Tip::new(base_offset))?;
        made.ok_or_else(|| {
            let reason = "the indexes of a new segment are not empty".to_owned();
            LogError::Damaged { path: dir.to_owned(), position: 0, reason }
        })
    }

    /// Puts the parts together; None if an index cannot be one.
    pub(crate) fn indexed(
        fs: &dyn FileSystem,
        dir: &Path,
        base_offset: i64,
        tip: Tip,
    ) -> Result<Option<Self>, LogError> {
        Self::named(fs, |kind| file_name::path(dir, base_offset, kind), base_offset, tip)
    }

    fn named(
        fs: &dyn FileSystem,
        path: impl Fn(FileKind) -> PathBuf,
        base_offset: i64,
        tip: Tip,
    ) -> Result<Option<Self>, LogError> {
        let log_path = path(FileKind::Log);
        let log = fs.open(&log_path, OpenMode::Write).map_err(LogError::io("open", &log_path))?;
        let offset_index = OffsetIndex::open(fs, &path(FileKind::OffsetIndex), base_offset)?;
        let time_index = TimeIndex::open(fs, &path(FileKind::TimeIndex), base_offset)?;
        let transactions = TransactionIndex::open(fs, &path(FileKind::TransactionIndex))?;
        let (Some(offset_index), Some(time_index)) = (offset_index, time_index) else {
            return Ok(None);
        };
        Ok(Some(Self {
            base_offset,
            path: log_path,
            log,
            offset_index,
            time_index,
            transactions,
            tip: Mutex::new(tip),
            allocated: AtomicU64::new(tip.size),
        }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &Arc<dyn File> {
        &self.log
    }

    pub(crate) fn tip(&self) -> Tip {
        *self.tip.lock()
    }

    pub(crate) fn set_tip(&self, tip: Tip) {
        *self.tip.lock() = tip;
    }

    /// Sets space aside for an append, so that a full disk is met before anything is written.
    pub(crate) fn reserve(&self, bytes: u64, batches: u64) -> Result<(), LogError> {
        self.offset_index.file().reserve(batches)?;
        // One more: a segment that ends writes its greatest timestamp.
        self.time_index.file().reserve(batches + 1)?;
        let size = self.tip().size;
        let allocated = self.allocated.load(Ordering::Relaxed);
        if size + bytes <= allocated {
            return Ok(());
        }
        let more = (size + bytes - allocated).max(size.clamp(LEAST_AHEAD, MOST_AHEAD));
        self.log.allocate(allocated, more).map_err(LogError::io("grow", &self.path))?;
        self.allocated.store(allocated + more, Ordering::Relaxed);
        Ok(())
    }

    /// Writes batches behind the tip and moves it. After an error [`Segment::undo_to`] is due.
    pub(crate) fn append(&self, batches: &[Stamped], interval: u64) -> Result<(), LogError> {
        let mut tip = self.tip();
        for batch in batches {
            self.log.write_at(&batch.bytes, tip.size).map_err(LogError::io("write", &self.path))?;
            if let Some(point) = tip.take(&batch.header, interval) {
                self.offset_index.push(point.last_offset, point.position)?;
                self.time_index.push(point.greatest)?;
            }
        }
        self.set_tip(tip);
        Ok(())
    }

    /// As [`Segment::append`], for the marker that aborts a transaction.
    pub(crate) fn append_aborting(
        &self,
        batches: &[Stamped],
        interval: u64,
        entry: Entry,
    ) -> Result<(), LogError> {
        self.append(batches, interval)?;
        self.transactions.push(entry)
    }

    /// Where it stands now, for [`Segment::undo_to`].
    pub(crate) fn state(&self) -> State {
        State {
            tip: self.tip(),
            offsets: self.offset_index.file().count(),
            times: self.time_index.file().count(),
            aborted: self.transactions.count(),
        }
    }

    /// Takes back what an append that failed has written.
    pub(crate) fn undo_to(&self, state: State) -> Result<(), LogError> {
        self.set_tip(state.tip);
        self.trim_log()?;
        self.offset_index.file().undo_to(state.offsets)?;
        self.time_index.file().undo_to(state.times)?;
        self.transactions.undo_to(state.aborted)
    }

    fn trim_log(&self) -> Result<(), LogError> {
        let size = self.tip().size;
        site!("segment.cut", self.log.set_len(size)).map_err(LogError::io("cut", &self.path))?;
        self.allocated.store(size, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<(), LogError> {
        site!("segment.data", self.log.sync_data()).map_err(LogError::io("sync", &self.path))
    }

    /// Writes the last time index entry, gives back the space set aside and syncs all files: from here
    /// on the indexes can be trusted without reading the data.
    pub(crate) fn finish(&self, fs: &dyn FileSystem) -> Result<(), LogError> {
        self.time_index.push(self.tip().greatest)?;
        self.transactions.make(fs)?;
        self.trim_log()?;
        self.offset_index.file().trim()?;
        self.time_index.file().trim()?;
        self.transactions.trim()?;
        site!("finish.data", self.sync())?;
        site!("finish.offset_index", self.offset_index.file().sync())?;
        site!("finish.time_index", self.time_index.file().sync())?;
        site!("finish.transaction_index", self.transactions.sync())
    }

    /// A walk over the headers from `position` on.
    pub(crate) fn headers(&self, position: u64) -> Scan<'_> {
        Scan::new(&self.path, self.log.as_ref(), Depth::Headers, position, self.tip().size)
    }

    /// The header of the batch that begins at `position`.
    pub(crate) fn header_at(&self, position: u64) -> Result<BatchHeader, LogError> {
        let mut bytes = [0; HEADER_SIZE];
        let read =
            self.log.read_at(&mut bytes, position).map_err(LogError::io("read", &self.path))?;
        BatchHeader::parse(bytes.get(..read).unwrap_or_default())
            .map_err(|error| self.damaged(position, error.to_string()))
    }

    /// The first batch that holds `offset` or one after it, and its position; None behind the last.
    pub(crate) fn find(&self, offset: i64) -> Result<Option<(BatchHeader, u64)>, LogError> {
        let position = self.offset_index.position_before(offset)?;
        self.find_from(position, |header| header.last_offset() >= offset)
    }

    /// The first batch from `position` on for which `wanted` holds, and its position.
    pub(crate) fn find_from(
        &self,
        mut position: u64,
        wanted: impl Fn(&BatchHeader) -> bool,
    ) -> Result<Option<(BatchHeader, u64)>, LogError> {
        let end = self.tip().size;
        while position < end {
            let header = self.header_at(position)?;
            if wanted(&header) {
                return Ok(Some((header, position)));
            }
            position += header.size() as u64;
        }
        Ok(None)
    }

    /// The whole batch that begins at `position`.
    pub(crate) fn batch_at(&self, header: &BatchHeader, position: u64) -> Result<Batch, LogError> {
        let bytes = self.read(position, header.size() as u64)?;
        Batch::parse(&bytes).map_err(|error| self.damaged(position, error.to_string()))
    }

    /// Exactly `len` bytes at `position`, which the tip must cover.
    pub(crate) fn read(&self, position: u64, len: u64) -> Result<Bytes, LogError> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        let read =
            self.log.read_at(&mut bytes, position).map_err(LogError::io("read", &self.path))?;
        if read < len {
            return Err(
                self.damaged(position + read as u64, "it ends before its last batch".to_owned())
            );
        }
        Ok(bytes.into())
    }

    /// The batch that first reached the greatest timestamp, and its position; None if empty.
    pub(crate) fn greatest(&self) -> Result<Option<(BatchHeader, u64)>, LogError> {
        let Greatest { timestamp, last_offset, position } = self.tip().greatest;
        let from = match position {
            Some(position) => position,
            None => self.offset_index.position_before(last_offset)?,
        };
        let found = self.find_from(from, |header| header.max_timestamp == timestamp)?;
        if let Some((_, position)) = found {
            let mut tip = self.tip.lock();
            if tip.greatest.timestamp == timestamp {
                tip.greatest.position = Some(position);
            }
        }
        Ok(found)
    }

    pub(crate) fn damaged(&self, position: u64, reason: String) -> LogError {
        LogError::Damaged { path: self.path.clone(), position, reason }
    }
}
