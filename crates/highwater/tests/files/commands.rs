//! Configurations by command: made, changed and checked, from files of any form.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::ask;
use crate::process::{Server, text};

fn config(dir: &Path, key: &str, topic: &str) -> Value {
    let file = dir.join("files/in.txt");
    json!({ "connector.class": "FileStreamSource", key: file, "topic": topic })
}

fn put(dir: &Path, name: &str, content: &Value) -> PathBuf {
    let file = dir.join(name);
    fs::write(&file, content.to_string()).unwrap();
    file
}

/// The exit code of a command, and all that it says.
fn said(server: &Server, words: &[&str], file: Option<&Path>) -> (i32, String) {
    let file = file.map(|file| ["--file", file.to_str().unwrap()]);
    let file = file.iter().flatten().copied();
    let words: Vec<&str> = ["connector"].into_iter().chain(words.iter().copied()).collect();
    let output = server.run(&words.into_iter().chain(file).collect::<Vec<_>>());
    (output.status.code().unwrap(), text(&output))
}

fn topic(server: &Server) -> Value {
    ask(server, "GET", "/connectors/lines/config", "").1["topic"].clone()
}

#[test]
fn configurations_are_made_changed_and_checked_by_command() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, server) = (dir.path(), Server::start(dir.path()));
    fs::write(dir.join("files/in.txt"), "line 1\n").unwrap();
    let flat = put(dir, "lines.json", &config(dir, "file", "one"));
    let (code, words) = said(&server, &["validate"], Some(&flat));
    assert!(code == 0 && words.contains("connector lines: the configuration is valid"), "{words}");
    assert_eq!(said(&server, &["update", "lines"], Some(&flat)).0, 6, "nobody is made by it");
    let (code, words) = said(&server, &["create"], Some(&flat));
    assert_eq!((code, topic(&server)), (0, json!("one")), "{words}");

    let whole = json!({ "name": "lines", "config": config(dir, "file", "two") });
    let whole = put(dir, "whole.json", &whole);
    let (code, words) = said(&server, &["update", "lines"], Some(&whole));
    assert_eq!((code, topic(&server)), (0, json!("two")), "{words}");
    let (code, words) = said(&server, &["update", "others"], Some(&whole));
    assert!(code == 2 && words.contains("configuration of lines, not of others"), "{words}");
    let (code, words) = said(&server, &["patch", "lines", "topic=three"], None);
    assert_eq!((code, topic(&server)), (0, json!("three")), "{words}");
    let (code, words) = said(&server, &["patch", "lines", "--unset", "topic"], None);
    assert!(code == 3 && words.contains("topic"), "{words}");

    let wrong = put(dir, "wrong.json", &config(dir, "fil", "one"));
    let (code, words) = said(&server, &["validate"], Some(&wrong));
    assert!(code == 3 && words.contains("did you mean file?"), "{words}");
    let (code, words) = said(&server, &["plugins"], None);
    assert!(code == 0 && words.contains("source") && words.contains("sink"), "{words}");

    assert_eq!(said(&server, &["restart", "lines", "--only-failed"], None).0, 0);
    assert_eq!(said(&server, &["restart", "lines", "--task", "0"], None).0, 0);
    let (code, words) = said(&server, &["restart", "lines", "--task", "7"], None);
    assert!(code == 6 && words.contains("TASK_NOT_FOUND"), "{words}");
}
