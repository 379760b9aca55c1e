//! The real binary, on one port for all its lives.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::power_loss::Disk;

/// How a life ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// kill -9: the page cache stays.
    Killed,
    /// What was not synced is gone.
    PowerLost,
}

const CONFIG: &str = "[log]\ncompaction_interval_ms = 100\nretention_interval_ms = 200\n";

/// Where a server lives.
pub struct Home {
    pub disk: Disk,
    end: End,
    port: u16,
}

/// A server; killed when dropped.
pub struct Server(Child);

impl Home {
    pub fn new(end: End) -> Self {
        let home = Self { disk: Disk::new(), end, port: free_port() };
        fs::write(home.beside("highwater.toml"), CONFIG).unwrap();
        home
    }

    pub fn kafka(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn data_dir(&self) -> PathBuf {
        self.disk.root().join("data")
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.disk.root().with_file_name(name)
    }

    /// What the servers said on standard error.
    pub fn log(&self) -> String {
        fs::read_to_string(self.beside("errors")).unwrap()
    }

    fn spawn(&self) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
        let errors = fs::File::options().create(true).append(true).open(self.beside("errors"));
        command
            .args(["server", "--http-listen", "127.0.0.1:0", "--kafka-listen", &self.kafka()])
            .arg("--config")
            .arg(self.beside("highwater.toml"))
            .arg("--data-dir")
            .arg(self.data_dir())
            .env("HIGHWATER_LOG", "info")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors.unwrap());
        if self.end == End::PowerLost {
            self.disk.attach(&mut command);
        }
        command.spawn().unwrap()
    }

    /// Starts it and waits until clients are served.
    pub fn start(&self) -> Server {
        let mut child = self.spawn();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        if !lines.any(|line| line.starts_with("Kafka clients")) {
            let status = child.wait().unwrap();
            panic!("no start after a crash, {status}:\n{}", self.log());
        }
        Server(child)
    }

    /// Starts it and ends it wherever it is by then.
    pub fn start_in_vain(&self, after: std::time::Duration) {
        let child = self.spawn();
        std::thread::sleep(after);
        self.end(Server(child));
    }

    pub fn end(&self, mut server: Server) {
        server.0.kill().unwrap();
        server.0.wait().unwrap();
        if self.end == End::PowerLost {
            self.disk.lose_power();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that no outgoing connection is given: a client could meet itself there while the server is down.
fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let mut ports = std::iter::from_fn(|| Some(first + GIVEN.fetch_add(1, Ordering::Relaxed)));
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}
