//! Steps of the generator: batches, good and bad.

use bytes::Bytes;
use highwater_protocol::records::{BatchBuilder, Compression};
use highwater_protocol::{
    InitProducerIdRequest, PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};

use crate::batches::with_header;
use crate::names::{Names, Producer, now_ms};
use crate::pair::Pair;
use crate::random::Random;
use crate::world::{RECOMPRESSED, ROLLING, Sent, World};

const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

/// Of a record of which two fill a segment.
const LARGE: usize = 600_000;

/// What is wrong with a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    None,
    Checksum,
    /// The header counts one record more than the last offset says.
    Count,
    /// The last offset is one more than the count says.
    LastOffset,
    /// Count and last offset agree, and the records are fewer, or more.
    Fewer,
    More,
    Control,
    ClaimsLogAppendTime,
    Future,
    BaseOffset,
    NoSequence,
    /// The greatest timestamp of the header is not that of the records.
    MaxTimestamp,
    Twice,
    Nothing,
    /// The length says more than there is.
    Cut,
}

const FLAWS: [Flaw; 14] = [
    Flaw::Checksum,
    Flaw::Count,
    Flaw::LastOffset,
    Flaw::Fewer,
    Flaw::More,
    Flaw::Control,
    Flaw::ClaimsLogAppendTime,
    Flaw::Future,
    Flaw::BaseOffset,
    Flaw::NoSequence,
    Flaw::MaxTimestamp,
    Flaw::Twice,
    Flaw::Nothing,
    Flaw::Cut,
];

/// Who sends a batch, and as which of its.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    producer: Producer,
    epoch: i16,
    first: i32,
}

