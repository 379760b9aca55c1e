//! The order of acknowledgements: what was sent, what came back, what may be reported.
//!
//! A pure state machine. Deliveries come back in any order; they are reported in the order of
//! sending and without gaps, so that a record is called safe only when all before it are (rule P1).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Acknowledgement;

/// How much may wait for acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

/// A record that was sent, and where it is stored once that is known.
#[derive(Debug)]
struct Sent {
    topic: Arc<str>,
    bytes: usize,
    at: Instant,
    stored: Option<StoredAt>,
}

/// Where a record is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredAt {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
}

/// Records sent and not yet reported, in the order of sending.
#[derive(Debug)]
pub(crate) struct Ledger {
    bounds: Bounds,
    /// Sequence of the first of `sent`.
    first: u64,
    sent: VecDeque<Sent>,
    /// How many at the front of `sent` are stored: what may be reported.
    reportable: usize,
    waiting_records: usize,
    waiting_bytes: usize,
}

impl Ledger {
    pub(crate) const fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            first: 1,
            sent: VecDeque::new(),
            reportable: 0,
            waiting_records: 0,
            waiting_bytes: 0,
        }
    }

    /// Whether a record of this size may be sent now. One record may always be in flight, whatever
    /// its size: otherwise one above the bound could never be sent.
    fn has_room(&self, bytes: usize) -> bool {
        self.waiting_records == 0
            || (self.waiting_records < self.bounds.records
                && self.waiting_bytes.saturating_add(bytes) <= self.bounds.bytes)
    }

    /// Enters a record that is about to be sent and returns its sequence; `None` when there is no room.
    pub(crate) fn enter(&mut self, topic: &Arc<str>, bytes: usize, at: Instant) -> Option<u64> {
        if !self.has_room(bytes) {
            return None;
        }
        let sequence = self.next();
        self.sent.push_back(Sent { topic: Arc::clone(topic), bytes, at, stored: None });
        self.waiting_records += 1;
        self.waiting_bytes += bytes;
        Some(sequence)
    }

    /// The sequence of the record to be entered next.
    fn next(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    fn release(&mut self, bytes: usize) {
        self.waiting_records -= 1;
        self.waiting_bytes -= bytes;
    }

    /// Notes where a record is stored. What is not waiting for it is left alone, so that nothing
    /// is reported twice.
    pub(crate) fn store(&mut self, sequence: u64, place: StoredAt) {
        let Some(index) = sequence.checked_sub(self.first) else { return };
        let Some(sent) = usize::try_from(index).ok().and_then(|index| self.sent.get_mut(index))
        else {
            return;
        };
        if sent.stored.is_some() {
            return;
        }
        sent.stored = Some(place);
        let bytes = sent.bytes;
        self.release(bytes);
        self.advance();
    }

    fn advance(&mut self) {
        while self.sent.get(self.reportable).is_some_and(|sent| sent.stored.is_some()) {
            self.reportable += 1;
        }
    }

    /// Takes what may be reported.
    pub(crate) fn report(&mut self) -> Vec<Acknowledgement> {
        let first = self.first;
        self.first += self.reportable as u64;
        let reported = self.sent.drain(..std::mem::take(&mut self.reportable));
        (first..).zip(reported).filter_map(|(sequence, sent)| acknowledge(sequence, sent)).collect()
    }

    /// Whether [`Self::report`] would bring something.
    pub(crate) const fn has_news(&self) -> bool {
        self.reportable > 0
    }

    /// Whether nothing waits for acknowledgement.
    pub(crate) const fn is_settled(&self) -> bool {
        self.waiting_records == 0
    }

    /// The topic that has waited longer than `patience`, if any has.
    pub(crate) fn overdue(&self, now: Instant, patience: Duration) -> Option<Arc<str>> {
        let oldest = self.sent.get(self.reportable)?;
        (now.saturating_duration_since(oldest.at) >= patience).then(|| Arc::clone(&oldest.topic))
    }
}

