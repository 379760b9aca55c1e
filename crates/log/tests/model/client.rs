//! An idempotent producer: numbers its batches, keeps up to five on the way, sends again what was not
//! acknowledged. One of two kinds writes in transactions.

use std::collections::VecDeque;

use bytes::Bytes;

use highwater_log::EndMarker;

use crate::entry::{Kind, Stored};

#[derive(Clone, Debug)]
pub struct Sent {
    pub bytes: Bytes,
    pub records: Vec<(i64, Bytes)>,
    pub kind: Kind,
    pub answered: bool,
    /// The offset behind it, if it is in the log.
    pub next: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct Client {
    pub id: i64,
    pub epoch: i16,
    pub sequence: i32,
    pub transactional: bool,
    /// A marker of which nobody knows whether it is in the log: it is sent until it is.
    pub marker: Option<EndMarker>,
    pub unacknowledged: VecDeque<Sent>,
}

impl Client {
    pub fn new(id: i64, transactional: bool) -> Self {
        let unacknowledged = VecDeque::new();
        Self { id, epoch: 0, sequence: 0, transactional, marker: None, unacknowledged }
    }

    /// Takes the answers to what is visible now.
    pub fn acknowledge(&mut self, shown: i64) {
        while let Some(sent) = self.unacknowledged.front() {
            if !sent.answered || sent.next.is_none_or(|next| next > shown) {
                return;
            }
            self.unacknowledged.pop_front();
        }
    }

    /// After a crash or a cut: which of its batches are in the log?
    pub fn look_up(&mut self, stored: &[Stored], log_start: i64) {
        for sent in &mut self.unacknowledged {
            let tag = &sent.records[0].1;
            let found = stored.iter().find(|stored| stored.tag() == *tag).map(Stored::next);
            // One that is not there may be gone below the log start; else another took its place, or none.
            sent.next = found.or(sent.next.filter(|next| *next <= log_start));
        }
    }

    /// The connection broke: nothing on the way will be answered.
    pub fn disconnect(&mut self) {
        for sent in &mut self.unacknowledged {
            sent.answered = false;
        }
    }

    /// As another instance.
    pub fn begin_again(&mut self) {
        self.epoch += 1;
        self.sequence = 0;
        self.unacknowledged.clear();
    }
}
