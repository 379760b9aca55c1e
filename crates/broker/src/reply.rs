//! What becomes of a request.

use std::collections::VecDeque;
use std::pin::Pin;

use bytes::Bytes;
use highwater_log::Slice;
use highwater_protocol::Gap;

use crate::budget::Share;
use crate::fetch::Fetching;

/// A response as it goes over the wire, its length in front.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What is left to be sent.
    pub(crate) parts: VecDeque<Part>,
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
    /// The answer is looked for when its turn has come, and sent by who finds it.
    Fetch(Box<Fetching>),
    /// No answer is due (acks=0).
    Silent,
}

impl Answer {
    /// An encoded response, with slices in its gaps.
    pub(crate) fn around(mut encoded: Bytes, gaps: &[Gap], slices: Vec<Vec<Slice>>) -> Self {
        let mut parts = VecDeque::new();
        let mut taken = 0;
        for (gap, slices) in gaps.iter().zip(slices) {
            parts.push_back(Part::Bytes(encoded.split_to(gap.at - taken)));
            parts.extend(slices.into_iter().map(Part::Slice));
            taken = gap.at;
        }
        parts.push_back(Part::Bytes(encoded));
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

    /// Bytes in all.
    pub(crate) fn len(&self) -> usize {
        let len = |part: &Part| match part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Slice(slice) => usize::try_from(slice.len()).unwrap_or(usize::MAX),
        };
        self.parts.iter().map(len).sum()
    }

    /// True when all of it was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether sending it may wait for the disk.
    pub(crate) fn has_slices(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Slice(_)))
    }
}

impl From<Bytes> for Answer {
    fn from(bytes: Bytes) -> Self {
        Self { parts: VecDeque::from([Part::Bytes(bytes)]), share: Share::default() }
    }
}
