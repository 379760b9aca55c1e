//! Several servers on one Apache Kafka share connectors. One is killed, one stands still for longer than
//! its session: no line is missing, no stored offset goes back, and what is repeated is what no stored
//! offset covered; exactly-once, nothing is.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::zombie_processes,
    missing_docs,
    reason = "tests"
)]

#[path = "process/cluster.rs"]
mod cluster;
#[path = "process/http.rs"]
mod http;
#[path = "process/waiting.rs"]
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cluster::{Node, Server, highwater};
use highwater_kafka::{ReadRecord, Reader};
use serde_json::{Value, json};
use waiting::until;

/// As short as the broker allows.
const SESSION: Duration = Duration::from_secs(6);

/// Connectors, each of one file and one topic.
const CONNECTORS: usize = 4;

/// Bytes of a line.
const LINE: usize = 12;

/// A Kafka, and a folder with the files.
struct Bench {
    node: Node,
    folder: tempfile::TempDir,
    exactly_once: &'static str,
    runtime: tokio::runtime::Runtime,
    reader: Reader,
    written: AtomicUsize,
}

impl Bench {
    fn start(exactly_once: &'static str) -> Self {
        let node = Node::start(&[]);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let reader = runtime.block_on(async { Reader::new(&node.address) });
        let (folder, written) = (tempfile::tempdir().unwrap(), AtomicUsize::new(0));
        Self { node, folder, exactly_once, runtime, reader, written }
    }

    fn settings(&self) -> PathBuf {
        let path = self.folder.path().join("highwater.toml");
        let settings = format!(
            "kafka.bootstrap = '{}'\nhttp.listen = '127.0.0.1:0'\n[worker]\n\
             allowed_paths = [{:?}]\noffset_flush_interval_ms = 200\nheartbeat_interval_ms = 300\n\
             session_timeout_ms = {}\nexactly_once_source_support = '{}'\n",
            self.node.address,
            self.folder.path(),
            SESSION.as_millis(),
            self.exactly_once
        );
        std::fs::write(&path, settings).unwrap();
        path
    }

    fn server(&self) -> Server {
        let mut command = highwater(&["server", "--config"]);
        command.arg(self.settings());
        Server::start(command)
    }

    fn file(&self, connector: usize) -> PathBuf {
        self.folder.path().join(format!("{connector}.txt"))
    }

    /// Makes a connector of each file, which may be there already.
    fn create(&self, server: &Server) {
        for connector in 0..CONNECTORS {
            OpenOptions::new().create(true).append(true).open(self.file(connector)).unwrap();
            let config = json!({
                "connector.class": "FileStreamSource",
                "file": self.file(connector),
                "topic": format!("t{connector}"),
            });
            let body = json!({ "name": format!("c{connector}"), "config": config }).to_string();
            let file = self.folder.path().join("create.json");
            std::fs::write(&file, body).unwrap();
            let mut create = highwater(&["connector", "create", "--url", &server.url, "--file"]);
            let created = create.arg(&file).output().unwrap();
            assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        }
    }

    fn delete(&self, server: &Server) {
        for connector in 0..CONNECTORS {
            let name = format!("c{connector}");
            let mut delete = highwater(&["connector", "delete", &name, "--url", &server.url]);
            let deleted = delete.output().unwrap();
            assert!(deleted.status.success(), "{}", String::from_utf8_lossy(&deleted.stderr));
        }
    }

    /// The parts of which the topic of statuses speaks.
    fn statuses(&self) -> BTreeSet<String> {
        let mut parts = BTreeSet::new();
        for ReadRecord { key, value, .. } in self.read("highwater.status") {
            let key = String::from_utf8_lossy(&key.unwrap()).into_owned();
            if key.starts_with("status-topic-") {
                continue;
            }
            match value {
                Some(_) => parts.insert(key),
                None => parts.remove(&key),
            };
        }
        parts
    }

