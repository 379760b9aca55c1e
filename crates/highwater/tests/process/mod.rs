//! The real binary as a process of its own.

#![expect(unreachable_pub, reason = "shared by tests, each of which is a program")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

pub fn highwater(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(arguments).env("HIGHWATER_LOG", "warn").stdin(Stdio::null());
    command
}

/// All that a command has said.
#[allow(dead_code, reason = "by some of them")]
pub fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// A server that said where it is; killed when dropped.
pub struct Server {
    pub child: Child,
    pub kafka: String,
    pub url: String,
}

impl Server {
    pub fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
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
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
