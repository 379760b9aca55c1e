//! Steps of the generator: transactions (TV1: each partition is added before it is written).

use std::collections::HashMap;

use bytes::Bytes;
use highwater_protocol::records::{BatchBuilder, Compression};
use highwater_protocol::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, AddPartitionsToTxnTopic,
    DescribeProducersRequest, DescribeProducersTopic, DescribeTransactionsRequest, EndTxnRequest,
    ErrorCode, InitProducerIdRequest, ListTransactionsRequest, PartitionProduceData,
    ProduceRequest, TopicProduceData, TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
};

use crate::groups::TOPIC;
use crate::names::{Names, Producer};
use crate::pair::Pair;
use crate::world::World;

const IDS: [&str; 3] = ["d-txn-0", "d-txn-1", "d-txn-2"];
pub(crate) const GROUP: &str = "d-txn-group";

/// The transactional producers, by their ids.
#[derive(Default)]
pub(crate) struct Transactions(HashMap<&'static str, Transaction>);

#[derive(Clone, Debug)]
struct Transaction {
    producer: Producer,
    epoch: i16,
    added: Vec<(String, i32)>,
    /// The next sequence in each partition, and that of the batch before.
    next: HashMap<(String, i32), (i32, i32)>,
    /// Whether something was written since the last one ended.
    is_begun: bool,
}

/// Who speaks in a request, mostly who may.
struct Speaker {
    id: &'static str,
    producer: Producer,
    epoch: i16,
}

fn speaker(world: &mut World) -> Speaker {
    let id = world.random.one_of(&IDS);
    let known = world.transactions.0.get(id);
    let (producer, epoch) =
        known.map_or((Producer::Invented(1 << 42), 0), |known| (known.producer, known.epoch));
    match world.random.below(24) {
        0 => Speaker { id, producer, epoch: epoch + 1 },
        1 => Speaker { id, producer, epoch: epoch - 1 },
        2 => Speaker { id, producer: Producer::Invented(1 << 43), epoch },
        3 => Speaker { id: "d-txn-none", producer, epoch },
        4 => Speaker { id: "", producer, epoch },
        _ => Speaker { id, producer, epoch },
    }
}

/// Who writes: once something is written under its own name alone, of which Apache Kafka asks no more then.
fn writer(world: &mut World) -> Speaker {
    let Speaker { id, producer, epoch } = speaker(world);
    let begun =
        world.transactions.0.iter().find(|(_, known)| known.is_begun && known.producer == producer);
    Speaker { id: begun.map_or(id, |(own, _)| own), producer, epoch }
}

pub(crate) fn init_transactions(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=4);
    let id = world.random.one_of(&IDS);
    let transaction_timeout_ms =
        world.random.one_of(&[600_000, 600_000, 600_000, 600_000, 600_000, 0, -5, i32::MAX]);
    let known = world.transactions.0.get(id).map(|known| (known.producer, known.epoch));
    let claimed = known.filter(|_| version >= 3 && world.random.percent(40));
    let claimed = claimed.map(|(producer, epoch)| match world.random.below(4) {
        0 => (producer, epoch - 1),
        1 => (Producer::Invented(1 << 43), epoch),
        _ => (producer, epoch),
    });
    begin(pair, world, id, version, transaction_timeout_ms, claimed);
}

/// Asks for a producer of a transactional id; true if it is given.
pub(crate) fn begin(
    pair: &mut Pair,
    world: &mut World,
    id: &'static str,
    version: i16,
    transaction_timeout_ms: i32,
    claimed: Option<(Producer, i16)>,
) -> bool {
    let answer =
        pair.ask_settled("InitProducerId, transactional", version, |names| InitProducerIdRequest {
            transactional_id: Some(id.to_owned()),
            transaction_timeout_ms,
            producer_id: claimed.map_or(-1, |(producer, _)| names.producer_id(producer)),
            producer_epoch: claimed.map_or(-1, |(_, epoch)| epoch),
        });
    pair.until_ended(id);
    if answer.error_code.is_ok() {
        let transaction = Transaction {
            producer: Producer::Given(usize::try_from(answer.producer_id).unwrap()),
            epoch: answer.producer_epoch,
            added: Vec::new(),
            next: HashMap::new(),
            is_begun: false,
        };
        world.transactions.0.insert(id, transaction);
    }
    answer.error_code.is_ok()
}

pub(crate) fn add_partitions_to_txn(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=3);
    let speaker = speaker(world);
    let partitions = world.partitions(2);
    add(pair, world, &speaker, version, partitions);
}

