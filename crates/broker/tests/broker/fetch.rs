//! Fetch: what is read, how much, and when.

use std::time::{Duration, Instant};

use highwater_protocol::{ErrorCode, FetchPartition, FetchRequest, FetchResponse, FetchTopic};

use crate::client::{Client, SOON, fetch, found_batches, large, plain, produce, records};
use crate::server::Server;

async fn start() -> (Server, Client) {
    let server = Server::start().await;
    server.topic("t");
    let client = server.client().await;
    (server, client)
}

fn waiting(topic: &str, offset: i64, min_bytes: i32, max_wait: Duration) -> FetchRequest {
    let max_wait_ms = i32::try_from(max_wait.as_millis()).unwrap();
    FetchRequest { max_wait_ms, min_bytes, ..fetch(topic, offset) }
}

#[tokio::test]
async fn every_version_reads() {
    let (_server, mut client) = start().await;
    client.produce(9, "t", plain(&[10, 20])).await;
    client.produce(9, "t", plain(&[30])).await;
    for version in 4..=12 {
        let answer = client.fetch(version, &fetch("t", 0)).await;
        let found = records(&answer);
        assert_eq!(
            found.iter().map(|one| (one.0, one.1)).collect::<Vec<_>>(),
            [(0, 10), (1, 20), (2, 30)]
        );
        assert_eq!((answer.high_watermark, answer.last_stable_offset), (3, 3));
        assert_eq!(answer.log_start_offset, if version < 5 { -1 } else { 0 });
        let end = client.fetch(version, &fetch("t", 3)).await;
        assert!(end.error_code.is_ok() && records(&end).is_empty());
    }
}

#[tokio::test]
async fn an_offset_inside_a_batch_brings_the_whole_batch() {
    let (_server, mut client) = start().await;
    client.produce(9, "t", plain(&[1, 2, 3])).await;
    let answer = client.fetch(11, &fetch("t", 2)).await;
    assert_eq!(found_batches(&answer)[0].header.base_offset, 0);
    assert_eq!(found_batches(&answer)[0].header.partition_leader_epoch, 0);
}

