//! The loop over a log in memory and a source that yields what the test says.

use std::collections::VecDeque;
use std::sync::Mutex as StdMutex;

use async_trait::async_trait;
use bytes::Bytes;
use highwater_connector::{
    ColumnStates, ErrorKind, Generation, GenerationMark, RecordKind, SchemaAndValue, SourceOffset,
    SourceRecord, Start, Tail, TaskStore, Type, Value,
};
use highwater_kafka::OutgoingRecord;

use super::*;
use crate::DefaultConverters;
use crate::backoff::Backoff;
use crate::boundary::{Boundaries, Boundary};
use crate::cluster::Sending;
use crate::ledger::{Cover, Ledger};
use crate::outbox::{Contract, OffsetSlot};
use crate::record_path::RecordPath;
use crate::scripted::MemoryWriter;
use crate::scrub::Scrub;
use crate::task_topics::TaskTopics;
use crate::tolerance::Tolerance;

type Poll = Result<Vec<SourceItem>, ConnectorError>;

/// What the source was told, in order.
#[derive(Debug, PartialEq, Eq, Clone)]
enum Told {
    Committed(i64),
    Stopped,
}

#[derive(Clone, Default)]
struct Log(Arc<StdMutex<Vec<Told>>>);

struct ScriptedTask {
    polls: VecDeque<Poll>,
    told: Log,
}

#[async_trait]
impl SourceTask for ScriptedTask {
    async fn start(&mut self, _: Start, _: Arc<dyn TaskStore>) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn poll(&mut self) -> Poll {
        match self.polls.pop_front() {
            Some(poll) => poll,
            None => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(Vec::new())
            }
        }
    }

    async fn committed(&mut self, position: &dyn Position) -> Result<(), ConnectorError> {
        let at = position.offset().number("at").unwrap();
        self.told.0.lock().unwrap().push(Told::Committed(at));
        Ok(())
    }

    async fn stop(&mut self) {
        self.told.0.lock().unwrap().push(Told::Stopped);
    }

    fn activity(&self) -> String {
        "Reads what the test says".to_owned()
    }
}

fn position(at: i64) -> Arc<dyn Position> {
    let mut offset = SourceOffset::default();
    offset.set("at", at);
    Arc::new(offset)
}

fn item(at: i64, boundary: bool) -> SourceItem {
    SourceItem::Record(SourceRecord {
        kind: RecordKind::Event,
        topic: "shop".into(),
        partition: Some(0),
        key: None,
        value: Some(Bytes::from(at.to_string())),
        other_key: None,
        headers: Vec::new(),
        hw: None,
        states: ColumnStates::default(),
        position: position(at),
        boundary,
    })
}

struct Bench {
    writer: MemoryWriter,
    told: Log,
    stop: watch::Sender<Option<Instant>>,
    running: Running,
}

fn bench(polls: Vec<Poll>) -> Bench {
    bench_under(Contract::AtLeastOnce, polls)
}

/// A task whose transactions end as `boundary` says.
fn exactly_once(boundary: Boundary, polls: Vec<Poll>) -> Bench {
    bench_under(Contract::ExactlyOnce(Boundaries::new(boundary, Duration::from_secs(60))), polls)
}

fn bench_under(contract: Contract, polls: Vec<Poll>) -> Bench {
    let cover = match contract {
        Contract::AtLeastOnce => Cover::Acknowledged,
        Contract::ExactlyOnce(_) => Cover::All,
    };
    let writer = MemoryWriter::default();
    let told = Log::default();
    let (stop, stopped) = watch::channel(None);
    let slot = OffsetSlot {
        topic: "offsets".to_owned(),
        key: Bytes::from_static(b"k"),
        mark: GenerationMark { generation: Generation::from_bits(1), fingerprint: String::new() },
    };
    let outbox = Outbox::new(
        Box::new(writer.clone()),
        contract,
        Ledger::new(cover, Tail::default(), Instant::now().into_std()),
        slot,
        Sending::up_to(1 << 20),
        TaskTopics::fixed([]),
    );
    let running = Running {
        task: Box::new(ScriptedTask { polls: polls.into(), told: told.clone() }),
        outbox: Arc::new(Mutex::new(outbox)),
        values: None,
        trouble: None,
        flush_interval: Duration::from_secs(1),
        in_transaction: false,
        stop: stopped,
        status: watch::Sender::new(Status::unassigned()),
        name: "shop".to_owned(),
        meter: Arc::default(),
        unreported: Unreported::default(),
    };
    Bench { writer, told, stop, running }
}

