//! What an operator should know of the Kafka that keeps the log, for `highwater doctor`: the topics that
//! the worker relies on, the brokers' clocks and their disks. Only a cluster is looked at so; the embedded
//! log looks at itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use highwater_connector::{Finding, Keeps, Routing, Severity};
use highwater_kafka::{Admin, KafkaError, OffsetSpec, PartitionDescription, Volume};
use jiff::Timestamp;
use tokio::time::timeout;

use crate::herder::Herder;

/// How long the cluster may take to answer all of it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Topics of connectors that are looked at, at most.
const TOPICS: usize = 200;

/// Copies that outlive the loss of one broker while another is being restarted.
const REPLICAS: usize = 3;
/// Copies that a write is in before it is acknowledged, so that the loss of one broker loses nothing.
const IN_SYNC: i64 = 2;

/// A clock that is further off than this is told: an acknowledgement takes less.
const CLOCK_AHEAD: i64 = 2_000;
const CLOCK_BEHIND: i64 = 30_000;

/// A volume with less than a tenth free is told.
const FREE_PERCENT: u64 = 10;

/// What a topic is to the worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    /// Configurations of connectors: one partition, compacted.
    Configs,
    /// Offsets or statuses: compacted.
    State,
    /// Records of a source.
    Records,
}

/// What the cluster says of a topic.
struct Seen {
    partitions: Vec<PartitionDescription>,
    config: BTreeMap<String, String>,
}

/// Looks, within a bound.
pub(crate) async fn examine(herder: &Herder) -> Vec<Finding> {
    let admin = &herder.shared.cluster.admin;
    let looking = async {
        let mut findings = Vec::new();
        for (topic, purpose) in topics(herder) {
            match look(admin, &topic).await {
                Ok(seen) => findings.extend(of_topic(&topic, purpose, seen.as_ref())),
                Err(error) => findings.push(unseen(&topic, &error)),
            }
        }
        findings.extend(of_clocks(herder).await);
        findings.extend(admin.volumes().await.unwrap_or_default().iter().filter_map(of_volume));
        findings
    };
    timeout(PATIENCE, looking).await.unwrap_or_else(|_| vec![silent()])
}

/// The topics that the worker relies on.
fn topics(herder: &Herder) -> Vec<(String, Use)> {
    let config = &herder.config;
    let mut topics = vec![
        (config.configs_topic.clone(), Use::Configs),
        (config.offsets_topic.clone(), Use::State),
        (config.status_topic.clone(), Use::State),
    ];
    let mut more = BTreeSet::new();
    for plan in herder.plans.others("") {
        more.extend(plan.settings.offsets_topic.clone().map(|topic| (topic, true)));
        let Some(topics) = &plan.topics else { continue };
        more.extend(topics.schema.clone().map(|topic| (topic, true)));
        more.extend(
            topics.side.iter().map(|side| (side.name.clone(), side.keeps == Keeps::Newest)),
        );
        if let Routing::Trail(topic) | Routing::Topic(topic) = &topics.routing {
            more.insert((topic.clone(), false));
        }
    }
    let own: BTreeSet<String> = topics.iter().map(|(topic, _)| topic.clone()).collect();
    let more = more.into_iter().filter(|(topic, _)| !own.contains(topic)).take(TOPICS);
    topics
        .extend(more.map(|(topic, state)| (topic, if state { Use::State } else { Use::Records })));
    topics
}

async fn look(admin: &Admin, topic: &str) -> Result<Option<Seen>, KafkaError> {
    let Some(partitions) = admin.partitions(topic).await? else { return Ok(None) };
    Ok(Some(Seen { partitions, config: admin.topic_config(topic).await? }))
}

fn unseen(topic: &str, error: &KafkaError) -> Finding {
    let reason = "whether its settings keep what is written cannot be told";
    let remedy = "let the server's user describe the topic and its configuration";
    Finding::new(Severity::Note, "KAFKA_TOPIC_UNSEEN", error.to_string(), reason, remedy)
        .about(format!("topic {topic}"))
}

fn silent() -> Finding {
    let what = format!("the cluster did not say all of it within {} s", PATIENCE.as_secs());
    let reason = "what it did not say is not judged";
    Finding::new(
        Severity::Warning,
        "KAFKA_SLOW",
        what,
        reason,
        "look at the brokers' load and network",
    )
    .about("Kafka")
}

