//! When messages go out (rule S4), to the millisecond, in time that stands still otherwise.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use highwater_kafka::ReadRecord;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::memory::MemoryLog;
use super::trails::{TRAIL, envelope, hw, record, row};
use crate::begin::{Begin, ConnectionRequest};
use crate::closing::Ending;
use crate::config::Limits;
use crate::opening::Opening;
use crate::pump::{Outlet, Pump};
use crate::qos::{OnGone, QualityOfService};
use crate::registry::{Registry, Stream};
use crate::resource::Resource;
use crate::session::Session;
use crate::state::Restored;
use crate::tables::Descriptions;
use crate::trail::Log;

/// Takes messages at once, and notes when.
struct Taken {
    began: Instant,
    /// Milliseconds since the beginning, and the number of records.
    messages: Mutex<Vec<(u128, usize)>>,
}

impl Outlet for Taken {
    async fn send(&self, text: Bytes) -> Result<(), Ending> {
        let records: Vec<Value> = serde_json::from_slice(&text).unwrap();
        self.messages.lock().push((self.began.elapsed().as_millis(), records.len()));
        Ok(())
    }
}

/// A trail whose every fetch brings one record and takes `fetch_time`.
fn trail(records: impl IntoIterator<Item = ReadRecord>, fetch_time: Duration) -> Arc<MemoryLog> {
    let log = MemoryLog::new();
    log.make(TRAIL, 1);
    for record in records {
        log.append(TRAIL, record);
    }
    log.set_fetch_time(fetch_time);
    log
}

/// A stream that sends nothing but rows.
fn resource() -> Resource {
    let rows_alone = json!({
        "includeJSONSchemaRecord": false,
        "includeObjectMetadataRecords": false,
        "includeStreamMetadataRecord": false,
    });
    let body = json!({
        "source": {"trail": TRAIL}, "bufferSize": 131_072, "encoding": {"json": rows_alone},
    });
    Resource::parse(&body).unwrap()
}

async fn session(log: Arc<MemoryLog>) -> Session {
    let limits = Limits { fetch_bytes: 1, ..Limits::default() };
    let stream = Stream::new("orders", resource());
    let registry = Arc::new(Registry::new(limits.clone(), Restored::default()));
    let qos = QualityOfService::ExactlyOnce;
    let admission = registry.admit(&stream, &Begin::Earliest, qos).unwrap();
    let encoding = stream.resource.encoding().clone();
    let view = log.view(encoding);
    let log: Arc<dyn Log> = log;
    let descriptions = Arc::new(Descriptions::new(log.clone()));
    let scans = Semaphore::new(1);
    let mut opening = Opening::new(&log, &view, &limits, &scans).await.unwrap();
    let request = ConnectionRequest::parse(&[], qos).unwrap();
    let start = opening.start(&request).await.unwrap();
    Session { log, descriptions, limits, admission, view, start, on_gone: OnGone::Fail }
}

/// When which numbers of records were sent within a second.
async fn sent(log: &Arc<MemoryLog>) -> Vec<(u128, usize)> {
    let session = session(log.clone()).await;
    let taken = Taken { began: Instant::now(), messages: Mutex::default() };
    let pumping = Pump::new(&session, &taken).run();
    assert!(tokio::time::timeout(Duration::from_secs(1), pumping).await.is_err());
    taken.messages.into_inner()
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test(start_paused = true)]
async fn a_record_behind_which_there_is_nothing_is_sent_at_once() {
    assert_eq!(sent(&trail([row(1)], Duration::ZERO)).await, [(0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn records_that_are_at_hand_share_a_message() {
    assert_eq!(sent(&trail((1..=10).map(row), Duration::ZERO)).await, [(0, 10)]);
}

#[tokio::test(start_paused = true)]
async fn a_steady_trickle_is_held_for_the_linger_and_no_longer() {
    // A record every 2 ms, more always at hand: the first of each message has waited for 5 ms.
    let log = trail((1..=10).map(row), millis(2));
    assert_eq!(sent(&log).await, [(7, 3), (13, 3), (19, 3), (20, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_full_message_does_not_wait() {
    let text = "x".repeat(140_000);
    let large = envelope(&format!(r#""op":"c","before":null,"after":{{"id":1,"note":"{text}"}}"#));
    let records = (1..=2).map(|at| record(&hw(at, 0), &large));
    assert_eq!(sent(&trail(records, millis(100))).await, [(100, 1), (200, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_falls_silent_keeps_nothing_back() {
    // More was at hand when the first record came; before the second comes, 40 ms pass.
    let log = trail([row(1), row(2)], millis(40));
    assert_eq!(sent(&log).await, [(45, 1), (80, 1)]);
}
