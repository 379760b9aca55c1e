//! Joining records into one message: a JSON array, never empty.

use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;

/// The position of a record that was put into a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) offset: i64,
    pub(crate) pos: String,
}

/// One message, ready to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    /// JSON text, UTF-8.
    pub(crate) text: Bytes,
    pub(crate) records: u64,
    /// The last data record in it.
    pub(crate) last: Option<Sent>,
}

/// Records that wait to be sent together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    text: Vec<u8>,
    records: u64,
    last: Option<Sent>,
    since: Option<Instant>,
}

impl Batch {
    /// Room for one more record, which the caller appends.
    pub(crate) fn slot(&mut self) -> &mut Vec<u8> {
        self.text.push(if self.records == 0 { b'[' } else { b',' });
        self.records += 1;
        self.since.get_or_insert_with(Instant::now);
        &mut self.text
    }

    /// Adds a record without a position.
    pub(crate) fn add(&mut self, record: &Value) {
        self.slot().extend_from_slice(record.to_string().as_bytes());
    }

    /// The record just added has this position.
    pub(crate) fn positioned(&mut self, sent: Sent) {
        self.last = Some(sent);
    }

    /// Whether it holds `bytes` or more.
    pub(crate) fn is_full(&self, bytes: u64) -> bool {
        self.text.len() as u64 >= bytes
    }

    /// When the first record was added.
    pub(crate) const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// The message, if there is anything to send.
    pub(crate) fn take(&mut self) -> Option<Message> {
        let Self { mut text, records, last, .. } = std::mem::take(self);
        text.push(b']');
        (records > 0).then(|| Message { text: text.into(), records, last })
    }
}
