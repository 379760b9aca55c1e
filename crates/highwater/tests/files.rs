//! The real binary with file connectors, killed in the middle.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use highwater_kafka::{ReadRecord, Reader};
use serde_json::json;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on free ports, with a data folder and a folder for files; killed when dropped.
struct Server {
    child: Child,
    kafka: String,
    url: String,
}

impl Server {
    fn start(dir: &Path) -> Self {
        let settings = format!(
            "data_dir = {:?}\nkafka.listen = '127.0.0.1:0'\nhttp.listen = '127.0.0.1:0'\n\
             worker.allowed_paths = [{:?}]\n",
            dir.join("data"),
            dir.join("files"),
        );
        std::fs::create_dir_all(dir.join("files")).unwrap();
        std::fs::write(dir.join("highwater.toml"), settings).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_highwater"))
            .args(["server", "--config"])
            .arg(dir.join("highwater.toml"))
            .env("HIGHWATER_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut fact = |label: &str| loop {
            let line = lines.next().expect("the server says where it is").unwrap();
            if let Some(value) = line.strip_prefix(label) {
                break value.trim().to_owned();
            }
        };
        let (kafka, url) = (fact("Kafka clients"), fact("REST and streams"));
        Self { child, kafka, url }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
        command.args(arguments).args(["--url", &self.url]).output().unwrap()
    }

    fn create(&self, dir: &Path, name: &str, config: serde_json::Value) -> Output {
        let file = dir.join(format!("{name}.json"));
        std::fs::write(&file, json!({ "name": name, "config": config }).to_string()).unwrap();
        self.run(&["connector", "create", "--file", file.to_str().unwrap()])
    }

    /// The lines of a topic so far, none while it is not there.
    fn topic(&self, topic: &str) -> Vec<usize> {
        let mut lines = Vec::new();
        let mut each = |record: ReadRecord| {
            let line: String = serde_json::from_slice(&record.value.unwrap()).unwrap();
            lines.push(number(&line));
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let reader = runtime.block_on(async { Reader::new(&self.kafka) });
        // The topic may not be there yet.
        let _ = runtime.block_on(reader.read_all(topic, 0, &mut each));
        lines
    }

    /// Ends it without notice.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Lines from 0 to `end`, in as many runs at most as there were lives: each begins at or before the
/// end of the one before, so that none is missing.
fn judge(lines: &[usize], end: usize, lives: usize) {
    let mut runs = 1;
    let mut seen = 0;
    assert_eq!(lines.first(), Some(&0));
    for pair in lines.windows(2) {
        seen = seen.max(pair[0]);
        if pair[1] != pair[0] + 1 {
            runs += 1;
            assert!(
                pair[1] <= seen + 1,
                "between {} and {} something is missing",
                pair[0],
                pair[1]
            );
        }
    }
    assert_eq!(lines.iter().max(), Some(&(end - 1)));
    assert!(runs <= lives, "{runs} runs in {lives} lives");
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
