//! A slice: whole batches where they lie in a segment's file, not read yet.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bytes::Bytes;

use crate::LogError;
use crate::segment::Segment;

/// Bytes that one call takes through memory, where the file system cannot send by itself.
const PIECE: u64 = 64 << 10;

/// Whole batches of one segment. It keeps the file open: retention and compaction may take the segment
/// from the log meanwhile, its bytes stay.
#[derive(Clone, Debug)]
pub struct Slice {
    segment: Arc<Segment>,
    position: u64,
    len: u64,
    next_offset: i64,
}

impl Slice {
    pub(crate) fn new(segment: Arc<Segment>, position: u64, len: u64, next_offset: i64) -> Self {
        Self { segment, position, len, next_offset }
    }

    /// Bytes that are left in it.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True when nothing is left in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The offset from which reading goes on behind it.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// All that is left. Blocks on the disk.
    ///
    /// # Errors
    /// [`LogError::Damaged`] where the file ends too early; or of the disk.
    pub fn read(&self) -> Result<Bytes, LogError> {
        self.segment.read(self.position, self.len)
    }

    /// Takes up to `most` bytes off its front. Blocks on the disk.
    ///
    /// # Errors
    /// As [`Slice::read`].
    pub fn take(&mut self, most: u64) -> Result<Bytes, LogError> {
        let piece = self.segment.read(self.position, self.len.min(most))?;
        self.advance(piece.len());
        Ok(piece)
    }

    /// Sends what a socket takes now, from the page cache where the file system can (sendfile(2)), and
    /// says how much that was. Blocks on the disk, and on the socket if it blocks.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the socket is full; [`io::ErrorKind::UnexpectedEof`] when the
    /// file ends too early; or of the disk and the socket.
    pub fn send(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        if self.is_empty() {
            return Ok(0);
        }
        let sent = match self.segment.file().descriptor() {
            Some(file) => {
                let most = usize::try_from(self.len).unwrap_or(usize::MAX);
                rustix::fs::sendfile(socket, file, Some(&mut self.position.clone()), most)?
            }
            None => {
                let piece = self.segment.read(self.position, self.len.min(PIECE));
                rustix::io::write(socket, &piece.map_err(io::Error::other)?)?
            }
        };
        if sent == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.advance(sent);
        Ok(sent)
    }

    fn advance(&mut self, bytes: usize) {
        self.position += bytes as u64;
        self.len -= bytes as u64;
    }
}
