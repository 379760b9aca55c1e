//! The real binary: back up, wipe, restore, and a stream goes on from its checkpoint; what is damaged, half done
//! or not allowed is refused by name.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod process;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use bytes::Bytes;
use highwater_connector::{Generation, HW_HEADER, Hw};
use highwater_kafka::{Admin, NewTopic, OutgoingRecord, Reader, WriterSettings, at_least_once};
use process::{Server, highwater};
use serde_json::{Value, json};
use tempfile::TempDir;

const TRAIL: &str = "shop";

/// A folder with the settings of a server, its data, its backups and its archive.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = format!(
            "data_dir = '{0}/data'\n[archive]\ndir = '{0}/archive'\n[backup]\ndir = '{0}/backups'\n",
            dir.path().display()
        );
        fs::write(dir.path().join("highwater.toml"), config).unwrap();
        fs::create_dir(dir.path().join("backups")).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    fn serve(&self) -> Server {
        let addresses = ["--kafka-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"];
        let mut command = highwater(&["server"]);
        command.args(addresses).arg("--config").arg(self.path("highwater.toml"));
        Server::of(command)
    }
}

impl Server {
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = highwater(arguments);
        command.env("HIGHWATER_URL", &self.url).env("HIGHWATER_BOOTSTRAP", &self.kafka);
        command.output().unwrap()
    }

    /// As kill -9.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    async fn make_trail(&self) {
        let topic = NewTopic::of_one(TRAIL);
        let admin = Admin::new(Reader::new(&self.kafka));
        assert!(admin.create_topic(&topic).await.unwrap());
    }

    async fn write(&self, ids: std::ops::RangeInclusive<u64>) {
        let mut writer = at_least_once(&WriterSettings::new(&self.kafka)).unwrap();
        for id in ids {
            writer.send(row(id)).await.unwrap();
        }
        writer.commit().await.unwrap();
    }

    /// Follows the stream; the ids, and the last position.
    fn tail(&self, begin: &str, count: usize, checkpoint: Option<&str>) -> (Vec<u64>, String) {
        let count = count.to_string();
        let mut arguments = vec!["stream", "tail", "orders", "--begin", begin, "--count", &count];
        arguments.extend(["--output", "json"]);
        arguments.extend(checkpoint.iter().flat_map(|file| ["--checkpoint", file]));
        let said = self.run(&arguments);
        assert!(said.status.success(), "{}", stderr(&said));
        let lines = String::from_utf8(said.stdout).unwrap();
        let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let rows: Vec<Value> = records.filter(|record| record["after"]["id"].is_u64()).collect();
        let last = rows.last().map(|row| row["pos"].as_str().unwrap().to_owned());
        let ids = rows.iter().map(|row| row["after"]["id"].as_u64().unwrap()).collect();
        (ids, last.unwrap_or_default())
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Sees that a command was refused with this exit code and by this name.
fn refused(output: &Output, exit: i32, code: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(exit), "{said}");
    assert!(said.contains(&format!("error {code}:")), "{said}");
    assert!(said.contains("kept") && said.contains("do "), "{said}");
}

fn row(id: u64) -> OutgoingRecord {
    let hw = Hw {
        generation: Generation::from_bits(7),
        lane: Some("pg".to_owned()),
        position: format!("00000000/{id:08X}"),
        index: 0,
        part: 0,
        commit_time_us: Some(1_793_000_000_000_000),
        table_version: Some(1),
        xid: Some(id.to_string()),
        count: Some(1),
    };
    let value = json!({
        "before": null,
        "after": {"id": id},
        "source": {"schema": "public", "table": "orders"},
        "op": "c",
    });
    OutgoingRecord {
        topic: Arc::from(TRAIL),
        partition: Some(0),
        key: Some(Bytes::from(json!({"id": id}).to_string())),
        value: Some(Bytes::from(value.to_string())),
        headers: vec![(HW_HEADER.into(), hw.encode().into())],
    }
}

const LEAN: [&str; 4] = [
    "--set",
    "encoding.json.includeObjectMetadataRecords=false",
    "--set",
    "encoding.json.includeJSONSchemaRecord=false",
];

