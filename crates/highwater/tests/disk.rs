//! The real binary when the power goes and when the disk is full (rules L1, L2, L4): what was acknowledged
//! and what was read is there, whatever happens.
//!
//! `HW_CASES` is the number of power losses, at most 500.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

#[expect(unreachable_pub, reason = "shared with the test of the log alone")]
#[path = "../../../testing/power-loss/power_loss.rs"]
mod power_loss;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use highwater_kafka::{
    Admin, NewTopic, OutgoingRecord, Reader, Writer, WriterSettings, at_least_once,
};
use power_loss::Disk;

const TOPICS: [&str; 3] = ["one", "two", "three"];
const PATIENCE: Duration = Duration::from_secs(60);

/// Topic and offset, and the record's value.
type Records = BTreeMap<(&'static str, i64), Bytes>;

/// A server whose disk is under our hands; killed when dropped.
struct Server {
    child: Child,
    kafka: String,
}

impl Server {
    fn start(disk: &Disk, ignored: &str) -> Option<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
        let errors = fs::File::options().create(true).append(true).open(errors(disk)).unwrap();
        command
            .args(["server", "--kafka-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"])
            .arg("--data-dir")
            .arg(data_dir(disk))
            .env("HIGHWATER_LOG", "info")
            .env("HW_POWER_IGNORE", ignored)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut child = disk.attach(&mut command).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let kafka =
            lines.find_map(|line| Some(line.strip_prefix("Kafka clients")?.trim().to_owned()));
        match kafka {
            Some(kafka) => Some(Self { child, kafka }),
            None => {
                child.wait().unwrap();
                None
            }
        }
    }

    /// As kill -9.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn terminate(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn data_dir(disk: &Disk) -> PathBuf {
    disk.root().join("data")
}

fn errors(disk: &Disk) -> PathBuf {
    disk.root().with_file_name("errors")
}

async fn make_topics(kafka: &str) {
    let admin = Admin::new(Reader::new(kafka));
    for name in TOPICS {
        let configs = [("segment.bytes", "65536"), ("index.interval.bytes", "500")];
        let configs = configs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        admin.create_topic(&NewTopic { configs, ..NewTopic::of_one(name) }).await.unwrap();
    }
}

/// Writes records with values of their own, and knows which were acknowledged.
struct Producer {
    writer: Box<dyn Writer>,
    topic: &'static str,
    sent: Vec<Bytes>,
    acknowledged: Records,
}

impl Producer {
    fn new(kafka: &str, topic: &'static str) -> Self {
        let writer = at_least_once(&WriterSettings::new(kafka)).unwrap();
        Self { writer, topic, sent: Vec::new(), acknowledged: Records::new() }
    }

    async fn send(&mut self, life: u64) {
        let number = self.sent.len();
        let padding = "x".repeat(number * 37 % 900);
        let value = Bytes::from(format!("{}/{life}/{number}/{padding}", self.topic));
        self.sent.push(value.clone());
        let topic = Arc::from(self.topic);
        let record = OutgoingRecord {
            topic,
            partition: Some(0),
            key: None,
            value: Some(value),
            headers: Vec::new(),
        };
        self.writer.send(record).await.unwrap();
    }

    fn look(&mut self) {
        for one in self.writer.acknowledged().unwrap() {
            let value = self.sent[usize::try_from(one.sequence).unwrap() - 1].clone();
            self.acknowledged.insert((self.topic, one.offset), value);
        }
    }

    /// Writes for so long, then stops in the middle.
    async fn work(mut self, life: u64, time: Duration) -> Records {
        let end = Instant::now() + time;
        while Instant::now() < end || self.acknowledged.is_empty() {
            self.send(life).await;
            self.look();
        }
        self.acknowledged
    }
}

/// Reads along what is shown.
async fn follow(reader: Reader, topic: &'static str, time: Duration) -> Records {
    let mut seen = Records::new();
    let (end, mut offset) = (Instant::now() + time, 0);
    while Instant::now() < end {
        let Ok(fetched) = reader.fetch(topic, 0, offset, 1 << 20).await else { break };
        offset = fetched.next_offset;
        let records = fetched.records.into_iter();
        seen.extend(records.map(|record| ((topic, record.offset), record.value.unwrap())));
    }
    seen
}

/// Everything in the log, and the topics that cannot be read.
async fn read(kafka: &str) -> (Records, Vec<String>) {
    let (mut found, mut unread) = (Records::new(), Vec::new());
    for topic in TOPICS {
        let mut each = |record: highwater_kafka::ReadRecord| {
            found.insert((topic, record.offset), record.value.unwrap_or_default());
        };
        if let Err(error) = Reader::new(kafka).read_all(topic, 0, &mut each).await {
            unread.push(error.to_string());
        }
    }
    (found, unread)
}

