//! ListOffsets, row by row (KIP-734 and its repairs up to 3.8): the worked examples, asked of Apache
//! Kafka and of us at every version. The answers stand in `docs/reference/list-offsets.md`; where a row
//! differs from what the KIP or the source lets expect, it is Apache Kafka's answer that stands here.

use bytes::Bytes;
use highwater_protocol::records::{BatchBuilder, BatchHeader, Compression};
use highwater_protocol::{ErrorCode, ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};

use crate::batches::{batch, large, plain};
use crate::clusters::{Side, both, found, fresh};

pub(crate) const LATEST: i64 = -1;
pub(crate) const EARLIEST: i64 = -2;
pub(crate) const MAX_TIMESTAMP: i64 = -3;
/// No error, and nothing found.
pub(crate) const NOTHING: Found = Ok((-1, -1, -1));

/// Offset, timestamp and leader epoch, or the error.
pub(crate) type Found = Result<(i64, i64, i32), ErrorCode>;

/// Who asks: up to the high watermark, or to the last stable offset.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Uncommitted,
    Committed,
}

/// Asks for an offset of partition 0 at every version there is. They must agree, but for the versions
/// that cannot ask yet, and those that have no leader epoch in the answer (row 29).
pub(crate) fn ask_as(side: &mut Side, topic: &str, timestamp: i64, level: Level) -> Found {
    let since = match timestamp {
        -3 => 7,
        -4 => 8,
        -5 => 9,
        -6 => 11,
        _ => 1,
    };
    let newest = ask_at(side, 11, topic, timestamp, level);
    let least = if level == Level::Committed { 2 } else { 1 };
    for version in least..=10 {
        let expected = match newest {
            _ if version < since => Err(ErrorCode::UNSUPPORTED_VERSION),
            Ok((offset, timestamp, _)) if version < 4 => Ok((offset, timestamp, -1)),
            newest => newest,
        };
        let answer = ask_at(side, version, topic, timestamp, level);
        assert_eq!(answer, expected, "{}: {timestamp} at version {version}", side.name);
    }
    newest
}

pub(crate) fn ask(side: &mut Side, topic: &str, timestamp: i64) -> Found {
    ask_as(side, topic, timestamp, Level::Uncommitted)
}

fn ask_at(side: &mut Side, version: i16, topic: &str, timestamp: i64, level: Level) -> Found {
    let asked = ListOffsetsPartition { timestamp, ..Default::default() };
    found(&side.list_as(version, topic, asked, i8::from(level == Level::Committed)))
}

/// A topic of one row that holds these batches.
fn holding(side: &mut Side, row: &str, settings: &[(&str, &str)], batches: &[Bytes]) -> String {
    let topic = fresh(row);
    side.topic(&topic, settings);
    for batch in batches {
        side.produce(&topic, batch.clone());
    }
    topic
}

/// What is found in a new topic that holds these batches.
fn found_in<const N: usize>(batches: &[Bytes], timestamps: [i64; N]) -> [Found; N] {
    found_with(&[], batches, timestamps)
}

fn found_with<const N: usize>(
    settings: &[(&str, &str)],
    batches: &[Bytes],
    timestamps: [i64; N],
) -> [Found; N] {
    both(|side| {
        let topic = holding(side, "row", settings, batches);
        timestamps.map(|timestamp| ask(side, &topic, timestamp))
    })
}

/// One batch a timestamp.
fn singles(timestamps: &[i64]) -> Vec<Bytes> {
    timestamps.iter().map(|timestamp| plain(&[*timestamp])).collect()
}

#[test]
fn row_1_an_empty_partition_has_no_greatest_timestamp() {
    let found = found_in(&[], [MAX_TIMESTAMP, LATEST, EARLIEST]);
    assert_eq!(found, [NOTHING, Ok((0, -1, 0)), Ok((0, -1, 0))]);
}

#[test]
fn row_2_one_batch() {
    let found = found_in(&[plain(&[100, 999, 200])], [MAX_TIMESTAMP, LATEST, EARLIEST]);
    assert_eq!(found, [Ok((1, 999, 0)), Ok((3, -1, 0)), Ok((0, -1, 0))]);
}

#[test]
fn row_3_the_four_codecs() {
    let codecs = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    for codec in codecs {
        let found = found_in(&[batch(codec, &[100, 999, 200])], [MAX_TIMESTAMP]);
        assert_eq!(found, [Ok((1, 999, 0))], "{codec:?}");
    }
}

