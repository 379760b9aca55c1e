//! Transactions in one partition: what a reader at read_committed sees, and what a crash leaves of it.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;

use bytes::Bytes;
use highwater_log::*;
use highwater_protocol::records::{BatchBuilder, BatchHeader, Compression, batches};
use support::{Bench, NOW, Put, batch, numbered, open, part};

fn marker(producer_id: i64, producer_epoch: i16, kind: MarkerKind) -> EndMarker {
    EndMarker { producer_id, producer_epoch, kind, coordinator_epoch: 0 }
}

fn commit(partition: &Partition, producer_id: i64) -> Appended {
    end(partition, marker(producer_id, 0, MarkerKind::Commit))
}

fn abort(partition: &Partition, producer_id: i64) -> Appended {
    end(partition, marker(producer_id, 0, MarkerKind::Abort))
}

fn end(partition: &Partition, marker: EndMarker) -> Appended {
    let appended = partition.append_marker(marker, NOW).unwrap();
    partition.flush().unwrap();
    appended
}

fn edges(partition: &Partition) -> (i64, i64) {
    let now = partition.watermarks_now();
    (now.last_stable_offset, now.high_watermark)
}

fn aborted(partition: &Partition, from: i64, to: i64) -> Vec<(i64, i64, i64)> {
    let found = partition.aborted(from, to).unwrap();
    found.iter().map(|one| (one.producer_id, one.first_offset, one.last_offset)).collect()
}

/// Base offsets of the batches that a reader at read_committed gets, and the aborted transactions.
fn committed(partition: &Partition, from: i64) -> (Vec<i64>, Vec<(i64, i64)>) {
    let (bytes, aborted) = partition.read_committed(from, 1 << 20, true).unwrap();
    let bases = batches(bytes).map(|batch| batch.unwrap().header.base_offset).collect();
    (bases, aborted.iter().map(|one| (one.producer_id, one.first_offset)).collect())
}

fn index(bench: &Bench, base: i64) -> Vec<u8> {
    fs::read(bench.folder().join(format!("{base:020}.txnindex"))).unwrap_or_default()
}

/// A segment with an aborted transaction of two producers, and one of a third that is open.
fn mixed(bench: &Bench) -> std::sync::Arc<Partition> {
    let partition = bench.topic(&[]);
    partition.put(part(1, 0, 0, 2));
    partition.put(part(2, 0, 0, 1));
    partition.put(part(3, 0, 0, 1));
    abort(&partition, 1);
    partition.put(batch(&[5]));
    abort(&partition, 2);
    partition
}

#[test]
fn an_open_transaction_holds_readers_back_until_its_marker_is_safe() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    let mut watcher = partition.watermarks();
    partition.put(batch(&[100]));
    partition.put(part(7, 0, 0, 2));
    partition.put(batch(&[5]));
    assert_eq!(edges(&partition), (1, 4));
    assert_eq!(committed(&partition, 0), (vec![0], vec![]));
    assert_eq!(committed(&partition, 1), (vec![], vec![]));
    let held = partition.oldest_open_transaction().unwrap();
    assert_eq!((held.producer_id, held.producer_epoch, held.first_offset), (7, 0, 1));
    assert_eq!(held.since_ms, NOW);
    assert!(partition.is_in_transaction(7) && !partition.is_in_transaction(8));

    let appended = partition.append_marker(marker(7, 0, MarkerKind::Commit), NOW).unwrap();
    assert_eq!((appended.base_offset, appended.last_offset), (4, 4));
    assert_eq!(edges(&partition), (1, 4), "its marker is not safe yet");
    assert_eq!(partition.oldest_open_transaction(), None);
    watcher.borrow_and_update();
    partition.flush().unwrap();
    assert!(watcher.has_changed().unwrap(), "whoever waits for committed records is woken");
    assert_eq!(edges(&partition), (5, 5));
    assert_eq!(committed(&partition, 0), (vec![0, 1, 3, 4], vec![]));
}

#[test]
fn what_is_shown_at_once_is_held_back_at_once() {
    let bench = Bench::new();
    let partition = bench.topic(&[("highwater.flush", "os")]);
    partition.try_put(part(7, 0, 0, 2)).unwrap();
    assert_eq!(edges(&partition), (0, 2));
    partition.append_marker(marker(7, 0, MarkerKind::Abort), NOW).unwrap();
    assert_eq!(edges(&partition), (3, 3));
    assert_eq!(committed(&partition, 0), (vec![0, 2], vec![(7, 0)]));
}