fn at(record: &OutgoingRecord) -> i64 {
    let offset: SourceOffset = serde_json::from_slice(record.value.as_ref().unwrap()).unwrap();
    offset.number("at").unwrap()
}

fn stored(writer: &MemoryWriter) -> Vec<(usize, i64)> {
    writer.0.lock().unwrap().offsets.iter().map(|(sent, record)| (*sent, at(record))).collect()
}

fn sent(writer: &MemoryWriter) -> usize {
    writer.0.lock().unwrap().records.len()
}

#[tokio::test(start_paused = true)]
async fn a_drain_goes_on_to_the_end_of_the_transaction_and_stores_it() {
    let polls = vec![
        Ok(vec![item(1, true), item(2, false)]),
        Ok(vec![item(3, false)]),
        Ok(vec![item(4, true), item(5, true)]),
    ];
    let Bench { writer, told, stop, mut running } = bench(polls);
    // The drain is asked for inside transaction 2..4.
    let first = running.task.poll().await.unwrap();
    running.send(first).await.unwrap();
    stop.send_replace(Some(Instant::now() + Duration::from_secs(5)));
    running.run().await.unwrap();
    assert_eq!(sent(&writer), 4, "it sent what lies behind the transaction, or not all of it");
    assert_eq!(stored(&writer), [(4, 4)]);
    assert_eq!(*told.0.lock().unwrap(), [Told::Committed(4), Told::Stopped]);
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_takes_too_long_is_cut_and_stores_what_is_acknowledged() {
    let Bench { writer, told, stop, running } = bench(vec![Ok(vec![item(1, false)])]);
    let running = tokio::spawn(running.run());
    tokio::time::sleep(Duration::from_millis(50)).await;
    let asked = Instant::now();
    stop.send_replace(Some(asked + Duration::from_secs(5)));
    running.await.unwrap().unwrap();
    let took = asked.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(6), "{took:?}");
    assert_eq!(stored(&writer).last(), Some(&(1, 1)));
    assert_eq!(told.0.lock().unwrap().last(), Some(&Told::Stopped));
}

