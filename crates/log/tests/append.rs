//! What an append takes, what it changes, what it refuses.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use bytes::{Bytes, BytesMut};
use highwater_log::*;
use highwater_protocol::records::{BatchBuilder, BatchHeader, Compression, HEADER_SIZE, batches};
use support::{Bench, NOW, Put, batch, batch_of, numbered};

fn headers(partition: &Partition) -> Vec<BatchHeader> {
    let bytes = partition.read(0, 1 << 20, true, Visible::LogEnd).unwrap();
    batches(bytes)
        .map(|batch| {
            let batch = batch.unwrap();
            batch.verify_crc().unwrap();
            batch.header
        })
        .collect()
}

/// The batch with its header changed; the CRC is made to fit.
fn with_header(batch: &Bytes, change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let mut header = BatchHeader::parse(batch).unwrap();
    change(&mut header);
    let mut bytes = BytesMut::from(&header.to_bytes()[..]);
    bytes.extend_from_slice(&batch[HEADER_SIZE..]);
    let crc = crc32c::crc32c(&bytes[21..]).to_be_bytes();
    bytes[17..21].copy_from_slice(&crc);
    bytes.freeze()
}

fn refused(set: &[(&str, &str)], batch: Bytes) -> LogError {
    let bench = Bench::new();
    let partition = bench.topic(set);
    let error = partition.try_put(batch).unwrap_err();
    assert_eq!(partition.watermarks_now().log_end, 0, "nothing was written");
    assert!(headers(&partition).is_empty());
    error
}

#[test]
fn offsets_and_epoch_are_the_logs() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    let foreign = with_header(&batch(&[1, 2]), |header| header.partition_leader_epoch = 77);
    assert_eq!(partition.put(batch(&[1, 2, 3])).base_offset, 0);
    let appended = partition.put(foreign);
    assert_eq!((appended.base_offset, appended.last_offset), (3, 4));
    let headers = headers(&partition);
    assert_eq!(headers[1].base_offset, 3);
    assert_eq!(headers[1].partition_leader_epoch, 0);
}

#[test]
fn several_batches_come_together() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    let both: Bytes = [batch(&[1, 2]), batch(&[3])].concat().into();
    let appended = partition.put(both);
    assert_eq!((appended.base_offset, appended.last_offset), (0, 2));
    assert_eq!(headers(&partition).len(), 2);
}

#[test]
fn a_wrong_greatest_timestamp_is_corrected() {
    for codec in [Compression::None, Compression::Gzip] {
        let bench = Bench::new();
        let partition = bench.topic(&[]);
        let wrong =
            with_header(&batch_of(codec, &[100, 999, 200]), |header| header.max_timestamp = 5);
        partition.put(wrong);
        assert_eq!(headers(&partition)[0].max_timestamp, 999);
    }
}

#[test]
fn log_append_time_replaces_the_producers() {
    let bench = Bench::new();
    let partition = bench.topic(&[("message.timestamp.type", "LogAppendTime")]);
    let appended = partition.put(batch(&[100, 999]));
    assert_eq!(appended.log_append_time_ms, Some(NOW));
    let header = headers(&partition)[0];
    assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(header.max_timestamp, NOW);
}

#[test]
fn damage_is_told_apart_from_a_batch_that_is_wrong() {
    let good = batch(&[1, 2]);
    let mut flipped = good.to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    for damaged in [Bytes::from(flipped), good.slice(..good.len() - 1), good.slice(..20)] {
        let error = refused(&[], damaged);
        assert!(matches!(error, LogError::CorruptBatch { .. }) && error.is_retriable(), "{error}");
    }
    let miscounted = with_header(&good, |header| header.record_count = 3);
    let gap = with_header(&good, |header| header.last_offset_delta = 5);
    for wrong in [miscounted, gap, Bytes::new()] {
        let error = refused(&[], wrong);
        assert!(
            matches!(error, LogError::InvalidRecord { .. }) && !error.is_retriable(),
            "{error}"
        );
    }
}

