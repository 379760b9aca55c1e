//! Reads a compacted topic of state from its beginning, and later only what came since.

use highwater_kafka::{Admin, KafkaError, ReadRecord, Reader};

/// Bytes asked for at once.
const FETCH_BYTES: u32 = 1 << 20;

/// Where the reading of each partition stands.
#[derive(Debug)]
pub(crate) struct Replay {
    reader: Reader,
    topic: String,
    next: Vec<Option<i64>>,
}

impl Replay {
    /// A replay of all partitions of `topic`, which must exist: Kafka Connect makes its offsets
    /// topic with 25, this worker with one.
    pub(crate) async fn open(
        reader: &Reader,
        admin: &Admin,
        topic: &str,
    ) -> Result<Self, KafkaError> {
        let found = admin.describe_topic(topic).await?;
        let partitions = found.map_or(0, |topic| topic.partitions);
        if partitions < 1 {
            return Err(KafkaError::UnknownPartition { topic: topic.to_owned(), partition: 0 });
        }
        let next = (0..partitions).map(|_| None).collect();
        Ok(Self { reader: reader.clone(), topic: topic.to_owned(), next })
    }

    /// Calls `each` for every record that came since the last call, in order within a partition.
    pub(crate) async fn catch_up(
        &mut self,
        each: &mut (dyn FnMut(ReadRecord) + Send),
    ) -> Result<(), KafkaError> {
        for (partition, next) in (0..).zip(&mut self.next) {
            let reached = match *next {
                None => self.reader.read_all(&self.topic, partition, each).await?,
                Some(from) => follow(&self.reader, &self.topic, partition, from, each).await?,
            };
            *next = Some(reached);
        }
        Ok(())
    }
}

async fn follow(
    reader: &Reader,
    topic: &str,
    partition: i32,
    from: i64,
    each: &mut (dyn FnMut(ReadRecord) + Send),
) -> Result<i64, KafkaError> {
    let mut next = from;
    loop {
        let fetched = reader.fetch(topic, partition, next, FETCH_BYTES).await?;
        let moved = fetched.next_offset > next;
        next = next.max(fetched.next_offset);
        fetched.records.into_iter().for_each(&mut *each);
        if !moved || next >= fetched.watermarks.last_stable {
            return Ok(next);
        }
    }
}
