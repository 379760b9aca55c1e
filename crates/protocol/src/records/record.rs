//! Records, opened.

use bytes::Bytes;

use super::walk::{RecordView, Walk};
use super::{BatchError, BatchHeader};

/// One record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its offset.
    pub offset: i64,
    /// Its timestamp, in milliseconds since 1970, or -1.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value; null is a tombstone.
    pub value: Option<Bytes>,
    /// Its headers, in order; a name may stand more than once.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

/// The records of a batch; see [`Batch::records`](super::Batch::records).
#[derive(Clone, Debug)]
pub struct Records {
    body: Bytes,
    walk: Walk,
}

impl Records {
    pub(super) fn new(header: &BatchHeader, body: Bytes) -> Self {
        Self { body, walk: Walk::new(header) }
    }
}

impl Iterator for Records {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let view = self.walk.next(&self.body)?;
        Some(view.map(|view| open(&self.body, view)))
    }
}

/// The record of a view into `body`, sharing its memory.
fn open(body: &Bytes, view: RecordView<'_>) -> Record {
    let slice = |bytes: &[u8]| body.slice_ref(bytes);
    Record {
        offset: view.time.offset,
        timestamp: view.time.timestamp,
        key: view.key.map(slice),
        value: view.value.map(slice),
        headers: view.headers.map(|(name, value)| (slice(name), value.map(slice))).collect(),
    }
}