#[test]
fn aborted_transactions_are_told_where_they_reach() {
    let bench = Bench::new();
    let partition = mixed(&bench);
    // Producer 3 is open from 3 on.
    assert_eq!(edges(&partition), (3, 7));
    assert_eq!(committed(&partition, 0), (vec![0, 2], vec![(1, 0), (2, 2)]));
    assert_eq!(committed(&partition, 2), (vec![2], vec![(1, 0), (2, 2)]));
    partition.roll().unwrap();
    abort(&partition, 3);
    partition.put(batch(&[5]));
    assert_eq!(edges(&partition), (9, 9));
    assert_eq!(aborted(&partition, 0, 1), [(1, 0, 4)]);
    assert_eq!(aborted(&partition, 3, 4), [(1, 0, 4), (2, 2, 6), (3, 3, 7)]);
    assert_eq!(aborted(&partition, 5, 7), [(2, 2, 6), (3, 3, 7)]);
    assert_eq!(aborted(&partition, 7, 9), [(3, 3, 7)]);
    assert_eq!(aborted(&partition, 8, 9), []);
    assert_eq!(committed(&partition, 5).1, [(2, 2), (3, 3)], "also from a later segment");
}

#[test]
fn the_transaction_index_is_kafkas() {
    let bench = Bench::new();
    let partition = mixed(&bench);
    abort(&partition, 3);
    let entries: Vec<Vec<i64>> = index(&bench, 0)
        .chunks(34)
        .map(|entry| {
            assert_eq!(entry[..2], [0, 0], "version");
            entry[2..]
                .chunks(8)
                .map(|field| i64::from_be_bytes(field.try_into().unwrap()))
                .collect()
        })
        .collect();
    // Producer, first and last offset, and what the last stable offset was behind the marker.
    assert_eq!(entries, [[1, 0, 4, 2], [2, 2, 6, 3], [3, 3, 7, 8]]);
}

#[test]
fn a_start_finds_open_and_aborted_transactions() {
    let states = |partition: &Partition| {
        let state = |state: ProducerState| (state.producer_id, state.transaction_start);
        partition.producer_states().into_iter().map(state).collect::<Vec<_>>()
    };
    for how in [Bench::kill as fn(Bench) -> Bench, Bench::restart] {
        for rolled in [false, true] {
            let bench = Bench::new();
            let partition = mixed(&bench);
            if rolled {
                partition.roll().unwrap();
                partition.put(numbered(9, 0, 0, 1));
            }
            let (before, known, held) =
                (index(&bench, 0), states(&partition), partition.oldest_open_transaction());
            drop(partition);
            let bench = how(bench);
            let partition = bench.partition();
            assert_eq!(index(&bench, 0), before);
            assert_eq!(states(&partition), known);
            assert_eq!(edges(&partition).0, 3, "producer 3 is open");
            let found = partition.oldest_open_transaction().unwrap();
            assert_eq!(found.producer_id, held.unwrap().producer_id);
            assert_eq!(found.since_ms, 0, "as the record tells");
            assert_eq!(committed(&partition, 0), (vec![0, 2], vec![(1, 0), (2, 2)]));
            let marker = commit(&partition, 3);
            assert_eq!(edges(&partition), (marker.last_offset + 1, marker.last_offset + 1));
            assert_eq!(index(&bench, 0), before);
        }
    }
}

