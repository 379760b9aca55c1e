//! The real binary with file connectors, killed in the middle.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

#[path = "files/commands.rs"]
mod commands;
#[path = "files/folder.rs"]
mod folder;
#[path = "process/http.rs"]
mod http;
mod process;
#[path = "process/waiting.rs"]
mod waiting;

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use highwater_kafka::{ReadRecord, Reader};
use process::{Server, highwater};
use serde_json::json;
use waiting::{PATIENCE, until};

impl Server {
    /// Starts on free ports, with a data folder and a folder for files.
    fn start(dir: &Path) -> Self {
        let settings = format!(
            "data_dir = {:?}\nkafka.listen = '127.0.0.1:0'\nhttp.listen = '127.0.0.1:0'\n\
             worker.allowed_paths = [{:?}]\n\
             worker.value_converter_options = ['schemas.enable=false']\n",
            dir.join("data"),
            dir.join("files"),
        );
        std::fs::create_dir_all(dir.join("files")).unwrap();
        std::fs::write(dir.join("highwater.toml"), settings).unwrap();
        let mut command = highwater(&["server", "--config"]);
        command.arg(dir.join("highwater.toml"));
        Self::of(command)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        highwater(arguments).args(["--url", &self.url]).output().unwrap()
    }

    fn create(&self, dir: &Path, name: &str, config: serde_json::Value) -> Output {
        let file = dir.join(format!("{name}.json"));
        std::fs::write(&file, json!({ "name": name, "config": config }).to_string()).unwrap();
        self.run(&["connector", "create", "--file", file.to_str().unwrap()])
    }

    /// The lines of a topic's partitions so far, none while it is not there.
    fn topic(&self, topic: &str) -> Vec<usize> {
        let mut lines = Vec::new();
        let mut each = |record: ReadRecord| {
            let line: String = serde_json::from_slice(&record.value.unwrap()).unwrap();
            lines.push(number(&line));
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let reader = runtime.block_on(async { Reader::new(&self.kafka) });
        for partition in 0..2 {
            // The topic may not be there yet, and may have one partition.
            let _ = runtime.block_on(reader.read_all(topic, partition, &mut each));
        }
        lines
    }

    /// Asks it to end, and waits; the exit code.
    fn end(mut self) -> Option<i32> {
        let child = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &child]).status().unwrap().success());
        until("the end", || self.child.try_wait().unwrap()).code()
    }

    /// Ends it without notice.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn line(number: usize) -> String {
    format!("line {number} žluťoučký\n")
}

fn number(line: &str) -> usize {
    let number = line.strip_prefix("line ").and_then(|rest| rest.strip_suffix(" žluťoučký"));
    number.unwrap_or_else(|| panic!("{line:?} is no line that was written")).parse().unwrap()
}

/// Appends the lines of these numbers.
fn append(path: &Path, numbers: std::ops::Range<usize>) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    let text: String = numbers.map(line).collect();
    file.write_all(text.as_bytes()).unwrap();
}

/// Lines from 0 to `end`, in as many runs at most as there were lives: each begins at or before the
/// end of the one before, so that none is missing.
fn judge(lines: &[usize], end: usize, lives: usize) {
    let mut seen = 0;
    for line in lines {
        assert!(*line <= seen, "between {seen} and {line} something is missing");
        seen = seen.max(*line + 1);
    }
    assert_eq!(seen, end);
    let runs = runs(lines);
    assert!(runs <= lives, "{runs} runs in {lives} lives");
}

/// Number of runs of lines that follow one another.
fn runs(lines: &[usize]) -> usize {
    1 + lines.windows(2).filter(|pair| pair[1] != pair[0] + 1).count()
}

fn source(input: &Path) -> serde_json::Value {
    json!({ "connector.class": "FileStreamSource", "file": input, "topic": "lines" })
}

fn input(dir: &Path) -> PathBuf {
    dir.join("files").join("in.txt")
}

