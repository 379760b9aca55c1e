//! Fetching: asking for batches, and taking the committed records out of them.

use bytes::Bytes;
use highwater_protocol::records::{
    Batch, BatchError, BatchHeader, DECOMPRESSED_MAX, Marker, Record, batches,
};
use highwater_protocol::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData};

use crate::KafkaError;
use crate::cluster::{Cluster, Failure, Leader};
use crate::committed::Transactions;
use crate::offsets::{CONSUMER, READ_COMMITTED};
use crate::reader::{Fetched, ReadRecord, Watermarks};

/// Fetches committed records from `offset` on, once, without waiting for new ones.
pub(crate) async fn fetch(
    cluster: &Cluster,
    topic: &str,
    partition: i32,
    offset: i64,
    max_bytes: u32,
) -> Result<Fetched, Failure> {
    let leader = cluster.leader(topic, partition).await?;
    let max_bytes = i32::try_from(max_bytes).unwrap_or(i32::MAX);
    let asked = FetchPartition {
        partition,
        fetch_offset: offset,
        partition_max_bytes: max_bytes,
        ..Default::default()
    };
    let topics = vec![FetchTopic { topic: topic.to_owned(), partitions: vec![asked] }];
    let answer = cluster.ask(&leader, &request(topics, max_bytes)).await?;
    let data = answered(cluster, &leader, answer, topic, partition, offset)?;
    committed(data, offset).map_err(|(at, error)| {
        let what = format!("the batch at offset {at} of {topic}-{partition}");
        Failure::Final(KafkaError::Malformed { what, detail: error.to_string() })
    })
}

/// A request of a read_committed consumer without a fetch session.
pub(crate) fn request(topics: Vec<FetchTopic>, max_bytes: i32) -> FetchRequest {
    FetchRequest {
        replica_id: CONSUMER,
        isolation_level: READ_COMMITTED,
        max_bytes,
        topics,
        ..Default::default()
    }
}

fn answered(
    cluster: &Cluster,
    leader: &Leader,
    answer: FetchResponse,
    topic: &str,
    partition: i32,
    offset: i64,
) -> Result<PartitionData, Failure> {
    let what = || format!("fetch {topic}-{partition} at offset {offset}");
    cluster.check(leader, answer.error_code, what)?;
    let mut partitions = answer.responses.into_iter().flat_map(|topic| topic.partitions);
    let data = partitions.find(|data| data.partition_index == partition);
    let data = data.ok_or_else(|| left_out("Fetch", topic, partition))?;
    cluster.check(leader, data.error_code, what)?;
    Ok(data)
}

/// The failure for an answer without the partition asked for. A broker that holds a client back
/// by a quota answers so.
pub(crate) fn left_out(api: &str, topic: &str, partition: i32) -> Failure {
    let detail = format!("it says nothing of {topic}-{partition}");
    Failure::Transient(KafkaError::Malformed { what: format!("the answer to {api}"), detail })
}

/// The edges that an answer tells. Before version 5 it lacks the log start.
pub(crate) fn watermarks(data: &PartitionData) -> Watermarks {
    let last_stable = match data.last_stable_offset {
        ..0 => data.high_watermark,
        offset => offset,
    };
    let log_start = data.log_start_offset.max(0);
    Watermarks { log_start, high_watermark: data.high_watermark, last_stable }
}

/// Takes the committed records at or above `offset` out of an answer. An error comes with the
/// offset of its batch.
fn committed(data: PartitionData, offset: i64) -> Result<Fetched, (i64, BatchError)> {
    let watermarks = watermarks(&data);
    let mut transactions = Transactions::new(data.aborted_transactions.unwrap_or_default());
    let mut fetched = Fetched { records: Vec::new(), next_offset: offset, watermarks };
    let mut found = batches(data.records.unwrap_or_default().into_bytes());
    let mut any = false;
    for batch in &mut found {
        let batch = batch.map_err(|error| (fetched.next_offset, error))?;
        any = true;
        if batch.header.base_offset >= watermarks.last_stable {
            break;
        }
        take(&batch, offset, &mut transactions, &mut fetched.records)
            .map_err(|error| (batch.header.base_offset, error))?;
        fetched.next_offset = fetched.next_offset.max(batch.header.next_offset());
    }
    if !any && !found.rest().is_empty() {
        // A broker sends the first batch whole, however large (KIP-74); going on would never end.
        let (needed, left) = (found.rest().len() + 1, found.rest().len());
        return Err((offset, BatchError::Cut { needed, left }));
    }
    Ok(fetched)
}

fn take(
    batch: &Batch,
    offset: i64,
    transactions: &mut Transactions,
    records: &mut Vec<ReadRecord>,
) -> Result<(), BatchError> {
    batch.verify_crc()?;
    let header = &batch.header;
    if header.is_control() {
        transactions.mark(header.producer_id, header.last_offset(), marker(batch)?);
        return Ok(());
    }
    let aborted = header.is_transactional()
        && transactions.is_aborted(header.producer_id, header.last_offset());
    if aborted || header.last_offset() < offset {
        return Ok(());
    }
    for record in batch.records(DECOMPRESSED_MAX)? {
        let record = record?;
        if record.offset >= offset {
            records.push(opened(record, header));
        }
    }
    Ok(())
}