#[test]
fn a_lost_or_damaged_transaction_index_is_made_again() {
    for damage in [None, Some(vec![]), Some(vec![0; 34]), Some(vec![0; 33]), Some(vec![1; 68])] {
        let bench = Bench::new();
        let partition = mixed(&bench);
        partition.roll().unwrap();
        abort(&partition, 3);
        partition.roll().unwrap();
        drop(partition);
        let before = [index(&bench, 0), index(&bench, 7)];
        let bench = bench.restart();
        bench.log.close().unwrap();
        for base in [0, 7] {
            let path = bench.folder().join(format!("{base:020}.txnindex"));
            match &damage {
                // An empty one is what most segments have: it is believed.
                Some(content) if content.is_empty() => continue,
                Some(content) => fs::write(path, content).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
        }
        let bench = bench.kill();
        assert_eq!([index(&bench, 0), index(&bench, 7)], before, "{damage:?}");
        assert_eq!(aborted(&bench.partition(), 0, 8).len(), 3);
    }
}

#[test]
fn a_cut_takes_the_markers_behind_it_with_it() {
    let bench = Bench::new();
    let partition = mixed(&bench);
    partition.roll().unwrap();
    abort(&partition, 3);
    partition.truncate(6).unwrap();
    assert_eq!(edges(&partition), (2, 6), "producer 2 is open again");
    assert_eq!(aborted(&partition, 0, 6), [(1, 0, 4)]);
    assert_eq!(index(&bench, 0).len(), 34);
    abort(&partition, 2);
    partition.truncate(4).unwrap();
    assert_eq!(edges(&partition), (0, 4));
    assert_eq!(index(&bench, 0).len(), 0);
    let bench = bench.kill();
    assert_eq!(edges(&bench.partition()), (0, 4));
}

#[test]
fn the_index_goes_with_its_segment_and_the_log_start_sets_readers_free() {
    let bench = Bench::new();
    let partition = mixed(&bench);
    partition.roll().unwrap();
    partition.put(batch(&[NOW]));
    partition.delete_records(7).unwrap();
    assert!(!bench.folder().join("00000000000000000000.txnindex").exists());
    assert_eq!(edges(&partition), (7, 8), "the transaction is open still, all of it is gone");
    assert_eq!(committed(&partition, 7), (vec![], vec![]));
    assert_eq!(partition.oldest_open_transaction().unwrap().producer_id, 3);
    drop(partition);
    let bench = bench.kill();
    let partition = bench.partition();
    assert_eq!(edges(&partition), (7, 8));
    abort(&partition, 3);
    assert_eq!(edges(&partition), (9, 9));
    // The marker stands in a segment of its own, since the test's clock is ahead.
    assert_eq!(committed(&partition, 7), (vec![7], vec![(3, 3)]));
    assert_eq!(committed(&partition, 8), (vec![8], vec![(3, 3)]));
}

#[test]
fn epochs_fence_batches_and_markers() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(part(7, 1, 0, 1));
    let refused = |marker| partition.append_marker(marker, NOW).unwrap_err();
    let old = refused(marker(7, 0, MarkerKind::Abort));
    assert!(matches!(old, LogError::InvalidProducerEpoch { .. }));
    assert_eq!(old.kafka_code().0, 47);
    // The coordinator fences a producer with a marker of the next epoch.
    end(&partition, EndMarker { coordinator_epoch: 4, ..marker(7, 2, MarkerKind::Abort) });
    let zombie = partition.try_put(part(7, 1, 1, 1)).unwrap_err();
    assert!(matches!(zombie, LogError::InvalidProducerEpoch { .. }));
    let fenced = refused(EndMarker { coordinator_epoch: 3, ..marker(7, 2, MarkerKind::Abort) });
    assert!(matches!(fenced, LogError::CoordinatorFenced { current: 4, found: 3, .. }));
    assert_eq!(fenced.kafka_code().0, 52);
    let gap = partition.try_put(part(7, 2, 1, 1)).unwrap_err();
    assert!(matches!(gap, LogError::OutOfOrderSequence { expected: 0, .. }));
    partition.put(part(7, 2, 0, 1));
    let plain = partition.try_put(numbered(7, 2, 1, 1)).unwrap_err();
    assert_eq!((plain.code(), plain.kafka_code().0), ("LOG_INVALID_TXN_STATE", 48));
    // Sent again, it is answered as before and begins nothing.
    assert_eq!(partition.put(part(7, 2, 0, 1)).base_offset, 2);
    end(&partition, EndMarker { coordinator_epoch: 4, ..marker(7, 2, MarkerKind::Commit) });
    assert_eq!(partition.put(part(7, 2, 0, 1)).base_offset, 2);
    assert_eq!(edges(&partition), (4, 4));
    // A marker where nothing is open is taken, and a producer that was never seen may have one.
    end(&partition, EndMarker { coordinator_epoch: 4, ..marker(7, 2, MarkerKind::Commit) });
    end(&partition, marker(99, 5, MarkerKind::Abort));
    assert_eq!(edges(&partition), (6, 6));
    assert_eq!(index(&bench, 0).len(), 34, "only what was open was aborted");
    assert!(matches!(
        partition.append_marker(marker(-1, 0, MarkerKind::Abort), NOW),
        Err(LogError::InvalidRecord { .. })
    ));
}

