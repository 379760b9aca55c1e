//! What Fetch and ListOffsets tell a reader at read_committed.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use highwater_log::{EndMarker, MarkerKind, Partition};
use highwater_protocol::records::{BatchBuilder, Compression};
use highwater_protocol::{ErrorCode, FetchRequest, ListOffsetsRequest, PartitionData};
use tokio::time::timeout;

use crate::client::{Client, SOON, fetch, found_batches, list_offsets, plain};
use crate::server::Server;

/// One batch of a producer's transaction.
fn part(producer_id: i64, sequence: i32, timestamp: i64) -> Bytes {
    let builder = BatchBuilder::new(Compression::None).producer(producer_id, 0, sequence);
    let mut builder = builder.transactional();
    builder.push(timestamp, Some(b"key"), Some(b"value"), &[]);
    builder.build().unwrap()
}

fn now_ms() -> i64 {
    i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}

/// Appends what a coordinator has verified.
async fn put(partition: &Arc<Partition>, batch: Bytes) {
    let options = highwater_log::AppendOptions::client(now_ms());
    let appended = partition.append(batch, options).unwrap();
    partition.durable(&appended).await.unwrap();
}

async fn end(partition: &Arc<Partition>, producer_id: i64, kind: MarkerKind) {
    let marker = EndMarker { producer_id, producer_epoch: 0, kind, coordinator_epoch: 0 };
    let appended = partition.append_marker(marker, now_ms()).unwrap();
    partition.durable(&appended).await.unwrap();
}

fn committed(offset: i64) -> FetchRequest {
    FetchRequest { isolation_level: 1, ..fetch("t", offset) }
}

fn bases(answer: &PartitionData) -> Vec<i64> {
    found_batches(answer).iter().map(|batch| batch.header.base_offset).collect()
}

fn aborted(answer: &PartitionData) -> Vec<(i64, i64)> {
    let found = answer.aborted_transactions.iter().flatten();
    found.map(|one| (one.producer_id, one.first_offset)).collect()
}

async fn latest(client: &mut Client, isolation_level: i8, timestamp: i64) -> (i64, i64) {
    let request = ListOffsetsRequest { isolation_level, ..list_offsets("t", timestamp) };
    let mut answer = client.call(7, &request).await;
    let found = answer.topics.remove(0).partitions.remove(0);
    (found.offset, found.timestamp)
}

#[tokio::test]
async fn a_reader_at_read_committed_ends_at_the_last_stable_offset() {
    let server = Server::start().await;
    let partition = server.topic("t");
    let mut client = server.client().await;
    client.produce(9, "t", plain(&[100])).await;
    put(&partition, part(7, 0, 900)).await;
    put(&partition, plain(&[5])).await;
    for version in 4..=12 {
        let seen = client.fetch(version, &committed(0)).await;
        assert_eq!((seen.high_watermark, seen.last_stable_offset), (3, 1));
        assert_eq!((bases(&seen), aborted(&seen)), (vec![0], vec![]));
        let all = client.fetch(version, &fetch("t", 0)).await;
        assert_eq!(bases(&all), [0, 1, 2]);
        assert_eq!((all.last_stable_offset, all.aborted_transactions), (1, None));
    }
    assert_eq!(latest(&mut client, 1, -1).await, (1, -1));
    assert_eq!(latest(&mut client, 0, -1).await, (3, -1));
    assert_eq!(latest(&mut client, 1, -3).await, (-1, -1));
    assert_eq!(latest(&mut client, 0, -3).await, (1, 900));
    end(&partition, 7, MarkerKind::Commit).await;
    let seen = client.fetch(11, &committed(0)).await;
    assert_eq!((seen.last_stable_offset, bases(&seen)), (4, vec![0, 1, 2, 3]));
    assert_eq!(latest(&mut client, 1, -1).await, (4, -1));
}

#[tokio::test]
async fn aborted_transactions_are_told_once() {
    let server = Server::start().await;
    let partition = server.topic("t");
    let mut client = server.client().await;
    put(&partition, part(7, 0, 1)).await;
    put(&partition, part(8, 0, 1)).await;
    partition.roll().unwrap();
    put(&partition, part(7, 1, 1)).await;
    end(&partition, 7, MarkerKind::Abort).await;
    end(&partition, 8, MarkerKind::Commit).await;
    // Both segments are read for one answer, and the transaction reaches over both.
    let all = FetchRequest { min_bytes: 100_000, ..committed(0) };
    let seen = client.fetch(11, &all).await;
    assert_eq!((bases(&seen), aborted(&seen)), (vec![0, 1, 2, 3, 4], vec![(7, 0)]));
    let behind = client.fetch(11, &committed(4)).await;
    assert_eq!((bases(&behind), aborted(&behind)), (vec![4], vec![]));
}

#[tokio::test]
async fn a_reader_that_waits_is_woken_by_the_marker() {
    let server = Server::start().await;
    let partition = server.topic("t");
    put(&partition, part(7, 0, 1)).await;
    let mut client = server.client().await;
    let request = FetchRequest { max_wait_ms: 60_000, ..committed(0) };
    let waiting = client.send(11, &request).await;
    end(&partition, 7, MarkerKind::Abort).await;
    let answer = client.receive::<highwater_protocol::FetchResponse>(11, waiting);
    let mut answer = timeout(SOON, answer).await.unwrap();
    let seen = answer.responses.remove(0).partitions.remove(0);
    assert_eq!((bases(&seen), aborted(&seen)), (vec![0, 1], vec![(7, 0)]));
}

#[tokio::test]
async fn a_transactional_batch_needs_a_transactional_id() {
    let server = Server::start().await;
    let partition = server.topic("t");
    let mut client = server.client().await;
    let refused = client.produce(9, "t", part(7, 0, 1)).await;
    assert_eq!(refused.error_code, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    assert_eq!(partition.watermarks_now().log_end, 0);
}
