//! What was synced is never cut as a torn end; what is cut above it with batches behind is kept aside.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::PathBuf;

use highwater_log::*;
use support::{Bench, NOW, Put, batch};

fn segment(bench: &Bench) -> PathBuf {
    bench.folder().join("00000000000000000000.log")
}

fn aside(bench: &Bench) -> PathBuf {
    bench.folder().join("00000000000000000000.cut")
}

fn point(bench: &Bench) -> PathBuf {
    bench.folder().join("recovery-point")
}

/// Bytes of each batch.
fn size() -> usize {
    batch(&[1]).len()
}

/// A topic of `count` batches of one record each, all synced.
fn filled(count: usize) -> Bench {
    let bench = Bench::new();
    let partition = bench.topic(&[("segment.ms", "9223372036854775807")]);
    for _ in 0..count {
        partition.put(batch(&[1]));
    }
    assert_eq!(fs::read(segment(&bench)).unwrap().len(), count * size());
    bench
}

fn flip(bench: &Bench, position: usize) -> Vec<u8> {
    let mut bytes = fs::read(segment(bench)).unwrap();
    bytes[position] ^= 1;
    fs::write(segment(bench), &bytes).unwrap();
    bytes
}

fn log_end(bench: &Bench) -> i64 {
    let now = bench.partition().watermarks_now();
    assert_eq!(now.state, PartitionState::Online, "{:?}", bench.partition().fault());
    now.log_end
}

fn assert_damaged(bench: &Bench, due: &str) {
    let partition = bench.partition();
    assert_eq!(partition.watermarks_now().state, PartitionState::Offline);
    let fault = partition.fault().unwrap();
    assert_eq!(fault.code(), "LOG_DAMAGED");
    let text = fault.to_string();
    for part in ["00000000000000000000.log", due, "nothing was changed", "restore"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(bench.log.opening().offline(), 1);
    assert!(bench.log.opening().cut().is_empty());
}

#[test]
fn a_flip_below_the_point_is_damage_and_nothing_is_cut() {
    // The offset, the length, the magic byte, the checksum, a record: in the first batch, one in the
    // middle, and the last.
    let places = [0, 2, 4].map(|number| [7, 11, 16, 18, 65].map(|within| (number, within)));
    for (number, within) in places.into_iter().flatten() {
        let mut bench = filled(5);
        bench.log.housekeep(NOW);
        let bytes = flip(&bench, number * size() + within);
        for _ in 0..2 {
            bench = bench.kill();
            assert_damaged(&bench, &format!("at position {}", number * size()));
            assert_eq!(fs::read(segment(&bench)).unwrap(), bytes);
            assert!(!aside(&bench).exists());
        }
        // Mended, it is whole again.
        flip(&bench, number * size() + within);
        assert_eq!(log_end(&bench.kill()), 5);
    }
}

#[test]
fn a_flip_after_a_clean_stop_is_not_cut_by_a_later_start() {
    let bench = filled(5).restart();
    assert!(point(&bench).exists(), "it is written at the stop");
    let bytes = flip(&bench, 2 * size() + 65);
    let bench = bench.restart();
    assert_eq!(log_end(&bench), 5, "a clean start does not read the data");
    let bench = bench.kill();
    assert_damaged(&bench, &format!("at position {}", 2 * size()));
    assert_eq!(fs::read(segment(&bench)).unwrap(), bytes);
}

#[test]
fn a_segment_that_ends_below_the_point_is_damage() {
    for left in [3 * size(), 3 * size() + 10, 0] {
        let bench = filled(5);
        bench.log.housekeep(NOW);
        let bytes = fs::read(segment(&bench)).unwrap()[..left].to_vec();
        fs::write(segment(&bench), &bytes).unwrap();
        let bench = bench.kill();
        assert_damaged(&bench, "synced up to 5");
        assert_eq!(fs::read(segment(&bench)).unwrap(), bytes);
    }
}

#[test]
fn what_is_cut_above_the_point_with_batches_behind_it_is_kept_aside() {
    let bench = filled(2);
    bench.log.housekeep(NOW);
    for _ in 0..3 {
        bench.partition().put(batch(&[2]));
    }
    // The point is not written again so soon.
    bench.log.housekeep(NOW + 999);
    let bytes = flip(&bench, 3 * size() + 65);
    let bench = bench.kill();
    assert_eq!(log_end(&bench), 3);
    assert_eq!(bench.log.opening().cut(), ["t-0"]);
    assert_eq!(fs::read(segment(&bench)).unwrap(), bytes[..3 * size()]);
    assert_eq!(fs::read(aside(&bench)).unwrap(), bytes[3 * size()..]);

    // One copy a segment, the newest.
    for _ in 0..2 {
        bench.partition().put(batch(&[3]));
    }
    let bytes = flip(&bench, 3 * size() + 65);
    let bench = bench.kill();
    assert_eq!(log_end(&bench), 3);
    assert_eq!(fs::read(aside(&bench)).unwrap(), bytes[3 * size()..]);
    // It goes with its segment.
    bench.partition().roll().unwrap();
    bench.partition().delete_records(3).unwrap();
    assert!(!segment(&bench).exists() && !aside(&bench).exists());
}

#[test]
fn a_torn_end_above_the_point_is_cut_and_nothing_is_kept() {
    for torn in [vec![0; 700], batch(&[5; 9])[..80].to_vec(), vec![1]] {
        let bench = filled(2);
        bench.log.housekeep(NOW);
        let whole = fs::read(segment(&bench)).unwrap();
        fs::write(segment(&bench), [whole.clone(), torn].concat()).unwrap();
        let bench = bench.kill();
        assert_eq!(log_end(&bench), 2);
        assert_eq!(fs::read(segment(&bench)).unwrap(), whole);
        assert!(!aside(&bench).exists() && bench.log.opening().cut().is_empty());
    }
    // The last batch, appended behind the point, is broken: nothing stands behind it.
    let bench = filled(2);
    bench.log.housekeep(NOW);
    bench.partition().put(batch(&[2]));
    flip(&bench, 2 * size() + 65);
    let bench = bench.kill();
    assert_eq!(log_end(&bench), 2);
    assert!(!aside(&bench).exists() && bench.log.opening().cut().is_empty());
}

#[test]
fn a_point_is_no_higher_than_what_a_truncation_left() {
    let bench = filled(5);
    bench.log.housekeep(NOW);
    bench.partition().truncate(2).unwrap();
    assert!(!point(&bench).exists());
    let bench = bench.kill();
    assert_eq!(log_end(&bench), 2);
    bench.log.housekeep(NOW);
    assert!(point(&bench).exists());
    bench.partition().put(batch(&[3]));
    assert_eq!(log_end(&bench.kill()), 3);
}

#[test]
fn without_a_whole_point_a_start_is_as_before() {
    for content in [None, Some(""), Some("00000000000000000005 00000000\n"), Some("ü")] {
        let bench = filled(5);
        bench.log.housekeep(NOW);
        match content {
            None => fs::remove_file(point(&bench)).unwrap(),
            Some(content) => fs::write(point(&bench), content).unwrap(),
        }
        flip(&bench, 2 * size() + 65);
        let bench = bench.kill();
        assert_eq!(log_end(&bench), 2, "{content:?}");
        assert_eq!(fs::read(aside(&bench)).unwrap().len(), 3 * size());
    }
}
