//! A node of Apache Kafka, and servers on it, each a process of its own.

#![expect(unreachable_pub, reason = "shared by tests, each of which is a program")]
#![allow(dead_code, reason = "and uses a part of it")]

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/kafka/kafka.sh");

/// A node of Apache Kafka, stopped when its holder's standard input ends.
pub struct Node {
    pub address: String,
    dir: PathBuf,
    _holder: (Child, ChildStdin),
}

impl Node {
    pub fn start(options: &[&str]) -> Self {
        let mut command = Command::new(SCRIPT);
        command.arg("hold").args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, dir) = line.trim().split_once(' ').expect("Apache Kafka starts");
        let input = holder.stdin.take().unwrap();
        Self { address: address.to_owned(), dir: dir.into(), _holder: (holder, input) }
    }

    pub fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    pub fn tool(&self, arguments: &[&str]) {
        let internal = std::fs::read_to_string(self.dir.join("internal")).unwrap();
        let (tool, rest) = arguments.split_first().unwrap();
        let mut command = Command::new(SCRIPT);
        command.args(["tool", tool, "--bootstrap-server", internal.trim()]).args(rest);
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
    }
}

pub fn highwater(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(arguments).env("HIGHWATER_LOG", "error").stdin(Stdio::null());
    command
}

/// A server on it; killed when dropped.
pub struct Server {
    pub child: Child,
    pub said: String,
    pub url: String,
}

impl Server {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        for line in lines {
            let line = line.unwrap();
            said.push_str(&line);
            said.push('\n');
            if let Some(url) = line.strip_prefix("REST and streams") {
                return Self { child, said, url: url.trim().to_owned() };
            }
        }
        panic!("the server ended: {said}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