fn alter(topic: &str, setting: &str) -> String {
    format!(
        "kafka-configs.sh --bootstrap-server HOST:9092 --alter --topic {topic} --add-config {setting}"
    )
}

/// What is to be said of a topic.
fn of_topic(topic: &str, purpose: Use, seen: Option<&Seen>) -> Vec<Finding> {
    let Some(Seen { partitions, config }) = seen else {
        return gone(topic, purpose).into_iter().collect();
    };
    [
        shape(topic, purpose, partitions.len()),
        policy(topic, purpose, config),
        leaders(topic, partitions),
        replicas(topic, partitions),
        in_sync(topic, config),
        unclean(topic, config),
    ]
    .into_iter()
    .flatten()
    .map(|finding| finding.about(format!("topic {topic}")))
    .collect()
}

/// The topic of a source is made with its first record.
fn gone(topic: &str, purpose: Use) -> Option<Finding> {
    (purpose != Use::Records).then(|| {
        let reason = "what connectors are to do and where they stand is kept in it: it is lost, and \
                      what runs goes on until the next start";
        let remedy = "restore it from a backup before the server is started again";
        Finding::new(Severity::Error, "KAFKA_TOPIC_GONE", "it is not there any more", reason, remedy)
            .about(format!("topic {topic}"))
    })
}

fn shape(topic: &str, purpose: Use, partitions: usize) -> Option<Finding> {
    (purpose == Use::Configs && partitions != 1).then(|| {
        let what = format!("it has {partitions} partitions");
        let reason = "configurations are read in the order in which they were written, which only one \
                      partition has: after a restart an older one may count";
        let remedy = format!(
            "stop all workers, copy its records into a topic of one partition that is compacted, and name that, or \
             make {topic} anew so"
        );
        Finding::new(Severity::Error, "KAFKA_TOPIC_PARTITIONS", what, reason, remedy)
    })
}

fn policy(topic: &str, purpose: Use, config: &BTreeMap<String, String>) -> Option<Finding> {
    let policy = config.get("cleanup.policy")?;
    (purpose != Use::Records && policy != "compact").then(|| {
        let what = format!("its cleanup.policy is {policy}");
        let reason =
            "retention takes what it holds away: configurations and positions are lost with it";
        Finding::new(
            Severity::Error,
            "KAFKA_TOPIC_POLICY",
            what,
            reason,
            alter(topic, "cleanup.policy=compact"),
        )
    })
}

