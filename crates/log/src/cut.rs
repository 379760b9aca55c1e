//! Cutting a stored partition at a mark, and remembering across a kill that it must be cut.

use crate::LogError;
use crate::checkpoint::Place;
use crate::durable_file;
use crate::file_name::{self, FileKind};
use crate::fs::OpenMode;
use crate::marks::Mark;

/// A note is an empty file whose name says all, so that it can neither be torn nor fail half way.
const NOTE: &str = "cut-at";

pub(crate) const KINDS: [FileKind; 6] = [
    FileKind::Log,
    FileKind::OffsetIndex,
    FileKind::TimeIndex,
    FileKind::TransactionIndex,
    FileKind::Snapshot,
    FileKind::Cut,
];

impl Place {
    /// Removes the files of the segment that begins at `base`.
    pub(crate) fn remove_segment(&self, base: i64) -> Result<(), LogError> {
        for kind in KINDS {
            let path = file_name::path(&self.dir, base, kind);
            durable_file::remove_if_there(self.fs.as_ref(), &path)?;
        }
        site!("removed.folder", self.sync_dir())
    }

    /// Removes everything behind the mark. `bases` are the segments' first offsets, in rising order.
    pub(crate) fn cut(&self, bases: &[i64], at: Mark) -> Result<(), LogError> {
        self.forget_recovery_point()?;
        // Before anything goes: neither the point nor a segment that was removed before this, and not yet
        // safely, may come back behind the cut.
        site!("cut.folder", self.sync_dir())?;
        // The newest goes first and its name with it: what a crash leaves has no hole.
        for base in bases.iter().rev().filter(|base| **base > at.segment) {
            self.remove_segment(*base)?;
        }
        let path = file_name::path(&self.dir, at.segment, FileKind::Log);
        let file = self.fs.open(&path, OpenMode::Write).map_err(LogError::io("open", &path))?;
        // Synced with the rest when it is read again.
        site!("cut.data", file.set_len(at.position)).map_err(LogError::io("cut", &path))
    }

    /// Notes that what lies behind the mark is not to be believed. After a failed fsync the page cache
    /// still shows it, also to a process started anew, and another fsync would succeed without writing
    /// it. The note needs no sync: if the power goes, the page cache goes too.
    pub(crate) fn note_cut(&self, at: Mark, epoch: i32) -> Result<(), LogError> {
        let path = self.dir.join(name(at, epoch));
        self.fs.open(&path, OpenMode::Create).map_err(LogError::io("create", &path))?;
        Ok(())
    }

    /// The cut that was noted in this leader epoch; one of an earlier epoch was made.
    pub(crate) fn noted_cut(&self, epoch: i32) -> Result<Option<Mark>, LogError> {
        let notes = self.notes()?;
        let noted = notes.iter().filter_map(|name| parse(name)).filter(|note| note.0 == epoch);
        Ok(noted.map(|(_, mark)| mark).min_by_key(|mark| mark.offset))
    }

    /// Removes the notes; gone for good once the folder was synced.
    pub(crate) fn forget_cut(&self) -> Result<(), LogError> {
        for note in self.notes()? {
            durable_file::remove_if_there(self.fs.as_ref(), &self.dir.join(note))?;
        }
        Ok(())
    }

    fn notes(&self) -> Result<Vec<String>, LogError> {
        let entries = self.fs.list(&self.dir).map_err(LogError::io("list", &self.dir))?;
        let names = entries.into_iter().map(|entry| entry.name);
        Ok(names.filter(|name| name.starts_with(NOTE)).collect())
    }
}

fn name(at: Mark, epoch: i32) -> String {
    format!("{NOTE}.{epoch}.{}.{}.{}", at.offset, at.segment, at.position)
}

fn parse(name: &str) -> Option<(i32, Mark)> {
    let mut words = name.strip_prefix(NOTE)?.strip_prefix('.')?.split('.');
    let epoch = words.next()?.parse().ok()?;
    let offset = words.next()?.parse().ok()?;
    let segment = words.next()?.parse().ok()?;
    let position = words.next()?.parse().ok()?;
    words.next().is_none().then_some((epoch, Mark { offset, segment, position }))
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
    fn a_note_comes_back() {
        let mark = Mark { offset: 120, segment: 100, position: 4567 };
        assert_eq!(name(mark, 3), "cut-at.3.120.100.4567");
        assert_eq!(parse(&name(mark, 3)), Some((3, mark)));
        for other in ["cut-at", "cut-at.3", "cut-at.3.120.100", "cut-at.3.120.100.4567.9", "x"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