#[tokio::test(start_paused = true)]
async fn offsets_are_stored_at_most_once_an_interval() {
    let polls = (1..=30).map(|at| Ok(vec![item(at, true)])).collect();
    let Bench { writer, stop, running, .. } = bench(polls);
    let running = tokio::spawn(running.run());
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(stored(&writer).len(), 1, "{:?}", stored(&writer));
    stop.send_replace(Some(Instant::now()));
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stored_or_told_while_nothing_is_acknowledged() {
    let Bench { writer, told, stop, running } =
        bench(vec![Ok(vec![item(1, true), item(2, true), item(3, true)])]);
    writer.0.lock().unwrap().held = true;
    let running = tokio::spawn(running.run());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((stored(&writer).len(), told.0.lock().unwrap().len()), (0, 0));
    writer.0.lock().unwrap().release(2);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(stored(&writer), [(2, 2)]);
    assert_eq!(*told.0.lock().unwrap(), [Told::Committed(2)]);
    stop.send_replace(None);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn an_idle_position_is_stored_and_told() {
    let Bench { writer, told, stop, running } =
        bench(vec![Ok(vec![SourceItem::Idle(position(9))])]);
    let running = tokio::spawn(running.run());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(stored(&writer), [(0, 9)]);
    assert_eq!(*told.0.lock().unwrap(), [Told::Committed(9)]);
    stop.send_replace(Some(Instant::now()));
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_an_error_of_the_source_the_acknowledged_prefix_is_stored_but_not_told() {
    let error = ConnectorError::again("GONE", ErrorKind::Source, "the source went away");
    let Bench { writer, told, running, stop } = bench(vec![Ok(vec![item(1, false)]), Err(error)]);
    assert_eq!(running.run().await.unwrap_err().code, "GONE");
    assert_eq!(stored(&writer), [(1, 1)]);
    assert_eq!(*told.0.lock().unwrap(), [Told::Stopped]);
    drop(stop);
}

#[tokio::test(start_paused = true)]
async fn a_failed_offset_write_ends_the_run_and_tells_nothing() {
    let Bench { writer, told, running, stop } = bench(vec![Ok(vec![item(1, true)])]);
    writer.0.lock().unwrap().offsets_fail = true;
    assert_eq!(running.run().await.unwrap_err().code, "LOG_WRITE_FAILED");
    assert_eq!((stored(&writer).len(), told.0.lock().unwrap().clone()), (0, vec![Told::Stopped]));
    drop(stop);
}

/// How many records and which offset each transaction has made visible.
fn committed(writer: &MemoryWriter) -> Vec<(usize, i64)> {
    let memory = writer.0.lock().unwrap();
    let offset = |offsets: usize| at(&memory.offsets[offsets - 1].1);
    memory.commits.iter().map(|(records, offsets)| (*records, offset(*offsets))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_transaction_ends_with_a_poll_and_never_inside_one_of_the_source() {
    let polls = vec![
        Ok(vec![item(1, true), item(2, true)]),
        Ok(vec![item(3, true), item(4, false)]),
        Ok(vec![item(5, false)]),
        Ok(vec![item(6, true)]),
    ];
    let Bench { writer, told, stop, running } = exactly_once(Boundary::Poll, polls);
    let running = tokio::spawn(running.run());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(committed(&writer), [(2, 2), (6, 6)]);
    assert_eq!(*told.0.lock().unwrap(), [Told::Committed(2), Told::Committed(6)]);
    stop.send_replace(Some(Instant::now()));
    running.await.unwrap().unwrap();
    assert_eq!(writer.0.lock().unwrap().aborts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_connector_ends_transactions_inside_a_poll_and_a_part_of_one_is_given_up_at_a_stop() {
    let polls = vec![Ok(vec![item(1, false), item(2, true), item(3, true), item(4, false)])];
    let Bench { writer, told, stop, running } = exactly_once(Boundary::Connector, polls);
    let running = tokio::spawn(running.run());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(committed(&writer), [(2, 2), (3, 3)]);
    stop.send_replace(Some(Instant::now()));
    running.await.unwrap().unwrap();
    assert_eq!((committed(&writer).len(), writer.0.lock().unwrap().aborts), (2, 1));
    let expected = [Told::Committed(2), Told::Committed(3), Told::Stopped];
    assert_eq!(*told.0.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_open_when_a_task_stops_is_committed() {
    let Bench { writer, stop, running, .. } =
        exactly_once(Boundary::Interval(Duration::from_secs(50)), vec![Ok(vec![item(1, true)])]);
    let running = tokio::spawn(running.run());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(committed(&writer), []);
    stop.send_replace(Some(Instant::now()));
    running.await.unwrap().unwrap();
    assert_eq!(committed(&writer), [(1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_gives_up_what_is_open_in_a_transaction() {
    let error = ConnectorError::again("GONE", ErrorKind::Source, "the source went away");
    let polls = vec![Ok(vec![item(1, true)]), Ok(vec![item(2, false)]), Err(error)];
    let Bench { writer, told, running, stop } = exactly_once(Boundary::Poll, polls);
    assert_eq!(running.run().await.unwrap_err().code, "GONE");
    assert_eq!((committed(&writer), writer.0.lock().unwrap().aborts), (vec![(1, 1)], 1));
    assert_eq!(*told.0.lock().unwrap(), [Told::Committed(1), Told::Stopped]);
    drop(stop);
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_unknown_outcome_ends_the_run_and_tells_nothing_and_aborts_nothing() {
    let Bench { writer, told, running, stop } =
        exactly_once(Boundary::Poll, vec![Ok(vec![item(1, true)])]);
    writer.0.lock().unwrap().commits_fail = true;
    assert_eq!(running.run().await.unwrap_err().code, "COMMIT_UNKNOWN");
    assert_eq!(*told.0.lock().unwrap(), [Told::Stopped]);
    assert_eq!(writer.0.lock().unwrap().aborts, 0);
    drop(stop);
}

#[tokio::test(start_paused = true)]
async fn an_idle_position_is_a_transaction_of_its_own() {
    let Bench { writer, told, stop, running } =
        exactly_once(Boundary::Poll, vec![Ok(vec![SourceItem::Idle(position(9))])]);
    let running = tokio::spawn(running.run());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(committed(&writer), [(0, 9)]);
    assert_eq!(*told.0.lock().unwrap(), [Told::Committed(9)]);
    stop.send_replace(Some(Instant::now()));
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_source_does_is_counted() {
    let polls = vec![Ok(vec![item(1, false), item(2, true)]), Ok(vec![]), Ok(vec![item(3, true)])];
    let Bench { stop, running, .. } = bench(polls);
    let outbox = Arc::into_inner(running.outbox).unwrap().into_inner().metered(&running.meter);
    let meter = Arc::clone(&running.meter);
    let running = Running { outbox: Arc::new(Mutex::new(outbox)), ..running };
    let running = tokio::spawn(running.run());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((meter.records.get(), meter.batches.get()), (3, 2));
    assert!(meter.bytes.get() > 0 && meter.last_record.get().is_some());
    assert_eq!(meter.lag.get(), None, "these records do not say when they were committed");
    assert!(meter.commits.up_to_each().last() > Some(&0));
    stop.send_replace(Some(Instant::now()));
    running.await.unwrap().unwrap();
}

/// A record that holds this number.
fn value(at: i64) -> SourceItem {
    SourceItem::Values(ValueRecord {
        topic: "shop".into(),
        partition: Some(0),
        key: SchemaAndValue::default(),
        value: SchemaAndValue::schemaless(Value::Int64(at)),
        headers: Vec::new(),
        timestamp: None,
        position: position(at),
        boundary: true,
    })
}

fn values(pairs: &[(&str, &str)], skips: bool) -> SourceValues {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let properties = pairs.iter().map(pair).collect();
    let path =
        RecordPath::new(&properties, &DefaultConverters::default(), &Scrub::default()).unwrap();
    let backoff = Backoff { cap: Duration::from_secs(1), give_up_after: Some(Duration::ZERO) };
    SourceValues {
        path: Arc::new(path),
        tolerance: Tolerance { skips, backoff, logs: true, logs_records: true },
        meter: Arc::default(),
        task: 0,
    }
}

const LONG: (&str, &str) = ("value.converter", "LongConverter");

/// Drops all records.
const DROPS: [(&str, &str); 2] = [("transforms", "drop"), ("transforms.drop.type", "Filter")];

fn written(writer: &MemoryWriter) -> Vec<Vec<u8>> {
    let memory = writer.0.lock().unwrap();
    memory.records.iter().map(|record| record.value.as_ref().unwrap().to_vec()).collect()
}

#[tokio::test(start_paused = true)]
async fn values_are_written_as_the_converter_has_them() {
    let mut bench = bench(vec![Ok(vec![value(1), value(2)])]);
    bench.running.values = Some(values(&[LONG], false));
    let (writer, told) = (bench.writer.clone(), bench.told.clone());
    run_for(bench, Duration::from_secs(3)).await.unwrap();
    assert_eq!(written(&writer), [1_i64.to_be_bytes(), 2_i64.to_be_bytes()]);
    assert_eq!(told.0.lock().unwrap().first(), Some(&Told::Committed(2)));
}

#[tokio::test(start_paused = true)]
async fn what_a_transform_drops_moves_the_position_on_and_is_not_written() {
    for contract in [Contract::AtLeastOnce, by_poll()] {
        let mut bench = bench_under(contract, vec![Ok(vec![value(1), value(2)])]);
        bench.running.values = Some(values(&[&DROPS[..], &[LONG]].concat(), false));
        let (writer, told) = (bench.writer.clone(), bench.told.clone());
        run_for(bench, Duration::from_secs(3)).await.unwrap();
        assert!(written(&writer).is_empty());
        assert_eq!(*told.0.lock().unwrap(), [Told::Committed(2), Told::Stopped]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_converted_stops_the_task_unless_it_is_tolerated() {
    let bad = || {
        let SourceItem::Values(mut record) = value(2) else { unreachable!("a value") };
        record.value = SchemaAndValue::schemaless(Value::text("no number"));
        SourceItem::Values(record)
    };
    let polls = || vec![Ok(vec![value(1), bad(), value(3)])];
    let mut strict = bench(polls());
    strict.running.values = Some(values(&[LONG], false));
    let (writer, told) = (strict.writer.clone(), strict.told.clone());
    let error = run_for(strict, Duration::from_secs(3)).await.unwrap_err();
    assert_eq!(error.code, "RECORD_UNCONVERTIBLE");
    assert_eq!((written(&writer).len(), told.0.lock().unwrap().len()), (1, 1));
    let mut tolerant = bench(polls());
    tolerant.running.values = Some(values(&[LONG], true));
    let writer = tolerant.writer.clone();
    run_for(tolerant, Duration::from_secs(3)).await.unwrap();
    assert_eq!(written(&writer), [1_i64.to_be_bytes(), 3_i64.to_be_bytes()]);
}

/// A registry that does not answer, at a port where nobody listens.
#[tokio::test]
async fn a_task_whose_registry_is_away_stops_when_it_shall_and_keeps_its_position() {
    let mut bench = bench(vec![Ok(vec![text_value(1)])]);
    let avro = [
        ("value.converter", "Avro"),
        ("value.converter.schema.registry.url", "http://127.0.0.1:1"),
        ("value.converter.max.retries", "0"),
    ];
    let mut values = values(&avro, true);
    values.tolerance.backoff.give_up_after = None;
    bench.running.values = Some(values);
    let (writer, told) = (bench.writer.clone(), bench.told.clone());
    let mut seen = bench.running.status.subscribe();
    let stop = bench.stop.clone();
    let running = tokio::spawn(bench.running.run());
    let says = |status: &Status| status.activity.starts_with("A record is tried again");
    seen.wait_for(says).await.unwrap();
    stop.send_replace(Some(Instant::now()));
    running.await.unwrap().unwrap();
    assert!(written(&writer).is_empty());
    assert_eq!(*told.0.lock().unwrap(), [Told::Stopped]);
}

fn text_value(at: i64) -> SourceItem {
    let SourceItem::Values(mut record) = value(at) else { unreachable!("a value") };
    record.value = SchemaAndValue::of(Type::String, Value::text("a"));
    SourceItem::Values(record)
}

fn by_poll() -> Contract {
    Contract::ExactlyOnce(Boundaries::new(Boundary::Poll, Duration::from_secs(60)))
}

/// Runs it for this long, and then drains it.
async fn run_for(bench: Bench, time: Duration) -> Result<(), ConnectorError> {
    let Bench { running, stop, .. } = bench;
    let running = tokio::spawn(running.run());
    tokio::time::sleep(time).await;
    stop.send_replace(Some(Instant::now()));
    running.await.unwrap()
}
