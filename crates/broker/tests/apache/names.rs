//! What each side calls by names of its own: topic ids and producer ids. In the order in which they are
//! first seen they are the same on both.

use bytes::Bytes;
use highwater_protocol::records::{Batch, DECOMPRESSED_MAX, HEADER_SIZE, TimestampType, batches};
use uuid::Uuid;

/// What the ids of members stand behind.
const MEMBER: &str = "member ";

/// An id that no member has.
pub(crate) const NOBODY: &str = "nobody";

/// Ids of one side, in the order in which they were given.
#[derive(Default)]
pub(crate) struct Names {
    topics: Vec<Uuid>,
    producers: Vec<i64>,
    members: Vec<String>,
}

/// A producer: the n-th that the side gave an id, or one that a client made up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Producer {
    Given(usize),
    Invented(i64),
}

impl Names {
    /// The number that stands for a topic id.
    pub(crate) fn topic(&mut self, id: Uuid) -> Uuid {
        if id.is_nil() {
            return id;
        }
        let known = self.topics.iter().position(|known| *known == id);
        let index = known.unwrap_or_else(|| {
            self.topics.push(id);
            self.topics.len() - 1
        });
        Uuid::from_u128(index as u128 + 1)
    }

    /// The id for which a number stands; another id stands for itself.
    pub(crate) fn topic_id(&self, number: Uuid) -> Uuid {
        let index = usize::try_from(number.as_u128()).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.topics.get(index)).copied().unwrap_or(number)
    }

    /// Takes in a producer id that the side gave; the number that stands for it.
    pub(crate) fn given(&mut self, id: i64) -> i64 {
        if id < 0 {
            return id;
        }
        if !self.producers.contains(&id) {
            self.producers.push(id);
        }
        self.producer(id)
    }

    /// The number that stands for a producer id; one that was never given stands for itself.
    pub(crate) fn producer(&self, id: i64) -> i64 {
        let known = self.producers.iter().position(|known| *known == id);
        known.map_or(id, |index| index as i64)
    }

    pub(crate) fn producer_id(&self, producer: Producer) -> i64 {
        match producer {
            Producer::Given(index) => self.producers[index],
            Producer::Invented(id) => id,
        }
    }

    /// What stands for a member's id, which a group gives by chance.
    pub(crate) fn member(&mut self, id: &str) -> String {
        if id.is_empty() || id == NOBODY {
            return id.to_owned();
        }
        let known = self.members.iter().position(|known| known == id);
        let index = known.unwrap_or_else(|| {
            self.members.push(id.to_owned());
            self.members.len() - 1
        });
        format!("{MEMBER}{index}")
    }

    /// The id for which it stands; another id stands for itself.
    pub(crate) fn member_id(&self, name: &str) -> String {
        let index = name.strip_prefix(MEMBER).and_then(|index| index.parse::<usize>().ok());
        index.and_then(|index| self.members.get(index)).map_or(name, String::as_str).to_owned()
    }

    /// The whole batches of an answer, with what each side calls otherwise made one: the producer's id,
    /// times of the log's own clock, and the checksum over both, which is checked first.
    pub(crate) fn records(&self, records: &Bytes, stored: Stored) -> Bytes {
        let mut all = Vec::new();
        for batch in batches(records.clone()).map(Result::unwrap) {
            batch.verify_crc().unwrap();
            let mut header = batch.header;
            header.producer_id = self.producer(header.producer_id);
            header.crc = 0;
            if header.timestamp_type() == TimestampType::LogAppendTime || header.is_control() {
                header.max_timestamp = clock(header.max_timestamp);
            }
            if header.is_control() {
                header.base_timestamp = clock(header.base_timestamp);
            }
            let payload = match stored {
                Stored::Anew if !header.is_control() => unpacked(&batch),
                Stored::Anew | Stored::AsSent => batch.bytes.slice(HEADER_SIZE..),
            };
            header.batch_length = i32::try_from(HEADER_SIZE - 12 + payload.len()).unwrap();
            all.extend_from_slice(&header.to_bytes());
            all.extend_from_slice(&payload);
        }
        all.into()
    }
}

/// The records of a batch as they are before compression.
fn unpacked(batch: &Batch) -> Bytes {
    let records = batch.records(DECOMPRESSED_MAX).unwrap().map(Result::unwrap);
    records.map(|record| format!("{record:?}")).collect::<String>().replace('"', "'").into()
}

/// How a topic stores what it is sent.
#[derive(Clone, Copy)]
pub(crate) enum Stored {
    AsSent,
    /// Compressed anew, to as many bytes as the compressor of the side makes of it.
    Anew,
}

/// A time of the log's own clock, which is another on either side.
pub(crate) const OF_THE_CLOCK: i64 = i64::MAX;

/// [`OF_THE_CLOCK`] for a time within a day of now; another time as it is.
pub(crate) fn clock(time: i64) -> i64 {
    if (time - now_ms()).abs() < 86_400_000 { OF_THE_CLOCK } else { time }
}

pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
