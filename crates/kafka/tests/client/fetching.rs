//! What a reader does with the answers of a broker, good and bad.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::fake::{Asked, Fake, Reply, metadata, versions};
use bytes::{Bytes, BytesMut};
use highwater_kafka::{KafkaError, OffsetSpec, Reader, ReaderSettings};
use highwater_protocol::records::{BatchBuilder, Compression};
use highwater_protocol::{
    AbortedTransaction, ApiKey, ApiVersionsRequest, ApiVersionsResponse, ErrorCode, FetchRequest,
    ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopicResponse, MetadataResponse, PartitionData, Records,
};

/// A reader that gives up soon.
fn hasty(fake: &Fake) -> Reader {
    let settings = ReaderSettings {
        connect_timeout: Duration::from_millis(500),
        request_timeout: Duration::from_millis(200),
        retry_for: Duration::from_secs(1),
    };
    Reader::with_settings(&fake.bootstrap(), settings)
}

fn reader(fake: &Fake) -> Reader {
    Reader::new(&fake.bootstrap())
}

fn batch(base_offset: i64, producer: Option<i64>, value: &str) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::Lz4).base_offset(base_offset).leader_epoch(0);
    if let Some(producer) = producer {
        builder = builder.producer(producer, 0, 0).transactional();
    }
    builder.push(1, Some(b"key"), Some(value.as_bytes()), &[]);
    builder.build().unwrap()
}

fn marker(offset: i64, producer: i64, kind: u8) -> Bytes {
    let builder = BatchBuilder::new(Compression::None).base_offset(offset);
    let mut builder = builder.producer(producer, 0, -1).transactional().control();
    builder.push(1, Some(&[0, 0, 0, kind]), Some(&[0; 6]), &[]);
    builder.build().unwrap()
}

fn data(end: i64, batches: &[Bytes]) -> PartitionData {
    PartitionData {
        high_watermark: end,
        last_stable_offset: end,
        log_start_offset: 0,
        records: Some(Records::Here(batches.concat().into())),
        ..Default::default()
    }
}

fn refusal(error_code: ErrorCode) -> PartitionData {
    PartitionData { error_code, high_watermark: -1, ..Default::default() }
}