#[test]
fn row_3_compressed_again_by_the_topic() {
    let sent = [plain(&[100, 999, 200]), batch(Compression::Gzip, &[1, 2])];
    let found = found_with(&[("compression.type", "lz4")], &sent, [MAX_TIMESTAMP, LATEST]);
    assert_eq!(found, [Ok((1, 999, 0)), Ok((5, -1, 0))]);
}

#[test]
fn row_4_three_batches() {
    assert_eq!(found_in(&singles(&[100, 999, 200]), [MAX_TIMESTAMP]), [Ok((1, 999, 0))]);
}

#[test]
fn row_6_the_last_record_is_not_the_greatest() {
    let found = found_in(&singles(&[0, 1, 2, 3, 4, 6, 5]), [MAX_TIMESTAMP, LATEST]);
    assert_eq!(found, [Ok((5, 6, 0)), Ok((7, -1, 0))]);
}

#[test]
fn row_7_the_first_in_a_batch_wins_a_tie() {
    assert_eq!(found_in(&[plain(&[5, 9, 9, 3])], [MAX_TIMESTAMP]), [Ok((1, 9, 0))]);
}

#[test]
fn row_8_the_first_batch_wins_a_tie() {
    assert_eq!(found_in(&singles(&[9, 9]), [MAX_TIMESTAMP]), [Ok((0, 9, 0))]);
}

/// Of a segment's least size two such batches fill one.
const FILLER: usize = 700_000;
const SMALL_SEGMENTS: (&str, &str) = ("segment.bytes", "1048576");

#[test]
fn row_9_the_first_segment_wins_a_tie() {
    let batches =
        [plain(&[1, 2, 3]), large(4, FILLER), plain(&[9]), large(5, FILLER), plain(&[9, 5])];
    let found = found_with(&[SMALL_SEGMENTS], &batches, [MAX_TIMESTAMP, LATEST]);
    assert_eq!(found, [Ok((4, 9, 0)), Ok((8, -1, 0))]);
}

const STAMPED: (&str, &str) = ("message.timestamp.type", "LogAppendTime");

/// Rows 10 to 12: the answer with its time in place of the number, if it is the time of an append.
fn stamped(batches: &[Bytes], among: &[usize]) -> (Found, bool) {
    both(|side| {
        let topic = fresh("row");
        side.topic(&topic, &[STAMPED]);
        let times: Vec<i64> = batches
            .iter()
            .map(|batch| {
                // A later batch has a later time.
                std::thread::sleep(std::time::Duration::from_millis(2));
                side.try_produce(&topic, batch.clone()).log_append_time_ms
            })
            .collect();
        let found = ask(side, &topic, MAX_TIMESTAMP);
        let time = found.map_or(-1, |(_, time, _)| time);
        let is_theirs = among.iter().any(|index| times[*index] == time);
        (found.map(|(offset, _, epoch)| (offset, 0, epoch)), is_theirs)
    })
}

#[test]
fn row_10_log_append_time_of_one_batch() {
    assert_eq!(stamped(&[plain(&[5, 6, 7])], &[0]), (Ok((0, 0, 0)), true));
}

#[test]
fn row_11_log_append_time_of_three_batches() {
    assert_eq!(stamped(&singles(&[5, 6, 7]), &[2]), (Ok((2, 0, 0)), true));
}

#[test]
fn row_12_log_append_time_within_a_millisecond() {
    both(|side| {
        let topic = fresh("row");
        side.topic(&topic, &[STAMPED]);
        let mut times = Vec::new();
        // Two in one millisecond come soon; the greatest time is then asked for at once.
        while times.len() < 2 || times[times.len() - 2] != times[times.len() - 1] {
            assert!(times.len() < 10_000, "{}: never two in one millisecond", side.name);
            times.push(side.try_produce(&topic, plain(&[5])).log_append_time_ms);
        }
        let last = times[times.len() - 1];
        let first = times.iter().position(|time| *time == last).unwrap();
        let found = ask(side, &topic, MAX_TIMESTAMP);
        assert_eq!(found, Ok((i64::try_from(first).unwrap(), last, 0)), "{}", side.name);
    });
}

