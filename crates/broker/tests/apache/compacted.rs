//! ListOffsets over what compaction leaves: rows 23 and 24.

use bytes::Bytes;
use highwater_protocol::records::{BatchBuilder, Compression, DECOMPRESSED_MAX, batches};
use highwater_protocol::{FetchPartition, FetchRequest, FetchTopic};

use crate::clusters::{Side, both, fresh};
use crate::list_offsets::{LATEST, MAX_TIMESTAMP, NOTHING, ask};

/// A closed segment is compacted at once. What it replaces keeps its delay before it is deleted: without one
/// Apache Kafka closes a file that it is still sending, and with it the connection.
const COMPACTED: [(&str, &str); 4] = [
    ("cleanup.policy", "compact"),
    ("min.cleanable.dirty.ratio", "0.0"),
    ("delete.retention.ms", "0"),
    ("segment.bytes", "1048576"),
];

fn keyed(builder: BatchBuilder, records: &[(&str, i64)]) -> Bytes {
    let mut builder = builder;
    for (key, timestamp) in records {
        builder.push(*timestamp, Some(key.as_bytes()), Some(b"value"), &[]);
    }
    builder.build().unwrap()
}

fn nobodys(records: &[(&str, i64)]) -> Bytes {
    keyed(BatchBuilder::new(Compression::None), records)
}

/// A record that fills most of a segment of the least size.
fn filler(key: &str) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.push(1, Some(key.as_bytes()), Some(&vec![b'x'; 700_000]), &[]);
    builder.build().unwrap()
}

/// The offsets of the records in a topic.
fn offsets(side: &mut Side, topic: &str) -> Vec<i64> {
    let (mut offsets, mut next) = (Vec::new(), 0);
    loop {
        let partition = FetchPartition {
            fetch_offset: next,
            partition_max_bytes: 4 << 20,
            ..Default::default()
        };
        let topics = vec![FetchTopic { topic: topic.to_owned(), partitions: vec![partition] }];
        let mut answer = side.client.call(11, &FetchRequest { topics, ..Default::default() });
        let records = answer.responses.remove(0).partitions.remove(0).records.unwrap().into_bytes();
        let found: Vec<_> = batches(records).map(Result::unwrap).collect();
        let Some(last) = found.last() else { return offsets };
        next = last.header.next_offset();
        for batch in found {
            let records = batch.records(DECOMPRESSED_MAX).unwrap();
            offsets.extend(records.map(|record| record.unwrap().offset));
        }
    }
}

/// What is found once compaction has taken the record at `gone`.
fn compacted(sent: &[Bytes], gone: i64) -> (Vec<i64>, [crate::list_offsets::Found; 2]) {
    both(|side| {
        let topic = fresh("row");
        side.topic(&topic, &COMPACTED);
        sent.iter().for_each(|batch| {
            side.produce(&topic, batch.clone());
        });
        for key in ["x", "y"] {
            side.produce(&topic, filler(key));
        }
        side.until("compaction has taken the record", |side| {
            !offsets(side, &topic).contains(&gone)
        });
        let found = [MAX_TIMESTAMP, LATEST].map(|timestamp| ask(side, &topic, timestamp));
        (offsets(side, &topic), found)
    })
}

#[test]
fn row_23_a_batch_that_lost_its_greatest_is_rebuilt() {
    let sent = [nobodys(&[("a", 100), ("b", 999)]), nobodys(&[("b", 200)])];
    let (left, found) = compacted(&sent, 1);
    assert_eq!(left, [0, 2, 3, 4]);
    assert_eq!(found, [Ok((2, 200, 0)), Ok((5, -1, 0))]);
}

#[test]
fn row_24_an_empty_batch_kept_for_its_producer() {
    let numbered = BatchBuilder::new(Compression::None).producer(70_007, 0, 0);
    let sent = [keyed(numbered, &[("b", 999)]), nobodys(&[("b", 200)])];
    let (left, found) = compacted(&sent, 0);
    assert_eq!(left, [1, 2, 3]);
    // The greatest timestamp is that of a batch in which no record is left: there is no answer at all.
    assert_eq!(found, [NOTHING, Ok((4, -1, 0))]);
}