#[test]
fn a_source_that_is_killed_leaves_no_line_out_and_repeats_only_its_last_ones() {
    const LIVES: usize = 4;
    const LINES: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut written = 0;
    for life in 0..LIVES {
        let server = Server::start(dir);
        if life == 0 {
            // The file comes later than its connector.
            let created = server.create(dir, "lines", source(&input(dir)));
            assert!(created.status.success(), "{created:?}");
        }
        append(&input(dir), written..written + LINES);
        // Killed while it is at work: some of these lines are there, and most often not all.
        let some = written + LINES / 4;
        written += LINES;
        until("the topic", || server.topic("lines").iter().any(|line| *line >= some).then_some(()));
        server.kill();
    }
    let server = Server::start(dir);
    until("the last line", || server.topic("lines").contains(&(written - 1)).then_some(()));
    judge(&server.topic("lines"), written, LIVES + 1);
    let offset = until("the offset", || {
        let shown = server.run(&["offsets", "show", "lines", "--output", "json"]);
        let text = String::from_utf8(shown.stdout).unwrap();
        let size = std::fs::metadata(input(dir)).unwrap().len();
        text.contains(&format!("\"position\":{size}")).then_some(text).or_else(|| {
            let spaced =
                String::from_utf8(server.run(&["offsets", "show", "lines"]).stdout).unwrap();
            spaced.contains(&size.to_string()).then_some(spaced)
        })
    });
    assert!(offset.contains("filename"), "{offset}");
}

#[test]
fn files_elsewhere_and_standard_streams_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let server = Server::start(dir);
    for (file, why) in [
        ("/etc/passwd", "worker.allowed_paths"),
        (dir.join("data").to_str().unwrap(), "worker.allowed_paths"),
        (dir.join("files/../data/x").to_str().unwrap(), "worker.allowed_paths"),
        ("", "standard input"),
    ] {
        let refused = server.create(dir, "lines", source(Path::new(file)));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(why), "{file}: {said}");
        assert!(said.contains("\nfile "), "under its key: {said}");
    }
}

#[test]
fn a_file_that_is_cut_stops_its_source_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let server = Server::start(dir);
    append(&input(dir), 0..100);
    assert!(server.create(dir, "lines", source(&input(dir))).status.success());
    until("the topic", || (server.topic("lines").len() == 100).then_some(()));
    std::fs::write(input(dir), line(100)).unwrap();
    let said = until("the stop", || {
        let shown = server.run(&["connector", "show", "lines"]);
        let text = String::from_utf8(shown.stdout).unwrap();
        text.contains("FAILED").then_some(text)
    });
    assert!(said.contains("FILE_TRUNCATED"), "{said}");
    assert_eq!(server.topic("lines").len(), 100);
}

fn output(dir: &Path) -> PathBuf {
    dir.join("files").join("out.txt")
}

/// A static member is back in its group at once after a kill.
fn sink(output: &Path) -> serde_json::Value {
    json!({
        "connector.class": "FileStreamSink", "file": output, "topics": "lines",
        "consumer.override.group.instance.id": "sink",
    })
}

/// The whole lines of a file. A kill may leave part of one, which stands alone.
fn whole(path: &Path) -> (Vec<usize>, usize) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    let (whole, torn): (Vec<_>, Vec<_>) =
        text[..end].lines().partition(|line| line.ends_with(" žluťoučký"));
    (whole.into_iter().map(number).collect(), torn.len())
}

#[test]
fn a_file_goes_through_a_topic_into_a_file_whatever_is_killed() {
    const LIVES: usize = 4;
    const LINES: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut written = 0;
    for life in 0..LIVES {
        let server = Server::start(dir);
        append(&input(dir), written..written + LINES);
        if life == 0 {
            assert!(server.create(dir, "in", source(&input(dir))).status.success());
            let created = server.create(dir, "out", sink(&output(dir)));
            assert!(created.status.success(), "{created:?}");
        }
        let some = written + LINES / 4;
        written += LINES;
        until("a line", || whole(&output(dir)).0.iter().any(|line| *line >= some).then_some(()));
        server.kill();
    }
    let server = Server::start(dir);
    until("the last line", || whole(&output(dir)).0.contains(&(written - 1)).then_some(()));
    let (_, torn) = whole(&output(dir));
    assert!(torn <= LIVES, "{torn} torn lines in {LIVES} kills");
    until("the commit", || {
        let shown = server.run(&["offsets", "show", "out", "--output", "json"]);
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        let offset = &shown["offsets"][0];
        assert!(offset.is_null() || offset["partition"]["kafka_topic"] == "lines", "{shown}");
        (offset["offset"]["kafka_offset"] == server.topic("lines").len()).then_some(())
    });
    let (lines, _) = whole(&output(dir));
    // Each life reads anew what the one before had not committed, itself with the repeats of the topic.
    let runs = runs(&server.topic("lines"));
    judge(&lines, written, runs * (LIVES + 1));
    // What is durable is committed, so that a clean restart repeats nothing.
    let before = lines.len();
    assert_eq!(server.end(), Some(0));
    let server = Server::start(dir);
    append(&input(dir), written..written + 1);
    until("one line more", || whole(&output(dir)).0.contains(&written).then_some(()));
    assert_eq!(whole(&output(dir)).0.len(), before + 1);
    drop(server);
}

