//! What becomes of a request.

use std::pin::Pin;

use bytes::Bytes;
use highwater_log::Slice;
use highwater_protocol::Gap;

use crate::budget::Share;

/// A response as it goes over the wire, its length in front.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) parts: Vec<Part>,
    /// Held until the response was written.
    pub(crate) share: Share,
}

/// A part of a response.
#[derive(Debug)]
pub(crate) enum Part {
    /// Encoded.
    Bytes(Bytes),
    /// Batches that go from the file to the socket.
    Slice(Slice),
}

/// What a request leads to. Requests of a connection are begun in order, then answered in order:
/// what changes the log happens at the beginning, what waits comes later.
pub(crate) enum Reply {
    /// The answer is here.
    Ready(Answer),
    /// The answer comes when the future is awaited.
    Later(Pin<Box<dyn Future<Output = Answer> + Send>>),
    /// No answer is due (acks=0).
    Silent,
}

impl Answer {
    /// An encoded response, with slices in its gaps.
    pub(crate) fn around(mut encoded: Bytes, gaps: &[Gap], slices: Vec<Vec<Slice>>) -> Self {
        let mut parts = Vec::new();
        let mut taken = 0;
        for (gap, slices) in gaps.iter().zip(slices) {
            parts.push(Part::Bytes(encoded.split_to(gap.at - taken)));
            parts.extend(slices.into_iter().map(Part::Slice));
            taken = gap.at;
        }
        parts.push(Part::Bytes(encoded));
        Self { parts, share: Share::default() }
    }

    /// Bytes that are in memory.
    pub(crate) fn held(&self) -> usize {
        let held = |part: &Part| match part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Slice(_) => 0,
        };
        self.parts.iter().map(held).sum()
    }
}

impl From<Bytes> for Answer {
    fn from(bytes: Bytes) -> Self {
        Self { parts: vec![Part::Bytes(bytes)], share: Share::default() }
    }
}
