//! How far a partition is known to be synced, in a file beside its segments: recovery cuts nothing below
//! it (rules L1, L2).
//!
//! Kafka keeps such a point in order to read less at start; here it tells damage from a torn end. It is
//! written behind a sync and says no more than that sync, so it needs none of its own: one that is lost
//! or torn is no point, an older one a lower point. Only a cut can make it wrong, and takes it away first.

use crate::LogError;
use crate::checkpoint::Place;
use crate::durable_file;
use crate::fs::OpenMode;
use crate::partition::{Partition, Writer};

const FILE: &str = "recovery-point";

/// Digits of the offset in the file.
const DIGITS: usize = 20;

/// How often it is written at most.
const EVERY_MS: u64 = 1000;

/// What was written last, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    offset: i64,
    at_ms: i64,
}

/// The content of the file; of one length, so that it is written over in one piece.
pub(crate) fn to_text(offset: i64) -> String {
    let digits = format!("{offset:0DIGITS$}");
    let sum = crc32c::crc32c(digits.as_bytes());
    format!("{digits} {sum:08x}\n")
}

/// Reads the content; None if it is not whole.
pub(crate) fn parse(content: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(content).ok()?;
    let offset = text.get(..DIGITS)?.parse().ok()?;
    (to_text(offset) == text).then_some(offset)
}

impl Place {
    /// The offset below which everything was synced; 0 where that is not known.
    pub(crate) fn read_recovery_point(&self) -> Result<i64, LogError> {
        let path = self.dir.join(FILE);
        let Some(content) = durable_file::read(self.fs.as_ref(), &path)? else { return Ok(0) };
        Ok(parse(&content).unwrap_or_else(|| {
            tracing::warn!(path = %path.display(), "it is not whole: how far the partition was synced is not known");
            0
        }))
    }

    pub(crate) fn put_recovery_point(&self, offset: i64) -> Result<(), LogError> {
        let path = self.dir.join(FILE);
        let file = self.fs.open(&path, OpenMode::Write);
        let file = file
            .or_else(|_| self.fs.open(&path, OpenMode::Create))
            .map_err(LogError::io("create", &path))?;
        file.write_at(to_text(offset).as_bytes(), 0).map_err(LogError::io("write", &path))
    }

    /// Takes the point away; gone for good once the folder was synced.
    pub(crate) fn forget_recovery_point(&self) -> Result<(), LogError> {
        durable_file::remove_if_there(self.fs.as_ref(), &self.dir.join(FILE))
    }
}

impl Partition {
    /// Writes the recovery point if it has moved and was not written a moment ago.
    pub(crate) fn keep_recovery_point(&self, now_ms: i64) {
        // Nothing is cut while the writer is held.
        let mut writer = self.writer.lock();
        let due =
            writer.recovery_point.is_none_or(|written| now_ms.abs_diff(written.at_ms) >= EVERY_MS);
        if due && self.check_usable().is_ok() {
            self.write_recovery_point(&mut writer, now_ms);
        }
    }

    pub(crate) fn write_recovery_point(&self, writer: &mut Writer, now_ms: i64) {
        let offset = self.marks().synced.offset;
        if writer.recovery_point.is_some_and(|written| written.offset == offset) {
            return;
        }
        match self.place.put_recovery_point(offset) {
            Ok(()) => writer.recovery_point = Some(Written { offset, at_ms: now_ms }),
            // It stays lower than it could be; the next attempt comes by itself.
            Err(error) => {
                tracing::debug!(partition = self.place.name(), %error, "the recovery point could not be written");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_comes_back_and_a_torn_one_is_none() {
        let text = to_text(120);
        assert_eq!(text.len(), DIGITS + 10);
        assert_eq!(parse(text.as_bytes()), Some(120));
        for len in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..len]), None, "{len} bytes");
        }
        for at in 0..text.len() {
            let mut flipped = text.clone().into_bytes();
            flipped[at] ^= 1;
            assert_eq!(parse(&flipped), None, "byte {at}");
        }
        let mixed = [&to_text(99).as_bytes()[..19], &to_text(100).as_bytes()[19..]].concat();
        assert_eq!(parse(&mixed), None, "half of one and half of another");
    }
}
