//! Finding batches in a buffer.

use bytes::Bytes;
use highwater_protocol::records::{BatchError, Compression, batches};
use proptest::prelude::*;

use crate::timed;

fn three() -> (Vec<Bytes>, Bytes) {
    let all: Vec<_> = [&[1][..], &[2, 3], &[4]].map(|times| timed(Compression::None, times)).into();
    let joined = all.concat().into();
    (all, joined)
}

#[test]
fn whole_batches_are_found() {
    let (all, joined) = three();
    let mut found = batches(joined);
    let bytes: Vec<_> = found.by_ref().map(|batch| batch.unwrap().bytes).collect();
    assert_eq!(bytes, all);
    assert!(found.rest().is_empty());
}

/// A fetch may end with a cut batch, at any byte.
#[test]
fn a_cut_batch_ends_it() {
    let (all, joined) = three();
    let mut starts: Vec<_> = all
        .iter()
        .scan(0, |end, batch| {
            *end += batch.len();
            Some(*end)
        })
        .collect();
    starts.insert(0, 0);
    for end in 0..=joined.len() {
        let mut found = batches(joined.slice(..end));
        let count = found.by_ref().map(Result::unwrap).count();
        assert_eq!(count, starts.iter().filter(|start| **start <= end).count() - 1);
        assert_eq!(found.rest().len(), end - starts[count]);
    }
}

#[test]
fn it_ends_behind_the_first_error() {
    let (all, joined) = three();
    let second = all[0].len();
    let broken = |at: usize, byte: u8| {
        let mut bytes = joined.to_vec();
        bytes[second + at] = byte;
        batches(bytes.into())
    };
    for (at, byte, error) in [
        (16, 1, BatchError::Magic { magic: 1 }),
        (0, 0x80, BatchError::Offsets { base: i64::MIN, delta: 1 }),
        (11, 48, BatchError::Length { length: 48 }),
        (8, 0xff, BatchError::Length { length: -16_777_153 }),
    ] {
        let found: Vec<_> = broken(at, byte).collect();
        assert_eq!(found.len(), 2, "{error}");
        assert_eq!(found[1], Err(error));
    }
}

/// Space that was allocated ahead reads as zeros; it is no batch.
#[test]
fn zeros_are_no_batch() {
    let mut found = batches(Bytes::from_static(&[0; 100]));
    assert_eq!(found.next(), Some(Err(BatchError::Magic { magic: 0 })));
    assert_eq!(found.next(), None);
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        batches(bytes.into()).for_each(drop);
    }
}