#[test]
fn only_a_coordinator_writes_without_sequence_numbers() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    let unnumbered = || part(7, 0, -1, 2);
    assert!(matches!(partition.try_put(unnumbered()), Err(LogError::InvalidRecord { .. })));
    let options = AppendOptions { now_ms: NOW, origin: Origin::Coordinator };
    for base in [0, 2] {
        assert_eq!(partition.append(unnumbered(), options).unwrap().base_offset, base);
    }
    partition.flush().unwrap();
    assert_eq!(edges(&partition), (0, 4));
    let bench = bench.kill();
    assert_eq!(bench.partition().append(unnumbered(), options).unwrap().base_offset, 4);
    assert!(bench.partition().append(part(7, -1, -1, 1), options).is_err());
}

#[test]
fn a_batch_verified_for_a_transaction_that_ended_meanwhile_is_refused() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(part(7, 0, 0, 1));
    let at = partition.watermarks_now().log_end;
    abort(&partition, 7);
    let verified = |at| AppendOptions { now_ms: NOW, origin: Origin::Verified { at } };
    let late = partition.append(part(7, 0, 1, 1), verified(at)).unwrap_err();
    assert!(matches!(late, LogError::InvalidTxnState { .. }));
    let at = partition.watermarks_now().log_end;
    partition.append(part(7, 0, 1, 1), verified(at)).unwrap();
}

#[test]
fn a_batch_that_was_not_verified_comes_before_those_behind_it() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    let begin = |sequence| {
        let batch = part(7, 0, sequence, 1);
        let header = BatchHeader::parse(&batch).unwrap();
        let origin = partition.begin_verification(&header, NOW).unwrap();
        (batch, AppendOptions { now_ms: NOW, origin })
    };
    // The first is refused by its coordinator for now; the second was sent at once behind it.
    begin(0);
    let (second, options) = begin(1);
    let early = partition.append(second, options).unwrap_err();
    assert!(matches!(early, LogError::OutOfOrderSequence { expected: 0, found: 1, .. }));
    for sequence in [0, 1] {
        let (batch, options) = begin(sequence);
        partition.append(batch, options).unwrap();
    }
    // So do its batches outside of transactions, and a marker sets it free.
    abort(&partition, 7);
    begin(1);
    let plain = || numbered(7, 0, 2, 1);
    assert!(partition.try_put(plain()).is_err());
    abort(&partition, 7);
    partition.put(plain());
}

/// The answer to ListOffsets, as (offset, timestamp, epoch).
fn ask(partition: &Partition, spec: OffsetSpec, isolation: Isolation) -> (i64, i64, i32) {
    let found = partition.list_offset(spec, isolation).unwrap();
    found.map_or((-1, -1, -1), |found| (found.offset, found.timestamp, found.leader_epoch))
}

fn open_at(timestamp: i64) -> Bytes {
    let mut batch = BatchBuilder::new(Compression::None).producer(7, 0, 0).transactional();
    batch.push(timestamp, Some(b"key"), Some(b"value"), &[]);
    batch.build().unwrap()
}

/// The worked examples 15 to 19 of ListOffsets.
#[test]
fn list_offsets_heeds_what_is_not_committed() {
    use Isolation::{ReadCommitted, ReadUncommitted};
    use OffsetSpec::{Latest, MaxTimestamp};
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[100]));
    partition.put(open_at(900));
    assert_eq!(ask(&partition, MaxTimestamp, ReadUncommitted), (1, 900, 0));
    assert_eq!(ask(&partition, MaxTimestamp, ReadCommitted), (-1, -1, -1));
    assert_eq!(ask(&partition, Latest, ReadCommitted), (1, -1, 0));
    assert_eq!(ask(&partition, Latest, ReadUncommitted), (2, -1, 0));
    assert_eq!(ask(&partition, OffsetSpec::Timestamp(500), ReadCommitted), (-1, -1, -1));
    assert_eq!(ask(&partition, OffsetSpec::Timestamp(500), ReadUncommitted), (1, 900, 0));
    commit(&partition, 7);
    for isolation in [ReadCommitted, ReadUncommitted] {
        assert_eq!(ask(&partition, MaxTimestamp, isolation), (2, NOW, 0), "the marker's time");
        assert_eq!(ask(&partition, Latest, isolation), (3, -1, 0));
    }

    let bench = Bench::new();
    let far = i64::MAX.to_string();
    let partition = bench.topic(&[("message.timestamp.after.max.ms", &far)]);
    partition.put(batch(&[100]));
    let late = NOW + 1_000_000;
    partition.put(open_at(late));
    abort(&partition, 7);
    assert_eq!(ask(&partition, MaxTimestamp, ReadCommitted), (1, late, 0), "aborted data counts");
}

