//! Finding a record by its timestamp.

use highwater_protocol::records::{Batch, Compression, RecordTime};
use proptest::prelude::*;

use crate::{LIMIT, batch, timed};

fn at(offset: i64, timestamp: i64) -> Option<RecordTime> {
    Some(RecordTime { offset, timestamp })
}

fn at_or_after(batch: &Batch, timestamp: i64) -> Option<RecordTime> {
    batch.first_at_or_after(timestamp, 0, LIMIT).unwrap()
}

#[test]
fn by_time() {
    for codec in Compression::ALL {
        let batch = batch(&timed(codec, &[100, 999, 200]));
        assert_eq!(at_or_after(&batch, 0), at(0, 100));
        assert_eq!(at_or_after(&batch, 150), at(1, 999));
        assert_eq!(at_or_after(&batch, 200), at(1, 999));
        assert_eq!(at_or_after(&batch, 999), at(1, 999));
        assert_eq!(at_or_after(&batch, 1000), None);
        assert_eq!(batch.first_at_or_after(150, 2, LIMIT), Ok(at(2, 200)));
    }
}

#[test]
fn by_exact_time_the_first() {
    let batch = batch(&timed(Compression::Zstd, &[5, 9, 9, 3]));
    assert_eq!(batch.first_with(9, LIMIT), Ok(at(1, 9)));
    assert_eq!(batch.first_with(4, LIMIT), Ok(None));
}

#[test]
fn records_without_a_time() {
    let batch = batch(&timed(Compression::None, &[-1, -1]));
    let validated = batch.validate(LIMIT).unwrap();
    assert_eq!((validated.max_timestamp, validated.max_timestamp_offset_delta), (-1, 0));
    assert_eq!(batch.first_with(-1, LIMIT), Ok(at(0, -1)));
}

proptest! {
    /// The record that `validate` names is the one that a later search finds.
    #[test]
    fn search_and_validation_agree(
        timestamps in prop::collection::vec(-2_i64..6, 1..30),
        codec in prop::sample::select(&Compression::ALL[..]),
    ) {
        let batch = batch(&timed(codec, &timestamps));
        let validated = batch.validate(LIMIT).unwrap();
        let found = batch.first_with(validated.max_timestamp, LIMIT).unwrap().unwrap();
        prop_assert_eq!(found.offset, i64::from(validated.max_timestamp_offset_delta));
        let greatest = *timestamps.iter().max().unwrap();
        let first = timestamps.iter().position(|timestamp| *timestamp == greatest).unwrap();
        prop_assert_eq!(found, RecordTime { offset: first as i64, timestamp: greatest });
    }
}
