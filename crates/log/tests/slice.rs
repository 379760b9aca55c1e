//! Slices: what is found without being read, and sent without being copied.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use highwater_log::{LogError, Partition, Slice, Visible};
use highwater_protocol::records::batches;
use proptest::prelude::*;
use support::{Bench, NOW, Put, batch, cases};

/// Both ends of a connection; ours does not block.
fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    near.set_nonblocking(true).unwrap();
    (near, far)
}

/// What arrives of a slice.
fn sent(mut slice: Slice) -> Vec<u8> {
    let (near, mut far) = connected();
    let reading = std::thread::spawn(move || {
        let mut came = Vec::new();
        far.read_to_end(&mut came).unwrap();
        came
    });
    while !slice.is_empty() {
        match slice.send(near.as_fd()) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
    drop(near);
    reading.join().unwrap()
}

fn slice(partition: &Partition, offset: i64, most: usize) -> Option<Slice> {
    partition.slice(offset, most, false, Visible::LogEnd).unwrap()
}

#[test]
fn what_is_sent_is_what_is_read() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    for number in 0..3000 {
        partition.put(batch(&[number; 60]));
    }
    let all = slice(&partition, 0, usize::MAX).unwrap();
    assert!(all.len() > 2_000_000, "more than a socket takes at once: {}", all.len());
    assert_eq!(all.next_offset(), 180_000);
    let read = all.read().unwrap();
    assert_eq!(sent(all), read);
}

#[test]
fn a_slice_outlives_its_segment() {
    let bench = Bench::new();
    let partition = bench.topic(&[("retention.bytes", "0")]);
    partition.put(batch(&[1, 2, 3]));
    partition.roll().unwrap();
    let slice = partition.slice(0, 1 << 20, true, Visible::LogEnd).unwrap().unwrap();
    let read = slice.read().unwrap();
    assert_eq!(bench.log.run_retention(NOW), 1);
    bench.log.housekeep(NOW + 3_600_000);
    assert!(matches!(
        partition.slice(0, 1 << 20, true, Visible::LogEnd),
        Err(LogError::OffsetOutOfRange { .. })
    ));
    assert_eq!(sent(slice), read, "retention took the segment, not its bytes");
}

#[test]
fn a_slice_is_taken_in_pieces() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[1; 50]));
    let mut slice = slice(&partition, 0, usize::MAX).unwrap();
    let read = slice.read().unwrap();
    let mut taken = Vec::new();
    while !slice.is_empty() {
        taken.extend_from_slice(&slice.take(100).unwrap());
    }
    assert_eq!(taken, read);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(24)))]

    /// The index says where a slice ends: it is as if each batch had been looked at.
    #[test]
    fn a_slice_ends_with_the_last_batch_that_fits(
        counts in prop::collection::vec(1_usize..120, 1..80),
        interval in 0_u32..6000,
        asks in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..20_000, any::<bool>()), 1..20),
    ) {
        let bench = Bench::new();
        let interval = interval.to_string();
        let partition: Arc<Partition> = bench.topic(&[("index.interval.bytes", &interval)]);
        for count in &counts {
            partition.put(batch(&vec![7; *count]));
        }
        let whole = slice(&partition, 0, usize::MAX).unwrap().read().unwrap();
        let all: Vec<_> = batches(whole).map(Result::unwrap).collect();
        for (offset, most, min_one) in asks {
            let end: usize = counts.iter().sum();
            let offset = offset.index(end) as i64;
            let behind = all.iter().skip_while(|batch| batch.header.last_offset() < offset);
            let mut left = most;
            let mut expected = Vec::new();
            for batch in behind {
                let is_first = expected.is_empty();
                if batch.bytes.len() > left && !(is_first && min_one) {
                    break;
                }
                expected.push(batch);
                left = left.saturating_sub(batch.bytes.len());
            }
            let found = partition.slice(offset, most, min_one, Visible::LogEnd).unwrap();
            let next = expected.last().map(|batch| batch.header.next_offset());
            prop_assert_eq!(found.as_ref().map(Slice::next_offset), next);
            let expected: Vec<u8> = expected.iter().flat_map(|batch| batch.bytes.to_vec()).collect();
            let read = found.map(|slice| slice.read().unwrap()).unwrap_or_default();
            prop_assert_eq!(read, expected);
        }
    }
}
