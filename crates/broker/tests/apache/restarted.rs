//! Rows of the ListOffsets table that need a restart. There is one for all of them: each row prepares
//! its topic before it and is judged by what is answered behind it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use highwater_protocol::records::batches;
use highwater_protocol::{
    ErrorCode, ListOffsetsPartition, MetadataRequest, MetadataRequestTopic,
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use crate::batches::plain;
use crate::clusters::{Side, clusters_alone, found};
use crate::list_offsets::{Found, LATEST, MAX_TIMESTAMP, NOTHING, ask};

/// A topic that stands before the restart.
struct Prepared {
    name: &'static str,
    batches: Vec<Vec<i64>>,
    /// Where its log is cut while its node is down.
    cut: Option<i64>,
}

fn prepared() -> Vec<Prepared> {
    let row = |name, batches: &[&[i64]], cut| Prepared {
        name,
        batches: batches.iter().map(|batch| batch.to_vec()).collect(),
        cut,
    };
    let twenty: Vec<[i64; 1]> = (0..20).map(|timestamp| [timestamp]).collect();
    let twenty: Vec<&[i64]> = twenty.iter().map(<[i64; 1]>::as_slice).collect();
    let three: [&[i64]; 3] = [&[10], &[50], &[20]];
    vec![
        row("restarted-5", &twenty, Some(0)),
        row("restarted-13", &[&[100, 999, 200]], None),
        row("restarted-14-at-2", &three, Some(2)),
        row("restarted-14-at-1", &three, Some(1)),
        row("restarted-28", &[&[100, 999, 200]], None),
        row("restarted-31", &[&[100]], None),
    ]
}

/// What one side answers, before and behind the restart.
#[derive(Debug, PartialEq)]
struct Answers {
    before: BTreeMap<&'static str, [Found; 2]>,
    after: BTreeMap<&'static str, [Found; 2]>,
    /// Of row 31: by which epoch was asked, as far from the leader's, and what came.
    fenced: Vec<(i32, Found)>,
    /// Of row 28: where epoch 0 ended.
    first_epoch: (i32, i64),
}

static ANSWERS: LazyLock<Answers> = LazyLock::new(|| {
    let mut clusters = clusters_alone();
    let before = before(&mut clusters.apache.side());
    assert_eq!(self::before(&mut clusters.ours.side()), before);
    clusters.apache.restart(|data| change_files(data, true));
    for topic in prepared() {
        // An epoch begins where history may change; ours does not change by a mere restart.
        let partition = clusters.ours.log().partition(topic.name, 0).unwrap();
        let at = topic.cut.unwrap_or_else(|| partition.watermarks_now().log_end);
        partition.truncate(at).unwrap();
    }
    clusters.ours.restart(|data| change_files(data, false));
    let theirs = after(&mut clusters.apache.side(), before.clone());
    let ours = after(&mut clusters.ours.side(), before);
    assert_eq!(ours, theirs, "left: ours, right: Apache Kafka");
    theirs
});

fn before(side: &mut Side) -> BTreeMap<&'static str, [Found; 2]> {
    for topic in prepared() {
        side.topic(topic.name, &[]);
        for batch in &topic.batches {
            side.produce(topic.name, plain(batch));
        }
    }
    answers(side)
}

fn answers(side: &mut Side) -> BTreeMap<&'static str, [Found; 2]> {
    let ask = |topic: Prepared| {
        (topic.name, [MAX_TIMESTAMP, LATEST].map(|timestamp| ask(side, topic.name, timestamp)))
    };
    prepared().into_iter().map(ask).collect()
}

