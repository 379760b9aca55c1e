//! What every writer keeps, whatever its delivery contract and whoever's broker it writes to. Each
//! check takes the writer's maker, so that a transactional writer runs the same ones.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use highwater_kafka::{
    Acknowledgement, Admin, KafkaError, OutgoingRecord, ReadRecord, Reader, Writer, WriterSettings,
};
use tokio::time::timeout;

use crate::proxy::Line;
use crate::server::Server;

pub(crate) type Make = fn(&WriterSettings) -> Result<Box<dyn Writer>, KafkaError>;

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A record whose value is a number.
pub(crate) fn record(topic: &str, value: u64) -> OutgoingRecord {
    OutgoingRecord {
        topic: Arc::from(topic),
        partition: Some(0),
        key: None,
        value: Some(Bytes::from(value.to_string())),
        headers: vec![("hw".into(), Bytes::from_static(b"{}"))],
    }
}

fn settings(server: &Server) -> WriterSettings {
    WriterSettings::new(&server.bootstrap())
}

/// Waits until no transaction is open or ending: Apache Kafka answers a commit before its marker is
/// in every partition.
pub(crate) async fn settled(reader: &Reader, topic: &str) {
    let ended = async {
        loop {
            let edges = reader.fetch(topic, 0, 0, 1).await.unwrap().watermarks;
            if edges.last_stable == edges.high_watermark {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, ended).await.unwrap();
}

async fn records(reader: &Reader, topic: &str) -> Vec<ReadRecord> {
    settled(reader, topic).await;
    let mut records = Vec::new();
    reader.read_all(topic, 0, &mut |record| records.push(record)).await.unwrap();
    records
}

fn value(record: &ReadRecord) -> u64 {
    std::str::from_utf8(record.value.as_ref().unwrap()).unwrap().parse().unwrap()
}

/// Waits for acknowledgements until `count` are there.
async fn acknowledged(writer: &mut dyn Writer, count: usize) -> Vec<Acknowledgement> {
    let mut acknowledged = Vec::new();
    while acknowledged.len() < count {
        timeout(SOON, writer.ready()).await.unwrap().unwrap();
        acknowledged.extend(writer.acknowledged().unwrap());
    }
    acknowledged
}

/// Acknowledgements come in the order of sending, without gaps, each once, and what they say is so.
pub(crate) async fn acknowledges_in_order_what_is_there(make: Make, server: &mut Server) {
    server.create_trail().await;
    let mut writer = make(&settings(server)).unwrap();
    writer.begin().await.unwrap();
    for value in 1..=1000 {
        assert_eq!(writer.send(record("trail", value)).await.unwrap(), value);
    }
    let acknowledged = acknowledged(&mut *writer, 1000).await;
    timeout(SOON, writer.ready()).await.unwrap().unwrap();
    assert!(writer.acknowledged().unwrap().is_empty());
    writer.commit().await.unwrap();

    let records = records(&server.reader(), "trail").await;
    assert_eq!(records.len(), 1000);
    for (sequence, (ack, record)) in (1..).zip(acknowledged.iter().zip(&records)) {
        assert_eq!((ack.sequence, ack.offset), (sequence, record.offset));
        assert_eq!((&*ack.topic, ack.partition, value(record)), ("trail", 0, sequence));
        assert_eq!(record.header("hw").unwrap(), &b"{}"[..]);
    }
}

/// Offset records are in the log when `offsets` returns (or, in a transaction, `commit`), and take
/// no sequence.
pub(crate) async fn offsets_are_stored_and_not_counted(make: Make, server: &mut Server) {
    server.create_trail().await;
    server.create("offsets", 1, &[("cleanup.policy", "compact")]).await;
    let mut writer = make(&settings(server)).unwrap();
    writer.begin().await.unwrap();
    assert_eq!(writer.send(record("trail", 1)).await.unwrap(), 1);
    let acks = acknowledged(&mut *writer, 1).await;
    let key = Some(Bytes::from_static(b"key"));
    let offset = OutgoingRecord { key: key.clone(), ..record("offsets", 7) };
    writer.offsets(vec![offset.clone(), offset]).await.unwrap();
    assert_eq!(writer.send(record("trail", 2)).await.unwrap(), 2);
    writer.commit().await.unwrap();
    assert_eq!(acks[0].sequence, 1);
    assert_eq!(acknowledged(&mut *writer, 1).await[0].sequence, 2);
    let stored = records(&server.reader(), "offsets").await;
    assert_eq!(stored.last().map(|record| (value(record), record.key.clone())), Some((7, key)));
}

/// Connections are cut and the broker is started anew while records flow: each record is
/// acknowledged once, in order, and stands in the log once, where the acknowledgement says.
pub(crate) async fn survives_a_broker_that_comes_and_goes(make: Make, server: &mut Server) {
    const RECORDS: u64 = 4000;
    server.create_trail().await;
    let mut writer = make(&settings(server)).unwrap();
    writer.begin().await.unwrap();
    let writing = tokio::spawn(async move {
        let mut acks = Vec::new();
        for value in 1..=RECORDS {
            writer.send(record("trail", value)).await.unwrap();
            if value % 20 == 0 {
                acks.extend(writer.acknowledged().unwrap());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        writer.commit().await.unwrap();
        acks.extend(writer.acknowledged().unwrap());
        acks
    });
    let mut disturbances = 0;
    while !writing.is_finished() {
        tokio::time::sleep(Duration::from_millis(40)).await;
        if disturbances % 2 == 0 {
            server.proxy.cut();
        } else if disturbances < server.restarts() * 2 {
            server.restart().await;
        }
        disturbances += 1;
    }
    assert!(disturbances >= 3, "the broker went away {disturbances} times only");
    let acks = timeout(SOON, writing).await.unwrap().unwrap();
    let records = records(&server.reader(), "trail").await;
    assert_eq!(
        acks.iter().map(|ack| ack.sequence).collect::<Vec<_>>(),
        Vec::from_iter(1..=RECORDS)
    );
    assert_eq!(records.iter().map(value).collect::<Vec<_>>(), Vec::from_iter(1..=RECORDS));
    assert!(acks.iter().zip(&records).all(|(ack, record)| ack.offset == record.offset));
}

/// The connections end at any byte of a request, of an answer or of what makes a connection: each
/// record is acknowledged once, in order, and stands in the log once.
pub(crate) async fn survives_a_cut_at_any_byte(make: Make, server: &mut Server) {
    server.create_trail().await;
    let mut writer = make(&settings(server)).unwrap();
    writer.begin().await.unwrap();
    let (mut sent, mut acks) = (0, Vec::new());
    for bytes in (0..1500).step_by(31) {
        server.proxy.cut_after(bytes);
        for _ in 0..3 {
            sent += 1;
            assert_eq!(writer.send(record("trail", sent)).await.unwrap(), sent);
        }
        timeout(SOON, writer.commit()).await.unwrap().unwrap();
        acks.extend(writer.acknowledged().unwrap());
    }
    let records = records(&server.reader(), "trail").await;
    assert_eq!(records.iter().map(value).collect::<Vec<_>>(), Vec::from_iter(1..=sent));
    let offsets = acks.iter().map(|ack| ack.offset);
    assert!(offsets.eq(records.iter().map(|record| record.offset)));
}

/// While the broker does not answer, no more than the bounds is taken, and then `send` waits.
pub(crate) async fn keeps_its_bounds_while_the_broker_stalls(make: Make, server: &mut Server) {
    server.create_trail().await;
    let mut bounded = settings(server);
    bounded.max_in_flight_records = 50;
    let mut writer = make(&bounded).unwrap();
    writer.begin().await.unwrap();
    writer.send(record("trail", 1)).await.unwrap();
    acknowledged(&mut *writer, 1).await;
    server.proxy.set(Line::Stalled);
    let mut taken = 0;
    while let Ok(sent) =
        timeout(Duration::from_millis(500), writer.send(record("trail", taken + 2))).await
    {
        sent.unwrap();
        taken += 1;
    }
    assert_eq!(taken, 50);
    assert!(writer.acknowledged().unwrap().is_empty());
    server.proxy.set(Line::Open);
    timeout(SOON, writer.commit()).await.unwrap().unwrap();
    assert_eq!(writer.acknowledged().unwrap().len(), 50);
}

/// A record that is not acknowledged in time breaks the writer: it says so from then on, reports
/// nothing more, and has left no hole in the log.
pub(crate) async fn breaks_when_a_record_is_late(make: Make, server: &mut Server) {
    server.create_trail().await;
    let mut hasty = settings(server);
    hasty.delivery_timeout = Duration::from_millis(1000);
    let mut writer = make(&hasty).unwrap();
    writer.begin().await.unwrap();
    for value in 1..=10 {
        writer.send(record("trail", value)).await.unwrap();
    }
    acknowledged(&mut *writer, 10).await;
    server.proxy.set(Line::Stalled);
    for value in 11..=100 {
        writer.send(record("trail", value)).await.unwrap();
    }
    let late = timeout(SOON, writer.ready()).await.unwrap().unwrap_err();
    assert!(matches!(&late, KafkaError::Write { topic, fatal: true, .. } if topic == "trail"));
    server.proxy.set(Line::Open);
    assert_broken(&mut *writer).await;
    drop(writer);

    let values: Vec<u64> = records(&server.reader(), "trail").await.iter().map(value).collect();
    assert_eq!(values, Vec::from_iter(1..=values.len() as u64));
    assert!(values.len() >= 10);
}

/// When records are late because the broker is gone, those sent after them stay out of the log too,
/// also when it comes back while they would still be in time.
pub(crate) async fn leaves_no_hole_when_records_are_late(make: Make, server: &mut Server) {
    server.create_trail().await;
    let mut hasty = settings(server);
    hasty.delivery_timeout = Duration::from_millis(1000);
    let mut writer = make(&hasty).unwrap();
    writer.begin().await.unwrap();
    writer.send(record("trail", 1)).await.unwrap();
    acknowledged(&mut *writer, 1).await;
    server.proxy.set(Line::Closed);
    writer.send(record("trail", 2)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    writer.send(record("trail", 3)).await.unwrap();
    timeout(SOON, writer.ready()).await.unwrap().unwrap_err();
    server.proxy.set(Line::Open);
    assert_broken(&mut *writer).await;
    // Time for what was not forgotten to be sent.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let values: Vec<u64> = records(&server.reader(), "trail").await.iter().map(value).collect();
    assert_eq!(values, [1]);
}

async fn assert_broken(writer: &mut dyn Writer) {
    let is_fatal = |result: Result<(), KafkaError>| {
        matches!(result, Err(KafkaError::Write { fatal: true, .. }))
    };
    assert!(is_fatal(writer.send(record("trail", 999_999)).await.map(drop)));
    assert!(is_fatal(writer.acknowledged().map(drop)));
    assert!(is_fatal(writer.ready().await));
    assert!(is_fatal(writer.offsets(vec![record("trail", 999_999)]).await));
    assert!(is_fatal(writer.commit().await));
}

/// A record that the broker refuses breaks the writer, and nothing behind it gets into the log.
pub(crate) async fn breaks_when_the_broker_refuses_a_record(make: Make, server: &mut Server) {
    server.create("trail", 1, &[("max.message.bytes", "2000")]).await;
    let mut writer = make(&WriterSettings { linger: Duration::ZERO, ..settings(server) }).unwrap();
    writer.begin().await.unwrap();
    writer.send(record("trail", 1)).await.unwrap();
    acknowledged(&mut *writer, 1).await;
    server.proxy.set(Line::Stalled);
    let large = OutgoingRecord { value: Some(vec![b'x'; 5000].into()), ..record("trail", 2) };
    writer.send(large).await.unwrap();
    for value in 3..=30 {
        writer.send(record("trail", value)).await.unwrap();
        // Each in a request of its own.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    server.proxy.set(Line::Open);
    // Nobody asks the writer meanwhile: what keeps the rest back must not depend on that.
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let refused = timeout(SOON, writer.commit()).await.unwrap().unwrap_err();
    assert!(matches!(refused, KafkaError::Write { fatal: true, .. }), "{refused}");
    assert_eq!(refused.code(), Some(10), "MESSAGE_TOO_LARGE");
    assert_broken(&mut *writer).await;
    let values: Vec<u64> = records(&server.reader(), "trail").await.iter().map(value).collect();
    assert_eq!(values, [1]);
}

/// A topic that takes less at once than a batch may have takes many small records all the same,
/// through cuts as well.
pub(crate) async fn small_records_reach_a_topic_of_small_batches(make: Make, server: &mut Server) {
    const COUNT: u64 = 15_000;
    server.create("trail", 1, &[("max.message.bytes", "4000")]).await;
    let mut writer = make(&settings(server)).unwrap();
    writer.begin().await.unwrap();
    for value in 1..=COUNT {
        writer.send(record("trail", value)).await.unwrap();
        if value == COUNT / 2 {
            server.proxy.cut();
        }
    }
    timeout(SOON, writer.commit()).await.unwrap().unwrap();
    let offsets = writer.acknowledged().unwrap().iter().map(|ack| ack.offset).collect::<Vec<_>>();
    assert!(offsets.iter().copied().eq(0..COUNT as i64), "{} offsets", offsets.len());
    let values: Vec<u64> = records(&server.reader(), "trail").await.iter().map(value).collect();
    assert!(values.iter().copied().eq(1..=COUNT), "{} records", values.len());
}

/// A topic that is deleted under a writer breaks it before long, and by name.
pub(crate) async fn breaks_when_its_topic_is_deleted(make: Make, server: &mut Server) {
    server.create_trail().await;
    let mut writer = make(&settings(server)).unwrap();
    writer.begin().await.unwrap();
    writer.send(record("trail", 1)).await.unwrap();
    acknowledged(&mut *writer, 1).await;
    let admin = Admin::new(server.reader());
    assert!(admin.delete_topic("trail").await.unwrap());
    // Apache Kafka deletes it after it has said so.
    let gone = async { while admin.describe_topic("trail").await.unwrap().is_some() {} };
    timeout(SOON, gone).await.unwrap();
    writer.send(record("trail", 2)).await.unwrap();
    let broken = timeout(SOON, writer.commit()).await.unwrap().unwrap_err();
    assert!(matches!(&broken, KafkaError::Write { topic, .. } if topic == "trail"), "{broken}");
    assert_broken(&mut *writer).await;
}

/// A record above the writer's own limit is refused before it is sent: the writer goes on and its
/// sequence has no hole.
pub(crate) async fn refuses_a_record_above_its_own_limit(make: Make, server: &mut Server) {
    server.create_trail().await;
    let mut small = settings(server);
    small.max_request_bytes = 100_000;
    let mut writer = make(&small).unwrap();
    writer.begin().await.unwrap();
    assert_eq!(writer.send(record("trail", 1)).await.unwrap(), 1);
    let large = OutgoingRecord { value: Some(vec![b'x'; 200_000].into()), ..record("trail", 2) };
    let refused = writer.send(large).await.unwrap_err();
    assert!(matches!(refused, KafkaError::Write { fatal: false, .. }), "{refused}");
    assert_eq!(writer.send(record("trail", 2)).await.unwrap(), 2);
    writer.commit().await.unwrap();
    assert_eq!(writer.acknowledged().unwrap().len(), 2);
}
