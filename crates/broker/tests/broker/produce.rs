//! Produce and InitProducerId.

use bytes::{BufMut, Bytes, BytesMut};
use highwater_protocol::records::{BatchBuilder, Compression};
use highwater_protocol::{
    ErrorCode, InitProducerIdRequest, PartitionProduceData, PartitionProduceResponse,
    ProduceResponse,
};
use tokio::io::AsyncWriteExt;

use crate::client::{Client, batch, fetch, large, plain, produce, records};
use crate::server::Server;

async fn start() -> (Server, Client) {
    let server = Server::start().await;
    server.topic("t");
    let client = server.client().await;
    (server, client)
}

fn only(mut response: ProduceResponse) -> PartitionProduceResponse {
    response.responses.remove(0).partition_responses.remove(0)
}

#[tokio::test]
async fn every_version_appends() {
    let (_server, mut client) = start().await;
    for (count, version) in (3..=11).enumerate() {
        for (acks, add) in [(-1, 0), (1, 1)] {
            let response = only(client.call(version, &produce("t", acks, plain(&[7]))).await);
            assert!(response.error_code.is_ok(), "{response:?}");
            assert_eq!(response.base_offset, 2 * count as i64 + add);
            assert_eq!(response.log_append_time_ms, -1);
            assert_eq!(response.log_start_offset, if version < 5 { -1 } else { 0 });
        }
    }
}

#[tokio::test]
async fn what_was_acknowledged_can_be_read() {
    let (_server, mut client) = start().await;
    for codec in [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let base = client.produce(9, "t", batch(codec, &[10, 20])).await.base_offset;
        let answer = client.fetch(11, &fetch("t", base)).await;
        let expected = [(base, 10, "value-0".to_owned()), (base + 1, 20, "value-1".to_owned())];
        assert_eq!(records(&answer), expected, "{codec:?}");
    }
}

#[tokio::test]
async fn acks_0_has_no_answer() {
    let (_server, mut client) = start().await;
    client.send(9, &produce("t", 0, plain(&[1]))).await;
    // The next answer is that of the next request.
    let second = only(client.call(9, &produce("t", -1, plain(&[2]))).await);
    assert_eq!(second.base_offset, 1);
}

#[tokio::test]
async fn acks_0_learns_of_an_error_by_the_end_of_the_connection() {
    let (_server, mut client) = start().await;
    client.send(9, &produce("no-such-topic", 0, plain(&[1]))).await;
    assert_eq!(client.frame().await, None);
}

#[tokio::test]
async fn acks_that_mean_nothing() {
    let (server, mut client) = start().await;
    for acks in [2, -2, i16::MAX] {
        let refused = only(client.call(9, &produce("t", acks, plain(&[1]))).await);
        assert_eq!(refused.error_code, ErrorCode::INVALID_REQUIRED_ACKS);
    }
    assert_eq!(server.partition("t", 0).watermarks_now().log_end, 0);
}

