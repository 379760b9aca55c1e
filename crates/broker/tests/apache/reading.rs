//! Steps of the generator: reading, looking up, and deleting from the front.

use highwater_protocol::records::batches;
use highwater_protocol::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic, FetchPartition, FetchRequest,
    FetchTopic, ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use crate::pair::Pair;
use crate::world::{RECOMPRESSED, ROLLING, World, keeps_settings};

/// More bytes than a batch has.
const PLENTY: i32 = 1 << 20;

pub(crate) fn fetch(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(4..=12);
    let asked = fetchable(world);
    // What a cut last batch takes of the room of all, the partitions behind it have on one side alone.
    let is_alone = asked.len() == 1;
    let is_resized = asked[0].0 == RECOMPRESSED;
    let topics = asked
        .into_iter()
        .map(|(topic, partition)| {
            let asked = FetchPartition {
                partition,
                fetch_offset: world.offset(&topic, partition),
                current_leader_epoch: world.leader_epoch(),
                partition_max_bytes: match world.random.one_of(&[0, 1, 100, 500, PLENTY, PLENTY]) {
                    _ if is_resized => PLENTY,
                    bytes => bytes,
                },
                ..Default::default()
            };
            FetchTopic { topic, partitions: vec![asked] }
        })
        .collect();
    let random = &mut world.random;
    let (session_id, session_epoch) =
        random.one_of(&[(0, -1), (0, -1), (0, -1), (0, -1), (0, -1), (0, 4), (77, 2), (77, -1)]);
    let request = FetchRequest {
        max_wait_ms: random.one_of(&[0, 0, 0, 3]),
        min_bytes: random.one_of(&[0, 1, 1, 1, if is_alone { 1 } else { 5_000 }]),
        max_bytes: match random.one_of(&[0, 1, 300, PLENTY, PLENTY, i32::MAX]) {
            300 if !is_alone => PLENTY,
            _ if is_resized => PLENTY,
            bytes => bytes,
        },
        isolation_level: random.one_of(&[0, 1]),
        session_id,
        session_epoch,
        topics,
        ..Default::default()
    };
    pair.ask("Fetch", version, |_| request.clone());
}

/// Partitions to be read at once. Of a topic with segments or sizes of its own one alone: how much of it comes, and so
/// what the others have, is not the same on both sides.
fn fetchable(world: &mut World) -> Vec<(String, i32)> {
    let mut asked = world.partitions(3);
    if let Some(at) = asked.iter().position(|(topic, _)| keeps_settings(topic)) {
        asked = vec![asked.swap_remove(at)];
    }
    asked
}

pub(crate) fn list_offsets(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(1..=11);
    let mut asked = world.partitions(3);
    if world.random.percent(4) {
        asked.push(asked[0].clone());
    }
    let topics = asked
        .into_iter()
        .map(|(name, partition_index)| {
            let random = &mut world.random;
            let timestamp = match random.below(3) {
                0 => random.between(0, 1_100),
                1 => random.one_of(&[-1, -2, -3]),
                _ => random.one_of(&[-1, -2, -3, -3, -4, -5, -6, -7, i64::MAX]),
            };
            let partition = ListOffsetsPartition {
                partition_index,
                current_leader_epoch: world.leader_epoch(),
                timestamp,
            };
            ListOffsetsTopic { name, partitions: vec![partition] }
        })
        .collect();
    let request = ListOffsetsRequest {
        replica_id: world.random.one_of(&[-1, -1, -1, -1, -2]),
        isolation_level: world.random.one_of(&[0, 1]),
        topics,
        timeout_ms: 30_000,
    };
    pair.ask("ListOffsets", version, |_| request.clone());
}

pub(crate) fn delete_records(pair: &mut Pair, world: &mut World) {
    let (name, partition_index) = world.partition();
    let mut offset = world.offset(&name, partition_index);
    // Not so often to the end, else logs stay short.
    if world.random.percent(60) {
        offset = offset.min(3);
    }
    if let Some(open) = pair.first_open(&name, partition_index) {
        // From within the batch in which the log then starts Apache Kafka takes that one's beginning for stable.
        offset = if offset == -1 { open } else { offset.min(open) };
    }
    if name == ROLLING {
        // When a segment that lies before the start of the log goes, is chance.
        offset = 0;
    }
    let partitions = vec![DeleteRecordsPartition { partition_index, offset }];
    let topics = vec![DeleteRecordsTopic { name, partitions }];
    let request = DeleteRecordsRequest { topics, timeout_ms: 30_000 };
    pair.ask("DeleteRecords", world.random.version(0..=2), |_| request.clone());
}

pub(crate) fn offset_for_leader_epoch(pair: &mut Pair, world: &mut World) {
    let (topic, partition) = world.partition();
    let asked = OffsetForLeaderPartition {
        partition,
        current_leader_epoch: world.leader_epoch(),
        leader_epoch: world.random.one_of(&[-1, 0, 0, 0, 1, 5, -2]),
    };
    let topics = vec![OffsetForLeaderTopic { topic, partitions: vec![asked] }];
    let request = OffsetForLeaderEpochRequest { replica_id: -1, topics };
    pair.ask("OffsetForLeaderEpoch", world.random.version(2..=4), |_| request.clone());
}

fn edge(pair: &mut Pair, topic: &str, partition_index: i32, timestamp: i64) -> i64 {
    let asked = ListOffsetsPartition { partition_index, timestamp, ..Default::default() };
    let topics = vec![ListOffsetsTopic { name: topic.to_owned(), partitions: vec![asked] }];
    let request = ListOffsetsRequest { topics, timeout_ms: 30_000, ..Default::default() };
    pair.ask("ListOffsets", 11, |_| request.clone()).topics[0].partitions[0].offset
}

/// Reads every partition from its start to its end at both isolation levels; gives the number of batches.
pub(crate) fn read_back(pair: &mut Pair, world: &World) -> usize {
    let mut read = 0;
    for (topic, partitions) in &world.topics {
        for partition in 0..i32::try_from(partitions.len()).unwrap() {
            for isolation_level in [0, 1] {
                let mut at = edge(pair, topic, partition, -2);
                while let Some((next, count)) = read_on(pair, topic, partition, isolation_level, at)
                {
                    (at, read) = (next, read + count);
                }
            }
        }
    }
    read
}

/// Where to go on and how many batches came; nothing at the end.
fn read_on(
    pair: &mut Pair,
    topic: &str,
    partition: i32,
    isolation_level: i8,
    fetch_offset: i64,
) -> Option<(i64, usize)> {
    let asked = FetchPartition {
        partition,
        fetch_offset,
        partition_max_bytes: PLENTY,
        ..Default::default()
    };
    let request = FetchRequest {
        min_bytes: 1,
        isolation_level,
        topics: vec![FetchTopic { topic: topic.to_owned(), partitions: vec![asked] }],
        ..Default::default()
    };
    let answer = pair.ask("Fetch", 11, |_| request.clone());
    let records = answer.responses.first()?.partitions.first()?.records.clone()?.into_bytes();
    let found: Vec<_> = batches(records).map(Result::unwrap).collect();
    Some((found.last()?.header.next_offset(), found.len()))
}
