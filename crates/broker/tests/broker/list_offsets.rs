//! ListOffsets over the wire: Kafka's worked examples (KIP-734 and its repairs up to 3.8), with
//! the versions, epochs and errors around them.

use highwater_log::AppendOptions;
use highwater_protocol::records::Compression;
use highwater_protocol::{
    ErrorCode, ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest,
    ListOffsetsTopic,
};

use crate::client::{Client, batch, list_offsets, plain};
use crate::server::Server;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const NOTHING: (i64, i64, i32) = (-1, -1, -1);

/// A topic `t` that holds these batches, and a client.
async fn holding(batches: &[&[i64]]) -> (Server, Client) {
    let server = Server::start().await;
    server.topic("t");
    let mut client = server.client().await;
    for timestamps in batches {
        let appended = client.produce(9, "t", plain(timestamps)).await;
        assert!(appended.error_code.is_ok(), "{}", appended.error_code);
    }
    (server, client)
}

#[tokio::test]
async fn row_1_an_empty_partition_has_no_greatest_timestamp() {
    let (_server, mut client) = holding(&[]).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, NOTHING);
    assert_eq!(client.found("t", EARLIEST).await.0, 0);
    assert_eq!(client.found("t", LATEST).await, (0, -1, 0));
}

#[tokio::test]
async fn row_2_one_batch() {
    let (_server, mut client) = holding(&[&[100, 999, 200]]).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (1, 999, 0));
    assert_eq!(client.found("t", LATEST).await, (3, -1, 0));
    assert_eq!(client.found("t", EARLIEST).await, (0, -1, 0));
}

#[tokio::test]
async fn row_3_the_four_codecs() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let codecs = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    for codec in codecs {
        let topic = format!("{codec:?}");
        server.topic(&topic);
        client.produce(9, &topic, batch(codec, &[100, 999, 200])).await;
        assert_eq!(client.found(&topic, MAX_TIMESTAMP).await, (1, 999, 0), "{codec:?}");
    }
}

#[tokio::test]
async fn row_4_three_batches() {
    let (_server, mut client) = holding(&[&[100], &[999], &[200]]).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (1, 999, 0));
}

#[tokio::test]
async fn row_5_truncation_takes_the_greatest_timestamp_away() {
    let timestamps: Vec<[i64; 1]> = (0..20).map(|timestamp| [timestamp]).collect();
    let batches: Vec<&[i64]> = timestamps.iter().map(<[i64; 1]>::as_slice).collect();
    let (server, mut client) = holding(&batches).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (19, 19, 0));
    server.partition("t", 0).truncate(0).unwrap();
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, NOTHING);
}

#[tokio::test]
async fn row_6_the_last_record_is_not_the_greatest() {
    let (_server, mut client) = holding(&[&[0], &[1], &[2], &[3], &[4], &[6], &[5]]).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (5, 6, 0));
    assert_eq!(client.found("t", LATEST).await, (7, -1, 0));
}

#[tokio::test]
async fn row_7_the_first_in_a_batch_wins_a_tie() {
    let (_server, mut client) = holding(&[&[5, 9, 9, 3]]).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (1, 9, 0));
}

#[tokio::test]
async fn row_8_the_first_batch_wins_a_tie() {
    let (_server, mut client) = holding(&[&[9], &[9]]).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (0, 9, 0));
}

#[tokio::test]
async fn row_9_the_first_segment_wins_a_tie() {
    let (server, mut client) = holding(&[&[1, 2, 3, 4, 9, 5]]).await;
    server.partition("t", 0).roll().unwrap();
    client.produce(9, "t", plain(&[1, 2, 3, 4, 9])).await;
    assert_eq!(client.found("t", LATEST).await.0, 11);
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (4, 9, 0));
}

/// Rows 10 to 12: batches of records taken in by the log at these times.
async fn taken_in(batches: &[(i64, &[i64])]) -> (Server, Client) {
    let server = Server::start().await;
    let stamped = ("message.timestamp.type", "LogAppendTime");
    let partition = server.topic_with("t", 1, &[stamped]);
    for (now_ms, timestamps) in batches {
        let appended = partition.append(plain(timestamps), AppendOptions::client(*now_ms));
        partition.durable(&appended.unwrap()).await.unwrap();
    }
    let client = server.client().await;
    (server, client)
}

#[tokio::test]
async fn row_10_log_append_time_in_one_batch() {
    let (_server, mut client) = taken_in(&[(5_000, &[1, 2, 3])]).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (0, 5_000, 0));
}

#[tokio::test]
async fn row_11_log_append_time_in_three_batches() {
    let batches: &[(i64, &[i64])] = &[(5_000, &[9]), (6_000, &[8]), (7_000, &[7])];
    let (_server, mut client) = taken_in(batches).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (2, 7_000, 0));
}

#[tokio::test]
async fn row_12_log_append_time_within_one_millisecond() {
    let batches: &[(i64, &[i64])] = &[(5_000, &[7]), (5_000, &[8]), (5_000, &[9])];
    let (_server, mut client) = taken_in(batches).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (0, 5_000, 0));
}

#[tokio::test]
async fn log_append_time_is_in_the_answer_to_produce_and_in_the_records() {
    let server = Server::start().await;
    server.topic_with("t", 1, &[("message.timestamp.type", "LogAppendTime")]);
    let mut client = server.client().await;
    let appended = client.produce(9, "t", plain(&[1, 2, 3])).await;
    assert!(appended.log_append_time_ms > 1_600_000_000_000);
    let found = client.found("t", MAX_TIMESTAMP).await;
    assert_eq!(found, (0, appended.log_append_time_ms, 0));
}

