//! What the client library reports back about records, on its own thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::Message;
use rdkafka::producer::{DeliveryResult, ProducerContext};
use tokio::sync::Notify;

use crate::KafkaError;
use crate::ledger::{Bounds, Ledger, Place};

/// Which of a writer's two ledgers a record stands in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    /// What was given to `send`, reported by its sequence.
    Records,
    /// What was given to `offsets`, waited for there.
    Offsets,
}

/// The two ledgers, and what broke the writer.
#[derive(Debug)]
pub(crate) struct State {
    records: Ledger,
    offsets: Ledger,
    /// The first failure. Once it is set nothing that still waits will ever be called safe.
    failure: Option<KafkaError>,
}

impl State {
    pub(crate) const fn ledger(&mut self, lane: Lane) -> &mut Ledger {
        match lane {
            Lane::Records => &mut self.records,
            Lane::Offsets => &mut self.offsets,
        }
    }

    /// The failure, if the writer is broken.
    pub(crate) fn check(&self) -> Result<(), KafkaError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Breaks the writer when a record has waited for longer than `patience`.
    pub(crate) fn expire(&mut self, now: Instant, patience: Duration) {
        let overdue =
            self.records.overdue(now, patience).or_else(|| self.offsets.overdue(now, patience));
        if let Some(topic) = overdue {
            self.fail(&topic, format!("not acknowledged within {} ms", patience.as_millis()));
        }
    }

    fn fail(&mut self, topic: &str, detail: String) {
        if self.failure.is_none() {
            tracing::warn!(topic, detail, "the writer is broken");
            self.failure = Some(KafkaError::Write { topic: topic.to_owned(), detail, fatal: true });
        }
    }

    /// Settles one record. After a failure nothing counts any more: a record that arrives at the
    /// log then is delivered again by the writer's successor.
    fn settle(&mut self, lane: Lane, sequence: u64, outcome: Result<Place, String>) {
        match outcome {
            Ok(_) if self.failure.is_some() => {}
            Ok(place) => self.ledger(lane).store(sequence, place),
            Err(detail) => {
                let topic = self.ledger(lane).topic(sequence).unwrap_or_else(|| Arc::from("?"));
                self.fail(&topic, detail);
            }
        }
    }
}

/// Takes the library's delivery reports, and wakes the writer.
#[derive(Debug)]
pub(crate) struct Deliveries {
    state: Mutex<State>,
    progress: Notify,
    /// Nobody waits for this producer any more.
    retired: AtomicBool,
}

impl Deliveries {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let (records, offsets) = (Ledger::new(bounds), Ledger::new(bounds));
        Self {
            state: Mutex::new(State { records, offsets, failure: None }),
            progress: Notify::new(),
            retired: AtomicBool::new(false),
        }
    }

    /// From here on the library's complaints concern nobody: it ends aside, and may outlive the
    /// cluster.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits for a report since the last call, but no longer than `at_most`.
    pub(crate) async fn progress(&self, at_most: Duration) {
        // Running out of time is no error: the caller looks at the state in any case.
        let _ = tokio::time::timeout(at_most, self.progress.notified()).await;
    }
}

/// Lane and sequence in the one word that the library carries for us: no allocation a record.
pub(crate) fn ticket(lane: Lane, sequence: u64) -> usize {
    (sequence as usize) << 1 | usize::from(lane == Lane::Offsets)
}

fn read_ticket(ticket: usize) -> (Lane, u64) {
    let lane = if ticket & 1 == 1 { Lane::Offsets } else { Lane::Records };
    (lane, (ticket >> 1) as u64)
}

/// Where the library says that a record is stored. A duplicate that the broker no longer knows
/// the offset of is confirmed without one; since an offset record must name the tail (rule P2),
/// that is a failure here.
fn outcome(result: &DeliveryResult<'_>) -> Result<Place, String> {
    match result {
        Ok(message) if message.offset() >= 0 => {
            Ok(Place { partition: message.partition(), offset: message.offset() })
        }
        Ok(_) => Err("stored, but the broker did not say at which offset".to_owned()),
        Err((error, _)) => Err(error.to_string()),
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, opaque: usize) {
        let (lane, sequence) = read_ticket(opaque);
        self.state.lock().settle(lane, sequence, outcome(result));
        self.progress.notify_one();
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        match level {
            _ if self.retired.load(Ordering::Relaxed) => {
                tracing::debug!(facility, "librdkafka: {message}");
            }
            // It calls the settings that we chose on purpose experimental, at every start.
            _ if facility == "CONFWARN" => tracing::debug!(facility, "librdkafka: {message}"),
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error
            | RDKafkaLogLevel::Warning => tracing::warn!(facility, "librdkafka: {message}"),
            _ => tracing::debug!(facility, "librdkafka: {message}"),
        }
    }

    fn error(&self, error: rdkafka::error::KafkaError, reason: &str) {
        // Lost connections come here too; the library mends those itself.
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::Fatal) {
            self.state.lock().fail("all topics", reason.to_owned());
            self.progress.notify_one();
        } else {
            tracing::debug!(%error, "librdkafka: {reason}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliveries() -> Deliveries {
        Deliveries::new(Bounds { records: 10, bytes: 1000 })
    }

    fn send(state: &mut State, lane: Lane) -> u64 {
        state.ledger(lane).enter(&Arc::from("trail"), 1, Instant::now()).unwrap()
    }

    #[test]
    fn tickets_keep_lane_and_sequence() {
        for lane in [Lane::Records, Lane::Offsets] {
            for sequence in [1, 2, 1 << 40] {
                assert_eq!(read_ticket(ticket(lane, sequence)), (lane, sequence));
            }
        }
    }

    #[test]
    fn nothing_at_or_after_a_failure_is_reported() {
        let deliveries = deliveries();
        let mut state = deliveries.state();
        for _ in 0..3 {
            send(&mut state, Lane::Records);
        }
        state.settle(Lane::Records, 1, Ok(Place { partition: 0, offset: 7 }));
        state.settle(Lane::Records, 2, Err("too large".to_owned()));
        state.settle(Lane::Records, 2, Ok(Place { partition: 0, offset: 8 }));
        state.settle(Lane::Records, 3, Ok(Place { partition: 0, offset: 9 }));
        let reported: Vec<u64> = state.records.report().iter().map(|ack| ack.sequence).collect();
        assert_eq!(reported, [1]);
        assert!(matches!(state.check(), Err(KafkaError::Write { fatal: true, .. })));
    }

    #[test]
    fn the_first_failure_is_kept() {
        let deliveries = deliveries();
        let mut state = deliveries.state();
        send(&mut state, Lane::Offsets);
        state.settle(Lane::Offsets, 1, Err("first".to_owned()));
        state.settle(Lane::Offsets, 1, Err("second".to_owned()));
        assert!(state.check().unwrap_err().to_string().contains("first"));
    }

    #[test]
    fn an_overdue_offset_record_breaks_the_writer() {
        let deliveries = deliveries();
        let mut state = deliveries.state();
        send(&mut state, Lane::Offsets);
        state.expire(Instant::now() + Duration::from_secs(2), Duration::from_secs(5));
        assert!(state.check().is_ok());
        state.expire(Instant::now() + Duration::from_secs(6), Duration::from_secs(5));
        assert!(state.check().is_err());
    }
}