/// Rows 20 and 21: the records before an offset are gone, in the midst of a segment.
#[test]
fn row_20_and_21_below_the_log_start() {
    let found = both(|side| {
        let topic = holding(side, "row", &[], &singles(&[999, 5, 7]));
        assert_eq!(delete_records(side, &topic, 2), Ok(2));
        [MAX_TIMESTAMP, EARLIEST, LATEST, 6, 500].map(|timestamp| ask(side, &topic, timestamp))
    });
    let expected = [Ok((0, 999, 0)), Ok((2, -1, 0)), Ok((3, -1, 0)), Ok((2, 7, 0)), NOTHING];
    assert_eq!(found, expected);
}

fn delete_records(side: &mut Side, topic: &str, offset: i64) -> Result<i64, ErrorCode> {
    use highwater_protocol::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
    let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset }];
    let topics = vec![DeleteRecordsTopic { name: topic.to_owned(), partitions }];
    let request = DeleteRecordsRequest { topics, timeout_ms: 10_000 };
    let answer = side.client.call(2, &request).topics.remove(0).partitions.remove(0);
    if answer.error_code.is_ok() { Ok(answer.low_watermark) } else { Err(answer.error_code) }
}

#[test]
fn row_22_retention_takes_the_segment_with_the_greatest() {
    let found = both(|side| {
        let settings = [SMALL_SEGMENTS, ("retention.bytes", "1000000")];
        let batches = [plain(&[100, 999]), large(5, FILLER), large(6, FILLER), large(7, FILLER)];
        let topic = holding(side, "row", &settings, &batches);
        side.until("retention has removed a segment", |side| {
            let [start, greatest] =
                [EARLIEST, MAX_TIMESTAMP].map(|spec| side.list(11, &topic, spec));
            // The log start moves first, then the segment goes.
            start.offset > 0 && greatest.timestamp < 999
        });
        [EARLIEST, MAX_TIMESTAMP, 100, LATEST].map(|timestamp| ask(side, &topic, timestamp))
    });
    assert_eq!(found, [Ok((3, -1, 0)), Ok((4, 7, 0)), NOTHING, Ok((5, -1, 0))]);
}

/// Beside the table: where all segments are over their time, the active one ends and goes.
#[test]
fn retention_takes_the_active_segment_once_all_are_over_their_time() {
    let found = both(|side| {
        let batches = [plain(&[100, 999]), plain(&[5])];
        let topic = holding(side, "row", &[("retention.ms", "1000")], &batches);
        side.until("retention has removed everything", |side| {
            side.list(11, &topic, EARLIEST).offset == 3
        });
        [EARLIEST, MAX_TIMESTAMP, 100, LATEST].map(|timestamp| ask(side, &topic, timestamp))
    });
    assert_eq!(found, [Ok((3, -1, 0)), NOTHING, NOTHING, Ok((3, -1, 0))]);
}

#[test]
fn row_25_records_without_a_timestamp() {
    let found = found_in(&singles(&[-1, -1]), [MAX_TIMESTAMP, 0, LATEST]);
    assert_eq!(found, [Ok((0, -1, 0)), NOTHING, Ok((2, -1, 0))]);
}

#[test]
fn row_26_by_time() {
    let found = found_in(&[plain(&[100, 999, 200])], [150, 200, 999, 1000, 0]);
    let second = Ok((1, 999, 0));
    assert_eq!(found, [second, second, second, NOTHING, Ok((0, 100, 0))]);
}

#[test]
fn row_27_special_timestamps_have_a_first_version() {
    let refused = Err(ErrorCode::UNSUPPORTED_VERSION);
    let found = both(|side| {
        let topic = holding(side, "row", &[], &[plain(&[100])]);
        let cases = [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11), (i64::MIN, 11)];
        let of_topic = cases.map(|(timestamp, version)| {
            ask_at(side, version, &topic, timestamp, Level::Uncommitted)
        });
        // The version is looked at before the topic.
        let unknown = ask_at(side, 6, "no-such-topic", -3, Level::Uncommitted);
        (of_topic, unknown)
    });
    assert_eq!(found, ([refused; 6], refused));
}

#[test]
fn the_special_timestamps_of_tiered_storage() {
    let found = found_in(&[plain(&[100, 999])], [-4, -5, -6]);
    assert_eq!(found, [Ok((0, -1, 0)), NOTHING, NOTHING]);
}