#[tokio::test]
async fn row_13_without_index_files() {
    let (server, client) = holding(&[&[100, 999, 200]]).await;
    drop(client);
    let mut removed = 0;
    let server = server
        .restart(|dir| {
            for entry in std::fs::read_dir(dir.join("t-0")).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|end| end == "index" || end == "timeindex") {
                    std::fs::remove_file(path).unwrap();
                    removed += 1;
                }
            }
        })
        .await;
    assert!(removed >= 2, "there were index files to remove");
    let mut client = server.client().await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (1, 999, 0));
    assert_eq!(client.found("t", LATEST).await.0, 3);
}

#[tokio::test]
async fn row_14_truncation_within_a_segment() {
    let (server, mut client) = holding(&[&[10], &[50], &[20]]).await;
    server.partition("t", 0).truncate(2).unwrap();
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (1, 50, 0));
    server.partition("t", 0).truncate(1).unwrap();
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (0, 10, 0));
}

#[tokio::test]
async fn row_26_by_time() {
    let (_server, mut client) = holding(&[&[100, 999, 200]]).await;
    let rows = [
        (150, (1, 999, 0)),
        (200, (1, 999, 0)),
        (999, (1, 999, 0)),
        (1_000, NOTHING),
        (0, (0, 100, 0)),
    ];
    for (time, expected) in rows {
        assert_eq!(client.found("t", time).await, expected, "time {time}");
    }
}

#[tokio::test]
async fn row_27_special_timestamps_below_their_version() {
    let (_server, mut client) = holding(&[&[100]]).await;
    let rows = [(6, -3), (7, -4), (8, -5), (10, -6), (11, -7), (1, -3), (11, i64::MIN)];
    for (version, timestamp) in rows {
        for topic in ["t", "no-such-topic"] {
            let refused = client.list_offset(version, topic, timestamp).await;
            let expected = ListOffsetsPartitionResponse {
                error_code: ErrorCode::UNSUPPORTED_VERSION,
                ..Default::default()
            };
            assert_eq!(refused, expected, "{timestamp} at version {version} of {topic}");
        }
    }
}

#[tokio::test]
async fn the_special_timestamps_of_tiered_storage() {
    let (_server, mut client) = holding(&[&[100]]).await;
    assert_eq!(client.found("t", -4).await, (0, -1, 0));
    assert_eq!(client.found("t", -5).await, NOTHING);
    assert_eq!(client.found("t", -6).await, NOTHING);
}

#[tokio::test]
async fn row_28_a_new_leader_epoch_without_data() {
    let (server, mut client) = holding(&[&[100, 999, 200]]).await;
    server.partition("t", 0).truncate(3).unwrap();
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (1, 999, 0));
    assert_eq!(client.found("t", LATEST).await, (3, -1, 1));
}

#[tokio::test]
async fn row_29_every_version_answers_in_its_own_form() {
    let (_server, mut client) = holding(&[&[100, 999, 200]]).await;
    for version in 1..=11 {
        let found = client.list_offset(version, "t", 150).await;
        let epoch = if version < 4 { -1 } else { 0 };
        assert!(found.error_code.is_ok(), "version {version}: {}", found.error_code);
        assert_eq!((found.offset, found.timestamp), (1, 999), "version {version}");
        assert_eq!(found.leader_epoch, epoch, "version {version}");
    }
}

#[tokio::test]
async fn row_30_the_greatest_timestamp_never_passes_the_last_record() {
    let timestamps: Vec<i64> = (0..=30).collect();
    let (_server, mut client) = holding(&[&timestamps]).await;
    assert_eq!(client.found("t", MAX_TIMESTAMP).await, (30, 30, 0));
    assert_eq!(client.found("t", LATEST).await.0, 31);
}

#[tokio::test]
async fn row_31_leader_epochs_are_fenced() {
    let (server, mut client) = holding(&[&[100]]).await;
    server.partition("t", 0).truncate(1).unwrap();
    let cases = [
        (0, ErrorCode::FENCED_LEADER_EPOCH),
        (1, ErrorCode::NONE),
        (2, ErrorCode::UNKNOWN_LEADER_EPOCH),
        (-1, ErrorCode::NONE),
    ];
    for (epoch, expected) in cases {
        for timestamp in [LATEST, EARLIEST, MAX_TIMESTAMP, 50] {
            let mut request = list_offsets("t", timestamp);
            request.topics[0].partitions[0].current_leader_epoch = epoch;
            let response = client.call(4 + 3, &request).await;
            let found = &response.topics[0].partitions[0];
            assert_eq!(found.error_code, expected, "epoch {epoch}, timestamp {timestamp}");
        }
    }
}

#[tokio::test]
async fn row_32_a_partition_named_twice() {
    let (_server, mut client) = holding(&[&[100]]).await;
    let twice = |timestamp| ListOffsetsPartition { timestamp, ..Default::default() };
    let once = ListOffsetsPartition { partition_index: 1, timestamp: -1, ..Default::default() };
    let topic = |partitions| ListOffsetsTopic { name: "t".to_owned(), partitions };
    let request = ListOffsetsRequest {
        topics: vec![topic(vec![twice(-1), once]), topic(vec![twice(-99)])],
        ..Default::default()
    };
    let response = client.call(7, &request).await;
    let codes: Vec<_> = response
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|partition| partition.error_code))
        .collect();
    let expected = [ErrorCode::INVALID_REQUEST, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION];
    assert_eq!(codes, expected, "once, as Apache Kafka answers");
}

#[tokio::test]
async fn unknown_topics_and_partitions() {
    let (_server, mut client) = holding(&[]).await;
    let unknown = client.list_offset(7, "no-such-topic", LATEST).await;
    assert_eq!(unknown.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!((unknown.offset, unknown.timestamp, unknown.leader_epoch), NOTHING);
}