fn marker(batch: &Batch) -> Result<Option<Marker>, BatchError> {
    let record = batch.records(DECOMPRESSED_MAX)?.next().transpose()?;
    Ok(record.and_then(|record| record.key).and_then(|key| Marker::parse(&key)))
}

fn opened(record: Record, header: &BatchHeader) -> ReadRecord {
    let header_of = |(name, value): (Bytes, Option<Bytes>)| {
        (String::from_utf8_lossy(&name).into_owned(), value.unwrap_or_default())
    };
    ReadRecord {
        offset: record.offset,
        timestamp: record.timestamp,
        leader_epoch: header.partition_leader_epoch,
        key: record.key,
        value: record.value,
        headers: record.headers.into_iter().map(header_of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use highwater_protocol::records::{BatchBuilder, Compression};
    use highwater_protocol::{AbortedTransaction, Records};

    use super::*;

    const LAST_STABLE: i64 = 100;

    fn data(batches: &[Bytes]) -> PartitionData {
        PartitionData {
            high_watermark: LAST_STABLE + 5,
            last_stable_offset: LAST_STABLE,
            log_start_offset: 3,
            records: Some(Records::Here(batches.concat().into())),
            ..Default::default()
        }
    }

    fn filled(builder: BatchBuilder, values: &[&str]) -> Bytes {
        let mut builder = builder.leader_epoch(4);
        for value in values {
            builder.push(50, Some(b"key"), Some(value.as_bytes()), &[]);
        }
        builder.build().unwrap()
    }

    fn plain(base: i64, values: &[&str]) -> Bytes {
        filled(BatchBuilder::new(Compression::None).base_offset(base), values)
    }

    fn transactional(base: i64, producer: i64, values: &[&str]) -> Bytes {
        let builder = BatchBuilder::new(Compression::Zstd).base_offset(base);
        filled(builder.producer(producer, 0, 0).transactional(), values)
    }

    fn control(base: i64, producer: i64, kind: u8) -> Bytes {
        let builder = BatchBuilder::new(Compression::None).base_offset(base);
        let mut builder = builder.producer(producer, 0, -1).transactional().control();
        builder.push(60, Some(&[0, 0, 0, kind]), Some(&[0; 6]), &[]);
        builder.build().unwrap()
    }

    fn values(fetched: &Fetched) -> Vec<(i64, &[u8])> {
        let records = fetched.records.iter();
        records.map(|record| (record.offset, record.value.as_deref().unwrap())).collect()
    }

    #[test]
    fn records_below_the_asked_offset_are_dropped() {
        let fetched = committed(data(&[plain(10, &["a", "b", "c"])]), 11).unwrap();
        assert_eq!(values(&fetched), [(11, &b"b"[..]), (12, b"c")]);
        assert_eq!(fetched.next_offset, 13);
        assert_eq!(fetched.records[0].leader_epoch, 4);
        let edges = Watermarks { log_start: 3, high_watermark: 105, last_stable: 100 };
        assert_eq!(fetched.watermarks, edges);
    }

    #[test]
    fn aborted_records_and_control_batches_are_passed_over() {
        let mut data = data(&[
            transactional(10, 7, &["gone"]),
            transactional(11, 8, &["kept"]),
            control(12, 7, 0),
            transactional(13, 7, &["later"]),
            control(14, 7, 1),
            control(15, 8, 1),
        ]);
        data.aborted_transactions =
            Some(vec![AbortedTransaction { producer_id: 7, first_offset: 10 }]);
        let fetched = committed(data, 10).unwrap();
        assert_eq!(values(&fetched), [(11, &b"kept"[..]), (13, b"later")]);
        assert_eq!(fetched.next_offset, 16);
    }

    #[test]
    fn nothing_at_or_above_the_last_stable_offset_is_given_out() {
        let batches = [plain(98, &["a", "b"]), transactional(LAST_STABLE, 7, &["open"])];
        let fetched = committed(data(&batches), 98).unwrap();
        assert_eq!(fetched.records.len(), 2);
        assert_eq!(fetched.next_offset, LAST_STABLE);
    }

    #[test]
    fn a_cut_batch_at_the_end_is_left_for_the_next_fetch() {
        let last = plain(12, &["c"]);
        let fetched = committed(data(&[plain(10, &["a", "b"]), last.slice(..last.len() - 1)]), 10);
        assert_eq!(fetched.unwrap().next_offset, 12);
        assert!(committed(data(&[last.slice(..last.len() - 1)]), 12).is_err());
    }

    #[test]
    fn a_damaged_batch_is_an_error_with_its_offset() {
        let mut damaged = plain(10, &["a"]).to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        let (at, error) = committed(data(&[damaged.into()]), 10).unwrap_err();
        assert_eq!(at, 10);
        assert!(matches!(error, BatchError::Crc { .. }));
    }

    #[test]
    fn an_empty_answer_stays_where_it_was() {
        let fetched = committed(data(&[]), 42).unwrap();
        assert_eq!((fetched.records.len(), fetched.next_offset), (0, 42));
    }
}