fn after(side: &mut Side, before: BTreeMap<&'static str, [Found; 2]>) -> Answers {
    side.until("the partitions are back", |side| {
        prepared().iter().all(|topic| side.list(11, topic.name, LATEST).error_code.is_ok())
    });
    let current = epoch(side, "restarted-31");
    let fenced = [-1, 0, 1].map(|more| {
        let current_leader_epoch = current + more;
        let asked =
            ListOffsetsPartition { timestamp: LATEST, current_leader_epoch, ..Default::default() };
        (more, from_current(found(&side.list_as(11, "restarted-31", asked, 0)), current))
    });
    let mut after = answers(side);
    for (name, [_, latest]) in &mut after {
        *latest = from_current(*latest, epoch(side, name));
    }
    Answers {
        before,
        after,
        fenced: fenced.to_vec(),
        first_epoch: epoch_end(side, "restarted-28", 0),
    }
}

/// The leader's epoch is another number on either side: 100 stands for it.
fn from_current(found: Found, current: i32) -> Found {
    assert!(current > 0, "the restart has begun an epoch");
    found.map(|(offset, time, epoch)| (offset, time, if epoch == current { 100 } else { epoch }))
}

fn epoch(side: &mut Side, topic: &str) -> i32 {
    let named = MetadataRequestTopic { name: Some(topic.to_owned()), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![named]), ..Default::default() };
    side.client.call(9, &request).topics[0].partitions[0].leader_epoch
}

fn epoch_end(side: &mut Side, topic: &str, leader_epoch: i32) -> (i32, i64) {
    let partitions = vec![OffsetForLeaderPartition { leader_epoch, ..Default::default() }];
    let topics = vec![OffsetForLeaderTopic { topic: topic.to_owned(), partitions }];
    let request = OffsetForLeaderEpochRequest { replica_id: -1, topics };
    let answer = side.client.call(4, &request).topics.remove(0).partitions.remove(0);
    assert!(answer.error_code.is_ok());
    (answer.leader_epoch, answer.end_offset)
}

/// Takes every index away, and with `and_records` the records behind a row's cut.
fn change_files(data: &Path, and_records: bool) {
    for topic in prepared() {
        let folder = data.join(format!("{}-0", topic.name));
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
            if matches!(kind, "index" | "timeindex" | "snapshot") {
                std::fs::remove_file(path).unwrap();
            } else if let ("log", Some(cut)) = (kind, topic.cut.filter(|_| and_records)) {
                cut_at(&path, cut);
            }
        }
    }
}

fn cut_at(path: &Path, offset: i64) {
    let bytes = std::fs::read(path).unwrap();
    let kept = batches(bytes.into()).map(Result::unwrap);
    let kept = kept.take_while(|batch| batch.header.base_offset < offset);
    let size: usize = kept.map(|batch| batch.bytes.len()).sum();
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(size as u64).unwrap();
}

fn greatest(topic: &str) -> Found {
    ANSWERS.after[topic][0]
}

#[test]
fn row_5_truncation_takes_the_greatest_timestamp_away() {
    assert_eq!(ANSWERS.before["restarted-5"][0], Ok((19, 19, 0)));
    assert_eq!(greatest("restarted-5"), NOTHING);
}

#[test]
fn row_13_indexes_are_made_anew_at_a_restart() {
    assert_eq!(ANSWERS.before["restarted-13"][0], Ok((1, 999, 0)));
    assert_eq!(greatest("restarted-13"), Ok((1, 999, 0)));
}

#[test]
fn row_14_truncation_leaves_the_greatest_of_the_rest() {
    assert_eq!(greatest("restarted-14-at-2"), Ok((1, 50, 0)));
    assert_eq!(greatest("restarted-14-at-1"), Ok((0, 10, 0)));
}

#[test]
fn row_28_a_new_leader_epoch_changes_latest_alone() {
    assert_eq!(ANSWERS.after["restarted-28"], [Ok((1, 999, 0)), Ok((3, -1, 100))]);
    assert_eq!(ANSWERS.first_epoch, (0, 3));
}

#[test]
fn row_31_older_and_newer_leader_epochs() {
    let expected = vec![
        (-1, Err(ErrorCode::FENCED_LEADER_EPOCH)),
        (0, Ok((1, -1, 100))),
        (1, Err(ErrorCode::UNKNOWN_LEADER_EPOCH)),
    ];
    assert_eq!(ANSWERS.fenced, expected);
}