fn acknowledge(sequence: u64, sent: Sent) -> Option<Acknowledgement> {
    let StoredAt { partition, offset } = sent.stored?;
    Some(Acknowledgement { sequence, topic: sent.topic, partition, offset })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ledger(records: usize, bytes: usize) -> Ledger {
        Ledger::new(Bounds { records, bytes })
    }

    fn enter(ledger: &mut Ledger, bytes: usize) -> Option<u64> {
        ledger.enter(&Arc::from("trail"), bytes, Instant::now())
    }

    fn place(offset: i64) -> StoredAt {
        StoredAt { partition: 0, offset }
    }

    #[test]
    fn a_gap_holds_back_all_behind_it() {
        let mut ledger = ledger(10, 1000);
        for _ in 0..3 {
            enter(&mut ledger, 10);
        }
        ledger.store(2, place(1));
        ledger.store(3, place(2));
        assert!(!ledger.has_news());
        ledger.store(1, place(0));
        let offsets: Vec<i64> = ledger.report().iter().map(|ack| ack.offset).collect();
        assert_eq!(offsets, [0, 1, 2]);
        assert!(ledger.is_settled());
    }

    #[test]
    fn bounds_hold_and_one_large_record_passes_alone() {
        let mut ledger = ledger(2, 100);
        assert_eq!(enter(&mut ledger, 1000), Some(1));
        assert_eq!(enter(&mut ledger, 1), None);
        ledger.store(1, place(0));
        assert_eq!(enter(&mut ledger, 60), Some(2));
        assert_eq!(enter(&mut ledger, 60), None);
        assert_eq!(enter(&mut ledger, 40), Some(3));
        assert_eq!(enter(&mut ledger, 0), None);
    }

    #[test]
    fn the_oldest_unacknowledged_record_decides_what_is_overdue() {
        let (mut ledger, start, patience) =
            (ledger(10, 100), Instant::now(), Duration::from_secs(5));
        ledger.enter(&Arc::from("a"), 1, start);
        ledger.enter(&Arc::from("b"), 1, start + Duration::from_secs(3));
        assert_eq!(ledger.overdue(start + Duration::from_secs(5), patience), Some(Arc::from("a")));
        ledger.store(1, place(0));
        assert_eq!(ledger.overdue(start + Duration::from_secs(5), patience), None);
        assert_eq!(ledger.overdue(start + Duration::from_secs(8), patience), Some(Arc::from("b")));
    }

    /// One step of a history of a writer.
    #[derive(Clone, Debug)]
    enum Step {
        Send(usize),
        Deliver(prop::sample::Index),
        Report,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0usize..50).prop_map(Step::Send),
            any::<prop::sample::Index>().prop_map(Step::Deliver),
            Just(Step::Report),
        ]
    }

    proptest! {
        /// Any order of deliveries, duplicates included: reports count up by one from 1, name only
        /// what was delivered, and the bounds hold at every step.
        #[test]
        fn reports_are_in_order_without_gaps_and_once(
            steps in prop::collection::vec(step(), 1..300),
        ) {
            let bounds = Bounds { records: 8, bytes: 120 };
            let mut ledger = Ledger::new(bounds);
            let (mut sent, mut delivered, mut reported) = (0u64, std::collections::BTreeSet::new(), 0);
            for step in steps {
                match step {
                    Step::Send(bytes) => if let Some(sequence) = enter(&mut ledger, bytes) {
                        sent += 1;
                        prop_assert_eq!(sequence, sent);
                    },
                    Step::Deliver(which) if sent > 0 => {
                        let sequence = which.index(sent as usize) as u64 + 1;
                        ledger.store(sequence, place(sequence as i64));
                        delivered.insert(sequence);
                    }
                    Step::Deliver(_) => {}
                    Step::Report => for ack in ledger.report() {
                        reported += 1;
                        prop_assert_eq!(ack.sequence, reported);
                        prop_assert_eq!(ack.offset, reported as i64);
                        prop_assert!(delivered.contains(&reported));
                    },
                }
                prop_assert!(ledger.waiting_records <= bounds.records);
                prop_assert_eq!(ledger.waiting_records as u64, sent - delivered.len() as u64);
            }
        }
    }
}
