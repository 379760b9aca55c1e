//! Cutting a partition, and reopening one by itself after a failed fsync.

use std::cell::Cell;
use std::sync::Arc;

use crate::LogError;
use crate::checkpoint::Place;
use crate::fs::OpenMode;
use crate::marks::Mark;
use crate::partition::{Partition, Writer};
use crate::recovery::Ended;
use crate::retry::Retry;
use crate::wall_clock::now_ms;

const PROBE: &str = "probe.tmp";

/// What the probe writes, in bytes: enough that the disk has to give a block.
const PROBE_BYTES: usize = 4096;

/// When a partition is tried again that is poisoned or could not be opened.
pub(crate) type Reopening = Retry<100, 10_000>;

impl Partition {
    /// Cuts everything from `offset` on and begins a new leader epoch; a batch that holds `offset`
    /// inside goes as a whole. Blocks on the disk.
    ///
    /// # Errors
    /// [`LogError::OffsetOutOfRange`] below the log start or above the log end, or where the batch that
    /// would go begins below the log start. After an error of the disk the cut is completed when the
    /// partition reopens.
    pub fn truncate(&self, offset: i64) -> Result<(), LogError> {
        let mut writer = self.writer.lock();
        self.check_usable()?;
        let marks = self.marks();
        let (log_start, log_end) = (marks.log_start, marks.log_end.offset);
        let to = self.mark_at(offset)?.unwrap_or(marks.log_end);
        if !(log_start..=log_end).contains(&offset) || to.offset < log_start {
            return Err(LogError::OffsetOutOfRange { offset, log_start, log_end });
        }
        let _sync = self.sync.lock();
        // From here on it is cut: if the disk fails half way, reopening goes on from these marks.
        self.change(|marks| marks.cut(to));
        self.cut(&mut writer, to, now_ms()).map_err(|error| self.poison(&error))
    }

    /// Where the batch that holds `offset` begins, with the hole that compaction has left before it; None at
    /// the log end.
    fn mark_at(&self, offset: i64) -> Result<Option<Mark>, LogError> {
        let segments = self.segments.read();
        let after = segments.partition_point(|segment| segment.base_offset <= offset);
        let Some(segment) = after.checked_sub(1).and_then(|at| segments.get(at)) else {
            return Ok(None);
        };
        let before = Cell::new(segment.base_offset);
        // So that the walk meets the batch before, too.
        let from = segment.offset_index.position_before(offset - 1)?;
        let found = segment.find_from(from, |header| {
            let holds = header.last_offset() >= offset;
            if !holds {
                before.set(header.next_offset());
            }
            holds
        })?;
        Ok(found.map(|(_, position)| Mark {
            offset: before.get(),
            segment: segment.base_offset,
            position,
        }))
    }

    /// Tries to bring back a partition that is poisoned or could not be opened, once it is due.
    pub(crate) fn revive(&self, now_ms: i64) {
        let due = self.writer.lock().retry.is_due(now_ms);
        match self.fault() {
            Some(LogError::Poisoned { .. }) if due => self.reopen(now_ms),
            Some(LogError::Io { .. } | LogError::NoSpace { .. }) if due => {
                self.open(Ended::Uncleanly, now_ms);
            }
            _ => {}
        }
    }

    fn reopen(&self, now_ms: i64) {
        let mut writer = self.writer.lock();
        let _sync = self.sync.lock();
        let reopened =
            probe(&self.place).and_then(|()| self.cut(&mut writer, self.marks().synced, now_ms));
        match reopened {
            Ok(()) => tracing::info!(partition = self.place.name(), "a partition has reopened"),
            Err(error) => {
                tracing::warn!(partition = self.place.name(), %error, "a partition cannot reopen yet");
                writer.retry.failed(now_ms);
            }
        }
    }

    /// Removes everything behind `to`, reads the rest again from the disk, and goes on in a new segment
    /// under a new leader epoch.
    fn cut(&self, writer: &mut Writer, to: Mark, now_ms: i64) -> Result<(), LogError> {
        // Nobody reads while data goes away under the marks.
        let mut segments = self.segments.write();
        let mut found = self.recover(Ended::Cut(to), now_ms)?;
        if let Some(last) = found.segments.last().filter(|_| to.is_inside()) {
            last.finish(self.place.fs.as_ref())?;
        }
        found.segments.retain(|segment| segment.base_offset != to.offset);
        found.segments.push(Arc::new(self.make_segment(&found.producers, to.offset)?));
        self.install(writer, &mut segments, found, now_ms)
    }
}

/// Writes and syncs a file of its own, to see whether the disk takes data again.
fn probe(place: &Place) -> Result<(), LogError> {
    let path = place.dir.join(PROBE);
    let file = place.fs.open(&path, OpenMode::Create).map_err(LogError::io("create", &path))?;
    file.write_at(&[0; PROBE_BYTES], 0).map_err(LogError::io("write", &path))?;
    site!("probe.data", file.sync_data()).map_err(LogError::io("sync", &path))?;
    place.fs.remove(&path).map_err(LogError::io("remove", &path))
}