#[test]
fn a_sink_has_as_many_tasks_as_it_may_and_pauses() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let server = Server::start(dir);
    append(&input(dir), 0..1000);
    let mut two = source(&input(dir));
    two["topic.creation.default.partitions"] = json!("2");
    assert!(server.create(dir, "in", two).status.success());
    until("the topic", || (!server.topic("lines").is_empty()).then_some(()));
    let mut two = sink(&output(dir));
    two["tasks.max"] = json!("2");
    assert!(server.create(dir, "out", two).status.success());
    let status = || {
        let shown = server.run(&["connector", "show", "out", "--output", "json"]);
        serde_json::from_slice::<serde_json::Value>(&shown.stdout).unwrap()["status"].clone()
    };
    let all_in = |state: &str| {
        until(state, || {
            let status = status();
            let tasks = status["tasks"].as_array().unwrap();
            let all = tasks.len() == 2 && tasks.iter().all(|task| task["state"] == state);
            all.then(|| status.clone())
        })
    };
    assert_eq!(all_in("RUNNING")["type"], "sink");
    let lines = |count: usize| {
        until("the lines", || {
            let (mut lines, _) = whole(&output(dir));
            lines.sort_unstable();
            lines.dedup();
            (lines.len() == count).then_some(())
        });
    };
    lines(1000);
    assert!(server.run(&["connector", "pause", "out"]).status.success());
    all_in("PAUSED");
    append(&input(dir), 1000..2000);
    until("the topic", || server.topic("lines").iter().any(|line| *line >= 1900).then_some(()));
    assert_eq!(whole(&output(dir)).0.len(), 1000, "a paused sink writes nothing");
    assert!(server.run(&["connector", "resume", "out"]).status.success());
    all_in("RUNNING");
    lines(2000);
    // A second connector must not write to the same file.
    let second = server.create(dir, "other", sink(&output(dir)));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && said.contains("connector out uses"), "{said}");
}

#[test]
fn tasks_are_measured_and_their_series_end_with_them() {
    const LINES: usize = 1_000;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let server = Server::start(dir);
    append(&input(dir), 0..LINES);
    assert!(server.create(dir, "from", source(&input(dir))).status.success());
    assert!(server.create(dir, "to", sink(&output(dir))).status.success());
    let scrape = || http::get(&server.url, "/metrics");
    let shows = |text: &str, name: &str, connector: &str, value: &str| {
        let series = format!("{name}{{connector=\"{connector}\",task=\"0\"}} {value}");
        text.lines().any(|line| line == series)
    };
    let text = until("both to be through", || {
        let text = scrape();
        let through = shows(&text, "highwater_source_records_total", "from", &LINES.to_string())
            && shows(&text, "highwater_sink_records_total", "to", &LINES.to_string())
            && shows(&text, "highwater_sink_lag_records", "to", "0");
        through.then_some(text)
    });
    assert!(shows(&text, "highwater_task_lag_seconds", "to", "0"), "{text}");
    assert!(shows(&text, "highwater_task_failures_total", "from", "0"), "{text}");
    assert!(!text.contains("highwater_sink_records_total{connector=\"from\""), "it is a source");
    let name = "highwater_task_last_record_time_seconds{connector=\"to\",task=\"0\"} ";
    let last = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let age = now.as_secs_f64() - last.parse::<f64>().unwrap();
    assert!((0.0..PATIENCE.as_secs_f64()).contains(&age), "{age} s ago");
    for name in ["from", "to"] {
        assert!(server.run(&["connector", "delete", name]).status.success());
    }
    let left = until("the end of the series", || {
        let text = scrape();
        (!text.contains("connector=\"")).then_some(text)
    });
    assert!(!left.contains("highwater_task_failures_total"), "{left}");
}

