//! What becomes of a request.

use std::pin::Pin;

use bytes::Bytes;

use crate::budget::Share;

/// A response as it goes over the wire, its length in front.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) bytes: Bytes,
    /// Held until the response was written.
    pub(crate) share: Share,
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

impl From<Bytes> for Answer {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, share: Share::default() }
    }
}