#[tokio::test]
async fn offsets_out_of_range_and_strangers() {
    let (_server, mut client) = start().await;
    client.produce(9, "t", plain(&[1])).await;
    for offset in [2, -1, i64::MAX, i64::MIN] {
        let request = waiting("t", offset, 1, SOON);
        let answer = client.fetch(11, &request).await;
        assert_eq!(answer.error_code, ErrorCode::OFFSET_OUT_OF_RANGE, "{offset}");
    }
    let stranger = client.fetch(11, &waiting("no-such-topic", 0, 1, SOON)).await;
    assert_eq!(stranger.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[tokio::test]
async fn leader_epochs_are_fenced() {
    let (server, mut client) = start().await;
    client.produce(9, "t", plain(&[1])).await;
    server.partition("t", 0).truncate(1).unwrap();
    let cases = [
        (0, ErrorCode::FENCED_LEADER_EPOCH),
        (1, ErrorCode::NONE),
        (2, ErrorCode::UNKNOWN_LEADER_EPOCH),
        (-1, ErrorCode::NONE),
    ];
    for (epoch, expected) in cases {
        let mut request = fetch("t", 0);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        assert_eq!(client.fetch(9, &request).await.error_code, expected, "epoch {epoch}");
    }
}

#[tokio::test]
async fn sessions_are_declined() {
    let (_server, mut client) = start().await;
    let opening = FetchRequest { session_epoch: 0, ..fetch("t", 0) };
    let response = client.call(11, &opening).await;
    assert_eq!((response.error_code, response.session_id), (ErrorCode::NONE, 0));
    let continuing = FetchRequest { session_id: 5, session_epoch: 1, ..fetch("t", 0) };
    let response = client.call(11, &continuing).await;
    assert_eq!(response.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
}

#[tokio::test]
async fn read_committed_has_a_list_of_aborted_transactions() {
    let (_server, mut client) = start().await;
    let committed = FetchRequest { isolation_level: 1, ..fetch("t", 0) };
    assert_eq!(client.fetch(11, &committed).await.aborted_transactions, Some(vec![]));
    assert_eq!(client.fetch(11, &fetch("t", 0)).await.aborted_transactions, None);
}

#[tokio::test]
async fn the_first_batch_comes_whole_and_the_others_within_the_limits() {
    let (server, mut client) = start().await;
    server.topic("other");
    for _ in 0..3 {
        client.produce(9, "t", large(10_000)).await;
        client.produce(9, "other", large(10_000)).await;
    }
    let counts = async |client: &mut Client, max_bytes: i32, partition_max_bytes: i32| {
        let topic = |name: &str| FetchTopic {
            topic: name.to_owned(),
            partitions: vec![FetchPartition { partition_max_bytes, ..Default::default() }],
        };
        let topics = vec![topic("t"), topic("other")];
        let request = FetchRequest { max_bytes, topics, ..fetch("t", 0) };
        let response = client.call(11, &request).await;
        let count = |at: usize| found_batches(&response.responses[at].partitions[0]).len();
        (count(0), count(1))
    };
    assert_eq!(counts(&mut client, 1 << 20, 1 << 20).await, (3, 3));
    assert_eq!(counts(&mut client, 1 << 20, 25_000).await, (2, 2));
    assert_eq!(counts(&mut client, 45_000, 1 << 20).await, (3, 1));
    assert_eq!(counts(&mut client, 1, 1).await, (1, 0));
    assert_eq!(counts(&mut client, 0, 0).await, (1, 0));
}

#[tokio::test]
async fn a_poll_waits_for_a_record_and_holds_nobody_up() {
    let (server, mut client) = start().await;
    let polling = client.send(11, &waiting("t", 0, 1, SOON)).await;
    // The same thread of the runtime serves both connections.
    let appended = server.client().await.produce(9, "t", plain(&[5])).await;
    assert!(appended.error_code.is_ok());
    let began = Instant::now();
    let mut response: FetchResponse = client.receive(11, polling).await;
    assert_eq!(records(&response.responses.remove(0).partitions.remove(0)).len(), 1);
    assert!(began.elapsed() < SOON / 2, "the record wakes the poll");
}

#[tokio::test]
async fn a_poll_ends_after_its_time() {
    let (_server, mut client) = start().await;
    let began = Instant::now();
    let wait = Duration::from_millis(150);
    let answer = client.fetch(11, &waiting("t", 0, 1, wait)).await;
    assert!(answer.error_code.is_ok() && records(&answer).is_empty());
    assert!(began.elapsed() >= wait);
}

#[tokio::test]
async fn a_poll_waits_until_there_is_enough() {
    let (server, mut client) = start().await;
    let mut writer = server.client().await;
    writer.produce(9, "t", large(1_000)).await;
    let polling = client.send(11, &waiting("t", 0, 2_500, SOON)).await;
    writer.produce(9, "t", large(1_000)).await;
    writer.produce(9, "t", large(1_000)).await;
    let mut response: FetchResponse = client.receive(11, polling).await;
    let partition = response.responses.remove(0).partitions.remove(0);
    let offsets: Vec<_> =
        found_batches(&partition).iter().map(|batch| batch.header.base_offset).collect();
    assert_eq!(offsets, [0, 1, 2]);
    assert_eq!(partition.high_watermark, 3);
}

#[tokio::test]
async fn there_is_enough_when_two_segments_have_it() {
    let (server, mut client) = start().await;
    client.produce(9, "t", large(1_000)).await;
    server.partition("t", 0).roll().unwrap();
    client.produce(9, "t", large(1_000)).await;
    let began = Instant::now();
    let answer = client.fetch(11, &waiting("t", 0, 1_500, SOON / 2)).await;
    assert_eq!(found_batches(&answer).len(), 2);
    assert!(began.elapsed() < SOON / 4, "it waited for what was there");
}

/// More than a connection takes at once, in slices of many files, and a second answer behind it.
#[tokio::test]
async fn an_answer_of_many_slices_arrives_whole_and_before_the_next() {
    const PARTITIONS: i32 = 6;
    let (server, mut client) = start().await;
    server.topic_with("many", PARTITIONS, &[("max.message.bytes", "3000000")]);
    for index in 0..PARTITIONS {
        for _ in 0..3 {
            let mut record = produce("many", -1, large(2_000_000 + index as usize));
            record.topic_data[0].partition_data[0].index = index;
            client.call(9, &record).await;
            server.partition("many", index).roll().unwrap();
        }
    }
    let partition = |partition| FetchPartition {
        partition,
        partition_max_bytes: 1 << 30,
        ..Default::default()
    };
    let mut request = waiting("many", 0, 36_000_000, SOON);
    request.max_bytes = 1 << 30;
    request.topics[0].partitions = (0..PARTITIONS).map(partition).collect();
    let (first, second) = (client.send(11, &request).await, client.send(11, &request).await);
    for answer in [first, second] {
        let response: FetchResponse = client.receive(11, answer).await;
        for (index, partition) in response.responses[0].partitions.iter().enumerate() {
            let batches = found_batches(partition);
            assert_eq!(batches.len(), 3, "of partition {index}");
            for (number, batch) in batches.iter().enumerate() {
                assert_eq!(batch.header.base_offset, number as i64);
                assert!(batch.bytes.len() > 2_000_000 + index, "of partition {index}");
            }
        }
    }
}

#[tokio::test]
async fn a_poll_of_many_partitions_wakes_for_any() {
    let (server, mut client) = start().await;
    server.topic_with("many", 50, &[]);
    let partition = |partition| FetchPartition {
        partition,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let mut request = waiting("many", 0, 1, SOON);
    request.topics[0].partitions = (0..50).map(partition).collect();
    let polling = client.send(11, &request).await;
    let mut record = produce("many", -1, plain(&[1]));
    record.topic_data[0].partition_data[0].index = 49;
    server.client().await.call(9, &record).await;
    let response: FetchResponse = client.receive(11, polling).await;
    assert_eq!(records(&response.responses[0].partitions[49]).len(), 1);
}

/// There is room for one connection: the next is served once the polling client has gone. It has
/// sent more than may be in flight, so that the broker is not about to read when it goes.
#[tokio::test]
async fn a_poll_ends_when_its_client_goes_away() {
    let server = Server::start_with(|config| {
        config.limits.connections = 1;
        config.limits.in_flight = 1;
    })
    .await;
    server.topic("t");
    let mut polling = server.client().await;
    polling.call(9, &highwater_protocol::MetadataRequest::default()).await;
    for _ in 0..3 {
        polling.send(11, &waiting("t", 0, 1, SOON * 6)).await;
    }
    drop(polling);
    let began = Instant::now();
    loop {
        let mut client = server.client().await;
        client.try_send(9, &highwater_protocol::MetadataRequest::default()).await;
        if client.frame().await.is_some() {
            return;
        }
        assert!(began.elapsed() < SOON, "the polling connection is still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_poll_ends_when_its_topic_is_deleted() {
    let (server, mut client) = start().await;
    let polling = client.send(11, &waiting("t", 0, 1, SOON * 6)).await;
    client.begun(&server).await;
    server.log.delete_topic("t").unwrap();
    let response: FetchResponse = client.receive(11, polling).await;
    assert_eq!(response.responses[0].partitions[0].error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
}
