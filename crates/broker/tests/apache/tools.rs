//! Kafka's own command-line tools, each with the same arguments against Apache Kafka and against us: exit
//! code and output are the same. `kafka-dump-log` reads the files that we wrote.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::clusters::{Clusters, Side, clusters, script};

/// The JVM in which the tools run (`testing/kafka/Tools.java`).
struct Tools {
    _process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// How a tool ended.
#[derive(Debug, PartialEq)]
struct Ended {
    code: i32,
    printed: String,
    said: String,
}

impl Tools {
    fn start() -> Self {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/kafka/Tools.java");
        let mut process = script()
            .args(["tool", source])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { _process: process, commands, answers }
    }

    fn run(&mut self, class: &str, arguments: &[String]) -> Ended {
        writeln!(self.commands, "{class}\t{}", arguments.join("\t")).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let mut words = line.split_whitespace();
        let code = words.next().expect("the tools still run").parse().unwrap();
        let mut text = || from_base64(&words.next().unwrap()[1..]);
        Ended { code, printed: text(), said: text() }
    }
}

fn from_base64(text: &str) -> String {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for value in text.chars().filter_map(|letter| alphabet.find(letter)) {
        bits = bits << 6 | u32::try_from(value).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A tool, its arguments apart from where the cluster is, and how it ends. `@` stands for the topic.
struct Check {
    class: &'static str,
    arguments: &'static str,
    code: i32,
    output: Output,
}

/// What of the output is the same.
#[derive(Clone, Copy)]
enum Output {
    /// All of it, but for ids and numbers of nodes.
    Same,
    /// All of it with every number taken out.
    SameButNumbers,
    /// A word of it, on both sides.
    Says(&'static str),
}

const fn check(class: &'static str, arguments: &'static str, code: i32, output: Output) -> Check {
    Check { class, arguments, code, output }
}

const TOPICS: &str = "org.apache.kafka.tools.TopicCommand";
const CONFIGS: &str = "org.apache.kafka.tools.ConfigCommand";
const OFFSETS: &str = "org.apache.kafka.tools.GetOffsetShell";
const PERFORMANCE: &str = "org.apache.kafka.tools.ProducerPerformance";
const CONSUMER: &str = "org.apache.kafka.tools.consumer.ConsoleConsumer";
const CLUSTER: &str = "org.apache.kafka.tools.ClusterTool";
const VERSIONS: &str = "org.apache.kafka.tools.BrokerApiVersionsCommand";
const REASSIGN: &str = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand";

use Output::{Same, SameButNumbers, Says};

/// In this order. An argument `--bootstrap-server` with the address is added to each.
const CHECKS: &[Check] = &[
    check(TOPICS, "--create --topic @ --partitions 2 --config retention.ms=-1", 0, Same),
    check(TOPICS, "--create --topic @", 1, Says("exists")),
    check(TOPICS, "--create --topic @ --if-not-exists", 0, Same),
    check(TOPICS, "--create --topic not/a/name", 1, Says("name")),
    check(TOPICS, "--create --topic @-2 --replication-factor 3", 1, Says("broker")),
    check(TOPICS, "--list --topic @", 0, Same),
    check(TOPICS, "--describe --topic @", 0, Same),
    check(TOPICS, "--alter --topic @ --partitions 3", 0, Same),
    check(TOPICS, "--alter --topic @ --partitions 2", 1, Says("partition")),
    check(TOPICS, "--alter --topic @-missing --partitions 2", 1, Same),
    check(TOPICS, "--describe --topic @", 0, Same),
    check(TOPICS, "--describe --under-replicated-partitions", 0, Same),
    check(
        TOPICS,
        "--create --topic @-1 --partitions 1 --config cleanup.policy=delete --config retention.ms=-1",
        0,
        Same,
    ),
    check(
        CONFIGS,
        "--alter --topic @-1 --add-config max.message.bytes=200000,segment.ms=9000000",
        0,
        Same,
    ),
    check(CONFIGS, "--describe --topic @-1", 0, Same),
    check(CONFIGS, "--alter --topic @-1 --delete-config segment.ms", 0, Same),
    check(
        CONFIGS,
        "--alter --topic @-1 --add-config max.message.bytes=many",
        1,
        Says("InvalidConfigurationException"),
    ),
    check(
        CONFIGS,
        "--alter --topic @-1 --add-config no.such.setting=1",
        1,
        Says("InvalidConfigurationException"),
    ),
    check(CONFIGS, "--describe --topic @-1", 0, Same),
    check(CONFIGS, "--describe --topic @-1 --all", 0, Says("cleanup.policy=delete")),
    check(CONFIGS, "--describe --entity-type brokers --entity-name 1 --all", 0, Says("node.id=1")),
    check(OFFSETS, "--topic @-1", 0, Same),
    check(OFFSETS, "--topic @-1 --time max-timestamp", 0, Same),
    check(
        PERFORMANCE,
        "--topic @-1 --num-records 500 --record-size 100 --throughput -1",
        0,
        SameButNumbers,
    ),
    check(OFFSETS, "--topic @-1 --time -1", 0, Same),
    check(OFFSETS, "--topic @-1 --time latest", 0, Same),
    check(OFFSETS, "--topic @-1 --time earliest", 0, Same),
    check(OFFSETS, "--topic @-1 --time -2", 0, Same),
    check(OFFSETS, "--topic @-1 --time -3", 0, SameButNumbers),
    check(OFFSETS, "--topic @-1 --time max-timestamp", 0, SameButNumbers),
    check(OFFSETS, "--topic @-1 --time earliest-local", 0, Same),
    check(OFFSETS, "--topic @-1 --time latest-tiered", 0, Same),
    check(OFFSETS, "--topic @-1 --time earliest-pending-upload", 0, Same),
    check(OFFSETS, "--topic @-1 --time 0", 0, Same),
    check(OFFSETS, "--topic @-1 --time 9000000000000", 0, Same),
    check(OFFSETS, "--topic @-1 --time tomorrow", 1, Says("Malformed")),
    check(OFFSETS, "--topic @-missing", 1, Same),
    check(OFFSETS, "--topic-partitions @:0-2", 0, Same),
    check("org.apache.kafka.tools.DeleteRecordsCommand", "--offset-json-file @.json", 0, Same),
    check(OFFSETS, "--topic @-1 --time earliest", 0, Same),
    check(
        CONSUMER,
        "--topic @-1 --partition 0 --offset 10 --max-messages 3 --timeout-ms 20000 --formatter-property print.offset=true --formatter-property print.value=false",
        0,
        Same,
    ),
    check(CLUSTER, "cluster-id", 0, Says("Cluster ID: ")),
    check(CLUSTER, "list-endpoints", 0, SameButNumbers),
    check(VERSIONS, "", 0, Says("ListOffsets(2): 1 to 11 [usable: 11]")),
    check(REASSIGN, "--list", 0, Same),
    check(TOPICS, "--delete --topic @", 0, Same),
    check(TOPICS, "--delete --topic @", 1, Same),
];

const TOPIC: &str = "tools";

#[test]
fn kafkas_tools_end_the_same() {
    let clusters = clusters();
    let mut tools = Tools::start();
    let before = folder("offsets.json");
    let json = r#"{"version":1,"partitions":[{"topic":"tools-1","partition":0,"offset":10}]}"#;
    std::fs::write(&before, json).unwrap();
    let mut wrong = Vec::new();
    for check in CHECKS {
        let theirs = ended(&mut tools, &mut clusters.apache.side(), check, &before);
        let ours = ended(&mut tools, &mut clusters.ours.side(), check, &before);
        if !is_right(check, &theirs, &ours) {
            let name = format!("{} {}", check.class, check.arguments);
            wrong.push(format!("{name}\n Apache Kafka: {theirs:?}\n ours:         {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CHECKS.len(), wrong.join("\n"));
    dump_log_reads_our_files(&mut tools, &clusters);
}

/// A file of this run.
fn folder(name: &str) -> String {
    let dir = std::env::temp_dir().join(format!("hw-tools-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name).to_str().unwrap().to_owned()
}

fn ended(tools: &mut Tools, side: &mut Side, check: &Check, json: &str) -> Ended {
    let address = side.client.address.to_string();
    let words = check.arguments.split_whitespace();
    let words = words.map(|word| match word {
        "@.json" => json.to_owned(),
        word => word.replace('@', TOPIC),
    });
    let mut arguments: Vec<String> = words.collect();
    arguments.extend(["--bootstrap-server".to_owned(), address]);
    tools.run(check.class, &arguments)
}

fn is_right(check: &Check, theirs: &Ended, ours: &Ended) -> bool {
    if theirs.code != check.code || ours.code != check.code {
        return false;
    }
    match check.output {
        Output::Same => leveled(&theirs.printed) == leveled(&ours.printed),
        Output::SameButNumbers => {
            without_numbers(&theirs.printed) == without_numbers(&ours.printed)
        }
        Output::Says(word) => {
            [theirs, ours].iter().all(|one| format!("{}{}", one.printed, one.said).contains(word))
        }
    }
}

/// The text without what each cluster calls by names of its own, its lines in order.
fn leveled(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(leveled_line).collect();
    lines.sort();
    lines.join("\n")
}

/// Without ids, and what the table of exceptions names: second names of defaults, and the setting that
/// Apache Kafka shows as set where nobody set it.
fn leveled_line(line: &str) -> String {
    let line = line.split(" synonyms=").next().unwrap_or_default();
    let line = line.replace("min.insync.replicas=1,", "").replace("N/A", "");
    let mut words = Vec::new();
    let mut after_id = false;
    for word in line.split_whitespace() {
        let name = if after_id { "ID" } else { word };
        after_id = word == "TopicId:";
        words.push(name);
    }
    words.join(" ")
}

fn without_numbers(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_digit() && *letter != '.').collect()
}

/// Every kind of file that a partition of ours has, as Kafka's own tool reads it.
fn dump_log_reads_our_files(tools: &mut Tools, clusters: &Clusters) {
    clusters.ours.log().partition("tools-1", 0).unwrap().roll().unwrap();
    let folder = clusters.ours.dir().join("tools-1-0");
    let (mut kinds, mut records) = (Vec::new(), 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default().to_owned();
        if !["log", "index", "timeindex", "txnindex", "snapshot"].contains(&kind.as_str()) {
            continue;
        }
        let mut arguments = vec!["--files".to_owned(), path.to_str().unwrap().to_owned()];
        arguments.extend((kind == "log").then(|| "--print-data-log".to_owned()));
        let ended = tools.run("org.apache.kafka.tools.DumpLogSegments", &arguments);
        assert_eq!(ended.code, 0, "{path:?}: {ended:?}");
        let doubts = ["isvalid: false", "Mismatch", "mismatch", "Exception", "Non-consecutive"];
        for doubt in doubts {
            assert!(!ended.printed.contains(doubt), "{path:?}: {}", ended.printed);
        }
        records += ended.printed.matches("| offset: ").count();
        kinds.push(kind);
    }
    assert_eq!(records, 500, "records that kafka-dump-log found");
    kinds.sort();
    kinds.dedup();
    // There may be a transaction index, too.
    kinds.retain(|kind| kind != "txnindex");
    assert_eq!(kinds, ["index", "log", "snapshot", "timeindex"]);
}