/// Adds partitions to a transaction.
fn add(
    pair: &mut Pair,
    world: &mut World,
    speaker: &Speaker,
    version: i16,
    partitions: Vec<(String, i32)>,
) {
    let Speaker { id, producer, epoch } = *speaker;
    let topic = |(name, partition): &(String, i32)| AddPartitionsToTxnTopic {
        name: name.clone(),
        partitions: vec![*partition],
    };
    let mut topics: Vec<AddPartitionsToTxnTopic> = partitions.iter().map(topic).collect();
    topics.dedup_by(|later, earlier| {
        let same = later.name == earlier.name;
        if same {
            earlier.partitions.append(&mut later.partitions);
        }
        same
    });
    let answer =
        pair.ask_settled("AddPartitionsToTxn", version, |names| AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: id.to_owned(),
            v3_and_below_producer_id: names.producer_id(producer),
            v3_and_below_producer_epoch: epoch,
            v3_and_below_topics: topics.clone(),
        });
    let results = answer.results_by_topic_v3_and_below.iter();
    let mut codes = results.flat_map(|topic| &topic.results_by_partition);
    if codes.all(|one| one.partition_error_code.is_ok())
        && let Some(known) = world.transactions.0.get_mut(id)
    {
        known.added.extend(partitions);
    }
}

pub(crate) fn produce_in_txn(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(3..=11);
    let Speaker { id, producer, epoch } = writer(world);
    let added = world.transactions.0.get(id).map(|known| known.added.clone()).unwrap_or_default();
    let (name, index) = match added.len() {
        0 => world.partition(),
        _ if world.random.percent(10) => world.partition(),
        count => added[world.random.below(count)].clone(),
    };
    let place = (name.clone(), index);
    let known = world.transactions.0.get(id).and_then(|known| known.next.get(&place)).copied();
    let (next, before) = known.unwrap_or((0, 0));
    let first = match world.random.below(12) {
        0 => next + 3,
        1 => before,
        _ => next,
    };
    write(pair, world, &Speaker { id, producer, epoch }, version, place, first);
}

/// Writes a batch of two records.
fn write(
    pair: &mut Pair,
    world: &mut World,
    speaker: &Speaker,
    version: i16,
    place: (String, i32),
    first: i32,
) {
    let Speaker { id, producer, epoch } = *speaker;
    let (name, index) = place.clone();
    let count = 2;
    let codec = world.random.one_of(&[Compression::None, Compression::Lz4]);
    let timestamp = world.random.between(0, 1_000);
    let batch = |names: &Names| -> Bytes {
        let builder = BatchBuilder::new(codec).producer(names.producer_id(producer), epoch, first);
        let mut builder = builder.transactional();
        (0..count)
            .for_each(|n| builder.push(timestamp + n, Some(b"t"), Some(b"in a transaction"), &[]));
        builder.build().unwrap()
    };
    let with_id = world.random.percent(97);
    let answer = pair.ask("Produce, transactional", version, |names| ProduceRequest {
        transactional_id: with_id.then(|| id.to_owned()),
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![TopicProduceData {
            name: name.clone(),
            partition_data: vec![PartitionProduceData { index, records: Some(batch(names)) }],
        }],
    });
    let appended = &answer.responses[0].partition_responses[0];
    if appended.error_code.is_ok() {
        world.appended_in_txn(id, place, first, i32::try_from(count).unwrap());
    }
    pair.until_shown(&name, index);
}

pub(crate) fn add_offsets_to_txn(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=3);
    let Speaker { id, producer, epoch } = speaker(world);
    let group = world.random.one_of(&[GROUP, GROUP, GROUP, GROUP, ""]);
    pair.ask_settled("AddOffsetsToTxn", version, |names| AddOffsetsToTxnRequest {
        transactional_id: id.to_owned(),
        producer_id: names.producer_id(producer),
        producer_epoch: epoch,
        group_id: group.to_owned(),
    });
}

pub(crate) fn txn_offset_commit(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=4);
    let Speaker { id, producer, epoch } = writer(world);
    let random = &mut world.random;
    let partition = TxnOffsetCommitRequestPartition {
        partition_index: random.one_of(&[0, 1]),
        committed_offset: random.between(0, 100),
        committed_leader_epoch: random.one_of(&[-1, 0]),
        committed_metadata: Some("in a transaction".to_owned()),
    };
    let drawn = partition.committed_offset;
    let generation_id = if version >= 3 && drawn % 3 == 0 { 5 } else { -1 };
    let group_id = if drawn % 10 == 1 { "" } else { GROUP };
    let topic = TxnOffsetCommitRequestTopic { name: TOPIC.to_owned(), partitions: vec![partition] };
    let answer = pair.ask("TxnOffsetCommit", version, |names| TxnOffsetCommitRequest {
        transactional_id: id.to_owned(),
        group_id: group_id.to_owned(),
        producer_id: names.producer_id(producer),
        producer_epoch: epoch,
        generation_id,
        topics: vec![topic.clone()],
        ..Default::default()
    });
    if answer.topics[0].partitions[0].error_code.is_ok()
        && let Some(known) = world.transactions.0.get_mut(id)
    {
        known.is_begun = true;
    }
}

