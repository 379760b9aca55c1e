//! Stamping a batch where it lies.

use highwater_protocol::records::{BatchError, BatchMut, Compression, TimestampType};

use crate::{LIMIT, batch, records, timed};

#[test]
fn offset_and_epoch_are_outside_of_the_crc() {
    let built = timed(Compression::Gzip, &[7, 8]);
    let crc = batch(&built).header.crc;
    let mut bytes = built.to_vec();
    let (mut stamped, behind) = BatchMut::parse(&mut bytes).unwrap();
    assert!(behind.is_empty());
    stamped.set_base_offset(1_000_000_000_000);
    stamped.set_leader_epoch(12);
    assert_eq!(stamped.header().last_offset(), 1_000_000_000_001);

    let batch = batch(&bytes.into());
    assert_eq!(batch.header.crc, crc);
    assert_eq!(batch.verify_crc(), Ok(()));
    assert_eq!(batch.header.partition_leader_epoch, 12);
    assert_eq!(records(&batch)[1].offset, 1_000_000_000_001);
}

#[test]
fn a_wrong_greatest_timestamp_is_corrected() {
    let mut bytes = timed(Compression::None, &[100, 999, 200]).to_vec();
    let (mut stamped, _) = BatchMut::parse(&mut bytes).unwrap();
    stamped.set_max_timestamp(TimestampType::CreateTime, 200);
    let wrong = batch(&bytes.clone().into());
    let validated = wrong.validate(LIMIT).unwrap();
    assert_eq!(wrong.header.max_timestamp, 200);
    assert_eq!(validated.max_timestamp, 999);

    let (mut stamped, _) = BatchMut::parse(&mut bytes).unwrap();
    stamped.set_max_timestamp(wrong.header.timestamp_type(), validated.max_timestamp);
    assert_eq!(bytes, timed(Compression::None, &[100, 999, 200]));
}

#[test]
fn log_append_time_is_stamped_and_taken_back() {
    let built = timed(Compression::Lz4, &[1, 2]);
    let mut bytes = built.to_vec();
    let (mut stamped, _) = BatchMut::parse(&mut bytes).unwrap();
    stamped.set_max_timestamp(TimestampType::LogAppendTime, 5000);
    let appended = batch(&bytes.clone().into());
    assert_eq!(appended.verify_crc(), Ok(()));
    assert_eq!(appended.header.timestamp_type(), TimestampType::LogAppendTime);
    assert!(records(&appended).iter().all(|record| record.timestamp == 5000));

    let (mut stamped, _) = BatchMut::parse(&mut bytes).unwrap();
    stamped.set_max_timestamp(TimestampType::CreateTime, 2);
    assert_eq!(bytes, built);
}

#[test]
fn batches_are_stamped_one_behind_the_other() {
    let one = timed(Compression::None, &[1, 2, 3]);
    let mut bytes = [one.clone(), one].concat();
    let (mut rest, mut offset) = (bytes.as_mut_slice(), 40);
    while !rest.is_empty() {
        let (mut stamped, behind) = BatchMut::parse(rest).unwrap();
        stamped.set_base_offset(offset);
        offset = stamped.header().next_offset();
        rest = behind;
    }
    assert_eq!(offset, 46);
}

#[test]
fn a_cut_batch_cannot_be_stamped() {
    let mut bytes = timed(Compression::None, &[1]).to_vec();
    let (needed, left) = (bytes.len(), bytes.len() - 1);
    let cut = BatchMut::parse(&mut bytes[..left]).map(|_| ());
    assert_eq!(cut, Err(BatchError::Cut { needed, left }));
}