/// The status and the body of a request to the REST API.
fn ask(server: &Server, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
    let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// A server that brings ten lines through a topic into the file of `sink`.
fn piped(dir: &Path, sink: serde_json::Value) -> Server {
    let server = Server::start(dir);
    append(&input(dir), 0..10);
    assert!(server.create(dir, "in", source(&input(dir))).status.success());
    assert!(server.create(dir, "out", sink).status.success());
    server
}

/// A member counts as one until its session has ended: a static one that has stopped, and one that
/// was killed.
#[test]
fn while_a_sinks_group_has_members_its_offsets_are_not_changed_and_it_is_said_for_how_long() {
    const OFFSETS: &str = "/connectors/out/offsets";
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let server = piped(dir, sink(&output(dir)));
    until("the lines", || (whole(&output(dir)).0.len() == 10).then_some(()));
    let stop = |server: &Server| {
        assert_eq!(ask(server, "PUT", "/connectors/out/stop", "").0, 204);
        let reset = ask(server, "DELETE", OFFSETS, "");
        let partition = json!({ "kafka_topic": "lines", "kafka_partition": 0 });
        let entry = json!({ "partition": partition, "offset": { "kafka_offset": 1 } });
        let set = ask(server, "PATCH", OFFSETS, &json!({ "offsets": [entry] }).to_string());
        for (status, refused) in [reset, set] {
            assert_eq!((status, &refused["code"]), (409, &json!("SINK_GROUP_IN_USE")), "{refused}");
            let told = format!("{} {}", refused["message"], refused["do"]);
            assert!(told.contains("sink-0") && told.contains("wait 45 s"), "{told}");
        }
    };
    stop(&server);
    assert_eq!(ask(&server, "PUT", "/connectors/out/resume", "").0, 202);
    until("the task", || {
        let (_, task) = ask(&server, "GET", "/connectors/out/tasks/0/status", "");
        (task["state"] == "RUNNING").then_some(())
    });
    server.kill();
    stop(&Server::start(dir));
}

#[test]
fn a_stopped_sinks_offsets_are_changed_and_a_paused_one_is_restarted() {
    const OFFSETS: &str = "/connectors/out/offsets";
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut plain = sink(&output(dir));
    plain.as_object_mut().unwrap().remove("consumer.override.group.instance.id");
    let server = piped(dir, plain);
    let written = |count| {
        until("the lines", || (whole(&output(dir)).0.len() == count).then_some(()));
    };
    let shown = || ask(&server, "GET", OFFSETS, "").1["offsets"].clone();
    let steer = |verb: &str| {
        let status = ask(&server, "PUT", &format!("/connectors/out/{verb}"), "").0;
        assert!(status == 202 || status == 204, "{verb}: {status}");
    };
    let entry = |offset: serde_json::Value| {
        let partition = json!({ "kafka_topic": "lines", "kafka_partition": 0 });
        json!({ "offsets": [{ "partition": partition, "offset": offset }] }).to_string()
    };
    let four = entry(json!({ "kafka_offset": "4" }));
    written(10);
    until("the commit", || (shown()[0]["offset"]["kafka_offset"] == 10).then_some(()));
    assert_eq!(ask(&server, "PATCH", OFFSETS, &four).1["code"], "CONNECTOR_NOT_STOPPED");
    assert_eq!(ask(&server, "DELETE", OFFSETS, "").1["code"], "CONNECTOR_NOT_STOPPED");
    steer("stop");
    for (topic, partition, named) in [
        ("nowhere", 0, "kafka_topic \"nowhere\" does not"),
        ("lines", 7, "kafka_partition 7 does not"),
    ] {
        let partition = json!({ "kafka_topic": topic, "kafka_partition": partition });
        let entry = json!({ "partition": partition, "offset": { "kafka_offset": 1 } });
        let (status, refused) =
            ask(&server, "PATCH", OFFSETS, &json!({ "offsets": [entry] }).to_string());
        let message = refused["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(named), "{refused}");
    }
    let partition = ["--partition", "kafka_topic=lines", "--partition", "kafka_partition=0"];
    let set = [&["offsets", "set", "out", "kafka_offset=4"], &partition[..]].concat();
    let set = server.run(&set);
    assert!(set.status.success(), "{set:?}");
    assert_eq!(shown()[0]["offset"]["kafka_offset"], 4);
    steer("resume");
    // From the fourth on once more.
    written(16);
    steer("stop");
    assert_eq!(ask(&server, "PATCH", OFFSETS, &entry(json!(null))).0, 200);
    assert_eq!(shown(), json!([]));
    for _ in 0..2 {
        assert_eq!(ask(&server, "DELETE", OFFSETS, "").0, 200, "a group that is gone is reset");
    }
    steer("resume");
    // And all of them.
    written(26);
    steer("pause");
    let paused = || {
        until("the pause", || {
            let (_, task) = ask(&server, "GET", "/connectors/out/tasks/0/status", "");
            (task["state"] == "PAUSED").then(|| task["highwater"]["since"].clone())
        })
    };
    let before = paused();
    assert_eq!(ask(&server, "POST", "/connectors/out/tasks/0/restart", "").0, 204);
    until("another run", || (paused() != before).then_some(()));
    assert_eq!(whole(&output(dir)).0.len(), 26, "a paused sink writes nothing");
}
