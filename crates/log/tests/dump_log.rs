//! Apache Kafka's own dump tool on our files: every format is its format.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::path::Path;
use std::process::Command;

use highwater_log::*;
use support::{Bench, NOW, Put, batch, numbered, part};

/// What `kafka-dump-log` prints of these files.
fn dump(folder: &Path, names: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files: Vec<_> = names.iter().map(|name| folder.join(name).display().to_string()).collect();
    let run = Command::new(root.join("testing/kafka/kafka.sh"))
        .args(["tool", "kafka-dump-log", "--deep-iteration", "--files", &files.join(",")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    said
}

#[test]
fn kafka_reads_segments_indexes_and_snapshots() {
    let bench = Bench::new();
    let partition = bench.topic(&[("index.interval.bytes", "0")]);
    partition.put(batch(&[NOW, NOW + 5]));
    partition.put(part(7, 3, 0, 2));
    partition.put(numbered(8, 0, 4, 1));
    let end = |producer_id, producer_epoch, kind| {
        let marker = EndMarker { producer_id, producer_epoch, kind, coordinator_epoch: 6 };
        partition.append_marker(marker, NOW + 9).unwrap();
        partition.flush().unwrap();
    };
    end(7, 3, MarkerKind::Abort);
    partition.put(part(9, 0, 0, 1));
    end(8, 1, MarkerKind::Commit);
    partition.roll().unwrap();
    bench.log.close().unwrap();
    let first = "00000000000000000000";
    let names = ["log", "index", "timeindex", "txnindex"].map(|kind| format!("{first}.{kind}"));
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push("00000000000000000008.snapshot");
    let said = dump(&bench.folder(), &names);
    for line in [
        // The markers: of the abort that ends producer 7's, and of a commit that ended nothing.
        "endTxnMarker: ABORT coordinatorEpoch: 6",
        "endTxnMarker: COMMIT coordinatorEpoch: 6",
        "baseOffset: 2 lastOffset: 3 count: 2 baseSequence: 0 lastSequence: 1 producerId: 7 producerEpoch: 3",
        "version: 0 producerId: 7 firstOffset: 2 lastOffset: 5 lastStableOffset: 6",
        "producerId: 7 producerEpoch: 3 coordinatorEpoch: 6 currentTxnFirstOffset: OptionalLong.empty",
        "producerId: 8 producerEpoch: 1 coordinatorEpoch: 6 currentTxnFirstOffset: OptionalLong.empty",
        "producerId: 9 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong[6]",
        &format!("timestamp: {} offset: 1", NOW + 5),
    ] {
        assert!(said.contains(line), "{line:?} is not in\n{said}");
    }
    // The tool says these where it finds an index that does not fit its segment.
    for complaint in ["Mismatches", "mismatch", "Index timestamp", "not found", "Error", "invalid"]
    {
        assert!(!said.contains(complaint), "{complaint} in\n{said}");
    }
}