#[test]
fn what_clients_may_not_write() {
    let mut control = BatchBuilder::new(Compression::None).control();
    control.push(1, Some(b"\0\0\0\x01"), Some(b""), &[]);
    assert!(matches!(refused(&[], control.build().unwrap()), LogError::InvalidRecord { .. }));

    let mut nobodys = BatchBuilder::new(Compression::None).transactional();
    nobodys.push(1, None, None, &[]);
    assert!(matches!(refused(&[], nobodys.build().unwrap()), LogError::InvalidRecord { .. }));

    let unnumbered = numbered(1, 0, -1, 1);
    assert!(matches!(refused(&[], unnumbered), LogError::InvalidRecord { .. }));

    let placed = with_header(&batch(&[1]), |header| header.base_offset = 1);
    assert!(matches!(refused(&[], placed), LogError::InvalidRecord { .. }));
}

#[test]
fn a_batch_above_the_limit() {
    let batch = batch(&[1, 2, 3]);
    let most = (batch.len() - 1).to_string();
    let error = refused(&[("max.message.bytes", &most)], batch);
    assert!(matches!(error, LogError::RecordTooLarge { .. }));
    assert_eq!(error.kafka_code().0, 10);
}

#[test]
fn a_compacted_topic_takes_no_record_without_a_key() {
    let mut builder = BatchBuilder::new(Compression::Lz4);
    builder.push(1, Some(b"key"), Some(b"value"), &[]);
    builder.push(1, None, Some(b"value"), &[]);
    let error = refused(&[("cleanup.policy", "compact")], builder.build().unwrap());
    assert_eq!(error.kafka_code().0, 87);
}

#[test]
fn a_topic_with_a_codec_of_its_own_stores_every_batch_under_it() {
    let codecs = [
        ("uncompressed", Compression::None),
        ("gzip", Compression::Gzip),
        ("snappy", Compression::Snappy),
        ("lz4", Compression::Lz4),
        ("zstd", Compression::Zstd),
    ];
    for (name, codec) in codecs {
        let bench = Bench::new();
        let partition = bench.topic(&[("compression.type", name)]);
        for (_, came) in codecs {
            partition.put(batch_of(came, &[100, 999, 200]));
        }
        partition.put(numbered(7, 0, 0, 3));
        for header in headers(&partition) {
            assert_eq!(header.compression().unwrap(), codec, "{name}");
            assert_eq!((header.record_count, header.last_offset_delta), (3, 2));
        }
        assert_eq!(partition.put(numbered(7, 0, 0, 3)).base_offset, 15, "known again");
        let found = support::ask(&partition, OffsetSpec::MaxTimestamp);
        assert_eq!(found, (1, 999, 0), "{name}");
    }
}

#[test]
fn a_batch_that_grows_above_the_limit_when_it_is_stored() {
    let mut builder = BatchBuilder::new(Compression::Zstd);
    builder.push(1, Some(b"key"), Some(&[b'x'; 5000]), &[]);
    let batch = builder.build().unwrap();
    assert!(batch.len() < 200);
    let set = [("compression.type", "uncompressed"), ("max.message.bytes", "4000")];
    assert!(matches!(refused(&set, batch), LogError::RecordTooLarge { .. }));
}

#[test]
fn a_time_too_far_from_now_is_refused() {
    const HOUR: i64 = 3_600_000;
    let bench = Bench::new();
    let partition = bench.topic(&[("message.timestamp.before.max.ms", "1000")]);
    for times in [&[NOW, NOW + HOUR][..], &[NOW - 1000], &[-1]] {
        partition.put(batch(times));
    }
    let refused = |times: &[i64]| partition.try_put(batch(times)).unwrap_err();
    for times in [&[NOW, NOW + HOUR + 1][..], &[NOW - 1001, NOW]] {
        let error = refused(times);
        assert_eq!((error.kafka_code().0, error.is_retriable()), (32, false), "{error}");
    }
    assert!(refused(&[NOW + HOUR + 1]).to_string().contains("message.timestamp.after.max.ms"));
    assert!(refused(&[NOW - 1001]).to_string().contains("message.timestamp.before.max.ms"));
    assert_eq!(partition.watermarks_now().log_end, 4);
}

