use std::collections::BTreeSet;

use highwater_kafka::NewTopic;

use super::*;
use crate::meter::TaskMeter;
use crate::sink_scripted::{BAD, PATIENCE, Put, Rig, TOPIC};

/// Another that comes back is let in at once.
const STATIC: (&str, &str) = ("consumer.override.group.instance.id", "node");
const TOLERANT: (&str, &str) = ("errors.tolerance", "all");

fn away() -> ConnectorError {
    ConnectorError::again("SHELF_AWAY", ErrorKind::Sink, "the shelf is away")
}

fn at(partition: i32) -> TopicPartition {
    TopicPartition::new(TOPIC, partition)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_durable_is_committed_and_read_once() {
    let rig = Rig::start(2).await;
    rig.write(0, &["a", "b", "c"]).await;
    rig.write(1, &["d"]).await;
    let running = rig.run(0, &[]).await;
    rig.until_committed(0, 3).await;
    rig.until_committed(1, 1).await;
    running.stop().await;
    rig.write(0, &["e"]).await;
    let again = rig.run(0, &[]).await;
    rig.until_committed(0, 4).await;
    again.stop().await;
    assert_eq!(rig.shelves.shelf().durable[&at(0)], [0, 1, 2, 3]);
    assert_eq!(rig.shelves.shelf().stopped, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_accepted_and_not_durable_moves_no_offset_and_comes_again_after_a_crash() {
    let rig = Rig::start(1).await;
    rig.shelves.shelf().soft = true;
    rig.write(0, &["a", "b"]).await;
    let running = rig.run(0, &[STATIC]).await;
    rig.until("given", async |rig| rig.shelves.shelf().given.len() == 2).await;
    let asked = rig.shelves.shelf().asked;
    rig.until("asked", async |rig| rig.shelves.shelf().asked > asked + 2).await;
    assert_eq!(rig.committed(0).await, Some(0));
    running.kill().await;
    rig.shelves.shelf().soft = false;
    let again = rig.run(0, &[STATIC]).await;
    rig.until_committed(0, 2).await;
    again.stop().await;
    let shelf = rig.shelves.shelf();
    assert_eq!((&shelf.durable[&at(0)], &shelf.given), (&vec![0, 1], &vec![0, 1, 0, 1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_point_nothing_is_missing_and_no_offset_is_ahead() {
    let rig = Rig::start(2).await;
    let kills: usize =
        std::env::var("HW_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let (mut written, mut to_repeat) = (0, 0);
    for kill in 0..kills {
        rig.write(i32::try_from(kill % 2).unwrap(), &["x"; 40]).await;
        written += 40;
        rig.shelves.shelf().script.extend([Put::Take(3), Put::Fail(away()), Put::Take(0)]);
        let running = rig.run(0, &[STATIC, ("consumer.override.max.poll.records", "16")]).await;
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..150))).await;
        running.kill().await;
        for partition in 0..2 {
            let committed = rig.committed(partition).await.unwrap_or(0);
            let durable =
                rig.shelves.shelf().durable.get(&at(partition)).cloned().unwrap_or_default();
            let durable: BTreeSet<i64> = durable.into_iter().collect();
            let missing = (0..committed).find(|offset| !durable.contains(offset));
            assert_eq!(missing, None, "{committed} of partition {partition} is committed");
            to_repeat += durable.range(committed..).count();
        }
    }
    let last = rig.run(0, &[STATIC]).await;
    rig.until_kept(written).await;
    last.stop().await;
    assert_eq!(rig.shelves.kept(), written);
    let repeated = rig.shelves.shelf().durable.values().map(Vec::len).sum::<usize>() - written;
    assert!(repeated <= to_repeat, "{repeated} came again, {to_repeat} were not committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_batch_is_given_again_and_the_status_says_so() {
    let rig = Rig::start(1).await;
    let refusals = std::iter::repeat_n(Put::Fail(away()), 8);
    rig.shelves.shelf().script.extend(refusals);
    rig.write(0, &["a", "b", "c"]).await;
    let mut running = rig.run(0, &[]).await;
    let says = |status: &Status| status.activity.contains("the shelf is away");
    tokio::time::timeout(PATIENCE, running.status.wait_for(says)).await.unwrap().unwrap();
    rig.until_committed(0, 3).await;
    running.stop().await;
    let shelf = rig.shelves.shelf();
    assert_eq!(shelf.durable[&at(0)], [0, 1, 2]);
    assert!(shelf.given.len() >= 9 * 3 - 6, "{:?}", shelf.given);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_shorter_than_the_brokers_take_is_named_with_its_bounds() {
    let rig = Rig::start_with(1, 2000).await;
    let failed = rig.run(0, &[]).await.failed().await;
    assert_eq!(failed.code, "SINK_GROUP_REFUSED");
    assert!(failed.remedy.contains("consumer.override.session.timeout.ms"), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_does_not_exist_is_waited_for_and_the_status_says_so() {
    let rig = Rig::start(1).await;
    let often = ("consumer.override.metadata.max.age.ms", "100");
    let mut none = rig.run(0, &[("topics", "later"), often]).await;
    none.until_says("Waits for topic later, which does not exist").await;
    let mut some = rig.run(1, &[("topics", &format!("{TOPIC},b,c,d,e")), often]).await;
    some.until_says("Fills the shelf; waits for topics that do not exist: b, c, d and 1 more")
        .await;
    some.stop().await;
    let topic = NewTopic::of_one("later");
    rig.cluster.admin.create_topic(&topic).await.unwrap();
    none.until_says("Fills the shelf").await;
    none.stop().await;
    let regex = [("topics", ""), ("topics.regex", "l.*s"), often];
    let mut none = rig.run(0, &regex).await;
    none.until_says("Waits for a topic that topics.regex matches: there is none").await;
    none.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_outlasts_its_time_stops_the_task() {
    let rig = Rig::start(1).await;
    let refusals = std::iter::repeat_n(Put::Fail(away()), 1000);
    rig.shelves.shelf().script.extend(refusals);
    rig.write(0, &["a"]).await;
    let running = rig.run(0, &[("errors.retry.timeout", "300")]).await;
    assert_eq!(running.failed().await.code, "SHELF_AWAY");
    assert_eq!(rig.committed(0).await, Some(0));
    assert_eq!(rig.shelves.shelf().stopped, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_is_full_is_given_the_rest_later() {
    let rig = Rig::start(1).await;
    rig.shelves.shelf().script.extend([Put::Take(1), Put::Take(0), Put::Take(2)]);
    rig.write(0, &["a", "b", "c", "d"]).await;
    let running = rig.run(0, &[]).await;
    rig.until_committed(0, 4).await;
    running.stop().await;
    assert_eq!(rig.shelves.shelf().durable[&at(0)], [0, 1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_record_stops_the_task_unless_it_is_tolerated() {
    let rig = Rig::start(1).await;
    rig.write(0, &["a", BAD, "c"]).await;
    assert_eq!(rig.run(0, &[]).await.failed().await.code, "SPOILT");
    assert_eq!(rig.committed(0).await, Some(0));
    let running = rig.run(0, &[TOLERANT]).await;
    rig.until_committed(0, 3).await;
    running.stop().await;
    assert_eq!(rig.shelves.shelf().durable[&at(0)], [0, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_record_is_in_the_dead_letter_topic_before_its_offset_is_passed() {
    let rig = Rig::start(1).await;
    rig.write(0, &["a", BAD, "c"]).await;
    let letters = [
        TOLERANT,
        ("errors.deadletterqueue.topic.name", "dead"),
        ("errors.deadletterqueue.context.headers.enable", "true"),
    ];
    let running = rig.run(3, &letters).await;
    rig.until_committed(0, 3).await;
    let letter = rig.cluster.reader.fetch("dead", 0, 0, 1 << 20).await.unwrap().records;
    assert_eq!(letter.len(), 1);
    let header = |name: &str| std::str::from_utf8(letter[0].header(name).unwrap()).unwrap();
    assert_eq!(letter[0].value.as_deref(), Some(BAD.as_bytes()));
    assert_eq!((header("own"), header("__connect.errors.offset")), ("1", "1"));
    assert_eq!(header("__connect.errors.stage"), "TASK_PUT");
    assert_eq!(header("__connect.errors.task.id"), "3");
    assert_eq!(header("__connect.errors.exception.class.name"), "SPOILT");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_task_reads_nothing_and_keeps_its_partitions() {
    let rig = Rig::start(1).await;
    let mut running = rig.run(0, &[]).await;
    running.paused.send_replace(true);
    let says = |status: &Status| status.activity.starts_with("Paused");
    tokio::time::timeout(PATIENCE, running.status.wait_for(says)).await.unwrap().unwrap();
    rig.until_committed(0, 0).await;
    rig.write(0, &["a"]).await;
    // Longer than its session.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(rig.shelves.shelf().given.is_empty());
    let group = rig.cluster.admin.describe_group("connect-shelf").await.unwrap().unwrap();
    assert_eq!((group.state.as_str(), group.members.len()), ("Stable", 1));
    running.paused.send_replace(false);
    rig.until_committed(0, 1).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_paused_while_its_records_wait_takes_no_turn_after_the_other() {
    let rig = Rig::start(1).await;
    rig.shelves.shelf().script.extend(std::iter::repeat_n(Put::Fail(away()), 1000));
    rig.write(0, &["a"]).await;
    let mut running = rig.run(0, &[]).await;
    running.until_says("The sink takes nothing and is asked again: the shelf is away").await;
    running.paused.send_replace(true);
    running.until_says("Paused by its operator; it stays in group connect-shelf").await;
    assert_calm(&running.meter).await;
    rig.shelves.shelf().script.clear();
    running.paused.send_replace(false);
    rig.until_committed(0, 1).await;
    running.stop().await;
}

/// A turn takes 200 ms where nothing is to be done.
async fn assert_calm(meter: &TaskMeter) {
    // Longer than the pause before records are given again.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = meter.rounds.get();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let turns = meter.rounds.get() - before;
    assert!((1..50).contains(&turns), "{turns} turns in a second");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_rewinds_is_given_the_same_again() {
    let rig = Rig::start(1).await;
    rig.write(0, &["a", "b", "c"]).await;
    let running = rig.run(0, &[]).await;
    rig.until_committed(0, 3).await;
    running.stop().await;
    rig.shelves.shelf().rewind = Some((at(0), 1));
    let again = rig.run(0, &[]).await;
    rig.until("again", async |rig| rig.shelves.shelf().durable[&at(0)].len() == 5).await;
    rig.until_committed(0, 3).await;
    again.stop().await;
    assert_eq!(rig.shelves.shelf().durable[&at(0)], [0, 1, 2, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_share_partitions_and_what_is_given_away_is_flushed_first() {
    let rig = Rig::start(4).await;
    let one = rig.run(0, &[("offset.flush.interval.ms", "60000")]).await;
    for partition in 0..4 {
        rig.write(partition, &["x"; 50]).await;
    }
    rig.until("given", async |rig| rig.shelves.shelf().given.len() == 200).await;
    let other = rig.run(1, &[("offset.flush.interval.ms", "60000")]).await;
    rig.until_kept(200).await;
    for partition in 0..4 {
        rig.write(partition, &["y"; 50]).await;
    }
    rig.until("given", async |rig| rig.shelves.shelf().given.len() >= 400).await;
    tokio::join!(one.stop(), other.stop());
    let shelf = rig.shelves.shelf();
    for partition in 0..4 {
        assert_eq!(shelf.durable[&at(partition)], Vec::from_iter(0..100), "nothing comes twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_offset_a_task_that_must_have_one_fails() {
    let rig = Rig::start(1).await;
    let running = rig.run(0, &[("consumer.override.auto.offset.reset", "none")]).await;
    assert_eq!(running.failed().await.code, "SINK_NO_OFFSET");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sink_does_is_counted_and_so_is_what_it_does_not() {
    let rig = Rig::start(1).await;
    rig.shelves.shelf().script.extend([Put::Take(1), Put::Fail(away()), Put::Take(0)]);
    rig.write(0, &["a", BAD, "c"]).await;
    let letters = [TOLERANT, ("errors.deadletterqueue.topic.name", "dead")];
    let running = rig.run(0, &letters).await;
    rig.until_committed(0, 3).await;
    let meter = Arc::clone(&running.meter);
    rig.until("caught up", async |_| meter.lag.get() == Some(0)).await;
    let counted = [&meter.records, &meter.batches, &meter.retries, &meter.skipped];
    assert_eq!(counted.map(|count| count.get()), [3, 2, 1, 1]);
    // A value of one byte or of `BAD`, and a header of four.
    assert_eq!(meter.bytes.get(), (1 + 4) * 2 + (BAD.len() as u64 + 4));
    assert_eq!((meter.dead_letters.get(), meter.record_failures.get()), (1, 1));
    assert_eq!(meter.lag_records.get(), Some(0));
    assert!(meter.commits.up_to_each().last() > Some(&0) && meter.commit_failures.get() == 0);
    running.paused.send_replace(true);
    let says = |status: &Status| status.activity.starts_with("Paused");
    let mut status = running.status.clone();
    tokio::time::timeout(PATIENCE, status.wait_for(says)).await.unwrap().unwrap();
    rig.write(0, &["d", "e"]).await;
    rig.until("behind", async |_| meter.lag_records.get() == Some(2)).await;
    assert_eq!(meter.lag.get(), None, "the age of what it has not read is not known");
    running.stop().await;
}

const JSON: (&str, &str) = ("value.converter", "JsonConverter");
const PLAIN: (&str, &str) = ("value.converter.schemas.enable", "false");
const LETTERS: (&str, &str) = ("errors.deadletterqueue.topic.name", "dead");
const STORY: (&str, &str) = ("errors.deadletterqueue.context.headers.enable", "true");

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_stops_the_task_unless_it_is_tolerated() {
    let rig = Rig::start(1).await;
    rig.write(0, &["1", "{no json", "3"]).await;
    let failed = rig.run(0, &[JSON, PLAIN]).await.failed().await;
    assert_eq!(failed.code, "RECORD_UNCONVERTIBLE");
    assert!(failed.what.contains("value of record orders-0@1"), "{failed}");
    assert!(
        failed.remedy.ends_with("or set errors.tolerance=all, which goes on without such records")
    );
    assert_eq!(rig.committed(0).await, Some(1), "what lies before it is delivered");
    assert_eq!(rig.shelves.shelf().durable[&at(0)], [0]);
    let running = rig.run(2, &[JSON, PLAIN, TOLERANT, LETTERS, STORY]).await;
    rig.until_committed(0, 3).await;
    running.stop().await;
    assert_eq!(rig.shelves.shelf().durable[&at(0)], [0, 2]);
    let letters = rig.cluster.reader.fetch("dead", 0, 0, 1 << 20).await.unwrap().records;
    assert_eq!(letters.len(), 1);
    let header = |name: &str| std::str::from_utf8(letters[0].header(name).unwrap()).unwrap();
    assert_eq!(letters[0].value.as_deref(), Some(&b"{no json"[..]), "as it lay in the log");
    assert_eq!((header("own"), header("__connect.errors.offset")), ("1", "1"));
    assert_eq!(header("__connect.errors.stage"), "VALUE_CONVERTER");
    assert_eq!(
        header("__connect.errors.class.name"),
        "org.apache.kafka.connect.json.JsonConverter"
    );
    let story = header("__connect.errors.exception.stacktrace");
    assert!(story.contains("Do: set value.converter") && !story.contains("tolerance"), "{story}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_transformed_is_a_dead_letter_with_its_own_bytes() {
    let rig = Rig::start(1).await;
    rig.write(0, &[r#"{"a":1}"#, "7"]).await;
    let field = [
        ("transforms", "field"),
        ("transforms.field.type", "ExtractField$Value"),
        ("transforms.field.field", "a"),
    ];
    let all = [&field[..], &[JSON, PLAIN, TOLERANT, LETTERS, STORY]].concat();
    let running = rig.run(0, &all).await;
    rig.until_committed(0, 2).await;
    running.stop().await;
    let letters = rig.cluster.reader.fetch("dead", 0, 0, 1 << 20).await.unwrap().records;
    assert_eq!(letters.len(), 1);
    let header = |name: &str| std::str::from_utf8(letters[0].header(name).unwrap()).unwrap();
    assert_eq!(letters[0].value.as_deref(), Some(&b"7"[..]));
    assert_eq!(header("__connect.errors.stage"), "TRANSFORMATION");
    let class = "org.apache.kafka.connect.transforms.ExtractField$Value";
    assert_eq!(header("__connect.errors.class.name"), class);
    assert_eq!(header("__connect.errors.exception.class.name"), "TRANSFORM_FAILED");
}

/// Drops what has the header that every record of these tests has.
const DROPS: [(&str, &str); 6] = [
    ("transforms", "drop"),
    ("transforms.drop.type", "Filter"),
    ("transforms.drop.predicate", "own"),
    ("predicates", "own"),
    ("predicates.own.type", "HasHeaderKey"),
    ("predicates.own.name", "own"),
];

#[tokio::test(flavor = "multi_thread")]
async fn offsets_pass_what_transforms_drop() {
    let rig = Rig::start(1).await;
    rig.write(0, &["a", "b", "c"]).await;
    let running = rig.run(0, &DROPS).await;
    rig.until_committed(0, 3).await;
    running.stop().await;
    assert!(rig.shelves.shelf().given.is_empty());
}

/// Every other record is dropped; the sink fails, takes parts and is killed.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_point_what_is_dropped_never_carries_an_offset_over_what_is_not() {
    let rig = Rig::start(1).await;
    let drops = [
        ("transforms", "field,drop"),
        ("transforms.field.type", "ExtractField$Value"),
        ("transforms.field.field", "keep"),
        ("transforms.drop.type", "Filter"),
        ("transforms.drop.predicate", "empty"),
        ("predicates", "empty"),
        ("predicates.empty.type", "RecordIsTombstone"),
        ("consumer.override.max.poll.records", "16"),
        JSON,
        PLAIN,
        STATIC,
    ];
    let mut written = 0;
    for _ in 0..12 {
        rig.write(0, &[r#"{"keep":1}"#, r#"{"drop":1}"#].repeat(20)).await;
        written += 20;
        rig.shelves.shelf().script.extend([Put::Take(3), Put::Fail(away()), Put::Take(0)]);
        let running = rig.run(0, &drops).await;
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..150))).await;
        running.kill().await;
        let committed = rig.committed(0).await.unwrap_or(0);
        let durable = rig.shelves.shelf().durable.get(&at(0)).cloned().unwrap_or_default();
        let missing = (0..committed).step_by(2).find(|offset| !durable.contains(offset));
        assert_eq!(missing, None, "{committed} is committed");
    }
    let last = rig.run(0, &drops).await;
    rig.until_committed(0, 2 * i64::try_from(written).unwrap()).await;
    last.stop().await;
    assert_eq!(rig.shelves.kept(), written);
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_are_those_of_the_topic_that_was_read_whatever_transforms_call_it() {
    let rig = Rig::start(1).await;
    rig.write(0, &["a", "b"]).await;
    let route = [
        ("transforms", "route"),
        ("transforms.route.type", "RegexRouter"),
        ("transforms.route.regex", ".*"),
        ("transforms.route.replacement", "elsewhere"),
    ];
    let running = rig.run(0, &route).await;
    rig.until_committed(0, 2).await;
    running.stop().await;
    assert_eq!(rig.shelves.shelf().topics, ["elsewhere", "elsewhere"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_log_lacks_the_offset_both_edges_are_kept() {
    let rig = Rig::start(1).await;
    rig.write(0, &["a", "b"]).await;
    let beyond = [(at(0), 9)].into();
    rig.cluster.admin.alter_group_offsets("connect-shelf", &beyond).await.unwrap();
    let running = rig.run(0, &[]).await;
    rig.until_committed(0, 2).await;
    let moved = running.meter.moved.lock().clone();
    assert_eq!(moved.get(&at(0)).map(|moved| (moved.from, moved.to)), Some((9, 0)));
    assert_eq!(running.meter.moves.get(), 1);
    running.stop().await;
}