pub(crate) fn end_txn(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=4);
    let Speaker { id, producer, epoch } = speaker(world);
    let committed = world.random.percent(50);
    end(pair, world, &Speaker { id, producer, epoch }, version, committed);
}

fn end(pair: &mut Pair, world: &mut World, speaker: &Speaker, version: i16, committed: bool) {
    let Speaker { id, producer, epoch } = *speaker;
    let answer = pair.ask_settled("EndTxn", version, |names| EndTxnRequest {
        transactional_id: id.to_owned(),
        producer_id: names.producer_id(producer),
        producer_epoch: epoch,
        committed,
    });
    if answer.error_code.is_ok() {
        pair.until_ended(id);
        ended(pair, world, id);
    }
}

/// A transaction has ended: its markers are seen.
fn ended(pair: &mut Pair, world: &mut World, id: &str) {
    if let Some(known) = world.transactions.0.get_mut(id) {
        known.added.clear();
        known.is_begun = false;
    }
    let places: Vec<_> = world
        .topics
        .iter()
        .flat_map(|(name, ends)| {
            (0..ends.len()).map(move |index| (name.clone(), i32::try_from(index).unwrap()))
        })
        .collect();
    places.iter().for_each(|(name, index)| pair.until_shown(name, *index));
}

/// So long a transaction may be open that is to be over its time: longer than the requests that begin it take.
const SHORT_MS: i32 = 2_000;

/// Leaves a transaction alone until it is over its time; then its producer is fenced.
pub(crate) fn time_out(pair: &mut Pair, world: &mut World) {
    let id = world.random.one_of(&IDS);
    let Some(name) = world.standing() else { return };
    let place = (name.clone(), world.index(&name).max(0));
    if !begin(pair, world, id, 3, SHORT_MS, None) {
        return;
    }
    let known = &world.transactions.0[id];
    let speaker = Speaker { id, producer: known.producer, epoch: known.epoch };
    add(pair, world, &speaker, 3, vec![place.clone()]);
    write(pair, world, &speaker, 9, place.clone(), 0);
    pair.until_over(id);
    ended(pair, world, id);
    let request = DescribeTransactionsRequest { transactional_ids: vec![id.to_owned()] };
    pair.ask("DescribeTransactions", 0, |_| request.clone());
    write(pair, world, &speaker, 11, place, 2);
    end(pair, world, &speaker, 3, true);
}

pub(crate) fn describe_producers(pair: &mut Pair, world: &mut World) {
    let (name, index) = world.partition();
    let topics = vec![DescribeProducersTopic { name, partition_indexes: vec![index] }];
    pair.ask("DescribeProducers", 0, |_| DescribeProducersRequest { topics: topics.clone() });
}

pub(crate) fn describe_transactions(pair: &mut Pair, world: &mut World) {
    let id = world.random.one_of(&[IDS[0], IDS[1], IDS[2], "d-txn-none", ""]);
    let request = DescribeTransactionsRequest { transactional_ids: vec![id.to_owned()] };
    pair.ask("DescribeTransactions", 0, |_| request.clone());
}

pub(crate) fn list_transactions(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=1);
    let states: &[&str] =
        world.random.one_of(&[&[], &["Ongoing"], &["CompleteCommit", "Empty"], &["Asleep"]]);
    let with_producer = world.random.percent(20);
    let producer = world.transactions.0.get(IDS[0]).map(|known| known.producer);
    pair.ask("ListTransactions", version, |names| ListTransactionsRequest {
        state_filters: states.iter().map(|state| (*state).to_owned()).collect(),
        producer_id_filters: match producer {
            Some(producer) if with_producer => vec![names.producer_id(producer)],
            _ => Vec::new(),
        },
        ..Default::default()
    });
}

impl World {
    fn appended_in_txn(&mut self, id: &str, place: (String, i32), first: i32, count: i32) {
        if let Some(known) = self.transactions.0.get_mut(id) {
            known.next.insert(place, (first + count, first));
            known.is_begun = true;
        }
    }

    /// A topic is gone, and with it what was sent to it.
    pub(crate) fn forget_in_txns(&mut self, topic: &str) {
        for known in self.transactions.0.values_mut() {
            known.added.retain(|(name, _)| name != topic);
            known.next.retain(|(name, _), _| name != topic);
        }
    }
}

/// The error of an answer that says: ask again, the transaction before is still being ended.
pub(crate) const AGAIN: ErrorCode = ErrorCode::CONCURRENT_TRANSACTIONS;