#[test]
fn under_the_time_of_append_a_producers_time_is_of_no_concern() {
    let bench = Bench::new();
    let set =
        [("message.timestamp.type", "LogAppendTime"), ("message.timestamp.before.max.ms", "0")];
    let partition = bench.topic(&set);
    partition.put(batch(&[1, i64::MAX / 2]));
    assert_eq!(headers(&partition)[0].max_timestamp, NOW);
}

#[test]
fn a_batch_that_claims_the_time_of_append_is_refused_where_its_own_does_not_count() {
    // The bit of the attributes that says LogAppendTime.
    let claims = |times: &[i64]| with_header(&batch(times), |header| header.attributes |= 8);
    for (set, times) in [(&[("message.timestamp.type", "LogAppendTime")][..], [1]), (&[], [-1])] {
        let error = refused(set, claims(&times));
        assert_eq!((error.kafka_code().0, error.records()), (32, &[0][..]), "{error}");
    }
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(claims(&[NOW]));
    assert_eq!(headers(&partition)[0].timestamp_type(), TimestampType::CreateTime);
}

#[test]
fn a_batch_sent_again_is_answered_with_its_first_offsets() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    let first = partition.put(numbered(7, 0, 0, 3));
    let second = partition.put(numbered(7, 0, 3, 2));
    let again = partition.put(numbered(7, 0, 0, 3));
    assert_eq!((again.base_offset, again.last_offset), (first.base_offset, first.last_offset));
    assert_eq!(partition.watermarks_now().log_end, second.last_offset + 1);
    let gap = partition.try_put(numbered(7, 0, 6, 1)).unwrap_err();
    assert_eq!(gap.kafka_code().0, 45);
    partition.put(numbered(7, 1, 0, 1));
    let fenced = partition.try_put(numbered(7, 0, 5, 1)).unwrap_err();
    assert_eq!(fenced.kafka_code().0, 47);
    let pair: Bytes = [numbered(8, 0, 0, 1), numbered(8, 0, 1, 1)].concat().into();
    assert!(matches!(partition.try_put(pair), Err(LogError::InvalidRecord { .. })));
}

#[test]
fn producers_are_known_after_a_kill_and_after_a_clean_end() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(numbered(7, 0, 0, 3));
    partition.put(numbered(7, 0, 3, 2));
    partition.roll().unwrap();
    partition.put(numbered(7, 0, 5, 1));
    let bench = bench.kill();
    for (sequence, count, offset) in [(5, 1, 5), (3, 2, 3), (0, 3, -1)] {
        let again = bench.partition().put(numbered(7, 0, sequence, count));
        assert_eq!(again.base_offset, offset, "after a kill, sequence {sequence}");
    }
    let bench = bench.restart();
    for (sequence, count, offset) in [(5, 1, 5), (3, 2, -1), (0, 3, -1)] {
        let again = bench.partition().put(numbered(7, 0, sequence, count));
        assert_eq!(again.base_offset, offset, "after a clean end, sequence {sequence}");
    }
    assert_eq!(bench.partition().watermarks_now().log_end, 6);
    assert_eq!(bench.partition().put(numbered(7, 0, 6, 1)).base_offset, 6);
}

#[test]
fn producer_ids_are_never_given_twice() {
    let mut bench = Bench::new();
    let mut given = Vec::new();
    for _ in 0..3 {
        given.extend((0..1500).map(|_| bench.log.next_producer_id().unwrap()));
        bench = bench.kill();
    }
    let count = given.len();
    given.sort_unstable();
    given.dedup();
    assert_eq!(given.len(), count);
}