/// Answers fetches as given, and the rest with [`Asked::basics`].
async fn fetching(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Fake {
    Fake::start(move |asked| match asked.header.api_key {
        ApiKey::Fetch => answer(asked),
        _ => asked.basics(),
    })
    .await
}

#[tokio::test]
async fn an_aborted_transaction_is_not_read() {
    let fake = fetching(|asked| {
        let request = asked.request::<FetchRequest>();
        assert_eq!(request.isolation_level, 1);
        let batches = [
            batch(0, Some(7), "aborted"),
            batch(1, None, "plain"),
            batch(2, Some(8), "committed"),
            marker(3, 7, 0),
            marker(4, 8, 1),
        ];
        asked.fetched(PartitionData {
            aborted_transactions: Some(vec![AbortedTransaction {
                producer_id: 7,
                first_offset: 0,
            }]),
            ..data(5, &batches)
        })
    })
    .await;
    let fetched = reader(&fake).fetch("trail", 0, 0, 1 << 20).await.unwrap();
    let values: Vec<_> = fetched.records.iter().map(|record| record.value.as_deref()).collect();
    assert_eq!(values, [Some(&b"plain"[..]), Some(b"committed")]);
    assert_eq!(fetched.next_offset, 5);
}

#[tokio::test]
async fn the_leader_is_looked_for_again_when_it_moves() {
    let fetches = AtomicUsize::new(0);
    let fake = fetching(move |asked| match fetches.fetch_add(1, Ordering::SeqCst) {
        0 => asked.fetched(refusal(ErrorCode::NOT_LEADER_OR_FOLLOWER)),
        1 => Reply::Close,
        _ => asked.fetched(data(1, &[batch(0, None, "here")])),
    })
    .await;
    assert_eq!(reader(&fake).fetch("trail", 0, 0, 1000).await.unwrap().records.len(), 1);
}

#[tokio::test]
async fn an_offset_outside_the_log_is_refused_with_its_code() {
    let fake = fetching(|asked| asked.fetched(refusal(ErrorCode::OFFSET_OUT_OF_RANGE))).await;
    let error = reader(&fake).fetch("trail", 0, 99, 1000).await.unwrap_err();
    assert_eq!(error.code(), Some(1));
    assert_eq!(error.to_string(), "fetch trail-0 at offset 99: OFFSET_OUT_OF_RANGE (1)");
}

#[tokio::test]
async fn a_damaged_batch_is_told_with_its_place() {
    let fake = fetching(|asked| {
        let mut damaged = batch(0, None, "damaged").to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        asked.fetched(data(1, &[damaged.into()]))
    })
    .await;
    let error = reader(&fake).fetch("trail", 0, 0, 1000).await.unwrap_err();
    assert!(matches!(error, KafkaError::Malformed { .. }), "{error}");
    assert!(error.to_string().contains("offset 0 of trail-0"), "{error}");
}

#[tokio::test]
async fn a_silent_broker_is_given_up_within_bounds() {
    let fake = fetching(|_| Reply::Silence).await;
    let began = Instant::now();
    let error = hasty(&fake).fetch("trail", 0, 0, 1000).await.unwrap_err();
    assert!(matches!(error, KafkaError::Unreachable { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(3));
    // Two are shared in any case.
    assert!(fake.connections() > 2, "a connection without an answer is not used again");
}

#[tokio::test]
async fn answers_that_nobody_can_trust_end_the_connection() {
    for bad in [
        // Another correlation id.
        &b"\0\0\0\x08\x7f\xff\xff\xff\0\0\0\0"[..],
        // A frame above any bound, and a negative one: no memory is set aside for them.
        b"\x7f\xff\xff\xff\0\0\0\0",
        b"\xff\xff\xff\xff",
        // Not Kafka at all.
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ] {
        let fetches = AtomicUsize::new(0);
        let fake = fetching(move |asked| match fetches.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::Send(BytesMut::from(bad)),
            _ => asked.fetched(data(1, &[batch(0, None, "good")])),
        })
        .await;
        let fetched = hasty(&fake).fetch("trail", 0, 0, 1000).await.unwrap();
        assert_eq!(fetched.records.len(), 1);
    }
}

#[tokio::test]
async fn requests_are_pipelined_and_slow_answers_keep_their_order() {
    let fake = fetching(|asked| {
        let at = asked.request::<FetchRequest>().topics[0].partitions[0].fetch_offset;
        let Reply::Send(frame) = asked.fetched(data(at + 1, &[batch(at, None, "x")])) else {
            return Reply::Close;
        };
        Reply::Late(Duration::from_millis(if at == 0 { 100 } else { 0 }), frame)
    })
    .await;
    let reader = reader(&fake);
    let fetch = async |at| reader.fetch("trail", 0, at, 1000).await.unwrap().records[0].offset;
    let found = tokio::join!(fetch(0), fetch(1), fetch(2), fetch(3), fetch(4), fetch(5));
    assert_eq!(found, (0, 1, 2, 3, 4, 5));
    assert!(fake.connections() <= 2, "readers share their connections");
}

#[tokio::test]
async fn many_readers_share_few_connections() {
    let fake = fetching(|asked| asked.fetched(data(1, &[batch(0, None, "x")]))).await;
    let reader = reader(&fake);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let reader = reader.clone();
        tasks.spawn(async move { reader.fetch("trail", 0, 0, 1000).await.map(drop) });
    }
    while let Some(fetched) = tasks.join_next().await {
        fetched.unwrap().unwrap();
    }
    assert_eq!(fake.connections(), 2);
}

#[tokio::test]
async fn a_broker_that_lacks_our_version_is_asked_in_an_older_one() {
    let asked_versions = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked_versions);
    let fake = Fake::start(move |asked| {
        if asked.header.api_key != ApiKey::ApiVersions {
            return match asked.header.api_key {
                ApiKey::Fetch => asked.fetched(data(1, &[batch(0, None, "old")])),
                _ => asked.basics(),
            };
        }
        seen.lock().push(asked.header.api_version);
        let mut answer = versions(&[(ApiKey::Fetch, 5), (ApiKey::Metadata, 4)]);
        let mut old = BytesMut::new();
        if asked.header.api_version > 0 {
            let _ = asked.request::<ApiVersionsRequest>();
            answer = ApiVersionsResponse {
                error_code: ErrorCode::UNSUPPORTED_VERSION,
                ..Default::default()
            };
        }
        let id = asked.header.correlation_id;
        highwater_protocol::frame::encode_response(&mut old, 0, id, &answer);
        Reply::Send(old)
    })
    .await;
    assert_eq!(reader(&fake).fetch("trail", 0, 0, 1000).await.unwrap().records.len(), 1);
    assert_eq!(asked_versions.lock()[..2], [3, 0]);
}

