//! The real binary with a folder of connector files, changed in every way, and killed in between.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http;
use crate::process::{Server, highwater};

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["connectors", "files"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    fn connectors(&self) -> PathBuf {
        self.dir.path().join("connectors")
    }

    fn put(&self, file: &str, text: &str) {
        fs::write(self.connectors().join(file), text).unwrap();
    }

    fn remove(&self, file: &str) {
        fs::remove_file(self.connectors().join(file)).unwrap();
    }

    fn server(&self) -> Server {
        let at = |name: &str| self.dir.path().join(name);
        let settings = format!(
            "data_dir = {:?}\nkafka.listen = '127.0.0.1:0'\nhttp.listen = '127.0.0.1:0'\n[worker]\n\
             allowed_paths = [{:?}]\nconnectors_dir = {:?}\nconnectors_interval_ms = 100\n",
            at("data"),
            at("files"),
            self.connectors(),
        );
        fs::write(at("highwater.toml"), settings).unwrap();
        let mut command = highwater(&["server", "--config"]);
        command.arg(at("highwater.toml"));
        Server::of(command)
    }

    /// A file source whose lines go to `topic`.
    fn source(&self, name: &str, topic: &str) -> Value {
        let file = self.dir.path().join("files").join(format!("{name}.txt"));
        json!({
            "name": name,
            "config": { "connector.class": "FileStreamSource", "file": file, "topic": topic },
        })
    }
}

fn answer(server: &Server, path: &str) -> Value {
    let answer = http::get(&server.url, path);
    let body = answer.split_once("\r\n\r\n").map_or("null", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_default()
}

fn until(server: &Server, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = answer(server, path);
        if holds(&found) {
            return found;
        }
        assert!(Instant::now() < deadline, "{path} stays {found}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn names(server: &Server) -> Value {
    answer(server, "/connectors")
}

fn until_topic(server: &Server, name: &str, topic: &str) {
    until(server, &format!("/connectors/{name}/config"), |config| config["topic"] == topic);
}

/// Waits until the doctor says this of a file.
fn until_said(server: &Server, file: &str, words: &str) {
    let said = |finding: &Value| {
        finding["subject"].as_str().unwrap_or_default().ends_with(file)
            && finding["what"].as_str().unwrap_or_default().contains(words)
    };
    until(server, "/highwater/v1/doctor", |found| {
        found["findings"].as_array().is_some_and(|findings| findings.iter().any(said))
    });
}

fn run(server: &Server, arguments: &[&str]) -> String {
    let output = highwater(arguments).args(["--url", &server.url]).output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn create(place: &Place, server: &Server, connector: &Value) -> String {
    let file = place.dir.path().join("made.json");
    fs::write(&file, connector.to_string()).unwrap();
    run(server, &["connector", "create", "--file", file.to_str().unwrap()])
}

#[test]
fn connectors_follow_their_files_and_bad_files_disturb_no_others() {
    let place = Place::new();
    place.put("a.json", &place.source("a", "one").to_string());
    place.put("bad.json", "{");
    place.put("notes.txt", "no connector");
    let server = place.server();
    until_topic(&server, "a", "one");
    until_said(&server, "bad.json", "no JSON");
    assert_eq!(names(&server), json!(["a"]));

    // What a file wants is nobody else's to change; to stop it for a while is.
    let refused = run(&server, &["connector", "delete", "a"]);
    assert!(refused.contains("CONNECTOR_DECLARED") && refused.contains("a.json"), "{refused}");
    let refused = create(&place, &server, &place.source("a", "two"));
    assert!(refused.contains("CONNECTOR_DECLARED"), "{refused}");
    run(&server, &["connector", "pause", "a"]);
    until(&server, "/connectors/a/status", |status| status["connector"]["state"] == "PAUSED");
    let made = create(&place, &server, &place.source("hand", "hand"));
    assert_eq!(names(&server), json!(["a", "hand"]), "{made}");

    // A configuration that cannot be run leaves the one that can.
    place.put("a.json", &place.source("a", "highwater.configs").to_string());
    until_said(&server, "a.json", "highwater.");
    until_topic(&server, "a", "one");
    place.put("a.json", &place.source("a", "two").to_string());
    until_topic(&server, "a", "two");
    place.put("bad.json", &place.source("b", "b").to_string());
    until_topic(&server, "b", "b");
    let doctor = answer(&server, "/highwater/v1/doctor").to_string();
    assert!(!doctor.contains("CONNECTOR_FILE"), "{doctor}");

    // Under another name it is the same connector; without its file it goes, and others stay.
    fs::rename(place.connectors().join("bad.json"), place.connectors().join("b.json")).unwrap();
    place.put("hand.properties", "");
    until_said(&server, "hand.properties", "no connector.class");
    assert_eq!(names(&server), json!(["a", "b", "hand"]));
    place.remove("b.json");
    until(&server, "/connectors", |names| *names == json!(["a", "hand"]));
    // All files gone look like a folder that is not mounted.
    place.remove("a.json");
    place.remove("hand.properties");
    until_said(&server, "connectors", "no connector file");
    assert_eq!(names(&server), json!(["a", "hand"]));
    // Its file is gone, so it is anybody's again.
    run(&server, &["connector", "delete", "a"]);
    assert_eq!(names(&server), json!(["hand"]));
    // And once nothing comes from the folder, that it is empty is nothing to be told.
    run(&server, &["connector", "delete", "hand"]);
    let content = |found: &Value| !found.to_string().contains("CONNECTOR_FILE");
    until(&server, "/highwater/v1/doctor", content);
}

#[test]
fn a_server_that_is_killed_while_files_change_goes_on_with_them() {
    const LIVES: usize = 6;
    let place = Place::new();
    for life in 0..LIVES {
        let server = place.server();
        let topic = format!("topic-{life}");
        // Killed before, in and behind the changes that these lead to.
        place.put("a.json", &place.source("a", &topic).to_string());
        place.put(&format!("b{}.json", life % 2), &place.source("b", &topic).to_string());
        let _ = fs::remove_file(place.connectors().join(format!("b{}.json", (life + 1) % 2)));
        std::thread::sleep(Duration::from_millis(60 * u64::try_from(life).unwrap()));
        drop(server);
    }
    place.put("c.json", &place.source("c", "c").to_string());
    let server = place.server();
    let last = format!("topic-{}", LIVES - 1);
    until_topic(&server, "c", "c");
    until_topic(&server, "a", &last);
    until_topic(&server, "b", &last);
    place.remove("c.json");
    until(&server, "/connectors", |names| *names == json!(["a", "b"]));
}

#[test]
fn a_file_that_is_written_in_pieces_is_followed_in_whole() {
    let place = Place::new();
    let server = place.server();
    let whole = format!(
        "name=a\nconnector.class=FileStreamSource\nfile={}\ntopic=whole\nbatch.size=7\n",
        place.dir.path().join("files/a.txt").display()
    );
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for end in 1..=lines.len() {
        place.put("a.properties", &lines[..end].concat());
        std::thread::sleep(Duration::from_millis(30));
    }
    let is_whole = |config: &Value| config["topic"] == "whole" && config["batch.size"] == "7";
    let config = until(&server, "/connectors/a/config", is_whole);
    assert!(Path::new(config["file"].as_str().unwrap()).ends_with("files/a.txt"));
}