/// The worked example 28: a new leader epoch without data.
#[test]
fn a_new_epoch_changes_the_epoch_of_the_end_alone() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[100]));
    partition.truncate(1).unwrap();
    for isolation in [Isolation::ReadCommitted, Isolation::ReadUncommitted] {
        assert_eq!(ask(&partition, OffsetSpec::MaxTimestamp, isolation), (0, 100, 0));
        assert_eq!(ask(&partition, OffsetSpec::Latest, isolation), (1, -1, 1));
    }
}

#[test]
fn a_stamping_topic_stamps_markers() {
    let bench = Bench::new();
    let partition = bench.topic(&[("message.timestamp.type", "LogAppendTime")]);
    partition.put(part(7, 0, 0, 1));
    assert_eq!(commit(&partition, 7).log_append_time_ms, Some(NOW));
    assert_eq!(ask(&partition, OffsetSpec::MaxTimestamp, Isolation::ReadCommitted), (0, NOW, 0));
}

#[test]
fn a_silent_producer_is_forgotten_unless_its_transaction_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let hour = 3_600_000;
    let open = || {
        let producer_id_expiration = std::time::Duration::from_millis(hour as u64);
        let config = LogConfig { producer_id_expiration, ..support::manual() };
        Log::open(std::sync::Arc::new(RealFileSystem), dir.path(), config).unwrap()
    };
    let log = open();
    let partition = {
        log.create_topic("t", 1, support::settings(&[])).unwrap();
        log.partition("t", 0).unwrap()
    };
    partition.put(numbered(1, 0, 0, 1));
    partition.put(part(2, 0, 0, 1));
    let known = |partition: &Partition| {
        partition.producer_states().iter().map(|state| state.producer_id).collect::<Vec<_>>()
    };
    log.run_retention(NOW + hour - 1);
    assert_eq!(known(&partition), [1, 2]);
    log.run_retention(NOW + hour);
    assert_eq!(known(&partition), [2]);
    // Whoever was forgotten may go on anywhere.
    partition.put(numbered(1, 0, 55, 1));
    drop(partition);
    log.close().unwrap();
    drop(log);
    let log = open();
    let partition = log.partition("t", 0).unwrap();
    // The test's clock is ahead: nobody is silent at the start.
    assert_eq!(known(&partition), [1, 2]);
}

#[test]
fn a_marker_is_taken_where_the_log_is_full() {
    let bench = Bench::new();
    let partition = bench.topic(&[("max.message.bytes", "100")]);
    partition.put(part(7, 0, 0, 1));
    bench.log.limit_to(Some(1));
    assert!(matches!(partition.try_put(batch(&[1])), Err(LogError::TotalLimit { .. })));
    commit(&partition, 7);
    assert_eq!(edges(&partition), (2, 2));
}

#[test]
fn a_folder_from_before_transactions_opens() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[1]));
    partition.roll().unwrap();
    partition.put(batch(&[2]));
    drop(partition);
    bench.log.close().unwrap();
    let there = |dir: &Path| {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        names
            .filter(|path| path.extension().is_some_and(|ending| ending == "txnindex"))
            .collect::<Vec<_>>()
    };
    assert_eq!(there(&bench.folder()).len(), 2);
    there(&bench.folder()).iter().for_each(|path| fs::remove_file(path).unwrap());
    let Bench { log, dir } = bench;
    drop(log);
    let log = open(dir.path()).unwrap();
    assert_eq!(edges(&log.partition("t", 0).unwrap()), (2, 2));
    assert_eq!(
        there(&dir.path().join("t-0")).len(),
        1,
        "the closed one has it, and is not read again"
    );
}