#[tokio::test]
async fn a_broker_too_old_for_the_greatest_timestamp_is_not_asked() {
    let fake = Fake::start(|asked| match asked.header.api_key {
        ApiKey::ApiVersions => asked.answer(&versions(&[(ApiKey::ListOffsets, 6)])),
        ApiKey::ListOffsets => {
            let asked_for = &asked.request::<ListOffsetsRequest>().topics[0].partitions[0];
            assert_ne!(asked_for.timestamp, -3);
            let found =
                ListOffsetsPartitionResponse { offset: 17, leader_epoch: 2, ..Default::default() };
            let topic =
                ListOffsetsTopicResponse { name: "trail".to_owned(), partitions: vec![found] };
            asked.answer(&ListOffsetsResponse { topics: vec![topic], ..Default::default() })
        }
        _ => asked.basics(),
    })
    .await;
    let reader = reader(&fake);
    let error = reader.list_offset("trail", 0, OffsetSpec::MaxTimestamp).await.unwrap_err();
    assert!(matches!(error, KafkaError::Unsupported { .. }), "{error}");
    let latest = reader.list_offset("trail", 0, OffsetSpec::Latest).await.unwrap().unwrap();
    assert_eq!((latest.offset, latest.leader_epoch), (17, Some(2)));
}

#[tokio::test]
async fn the_second_address_is_tried_when_the_first_is_dead() {
    let fake = fetching(|asked| asked.fetched(data(1, &[batch(0, None, "x")]))).await;
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let reader = Reader::new(&format!("{dead}, {}", fake.bootstrap()));
    assert_eq!(reader.fetch("trail", 0, 0, 1000).await.unwrap().records.len(), 1);
}

#[tokio::test]
async fn no_broker_at_all_is_said_with_the_addresses() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = ReaderSettings { retry_for: Duration::from_millis(100), ..Default::default() };
    let reader = Reader::with_settings(&dead.to_string(), settings);
    let error = reader.fetch("trail", 0, 0, 1000).await.unwrap_err();
    assert!(error.to_string().contains(&dead.to_string()), "{error}");
    assert!(matches!(error, KafkaError::Unreachable { .. }));
}

/// What a broker of Apache Kafka 2.8, and one of today, answer to a question for the greatest time.
fn greatest(asked: &Asked, highest: i16, brokers: &MetadataResponse) -> Reply {
    match asked.header.api_key {
        ApiKey::ApiVersions => asked.answer(&versions(&[(ApiKey::ListOffsets, highest)])),
        ApiKey::Metadata => asked.answer(brokers),
        ApiKey::ListOffsets => {
            let asked_for = asked.request::<ListOffsetsRequest>().topics[0].partitions[0].clone();
            assert!(
                highest >= 7 || asked_for.timestamp != -3,
                "an old broker would answer wrongly"
            );
            let found = ListOffsetsPartitionResponse {
                partition_index: asked_for.partition_index,
                offset: 17,
                timestamp: 5,
                ..Default::default()
            };
            let partitions = vec![found];
            let topic = ListOffsetsTopicResponse { name: "trail".to_owned(), partitions };
            asked.answer(&ListOffsetsResponse { topics: vec![topic], ..Default::default() })
        }
        _ => asked.basics(),
    }
}

/// Partition 1 is led by another broker.
fn led_by_two(old: u16, new: u16) -> MetadataResponse {
    let mut told = metadata(old);
    told.brokers.extend(metadata(new).brokers);
    told.brokers[1].node_id = 2;
    told.topics[0].partitions[1].leader_id = 2;
    told
}

/// KIP-734 as Java's admin has it: only the partitions of a leader that is too old fail.
#[tokio::test]
async fn a_leader_that_is_too_old_fails_its_own_partitions_alone() {
    let new = Fake::start(|asked| greatest(asked, 11, &metadata(asked.port))).await;
    let new_port = new.address.port();
    let old = Fake::start(move |asked| greatest(asked, 6, &led_by_two(asked.port, new_port))).await;
    let reader = reader(&old);
    let ask = async |partition, spec| reader.list_offset("trail", partition, spec).await;
    let refused = ask(0, OffsetSpec::MaxTimestamp).await.unwrap_err();
    assert!(refused.to_string().contains("does not support the MAX_TIMESTAMP offset spec"));
    assert_eq!(ask(1, OffsetSpec::MaxTimestamp).await.unwrap().unwrap().offset, 17);
    for partition in 0..2 {
        assert_eq!(ask(partition, OffsetSpec::Latest).await.unwrap().unwrap().offset, 17);
    }
}
