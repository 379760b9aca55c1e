//! The frames of a chunk as bytes, with the tables that they name, so that a chunk is read alone.

use super::journal_record::{ChunkHead, ChunkKey, damaged};
use super::spill_frame::{Frame, TableDictionary};
use crate::{OracleError, RedoPoint};

/// Frames that are gathered for a chunk.
#[derive(Debug, Default)]
pub(super) struct Payload {
    tables: TableDictionary,
    frames: Vec<u8>,
    span: Option<(RedoPoint, RedoPoint)>,
    events: u64,
    undos: u64,
}

impl Payload {
    /// Where the first frame begins, and the last one ends.
    pub(super) const fn span(&self) -> Option<(RedoPoint, RedoPoint)> {
        self.span
    }

    /// Changes and undos in it.
    pub(super) const fn counts(&self) -> (u64, u64) {
        (self.events, self.undos)
    }

    /// Adds a frame and says whether it is in: those of a chunk are of one thread, and have `limit` bytes
    /// where they are several.
    pub(super) fn push(&mut self, frame: &Frame, limit: usize) -> bool {
        let (length, at) = (self.frames.len(), begin(frame));
        let first = self.span.map_or(at, |(first, _)| first);
        if first.thread != at.thread {
            return false;
        }
        frame.encode(&mut self.tables, &mut self.frames);
        if length > 0 && self.frames.len() > limit {
            self.frames.truncate(length);
            return false;
        }
        self.span = Some((first, end(frame)));
        match frame {
            Frame::Change(_) => self.events += 1,
            Frame::Undo(_) => self.undos += 1,
        }
        true
    }

    /// All as bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.frames.len());
        self.tables.encode(&mut bytes);
        bytes.extend(self.frames);
        bytes
    }
}

/// Reads the frames of a chunk.
pub(super) fn frames(
    key: &ChunkKey,
    head: &ChunkHead,
    mut payload: &[u8],
) -> Result<Vec<Frame>, OracleError> {
    let bytes = &mut payload;
    let tables = TableDictionary::decode(bytes).map_err(|error| damaged(key, &error))?;
    let (mut frames, mut gathered) = (Vec::new(), (0, 0));
    while !bytes.is_empty() {
        let frame = Frame::decode(bytes, &tables).map_err(|error| damaged(key, &error))?;
        match frame {
            Frame::Change(_) => gathered.0 += 1,
            Frame::Undo(_) => gathered.1 += 1,
        }
        frames.push(frame);
    }
    let (events, undos) = gathered;
    if gathered != (head.events, head.undos) {
        let (of_events, of_undos) = (head.events, head.undos);
        let why = format!(
            "it holds {events} changes and {undos} undos, and says {of_events} and {of_undos}"
        );
        return Err(damaged(key, &why));
    }
    Ok(frames)
}

/// Where the redo of a frame begins.
pub(super) const fn begin(frame: &Frame) -> RedoPoint {
    match frame {
        Frame::Change(change) => change.at,
        Frame::Undo(undo) => undo.at,
    }
}

/// Where the redo of a frame ends: with the last piece of its large objects.
pub(super) fn end(frame: &Frame) -> RedoPoint {
    match frame {
        Frame::Change(change) => change.last(),
        Frame::Undo(undo) => undo.at,
    }
}