#[tokio::test]
async fn each_partition_has_its_own_outcome() {
    let (server, mut client) = start().await;
    server.topic_with("two", 2, &[]);
    let mut request = produce("two", -1, plain(&[1]));
    let data = |index, records: Bytes| PartitionProduceData { index, records: Some(records) };
    request.topic_data[0].partition_data =
        vec![data(0, Bytes::new()), data(1, plain(&[1])), data(2, plain(&[1]))];
    let response = client.call(9, &request).await.responses.remove(0).partition_responses;
    let codes: Vec<_> = response.iter().map(|one| (one.index, one.error_code.is_ok())).collect();
    assert_eq!(codes, [(0, false), (1, true), (2, false)]);
    assert_eq!(response[2].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert!(response[2].error_message.is_some());
}

#[tokio::test]
async fn bad_batches_are_refused_and_leave_no_trace() {
    let (server, mut client) = start().await;
    server.topic_with("compact", 1, &[("cleanup.policy", "compact")]);
    let damaged = |at: usize| {
        let mut bytes = BytesMut::from(&plain(&[1, 2])[..]);
        bytes[at] ^= 0x40;
        bytes.freeze()
    };
    let without_key = || {
        let mut builder = BatchBuilder::new(Compression::None);
        builder.push(1, None, Some(b"x"), &[]);
        builder.build().unwrap()
    };
    let marker = || {
        let mut builder = BatchBuilder::new(Compression::None).control().producer(1, 0, 0);
        builder.push(1, Some(&[0, 0, 0, 1]), Some(&[0; 6]), &[]);
        builder.build().unwrap()
    };
    let last = plain(&[1, 2]).len() - 1;
    let cases = [
        ("t", damaged(last), ErrorCode::CORRUPT_MESSAGE),
        ("t", damaged(17), ErrorCode::CORRUPT_MESSAGE),
        ("t", plain(&[1]).slice(..40), ErrorCode::INVALID_RECORD),
        ("t", marker(), ErrorCode::INVALID_RECORD),
        ("t", large(2 << 20), ErrorCode::MESSAGE_TOO_LARGE),
        ("compact", without_key(), ErrorCode::INVALID_RECORD),
    ];
    for (topic, batch, code) in cases {
        let refused = client.produce(9, topic, batch).await;
        assert_eq!(refused.error_code, code, "{refused:?}");
        assert_eq!(refused.base_offset, -1);
        assert!(refused.error_message.is_some());
        assert_eq!(server.partition(topic, 0).watermarks_now().log_end, 0);
    }
}

#[tokio::test]
async fn requests_on_their_way_keep_their_order() {
    let (_server, mut client) = start().await;
    let mut sent = Vec::new();
    for _ in 0..200 {
        sent.push(client.send(9, &produce("t", -1, plain(&[1]))).await);
    }
    for (offset, correlation_id) in sent.into_iter().enumerate() {
        let response: ProduceResponse = client.receive(9, correlation_id).await;
        assert_eq!(only(response).base_offset, offset as i64);
    }
}

#[tokio::test]
async fn a_topic_can_be_written_in_the_breath_that_makes_it() {
    let (_server, mut client) = start().await;
    let create = highwater_protocol::CreateTopicsRequest {
        topics: vec![highwater_protocol::CreatableTopic {
            name: "new".to_owned(),
            num_partitions: 1,
            replication_factor: 1,
            ..Default::default()
        }],
        ..Default::default()
    };
    let created = client.send(7, &create).await;
    let produced = client.send(9, &produce("new", -1, plain(&[1]))).await;
    client.receive::<highwater_protocol::CreateTopicsResponse>(7, created).await;
    let response = only(client.receive(9, produced).await);
    assert!(response.error_code.is_ok(), "{response:?}");
}

#[tokio::test]
async fn zstd_needs_version_7() {
    let (_server, mut client) = start().await;
    for (version, code) in [(6, ErrorCode::UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode::NONE)] {
        let response = client.produce(version, "t", batch(Compression::Zstd, &[1])).await;
        assert_eq!(response.error_code, code);
    }
}

/// Versions 0 to 2 are advertised and refused, each in its own form.
#[tokio::test]
async fn versions_of_old_are_refused() {
    let (_server, mut client) = start().await;
    for version in 0..=2_i16 {
        let mut body = BytesMut::new();
        body.put_slice(&[0, 0]); // API key
        body.put_i16(version);
        body.put_i32(9); // correlation id
        body.put_i16(-1); // client id
        body.put_i16(1); // acks
        body.put_i32(1000); // timeout
        body.put_i32(1); // topics
        body.put_slice(b"\0\x01t");
        body.put_i32(1); // partitions
        body.put_i32(0); // partition
        body.put_i32(3); // length of a message set
        body.put_slice(b"abc");
        let mut frame = BytesMut::new();
        frame.put_i32(i32::try_from(body.len()).unwrap());
        frame.put_slice(&body);
        client.stream.write_all(&frame).await.unwrap();

        let mut expected = BytesMut::new();
        expected.put_i32(9);
        expected.put_slice(b"\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0");
        expected.put_i16(35);
        expected.put_i64(-1);
        if version == 2 {
            expected.put_i64(-1);
        }
        if version >= 1 {
            expected.put_i32(0);
        }
        assert_eq!(client.frame().await.unwrap(), expected, "version {version}");
    }
}

/// Rule L1: before the fsync, acks=1 is answered, acks=all is not, and nothing is seen.
#[tokio::test]
async fn acks_all_waits_for_the_disk_and_so_does_visibility() {
    let server = Server::without_flush().await;
    let partition = server.topic("t");
    let (mut writer, mut reader) = (server.client().await, server.client().await);
    let written = only(writer.call(9, &produce("t", 1, plain(&[5]))).await);
    assert!(written.error_code.is_ok());
    let seen = reader.fetch(11, &fetch("t", 0)).await;
    assert_eq!((seen.high_watermark, records(&seen).len()), (0, 0));
    assert_eq!(reader.found("t", -1).await.0, 0, "latest is the high watermark");
    assert_eq!(reader.found("t", -3).await.0, -1);

    let waiting = writer.send(9, &produce("t", -1, plain(&[6]))).await;
    let mut request = produce("t", -1, plain(&[7]));
    request.timeout_ms = 50;
    let mut impatient = server.client().await;
    let timed_out = only(impatient.call(9, &request).await);
    assert_eq!(timed_out.error_code, ErrorCode::REQUEST_TIMED_OUT);

    let flushed = partition.clone();
    tokio::task::spawn_blocking(move || flushed.flush().unwrap()).await.unwrap();
    let safe = only(writer.receive(9, waiting).await);
    assert!(safe.error_code.is_ok() && (1..=2).contains(&safe.base_offset), "{safe:?}");
    let seen = reader.fetch(11, &fetch("t", 0)).await;
    assert_eq!((seen.high_watermark, records(&seen).len()), (3, 3));
}

async fn producer_id(client: &mut Client, version: i16) -> i64 {
    let answer = client.call(version, &InitProducerIdRequest::default()).await;
    assert!(answer.error_code.is_ok());
    assert_eq!(answer.producer_epoch, 0);
    answer.producer_id
}

#[tokio::test]
async fn producer_ids_are_never_given_twice() {
    let (server, mut client) = start().await;
    let mut ids = Vec::new();
    for version in 0..=4 {
        ids.push(producer_id(&mut client, version).await);
    }
    drop(client);
    let server = server.restart(|_| {}).await;
    ids.push(producer_id(&mut server.client().await, 4).await);
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 6, "{ids:?}");
}

#[tokio::test]
async fn an_idempotent_producer_may_send_again() {
    let (server, mut client) = start().await;
    let id = producer_id(&mut client, 4).await;
    let sequence = |epoch, sequence| {
        let mut builder = BatchBuilder::new(Compression::None).producer(id, epoch, sequence);
        builder.push(1, None, Some(b"x"), &[]);
        builder.build().unwrap()
    };
    assert_eq!(client.produce(9, "t", sequence(0, 0)).await.base_offset, 0);
    assert_eq!(client.produce(9, "t", sequence(0, 1)).await.base_offset, 1);
    let again = client.produce(9, "t", sequence(0, 0)).await;
    assert_eq!((again.error_code, again.base_offset), (ErrorCode::NONE, 0));
    let gap = client.produce(9, "t", sequence(0, 7)).await;
    assert_eq!(gap.error_code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(client.produce(9, "t", sequence(1, 0)).await.base_offset, 2);
    let old = client.produce(9, "t", sequence(0, 2)).await;
    assert_eq!(old.error_code, ErrorCode::INVALID_PRODUCER_EPOCH);
    assert_eq!(server.partition("t", 0).watermarks_now().log_end, 3);
}