/// Row 29 is in every row: [`ask_as`] reads versions 1 to 3, whose answer has no leader epoch; had one
/// been sent, there would be bytes behind the answer.
#[test]
fn row_29_old_answers_have_no_leader_epoch() {
    let found = both(|side| {
        let topic = holding(side, "row", &[], &[plain(&[100, 999, 200])]);
        [1, 3, 4].map(|version| ask_at(side, version, &topic, LATEST, Level::Uncommitted))
    });
    assert_eq!(found, [Ok((3, -1, -1)), Ok((3, -1, -1)), Ok((3, -1, 0))]);
}

#[test]
fn row_30_thirty_records_in_order() {
    let timestamps: Vec<i64> = (0..=30).collect();
    let found = found_in(&singles(&timestamps), [MAX_TIMESTAMP, LATEST]);
    assert_eq!(found, [Ok((30, 30, 0)), Ok((31, -1, 0))]);
}

#[test]
fn row_31_leader_epochs_of_a_first_leader() {
    let found = both(|side| {
        let topic = holding(side, "row", &[], &[plain(&[100])]);
        [-2, -1, 0, 1, 2].map(|current_leader_epoch| {
            [LATEST, MAX_TIMESTAMP, 50].map(|timestamp| {
                let asked =
                    ListOffsetsPartition { timestamp, current_leader_epoch, ..Default::default() };
                (4..=11)
                    .filter(|version| timestamp != MAX_TIMESTAMP || *version >= 7)
                    .map(|version| found(&side.list_as(version, &topic, asked.clone(), 0)))
                    .collect::<Vec<_>>()
            })
        })
    });
    let errors = found.map(|of_epoch| of_epoch[0][0].err());
    let newer = Some(ErrorCode::UNKNOWN_LEADER_EPOCH);
    assert_eq!(errors, [Some(ErrorCode::FENCED_LEADER_EPOCH), None, None, newer, newer]);
}

#[test]
fn row_32_a_partition_named_twice() {
    let found = both(|side| {
        let topic = holding(side, "row", &[], &[plain(&[100])]);
        let partition = ListOffsetsPartition { timestamp: LATEST, ..Default::default() };
        let request = ListOffsetsRequest {
            topics: vec![ListOffsetsTopic {
                name: topic.clone(),
                partitions: vec![partition.clone(), partition],
            }],
            ..Default::default()
        };
        [1, 6, 11].map(|version| {
            let answer = side.client.call(version, &request);
            let partitions = answer.topics.into_iter().flat_map(|topic| topic.partitions);
            partitions.map(|partition| found(&partition)).collect::<Vec<_>>()
        })
    });
    // The table has the error on both entries; Apache Kafka answers with one for the two.
    let once = vec![Err(ErrorCode::INVALID_REQUEST)];
    assert_eq!(found, [once.clone(), once.clone(), once]);
}

#[test]
fn an_unknown_topic_or_partition() {
    let found = both(|side| {
        let topic = holding(side, "row", &[], &[]);
        let asked = ListOffsetsPartition { partition_index: 7, ..Default::default() };
        let partition =
            (1..=11).map(|version| found(&side.list_as(version, &topic, asked.clone(), 0)));
        let partition: Vec<_> = partition.collect();
        (partition, ask(side, "no-such-topic", LATEST))
    });
    let unknown = Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(found, (vec![unknown; 11], unknown));
}

/// The leader computes the greatest timestamp anew: what the header said is not believed.
#[test]
fn a_header_that_lies_about_the_greatest_timestamp() {
    for codec in [Compression::None, Compression::Lz4] {
        let honest = batch(codec, &[100, 999, 200]);
        let lies = |header: &mut BatchHeader| header.max_timestamp = 5_000;
        let sent = crate::batches::with_header(&honest, lies);
        let found = found_in(&[sent], [MAX_TIMESTAMP, 150, 1000]);
        assert_eq!(found, [Ok((1, 999, 0)), Ok((1, 999, 0)), NOTHING], "{codec:?}");
    }
}

/// A producer's batches count like any others.
#[test]
fn an_idempotent_producers_batches() {
    let mut builder = BatchBuilder::new(Compression::None).producer(7, 0, 0);
    [3, 8, 5].iter().for_each(|timestamp| builder.push(*timestamp, None, Some(b"v"), &[]));
    let found = found_in(&[builder.build().unwrap()], [MAX_TIMESTAMP, LATEST]);
    assert_eq!(found, [Ok((1, 8, 0)), Ok((3, -1, 0))]);
}
