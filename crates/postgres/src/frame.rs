//! Frames of the PostgreSQL protocol: a tag, a length, a body. Bounded, without copies.

use bytes::{Buf as _, Bytes, BytesMut};

/// How much of a frame above the bound is kept, to say what it is.
const PREFIX: usize = 16 * 1024;

/// Room below which it is worth to make more.
const LEAST: usize = 16 * 1024;

/// One message of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    /// A message within the bound.
    Whole { tag: u8, body: Bytes },
    /// The beginning of a message above it; the rest is read and dropped.
    Cut { tag: u8, size: usize, prefix: Bytes },
}

/// The length of a frame is below that of the length itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message claims a length of {0} bytes; the peer does not speak the PostgreSQL protocol")]
pub(crate) struct FrameError(u32);

/// Collects bytes and gives frames.
#[derive(Debug)]
pub(crate) struct FrameBuffer {
    bytes: BytesMut,
    limit: usize,
    /// Bytes of a cut frame still to be dropped.
    skip: usize,
}

impl FrameBuffer {
    /// A buffer for frames of bodies up to `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: BytesMut::new(), limit, skip: 0 }
    }

    /// Changes the bound for the frames to come.
    pub(crate) const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Where to read into: with room for `room` bytes when it has to be made anew, so that many
    /// small reads share it.
    pub(crate) fn space(&mut self, room: usize) -> &mut BytesMut {
        if self.bytes.capacity() - self.bytes.len() < room.min(LEAST) {
            self.bytes.reserve(room);
        }
        &mut self.bytes
    }

    /// The next frame, once it has arrived.
    ///
    /// # Errors
    /// When the bytes are no frame.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let dropped = self.skip.min(self.bytes.len());
        self.bytes.advance(dropped);
        self.skip -= dropped;
        let (Some(&tag), Some(&[a, b, c, d])) =
            (self.bytes.first(), self.bytes.get(1..5).and_then(<[u8]>::first_chunk))
        else {
            return Ok(None);
        };
        let claimed = u32::from_be_bytes([a, b, c, d]);
        let size = usize::try_from(claimed).unwrap_or(usize::MAX);
        let size = size.checked_sub(4).ok_or(FrameError(claimed))?;
        let kept = if size > self.limit { size.min(PREFIX) } else { size };
        if self.bytes.len() < 5 + kept {
            return Ok(None);
        }
        self.bytes.advance(5);
        let body = self.bytes.split_to(kept).freeze();
        if size > self.limit {
            self.skip = size - kept;
            return Ok(Some(Frame::Cut { tag, size, prefix: body }));
        }
        Ok(Some(Frame::Whole { tag, body }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wire(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (tag, body) in frames {
            bytes.push(*tag);
            bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
            bytes.extend(body);
        }
        bytes
    }

    fn read(bytes: &[u8], step: usize, limit: usize) -> Vec<Frame> {
        let mut buffer = FrameBuffer::new(limit);
        let mut frames = Vec::new();
        for chunk in bytes.chunks(step) {
            buffer.space(chunk.len()).extend_from_slice(chunk);
            while let Some(frame) = buffer.next().unwrap() {
                frames.push(frame);
            }
        }
        frames
    }

    proptest! {
        #[test]
        fn frames_come_whole_however_they_arrive(
            frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)), 0..8),
            step in 1_usize..50,
        ) {
            let expected: Vec<Frame> = frames
                .iter()
                .map(|(tag, body)| {
                    let body = Bytes::from(body.clone());
                    match body.len() {
                        size @ 21.. => Frame::Cut { tag: *tag, size, prefix: body },
                        _ => Frame::Whole { tag: *tag, body },
                    }
                })
                .collect();
            prop_assert_eq!(read(&wire(&frames), step, 20), expected);
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut buffer = FrameBuffer::new(64);
            buffer.space(bytes.len()).extend_from_slice(&bytes);
            while let Ok(Some(_)) = buffer.next() {}
        }
    }

    #[test]
    fn a_frame_above_the_bound_is_cut_and_the_next_is_found() {
        let frames = wire(&[(b'd', vec![7; 100_000]), (b'k', vec![1])]);
        let read = read(&frames, 1000, 50_000);
        let Frame::Cut { tag: b'd', size: 100_000, prefix } = &read[0] else { panic!("{read:?}") };
        assert_eq!(prefix.len(), PREFIX);
        assert_eq!(read[1], Frame::Whole { tag: b'k', body: Bytes::from_static(&[1]) });
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        let mut buffer = FrameBuffer::new(64);
        buffer.space(5).extend_from_slice(&[b'R', 0, 0, 0, 3]);
        assert_eq!(buffer.next(), Err(FrameError(3)));
    }
}
