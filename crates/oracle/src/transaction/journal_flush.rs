//! What of a transaction is not in the journal so far, cut into chunks.

use super::entry::Entry;
use super::journal::{JournalSettings, Journaled};
use super::journal_payload::Payload;
use super::journal_record::{ChunkHead, ChunkKey, JournalRecord};
use super::spill_frame::Frame;
use super::spill_log::Frames;
use crate::OracleError;

/// Chunk records, oldest first. One at a time is held.
#[derive(Debug)]
pub struct ChunkRecords<'a> {
    settings: &'a JournalSettings,
    generation: u64,
    journaled: &'a mut Journaled,
    entry: &'a Entry,
    frames: Frames<'a>,
    /// A frame that is of the next chunk.
    next: Option<Frame>,
}

impl<'a> ChunkRecords<'a> {
    pub(super) const fn new(
        settings: &'a JournalSettings,
        generation: u64,
        journaled: &'a mut Journaled,
        entry: &'a Entry,
        frames: Frames<'a>,
    ) -> Self {
        Self { settings, generation, journaled, entry, frames, next: None }
    }

    fn gather(&mut self) -> Result<Payload, OracleError> {
        let mut payload = Payload::default();
        while let Some(frame) = self.next_frame()? {
            if !payload.push(&frame, self.settings.chunk_bytes) {
                self.next = Some(frame);
                break;
            }
        }
        Ok(payload)
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, OracleError> {
        match self.next.take() {
            Some(frame) => Ok(Some(frame)),
            None => self.frames.next().transpose(),
        }
    }

    fn record(&mut self, payload: Payload) -> Option<JournalRecord> {
        let (first, last) = payload.span()?;
        let (events, undos) = payload.counts();
        let number = self.journaled.chunks.len() as u32;
        let head = ChunkHead {
            first,
            last,
            after: (number > 0).then_some(self.journaled.last),
            events,
            undos,
            first_captured: self.entry.first(),
            start: self.entry.start().cloned(),
        };
        let key = ChunkKey {
            server: self.settings.server.clone(),
            transaction: self.entry.key(),
            number,
            generation: self.generation,
        };
        self.journaled.chunks.push(self.generation);
        self.journaled.last = last;
        let value = head.encode(&payload.into_bytes());
        Some(JournalRecord { key: key.encode(), value: Some(value) })
    }
}

impl Iterator for ChunkRecords<'_> {
    type Item = Result<JournalRecord, OracleError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.gather() {
            Ok(payload) => self.record(payload).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}
