//! Cutting a stored partition at a mark, and remembering across a kill that it must be cut.

use crate::LogError;
use crate::checkpoint::Place;
use crate::durable_file;
use crate::file_name::{self, FileKind};
use crate::fs::OpenMode;
use crate::marks::Mark;

const MARK: &str = "cut-at";

/// The last word of the mark, so that one that was torn is told apart.
const WHOLE: &str = "end";

const KINDS: [FileKind; 4] =
    [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::Snapshot];

impl Place {
    /// Removes the files of the segment that begins at `base`.
    pub(crate) fn remove_segment(&self, base: i64) -> Result<(), LogError> {
        for kind in KINDS {
            let path = file_name::path(&self.dir, base, kind);
            durable_file::remove_if_there(self.fs.as_ref(), &path)?;
        }
        self.sync_dir()
    }

    /// Removes everything behind the mark. `bases` are the segments' first offsets, in rising order.
    pub(crate) fn cut(&self, bases: &[i64], at: Mark) -> Result<(), LogError> {
        // The newest goes first and its name with it: what a crash leaves has no hole.
        for base in bases.iter().rev().filter(|base| **base > at.segment) {
            self.remove_segment(*base)?;
        }
        // Also a segment that was removed before this, and not yet safely, must not come back behind
        // the cut.
        self.sync_dir()?;
        let path = file_name::path(&self.dir, at.segment, FileKind::Log);
        let file = self.fs.open(&path, OpenMode::Write).map_err(LogError::io("open", &path))?;
        file.truncate(at.position).map_err(LogError::io("cut", &path))?;
        file.sync_data().map_err(LogError::io("sync", &path))
    }

    /// Notes that what lies behind the mark is not to be believed. After a failed fsync the page cache
    /// still shows it, also to a process started anew, and another fsync would succeed without writing
    /// it. The note needs no sync: if the power goes, the page cache goes too.
    pub(crate) fn note_cut(&self, at: Mark, epoch: i32) -> Result<(), LogError> {
        let path = self.dir.join(MARK);
        let file = self.fs.open(&path, OpenMode::Create).map_err(LogError::io("create", &path))?;
        let text = format!("{epoch} {} {} {} {WHOLE}\n", at.offset, at.segment, at.position);
        file.write_at(text.as_bytes(), 0).map_err(LogError::io("write", &path))
    }

    /// The cut that was noted in this leader epoch; one of an earlier epoch was made.
    pub(crate) fn noted_cut(&self, epoch: i32) -> Result<Option<Mark>, LogError> {
        let bytes = durable_file::read(self.fs.as_ref(), &self.dir.join(MARK))?;
        let noted = bytes.as_deref().and_then(|bytes| parse(std::str::from_utf8(bytes).ok()?));
        Ok(noted.filter(|(noted_epoch, _)| *noted_epoch == epoch).map(|(_, mark)| mark))
    }

    /// Removes the note; gone for good once the folder was synced.
    pub(crate) fn forget_cut(&self) -> Result<(), LogError> {
        durable_file::remove_if_there(self.fs.as_ref(), &self.dir.join(MARK))
    }
}

fn parse(text: &str) -> Option<(i32, Mark)> {
    let mut words = text.strip_suffix('\n')?.split(' ');
    let epoch = words.next()?.parse().ok()?;
    let offset = words.next()?.parse().ok()?;
    let segment = words.next()?.parse().ok()?;
    let position = words.next()?.parse().ok()?;
    (words.next() == Some(WHOLE)).then_some((epoch, Mark { offset, segment, position }))
}

impl Mark {
    /// True if the mark lies behind at least one batch of its segment.
    pub(crate) fn is_inside(&self) -> bool {
        self.position > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_note_is_not_believed() {
        let mark = Mark { offset: 120, segment: 100, position: 4567 };
        let text = "3 120 100 4567 end\n";
        assert_eq!(parse(text), Some((3, mark)));
        for len in 0..text.len() {
            assert_eq!(parse(&text[..len]), None, "{len}");
        }
        assert_eq!(parse(&"\0".repeat(19)), None);
    }
}
