//! Where the log transactions of an exactly-once task end. Pure.
//!
//! A transaction of the source is not torn over several of the log: one that a poll leaves open is
//! waited for, unless it takes so long that the log's own would time out.

use std::time::{Duration, Instant};

/// Kafka Connect's `transaction.boundary`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Boundary {
    /// After what a poll has brought.
    Poll,
    /// After what a poll has brought, once this long has passed since the transaction began.
    Interval(Duration),
    /// After each record that ends a transaction of the source, and nowhere else.
    Connector,
}

/// The transaction that is open, if one is, and when it ends.
#[derive(Debug)]
pub(crate) struct Boundaries {
    boundary: Boundary,
    /// How long the log lets a transaction be open.
    timeout: Duration,
    began: Option<Instant>,
}

impl Boundaries {
    pub(crate) const fn new(boundary: Boundary, timeout: Duration) -> Self {
        Self { boundary, timeout, began: None }
    }

    /// A record is about to be sent.
    pub(crate) fn sends(&mut self, now: Instant) {
        self.began.get_or_insert(now);
    }

    /// The transaction has ended.
    pub(crate) const fn ended(&mut self) {
        self.began = None;
    }

    pub(crate) const fn is_open(&self) -> bool {
        self.began.is_some()
    }

    /// Whether the transaction ends at a record, which may be the last of the source's own.
    pub(crate) fn ends_at_record(&self, is_last: bool) -> bool {
        is_last && self.is_open() && self.boundary == Boundary::Connector
    }

    /// Whether the transaction ends with what a poll has brought.
    pub(crate) fn ends_at_poll(&self, now: Instant, in_transaction: bool) -> bool {
        let Some(began) = self.began else { return false };
        let open = now.saturating_duration_since(began);
        let due = match self.boundary {
            Boundary::Poll => true,
            Boundary::Interval(interval) => open >= interval,
            Boundary::Connector => return false,
        };
        // Half of it is left for the commit itself.
        open >= self.timeout / 2 || (due && !in_transaction)
    }

    /// Whether what is open when the task stops is committed. Where the source alone says what is
    /// whole, the part of a transaction is not.
    pub(crate) fn ends_at_stop(&self, in_transaction: bool) -> bool {
        self.boundary != Boundary::Connector || !in_transaction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TIMEOUT: Duration = Duration::from_secs(60);

    fn open(boundary: Boundary) -> (Boundaries, Instant) {
        let (mut boundaries, now) = (Boundaries::new(boundary, TIMEOUT), Instant::now());
        boundaries.sends(now);
        (boundaries, now)
    }

    #[test]
    fn a_poll_ends_the_transaction_unless_the_source_is_inside_one() {
        let (mut poll, now) = open(Boundary::Poll);
        assert!(poll.ends_at_poll(now, false));
        assert!(!poll.ends_at_poll(now + 29 * SECOND, true));
        assert!(!poll.ends_at_record(true));
        poll.ended();
        assert!(!poll.ends_at_poll(now, false), "nothing is open");
    }

    #[test]
    fn a_transaction_that_would_time_out_ends_inside_one_of_the_source() {
        for boundary in [Boundary::Poll, Boundary::Interval(300 * SECOND)] {
            let (boundaries, now) = open(boundary);
            assert!(boundaries.ends_at_poll(now + 30 * SECOND, true), "{boundary:?}");
        }
    }

    #[test]
    fn an_interval_ends_it_at_the_first_poll_behind_it() {
        let (mut interval, now) = open(Boundary::Interval(10 * SECOND));
        interval.sends(now + 9 * SECOND);
        assert!(!interval.ends_at_poll(now + 9 * SECOND, false));
        assert!(interval.ends_at_poll(now + 10 * SECOND, false));
        assert!(!interval.ends_at_poll(now + 10 * SECOND, true));
    }

    #[test]
    fn a_connector_ends_it_where_its_own_transactions_end_and_nowhere_else() {
        let (connector, now) = open(Boundary::Connector);
        assert!(connector.ends_at_record(true) && !connector.ends_at_record(false));
        assert!(!connector.ends_at_poll(now + 59 * SECOND, false));
        assert!(connector.ends_at_stop(false) && !connector.ends_at_stop(true));
        assert!(open(Boundary::Poll).0.ends_at_stop(true));
    }
}