/// Timestamp, key and value.
type Record = (i64, Option<&'static [u8]>, Option<Vec<u8>>);

/// A batch before the names of a side are in it.
#[derive(Clone, Debug)]
struct Plan {
    codec: Compression,
    records: Vec<Record>,
    headers: Vec<(Bytes, Option<Bytes>)>,
    sequence: Option<Sequence>,
    flaw: Flaw,
    /// What is added to the times of the records.
    ahead_ms: i64,
}

impl Plan {
    fn any(world: &mut World, name: &str, partition: i32) -> Self {
        let sequence = world.random.percent(45).then(|| sequence(world, name, partition));
        let random = &mut world.random;
        let keyless = random.percent(4);
        let count = random.one_of(&[1, 1, 2, 3, 8]);
        let mut records: Vec<_> = (0..count).map(|_| record(random, keyless)).collect();
        if random.percent(4) {
            records[0].2 = Some(vec![b'x'; random.one_of(&[200, 2_000])]);
        }
        let (mut codec, mut sequence) = (random.one_of(&CODECS), sequence);
        if name == ROLLING && random.percent(50) {
            // Apache Kafka ends a segment also for a batch that its producer should not have sent.
            (codec, sequence) = (Compression::None, None);
            records[0].2 = Some(vec![b'x'; LARGE]);
        }
        let header =
            (Bytes::from_static(b"h"), random.percent(50).then(|| Bytes::from_static(b"v")));
        let flaw = match random.one_of(&FLAWS) {
            _ if random.percent(86) => Flaw::None,
            Flaw::ClaimsLogAppendTime if name == RECOMPRESSED => Flaw::None,
            flaw => flaw,
        };
        Self {
            codec,
            headers: if random.percent(20) { vec![header] } else { Vec::new() },
            records,
            sequence,
            flaw,
            // A time for both: one that each side is told at its own time would be another.
            ahead_ms: if flaw == Flaw::Future { now_ms() + 7_200_000 } else { 0 },
        }
    }

    fn count(&self) -> usize {
        self.records.len()
    }

    fn bytes(&self, names: &Names) -> Bytes {
        let mut builder = BatchBuilder::new(self.codec);
        if let Some(Sequence { producer, epoch, first }) = self.sequence {
            builder = builder.producer(names.producer_id(producer), epoch, first);
        }
        if self.flaw == Flaw::Control {
            builder = builder.control();
        }
        for (timestamp, key, value) in &self.records {
            builder.push(*timestamp + self.ahead_ms, *key, value.as_deref(), &self.headers);
        }
        self.spoilt(builder.build().unwrap())
    }

    fn spoilt(&self, batch: Bytes) -> Bytes {
        match self.flaw {
            Flaw::None | Flaw::Control | Flaw::Future => batch,
            Flaw::Checksum => {
                let mut bytes = batch.to_vec();
                bytes[17] ^= 1;
                bytes.into()
            }
            Flaw::Count => with_header(&batch, |header| header.record_count += 1),
            Flaw::LastOffset => with_header(&batch, |header| header.last_offset_delta += 1),
            Flaw::Fewer => with_header(&batch, |header| {
                header.record_count += 1;
                header.last_offset_delta += 1;
            }),
            Flaw::More => with_header(&batch, |header| {
                header.record_count -= 1;
                header.last_offset_delta -= 1;
                header.last_offset_delta = header.last_offset_delta.max(0);
            }),
            Flaw::ClaimsLogAppendTime => with_header(&batch, |header| header.attributes |= 8),
            Flaw::BaseOffset => with_header(&batch, |header| header.base_offset = 3),
            Flaw::NoSequence => with_header(&batch, |header| {
                header.producer_id = 1 << 40;
                header.producer_epoch = 0;
                header.base_sequence = -1;
            }),
            Flaw::MaxTimestamp => with_header(&batch, |header| header.max_timestamp = 1 << 30),
            Flaw::Twice => [&batch[..], &batch[..]].concat().into(),
            Flaw::Nothing => Bytes::new(),
            Flaw::Cut => batch.slice(..batch.len() - 1),
        }
    }
}

fn record(random: &mut Random, keyless: bool) -> Record {
    let timestamp = if random.percent(3) { -1 } else { random.between(0, 1_000) };
    let keys: [&'static [u8]; 4] = [b"a", b"b", b"c", b""];
    let key = (!keyless).then(|| random.one_of(&keys));
    let length = random.below(20);
    let value = (!random.percent(10)).then(|| (0..length).map(|_| random.bits() as u8).collect());
    (timestamp, key, value)
}

/// The next sequence of a producer in a partition, mostly.
fn sequence(world: &mut World, name: &str, partition: i32) -> Sequence {
    let producer = match world.random.below(8) {
        0 => Producer::Invented((1 << 41) + world.random.between(0, 2)),
        _ => Producer::Given(world.random.below(PRODUCERS)),
    };
    let sent = world.sent.get(&(producer, name.to_owned(), partition)).copied();
    let (epoch, next) = sent.map_or((0, 0), |sent| (sent.epoch, after(sent)));
    let random = &mut world.random;
    match (random.below(20), sent) {
        // Sent again, whole.
        (0..4, Some(sent)) => Sequence { producer, epoch, first: sent.sequence },
        (4, _) => Sequence { producer, epoch, first: next.saturating_add(random.one_of(&[1, 7])) },
        (5, _) => Sequence { producer, epoch: epoch + 1, first: 0 },
        (6, _) => Sequence { producer, epoch: epoch + 1, first: 5 },
        (7, _) => Sequence { producer, epoch: (epoch - 1).max(0), first: next },
        (8, None) => Sequence { producer, epoch, first: random.one_of(&[3, i32::MAX - 1]) },
        _ => Sequence { producer, epoch, first: next },
    }
}

fn after(sent: Sent) -> i32 {
    let next = i64::from(sent.sequence) + i64::try_from(sent.count).unwrap();
    i32::try_from(next % (1 << 31)).unwrap()
}

/// Producers that take part; they are given their ids before the first step.
pub(crate) const PRODUCERS: usize = 4;

pub(crate) fn produce(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(3..=11);
    let acks = world.random.one_of(&[-1, -1, -1, -1, -1, -1, 1, 1, 1, 5]);
    let plans: Vec<_> = world
        .partitions(3)
        .into_iter()
        .map(|(name, partition)| {
            let mut plan = Plan::any(world, &name, partition);
            if world.random.percent(25)
                && let Some(sent) = repeated(world, &name, partition, &plan)
            {
                plan.records.truncate(1);
                while plan.records.len() < sent.count {
                    plan.records.push(plan.records[0].clone());
                }
            }
            (name, partition, plan)
        })
        .collect();
    pair.note = format!(
        "{:?}",
        plans
            .iter()
            .map(|(name, index, plan)| (name, index, plan.flaw, plan.sequence))
            .collect::<Vec<_>>()
    );
    let answer = pair.ask("Produce", version, |names| request(acks, &plans, names));
    pair.note.clear();
    take_in(world, &plans, &answer);
    plans.iter().for_each(|(name, partition, _)| pair.until_shown(name, *partition));
}

/// What a batch repeats, if its sequence is that of the last one.
fn repeated(world: &World, name: &str, partition: i32, plan: &Plan) -> Option<Sent> {
    let sequence = plan.sequence?;
    let sent = *world.sent.get(&(sequence.producer, name.to_owned(), partition))?;
    (sent.sequence == sequence.first && sent.epoch == sequence.epoch).then_some(sent)
}

/// A batch that nobody answers for; a good one, as a bad one ends the connection.
pub(crate) fn produce_unanswered(pair: &mut Pair, world: &mut World) {
    let Some(name) = world.standing() else { return };
    let plan = Plan {
        codec: world.random.one_of(&CODECS),
        records: vec![(5, Some(b"a"), None)],
        headers: Vec::new(),
        sequence: None,
        flaw: Flaw::None,
        ahead_ms: 0,
    };
    let plans = vec![(name.clone(), 0, plan)];
    pair.tell("Produce, acks=0", world.random.version(7..=11), |names| request(0, &plans, names));
    // Requests of a connection are done in order: the next answer is behind the append.
    let request = highwater_protocol::DescribeClusterRequest::default();
    pair.ask("DescribeCluster", 0, |_| request.clone());
    pair.until_shown(&name, 0);
}

fn request(acks: i16, plans: &[(String, i32, Plan)], names: &Names) -> ProduceRequest {
    let topic = |(name, index, plan): &(String, i32, Plan)| TopicProduceData {
        name: name.clone(),
        partition_data: vec![PartitionProduceData {
            index: *index,
            records: Some(plan.bytes(names)),
        }],
    };
    ProduceRequest {
        acks,
        timeout_ms: 30_000,
        topic_data: plans.iter().map(topic).collect(),
        ..Default::default()
    }
}

fn take_in(world: &mut World, plans: &[(String, i32, Plan)], answer: &ProduceResponse) {
    for (name, partition, plan) in plans {
        let topic = answer.responses.iter().find(|topic| topic.name == *name);
        let mut partitions = topic.iter().flat_map(|topic| &topic.partition_responses);
        let Some(appended) = partitions.find(|one| one.index == *partition) else { continue };
        if !appended.error_code.is_ok() {
            continue;
        }
        let count = i64::try_from(plan.count()).unwrap();
        world.appended(name, *partition, appended.base_offset + count);
        if let Some(Sequence { producer, epoch, first }) = plan.sequence {
            let sent = Sent { epoch, sequence: first, count: plan.count() };
            world.sent.insert((producer, name.clone(), *partition), sent);
        }
    }
}

pub(crate) fn init_producer_id(pair: &mut Pair, world: &mut World) {
    let (producer_id, producer_epoch) = match world.random.below(4) {
        0 => world.random.one_of(&[(5, -1), (-1, 3), (5, 3)]),
        _ => (-1, -1),
    };
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: world.random.one_of(&[60_000, 60_000, 0, i32::MAX]),
        producer_id,
        producer_epoch,
    };
    pair.ask("InitProducerId", world.random.version(0..=4), |_| request.clone());
}