/// One life under load, ended by the power: what was acknowledged or read in it.
async fn life(disk: &Disk, number: u64, ignored: &str) -> Records {
    let server = Server::start(disk, ignored).expect("a server that starts");
    make_topics(&server.kafka).await;
    let time = Duration::from_millis(60 + number * 73 % 300);
    let mut tasks = Vec::new();
    for topic in TOPICS {
        tasks.push(tokio::spawn(Producer::new(&server.kafka, topic).work(number, time)));
        tasks.push(tokio::spawn(follow(Reader::new(&server.kafka), topic, time)));
    }
    let mut known = Records::new();
    for task in tasks {
        known.extend(task.await.unwrap());
    }
    server.kill();
    disk.lose_power();
    known
}

/// What of the known is not there, after a start.
async fn lost(disk: &Disk, known: &Records, ignored: &str) -> Vec<String> {
    let Some(server) = Server::start(disk, ignored) else { return vec!["no start".to_owned()] };
    let (found, mut lost) = read(&server.kafka).await;
    let missing = known.iter().filter(|(place, value)| found.get(*place) != Some(value));
    lost.extend(missing.map(|(place, value)| format!("{place:?} {value:?}")));
    lost
}

fn power_losses() -> u64 {
    let cases = std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok());
    cases.unwrap_or(12).min(500)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_or_read_survives_power_losses() {
    let disk = Disk::new();
    let mut known = Records::new();
    for number in 0..power_losses() {
        let before = known.len();
        known.extend(life(&disk, number, "").await);
        assert!(known.len() > before, "nothing was written in life {number}");
        if number % 5 == 4 {
            let lost = lost(&disk, &known, "").await;
            assert!(
                lost.is_empty(),
                "{} of {} records: {:?}",
                lost.len(),
                known.len(),
                lost.first()
            );
        }
    }
    assert!(lost(&disk, &known, "").await.is_empty());

    // The library saw every sync: after a clean stop it holds what the folder holds. A lock holds nothing,
    // and a recovery point is a lower bound, which is never synced itself.
    Server::start(&disk, "").unwrap().terminate();
    let contents = |mut files: BTreeMap<PathBuf, Option<Vec<u8>>>| {
        assert!(files.remove(Path::new("data/.lock")).is_some());
        files.retain(|path, _| !path.ends_with("recovery-point"));
        files
    };
    let (synced, live) = (contents(disk.synced()), contents(disk.live()));
    assert_eq!(synced.keys().collect::<Vec<_>>(), live.keys().collect::<Vec<_>>());
    for (path, content) in &live {
        assert!(synced[path] == *content, "{} is not on disk as it stands", path.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_forgets_what_was_synced_is_noticed() {
    for ignored in ["files", "folders"] {
        let disk = Disk::new();
        let known = life(&disk, 1, ignored).await;
        assert!(!lost(&disk, &known, ignored).await.is_empty(), "{ignored}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_reads_on_and_takes_records_again() {
    // The space set aside, a batch or an index half way, and a new segment.
    for call in ["allocate", "allocate write", "create"] {
        let disk = Disk::new();
        let server = Server::start(&disk, "").unwrap();
        make_topics(&server.kafka).await;
        let mut producer = Producer::new(&server.kafka, "one");
        for _ in 0..50 {
            producer.send(0).await;
        }
        producer.writer.commit().await.unwrap();
        fs::write(disk.full(), call).unwrap();
        for _ in 0..400 {
            producer.send(0).await;
        }
        let since = Instant::now();
        while !fs::read_to_string(errors(&disk)).unwrap().contains("LOG_NO_SPACE") {
            assert!(since.elapsed() < PATIENCE, "{call}: nobody says that the disk is full");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (read_on, unread) = read(&server.kafka).await;
        assert!(unread.is_empty() && read_on.len() >= 50, "{call}: {unread:?}");
        producer.look();
        assert!(producer.acknowledged.len() < 450, "{call}");
        fs::remove_file(disk.full()).unwrap();
        tokio::time::timeout(PATIENCE, producer.writer.commit()).await.unwrap().unwrap();
        let (found, _) = read(&server.kafka).await;
        let values: Vec<Bytes> = found.into_values().collect();
        assert!(values == producer.sent, "{call}: {} for {}", values.len(), producer.sent.len());
        // And on disk as well.
        server.kill();
        disk.lose_power();
        let known = producer.sent.iter().enumerate();
        let known = known.map(|(at, value)| (("one", at as i64), value.clone())).collect();
        assert_eq!(lost(&disk, &known, "").await, Vec::<String>::new(), "{call}");
    }
}