fn numbers(partitions: &[i32]) -> String {
    partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn leaders(topic: &str, partitions: &[PartitionDescription]) -> Option<Finding> {
    let of = |wanted: fn(&PartitionDescription) -> bool| -> Vec<i32> {
        partitions.iter().filter(|it| wanted(it)).map(|it| it.index).collect()
    };
    let without = of(|it| it.leader.is_none());
    if !without.is_empty() {
        let what = format!("partitions {} have no leader", numbers(&without));
        let reason = "nothing is written to them and nothing is read";
        let remedy = "bring the brokers back that hold them";
        return Some(Finding::new(Severity::Error, "KAFKA_TOPIC_OFFLINE", what, reason, remedy));
    }
    let behind = of(|it| it.in_sync.len() < it.replicas.len());
    (!behind.is_empty()).then(|| {
        let what = format!("copies of partitions {} are not in sync", numbers(&behind));
        let reason = "the loss of another broker may stop writing, or lose what was acknowledged";
        let remedy = format!(
            "kafka-topics.sh --bootstrap-server HOST:9092 --describe --topic {topic} names the brokers; bring them back"
        );
        Finding::new(Severity::Warning, "KAFKA_TOPIC_OUT_OF_SYNC", what, reason, remedy)
    })
}

fn replicas(topic: &str, partitions: &[PartitionDescription]) -> Option<Finding> {
    let least = partitions.iter().map(|it| it.replicas.len()).min()?;
    (least < REPLICAS).then(|| {
        let what = match least {
            1 => "it has one copy".to_owned(),
            least => format!("it has {least} copies"),
        };
        let reason = "with fewer than 3 the loss of a broker loses it, or stops writing";
        let remedy = format!(
            "kafka-reassign-partitions.sh moves {topic} to three brokers; default.replication.factor=3 for topics to come"
        );
        Finding::new(Severity::Warning, "KAFKA_TOPIC_REPLICAS", what, reason, remedy)
    })
}

fn in_sync(topic: &str, config: &BTreeMap<String, String>) -> Option<Finding> {
    let least: i64 = config.get("min.insync.replicas")?.parse().ok()?;
    (least < IN_SYNC).then(|| {
        let what = format!("its min.insync.replicas is {least}");
        let reason = "a write is acknowledged that is on one broker alone, and lost with it: a position \
                      may then stand behind records that are gone";
        Finding::new(
            Severity::Warning,
            "KAFKA_TOPIC_MIN_IN_SYNC",
            what,
            reason,
            alter(topic, "min.insync.replicas=2"),
        )
    })
}

fn unclean(topic: &str, config: &BTreeMap<String, String>) -> Option<Finding> {
    let allowed = config.get("unclean.leader.election.enable")? == "true";
    allowed.then(|| {
        let reason =
            "a broker that lacks acknowledged records may lead: they are then gone for all";
        Finding::new(
            Severity::Warning,
            "KAFKA_TOPIC_UNCLEAN_ELECTION",
            "its unclean.leader.election.enable is true",
            reason,
            alter(topic, "unclean.leader.election.enable=false"),
        )
    })
}

/// Holds the clocks of brokers, and of other workers, against ours: by when the newest record of a
/// trail was appended, and when we heard of it.
async fn of_clocks(herder: &Herder) -> Option<Finding> {
    let mut worst: Option<(i64, String)> = None;
    for plan in herder.plans.others("") {
        let Some(Routing::Trail(topic)) = plan.topics.as_ref().map(|topics| &topics.routing) else {
            continue;
        };
        let reader = &herder.shared.cluster.reader;
        let Ok(Some(newest)) = reader.list_offset(topic, 0, OffsetSpec::MaxTimestamp).await else {
            continue;
        };
        let heard = herder.shared.meters.of(&plan.name, 0).and_then(|it| it.last_record.get());
        let off = clock_off(newest.timestamp, heard, Timestamp::now().as_millisecond());
        if let Some(off) = off.filter(|off| worst.as_ref().is_none_or(|it| off.abs() > it.0.abs()))
        {
            worst = Some((off, topic.clone()));
        }
    }
    worst.map(|(off, topic)| clock(off, &topic))
}

/// By how many milliseconds the clock that wrote `appended` is ahead of ours, where that is told.
fn clock_off(appended: i64, heard: Option<i64>, now: i64) -> Option<i64> {
    if appended < 0 {
        return None;
    }
    if appended - now > CLOCK_AHEAD {
        return Some(appended - now);
    }
    let behind = heard? - appended;
    (behind > CLOCK_BEHIND).then_some(-behind)
}

fn clock(off: i64, topic: &str) -> Finding {
    let (seconds, side) =
        (off.unsigned_abs() as f64 / 1e3, if off > 0 { "ahead of" } else { "behind" });
    let what =
        format!("the broker's clock is {seconds:.1} s {side} this machine's, by topic {topic}");
    let reason = "retention goes by the brokers' clocks, lag and the times in statuses by this one";
    let remedy = "chronyc tracking, on the brokers and here: let all follow one source of time";
    Finding::new(Severity::Warning, "KAFKA_CLOCK", what, reason, remedy).about("Kafka")
}

fn of_volume(volume: &Volume) -> Option<Finding> {
    let Volume { broker, folder, total, free } = volume;
    let short = *total > 0 && free.saturating_mul(100) < total.saturating_mul(FREE_PERCENT);
    short.then(|| {
        let what = format!("{free} of {total} bytes are free under {folder}");
        let reason = "a broker whose disk is full stops, and nothing is captured";
        let remedy =
            "make room, or shorten the retention of the largest topics: highwater topic list";
        Finding::new(Severity::Warning, "KAFKA_DISK_SHORT", what, reason, remedy)
            .about(format!("broker {broker}"))
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn partition(
        index: i32,
        leader: Option<i32>,
        replicas: usize,
        in_sync: usize,
    ) -> PartitionDescription {
        let brokers = |count: usize| (0..count).filter_map(|it| i32::try_from(it).ok()).collect();
        PartitionDescription {
            index,
            leader,
            leader_epoch: None,
            replicas: brokers(replicas),
            in_sync: brokers(in_sync),
        }
    }

    fn codes(
        purpose: Use,
        partitions: Vec<PartitionDescription>,
        config: &[(&str, &str)],
    ) -> Vec<Cow<'static, str>> {
        let config = config.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let seen = Seen { partitions, config: config.collect() };
        let found = of_topic("t", purpose, Some(&seen));
        assert!(found.iter().all(|finding| finding.subject == "topic t"));
        found.into_iter().map(|finding| finding.code).collect()
    }

    const GOOD: [(&str, &str); 3] = [
        ("cleanup.policy", "compact"),
        ("min.insync.replicas", "2"),
        ("unclean.leader.election.enable", "false"),
    ];

    #[test]
    fn a_topic_as_it_should_be_is_no_finding() {
        for purpose in [Use::Configs, Use::State, Use::Records] {
            assert_eq!(codes(purpose, vec![partition(0, Some(1), 3, 3)], &GOOD), [""; 0]);
        }
    }

    #[test]
    fn each_fault_of_a_topic_has_its_code() {
        let one = |replicas, in_sync| vec![partition(0, Some(1), replicas, in_sync)];
        let with = |key: &'static str, value: &'static str| {
            GOOD.map(|(known, good)| (known, if known == key { value } else { good }))
        };
        let two = vec![partition(0, Some(1), 3, 3), partition(1, Some(1), 3, 3)];
        assert_eq!(codes(Use::Configs, two.clone(), &GOOD), ["KAFKA_TOPIC_PARTITIONS"]);
        assert_eq!(codes(Use::State, two, &GOOD), [""; 0]);
        let deletes = with("cleanup.policy", "delete");
        assert_eq!(codes(Use::State, one(3, 3), &deletes), ["KAFKA_TOPIC_POLICY"]);
        assert_eq!(
            codes(Use::State, one(3, 3), &with("cleanup.policy", "compact,delete")),
            ["KAFKA_TOPIC_POLICY"]
        );
        assert_eq!(codes(Use::Records, one(3, 3), &deletes), [""; 0]);
        assert_eq!(codes(Use::State, one(2, 2), &GOOD), ["KAFKA_TOPIC_REPLICAS"]);
        assert_eq!(codes(Use::State, one(3, 2), &GOOD), ["KAFKA_TOPIC_OUT_OF_SYNC"]);
        let leaderless = vec![partition(0, None, 3, 0)];
        assert_eq!(codes(Use::State, leaderless, &GOOD), ["KAFKA_TOPIC_OFFLINE"]);
        assert_eq!(
            codes(Use::State, one(3, 3), &with("min.insync.replicas", "1")),
            ["KAFKA_TOPIC_MIN_IN_SYNC"]
        );
        let unclean = with("unclean.leader.election.enable", "true");
        assert_eq!(codes(Use::Records, one(3, 3), &unclean), ["KAFKA_TOPIC_UNCLEAN_ELECTION"]);
        // What the cluster does not say is not judged.
        assert_eq!(codes(Use::State, one(3, 3), &[]), [""; 0]);
    }

    #[test]
    fn a_topic_that_is_gone_is_an_error_unless_it_is_made_with_its_first_record() {
        let code = |purpose| of_topic("t", purpose, None).pop().map(|it| (it.code, it.severity));
        assert_eq!(code(Use::Configs), Some(("KAFKA_TOPIC_GONE".into(), Severity::Error)));
        assert_eq!(code(Use::Records), None);
    }

    #[test]
    fn a_clock_is_told_when_it_is_off_by_more_than_an_acknowledgement_takes() {
        let now = 1_000_000_000;
        for (appended, heard, off) in [
            (now, Some(now), None),
            (now + 2_000, None, None),
            (now + 2_001, None, Some(2_001)),
            (now - 3_600_000, None, None),
            (now - 3_600_000, Some(now - 3_600_000 + 5), None),
            (now - 3_600_000, Some(now - 3_600_000 + 30_000), None),
            (now - 3_600_000, Some(now), Some(-3_600_000)),
            (-1, Some(now), None),
        ] {
            assert_eq!(clock_off(appended, heard, now), off, "{appended} {heard:?}");
        }
        assert!(clock(-90_500, "t").what.contains("90.5 s behind"), "{}", clock(-90_500, "t").what);
    }

    #[test]
    fn a_volume_with_less_than_a_tenth_free_is_told() {
        let found = |total, free| {
            let volume =
                Volume { broker: "a:9092".to_owned(), folder: "/kafka".to_owned(), total, free };
            of_volume(&volume).map(|finding| finding.subject)
        };
        assert_eq!((found(1_000, 100), found(0, 0)), (None, None));
        assert_eq!(found(1_000, 99), Some("broker a:9092".to_owned()));
        assert_eq!(found(u64::MAX, 1), Some("broker a:9092".to_owned()));
    }
}