/// A server with a trail of thirty rows and a stream over it.
async fn filled(place: &Place) -> Server {
    let server = place.serve();
    server.make_trail().await;
    let made = server.run(&[&["stream", "create", "orders", "--trail", TRAIL], &LEAN[..]].concat());
    assert!(made.status.success(), "{}", stderr(&made));
    server.write(1..=30).await;
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_goes_on_after_backup_wipe_and_restore_without_gap_or_double() {
    let place = Place::new();
    let server = filled(&place).await;
    let checkpoint = place.text("checkpoint");
    let (ids, _) = server.tail("earliest", 20, Some(&checkpoint));
    assert_eq!(ids, Vec::from_iter(1..=20));
    let made = server.run(&["backup", "nightly", "--output", "json"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(made["dir"], json!(place.path("backups/nightly")));
    is_private(&place.path("backups/nightly"));
    // What comes behind the backup is lost with the folder, and somebody has seen it.
    server.write(31..=40).await;
    let (ids, beyond) = server.tail("earliest", 40, None);
    assert_eq!(ids.len(), 40);
    server.kill();
    fs::remove_dir_all(place.path("data")).unwrap();

    let (backup, data) = (place.text("backups/nightly"), place.text("data"));
    let restored = highwater(&["restore", &backup, "--data-dir", &data]).output().unwrap();
    assert!(restored.status.success(), "{}", stderr(&restored));
    is_private(&place.path("data"));
    let server = place.serve();
    let (ids, _) = server.tail("earliest", 10, Some(&checkpoint));
    assert_eq!(ids, Vec::from_iter(21..=30));
    let changed = server.run(&["stream", "tail", "orders", "--begin", &beyond, "--count", "1"]);
    refused(&changed, 3, "history_changed");
    // The log goes on, and so does the stream, also from there on.
    server.write(41..=45).await;
    let (ids, _) = server.tail("earliest", 5, Some(&checkpoint));
    assert_eq!(ids, Vec::from_iter(41..=45));
    let shown = server.run(&["topic", "show", TRAIL, "--output", "json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["partitions"][0]["leader_epoch"], 1, "a restore raises the epoch");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_topic_comes_back_into_the_running_server_and_a_checkpoint_with_it() {
    let place = Place::new();
    let server = filled(&place).await;
    let checkpoint = place.text("checkpoint");
    server.tail("earliest", 20, Some(&checkpoint));
    assert!(server.run(&["backup", "nightly"]).status.success());
    refused(&server.run(&["topic", "delete", TRAIL]), 3, "TOPIC_DELETE_UNCONFIRMED");
    refused(&server.run(&["topic", "restore", "nightly", TRAIL]), 3, "LOG_TOPIC_EXISTS");
    assert!(server.run(&["topic", "delete", TRAIL, "--yes"]).status.success());
    refused(&server.run(&["topic", "restore", "nightly", "no-such"]), 6, "BACKUP_TOPIC_NOT_FOUND");
    // Under another name everybody could read the passwords of connectors, or write where the server stands.
    // Under its own a server that runs would not look at it.
    let own = "highwater.configs";
    for (topic, name) in [(own, "mine"), (TRAIL, "highwater.mine"), (own, own)] {
        let said = server.run(&["topic", "restore", "nightly", topic, "--as", name]);
        refused(&said, 3, "BACKUP_TOPIC_INTERNAL");
    }
    let back = server.run(&["topic", "restore", "nightly", TRAIL]);
    assert!(back.status.success(), "{}", stderr(&back));
    let (ids, _) = server.tail("earliest", 10, Some(&checkpoint));
    assert_eq!(ids, Vec::from_iter(21..=30));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_half_done_or_not_allowed_is_refused_by_name() {
    let place = Place::new();
    let server = filled(&place).await;
    let (data, outside) = (place.text("data"), place.text("outside"));
    for dir in [outside.as_str(), "../outside"] {
        refused(&server.run(&["backup", dir]), 4, "BACKUP_NOT_ALLOWED");
    }
    refused(&server.run(&["backup", &outside, "--data-dir", &data]), 3, "LOG_LOCKED");
    assert!(!place.path("outside/backup.json").exists());
    server.kill();

    let offline = highwater(&["backup", &outside, "--data-dir", &data]).output().unwrap();
    assert!(offline.status.success(), "{}", stderr(&offline));
    let restore = |new: &str| {
        highwater(&["restore", &outside, "--data-dir", &place.text(new)]).output().unwrap()
    };
    refused(&restore("data"), 3, "RESTORE_TARGET_NOT_EMPTY");
    let segment = segment(&place.path("outside"));
    let whole = fs::read(&segment).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damage in [Some(flipped), Some(whole[..10].to_vec()), None] {
        match &damage {
            Some(bytes) => fs::write(&segment, bytes).unwrap(),
            None => fs::remove_file(&segment).unwrap(),
        }
        let said = restore("new");
        refused(&said, 3, "BACKUP_DAMAGED");
        assert!(stderr(&said).contains(&*segment.to_string_lossy()), "{}", stderr(&said));
        assert!(!place.path("new").exists());
    }
    fs::write(&segment, whole).unwrap();
    fs::rename(place.path("outside/backup.json"), place.path("aside")).unwrap();
    fs::write(place.path("outside/backup-unfinished"), "").unwrap();
    refused(&restore("new"), 3, "BACKUP_UNFINISHED");
    fs::rename(place.path("aside"), place.path("outside/backup.json")).unwrap();
    assert!(restore("new").status.success());
}

/// Passwords of connectors are in it.
fn is_private(dir: &Path) {
    let mode = fs::metadata(dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{}: {mode:o}", dir.display());
}

/// The largest segment of a backup.
fn segment(dir: &Path) -> PathBuf {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "log") {
                found.push(path);
            }
        }
    }
    found.into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_is_set_held_released_and_deleted_from_the_command_line() {
    let place = Place::new();
    let server = filled(&place).await;
    let ok = |arguments: &[&str]| {
        let said = server.run(arguments);
        assert!(said.status.success(), "{arguments:?}: {}", stderr(&said));
        String::from_utf8(said.stdout).unwrap()
    };
    ok(&["topic", "set", TRAIL, "segment.bytes=2048", "retention.ms=86400000"]);
    ok(&["topic", "set", TRAIL, "--unset", "retention.ms"]);
    refused(&server.run(&["topic", "set", TRAIL, "no.such=1"]), 3, "TOPIC_SETTING_REFUSED");
    refused(&server.run(&["topic", "set", "no-such", "retention.ms=1"]), 6, "TOPIC_NOT_FOUND");
    assert_eq!(server.run(&["topic", "set", TRAIL, "retention.ms"]).status.code(), Some(2));

    ok(&["topic", "hold", TRAIL, "audit", "--offset", "12", "--until", "2999-01-01T00:00:00Z"]);
    ok(&["topic", "hold", TRAIL, "all"]);
    let shown = ok(&["topic", "show", TRAIL]);
    assert!(shown.contains("audit: 12 until 2999-01-01T00:00:00Z"), "{shown}");
    assert!(shown.contains("all: 0\n") && shown.contains("segment.bytes = 2048"), "{shown}");
    assert!(!shown.contains("retention.ms"), "{shown}");
    refused(&server.run(&["topic", "delete", TRAIL, "--yes"]), 3, "TOPIC_HELD");
    for hold in ["all", "audit"] {
        ok(&["topic", "release", TRAIL, hold]);
    }
    refused(&server.run(&["topic", "release", TRAIL, "all"]), 6, "HOLD_NOT_FOUND");
    refused(&server.run(&["topic", "delete", "highwater.offsets", "--yes"]), 3, "TOPIC_INTERNAL");

    let listed: Value = serde_json::from_str(&ok(&["topic", "list", "--output", "json"])).unwrap();
    let bytes: u64 = listed[0]["bytes"].as_str().unwrap().parse().unwrap();
    assert!(listed[0]["name"] == TRAIL && bytes > 1000, "{listed}");
    ok(&["topic", "delete", TRAIL, "--yes"]);
    refused(&server.run(&["topic", "delete", TRAIL, "--yes"]), 6, "TOPIC_NOT_FOUND");
}