    /// Appends lines to every file.
    fn append(&self, lines: usize) {
        let first = self.written.fetch_add(lines, Ordering::Relaxed);
        let text: String = (first..first + lines).map(|line| format!("line {line:06}\n")).collect();
        for connector in 0..CONNECTORS {
            let mut file = OpenOptions::new().append(true).open(self.file(connector)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
    }

    /// Appends until `over`.
    fn append_until(&self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            self.append(5);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn read(&self, topic: &str) -> Vec<ReadRecord> {
        let mut records = Vec::new();
        let mut each = |record| records.push(record);
        // The topic may not be there yet.
        let _ = self.runtime.block_on(self.reader.read_all(topic, 0, &mut each));
        records
    }

    /// Numbers of the lines in a connector's topic.
    fn lines(&self, connector: usize) -> Vec<usize> {
        self.read(&format!("t{connector}")).iter().map(number).collect()
    }

    /// Waits until all topics have all lines.
    fn caught_up(&self) {
        let last = self.written.load(Ordering::Relaxed) - 1;
        for connector in 0..CONNECTORS {
            until("the last line", || self.lines(connector).contains(&last).then_some(()));
        }
    }

    /// The positions that were stored for a connector, as numbers of lines, in the log's order.
    fn stored(&self, connector: usize) -> Vec<usize> {
        let name = format!("c{connector}");
        let own = |record: &&ReadRecord| {
            let key: Value = serde_json::from_slice(record.key.as_ref().unwrap()).unwrap();
            key[0] == name.as_str()
        };
        let line = |record: &ReadRecord| {
            let offset: Value = serde_json::from_slice(record.value.as_ref()?).unwrap();
            Some(usize::try_from(offset["position"].as_u64()?).unwrap() / LINE)
        };
        self.read("highwater.offsets").iter().filter(own).filter_map(line).collect()
    }

    /// Holds what arrived against what was written and stored.
    fn judge(&self) {
        for connector in 0..CONNECTORS {
            let (lines, stored) = (self.lines(connector), self.stored(connector));
            assert!(stored.is_sorted(), "a stored offset went back: {stored:?}");
            let mut seen = 0;
            for pair in [&[usize::MAX], &lines[..]].concat().windows(2) {
                let (before, line) = (pair[0], pair[1]);
                assert!(line <= seen, "between {seen} and {line} something is missing");
                if line != before.wrapping_add(1) {
                    assert!(line == 0 || stored.contains(&line), "repeated from {line} on");
                    assert_ne!(self.exactly_once, "enabled", "line {line} twice");
                }
                seen = seen.max(line + 1);
            }
            assert_eq!(seen, self.written.load(Ordering::Relaxed));
        }
    }
}

fn number(record: &ReadRecord) -> usize {
    let text = String::from_utf8_lossy(record.value.as_ref().unwrap()).into_owned();
    let digits = text.split("line ").nth(1).unwrap().get(..6).unwrap();
    digits.parse().unwrap()
}

/// Which worker runs each connector's task, as one server says.
fn owners(server: &Server) -> BTreeMap<String, String> {
    let answer = http::get(&server.url, "/connectors?expand=status");
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    let Ok(Value::Object(connectors)) = serde_json::from_str(body) else { return BTreeMap::new() };
    let owner = |(name, connector): (String, Value)| {
        let task = &connector["status"]["tasks"][0];
        (task["state"] == "RUNNING").then(|| (name, task["worker_id"].as_str().unwrap().to_owned()))
    };
    connectors.into_iter().filter_map(owner).collect()
}

/// Waits until all tasks run, on as many workers.
fn spread(server: &Server, workers: usize) -> BTreeMap<String, String> {
    until("the work is shared out", || {
        let owners = owners(server);
        let names: BTreeSet<_> = owners.values().collect();
        (owners.len() == CONNECTORS && names.len() == workers).then_some(owners)
    })
}

fn signal(server: &Server, signal: &str) {
    let child = server.child.id().to_string();
    assert!(Command::new("kill").args([signal, &child]).status().unwrap().success());
}

fn id(server: &Server) -> String {
    server.url.trim_start_matches("http://").to_owned()
}

fn one_is_killed_and_one_stands_still(exactly_once: &'static str) {
    let bench = Bench::start(exactly_once);
    let (one, two, three) = (bench.server(), bench.server(), bench.server());
    bench.create(&two);
    spread(&one, 3);
    spread(&three, 3);
    bench.append(1_000);
    bench.caught_up();

    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| bench.append_until(&over));
        let killed = Instant::now();
        signal(&one, "-KILL");
        spread(&two, 2);
        assert!(killed.elapsed() < SESSION + Duration::from_secs(15), "{:?}", killed.elapsed());

        signal(&two, "-STOP");
        let owners = until("the tasks move", || {
            let owners = owners(&three);
            let all =
                owners.len() == CONNECTORS && owners.values().all(|owner| *owner == id(&three));
            all.then_some(owners)
        });
        assert_eq!(owners.len(), CONNECTORS);
        signal(&two, "-CONT");
        // It is back as one that has lost all it had, and is given a part anew.
        spread(&three, 2);
        over.store(true, Ordering::Relaxed);
    });
    bench.caught_up();
    bench.judge();
}

#[test]
fn at_least_once_repeats_only_what_no_stored_offset_covers() {
    one_is_killed_and_one_stands_still("disabled");
}

#[test]
fn exactly_once_nothing_comes_twice() {
    one_is_killed_and_one_stands_still("enabled");
}

#[test]
fn connectors_that_are_deleted_and_made_anew_go_on_with_one_writer_each() {
    let bench = Bench::start("disabled");
    let (one, two) = (bench.server(), bench.server());
    bench.create(&one);
    spread(&two, 2);
    for (deletes, creates) in [(&one, &two), (&two, &one), (&one, &two)] {
        bench.append(500);
        bench.caught_up();
        bench.delete(deletes);
        until("no status stays", || bench.statuses().is_empty().then_some(()));
        bench.append(500);
        bench.create(creates);
        spread(deletes, 2);
        // A second time at once, while tasks still end and start.
        bench.delete(creates);
        bench.create(deletes);
        bench.append(500);
        spread(creates, 2);
    }
    bench.caught_up();
    bench.judge();
    let part = |connector| {
        [format!("status-connector-c{connector}"), format!("status-task-c{connector}-0")]
    };
    assert_eq!(bench.statuses(), (0..CONNECTORS).flat_map(part).collect());
}

#[test]
fn servers_with_one_kafka_need_a_session_that_they_can_keep() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("highwater.toml");
    std::fs::write(&file, "kafka.bootstrap = 'k:1'\nworker.heartbeat_interval_ms = 9000\n")
        .unwrap();
    let refused = highwater(&["server", "--check", "--config"]).arg(&file).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("worker.heartbeat_interval_ms must be at most a third"), "{said}");
}
