//! A throw-away server for all tests of this binary.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::{Client, NoTls};

/// Where it is.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// Folder of its Unix socket, and of its data below `data`.
    pub(crate) dir: String,
    /// Its input: the server goes when this process does.
    _script: Child,
}

pub(crate) fn script() -> String {
    format!("{}/../../testing/postgres/server.sh", env!("CARGO_MANIFEST_DIR"))
}

impl Server {
    /// A server of its own, which goes when the value is dropped.
    pub(crate) fn start() -> Self {
        let mut child = Command::new(script())
            .arg("hold")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("testing/postgres/server.sh runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut fields = line.split_whitespace();
        let mut next = || fields.next().expect("the script says where the server is").to_owned();
        Self { port: next().parse().unwrap(), dir: next(), _script: child }
    }

    /// Runs a command of the script on this server's folder.
    pub(crate) fn command(&self, command: &str) {
        let port = self.port.to_string();
        let done = Command::new(script()).args([command, &self.dir, &port]).status().unwrap();
        assert!(done.success(), "{command}");
    }

    /// Stops it: `smart`, `fast`, `immediate`, `kill`. A stop in order waits for whoever is there.
    pub(crate) fn halt(&self, how: &str) {
        let done = Command::new(script()).args(["halt", &self.dir, how]).status().unwrap();
        assert!(done.success(), "{how}");
    }

    /// The same while the caller goes on.
    pub(crate) fn halting(&self, how: &'static str) -> tokio::task::JoinHandle<()> {
        let dir = self.dir.clone();
        tokio::task::spawn_blocking(move || {
            let done = Command::new(script()).args(["halt", &dir, how]).status().unwrap();
            assert!(done.success(), "{how}");
        })
    }

    /// Starts a standby of it and gives its port.
    pub(crate) fn follow(&self) -> u16 {
        let port = self.port.to_string();
        let done = Command::new(script()).args(["follow", &self.dir, &port]).output().unwrap();
        String::from_utf8(done.stdout).unwrap().trim().parse().expect("the standby's port")
    }

    /// Writes a file of the server's data folder.
    pub(crate) fn put(&self, name: &str, content: &str) {
        let mut child = Command::new(script())
            .args(["put", &self.dir, name])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{name}");
    }

    /// Opens a database as the superuser.
    pub(crate) async fn client(&self, database: &str) -> Client {
        let config = format!(
            "host=127.0.0.1 port={} user=postgres password=secret dbname={database}",
            self.port
        );
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Makes a database and opens it.
    pub(crate) async fn database(&self) -> (String, Client) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("db{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let maintenance = self.client("postgres").await;
        maintenance
            .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE template0"))
            .await
            .unwrap();
        (name.clone(), self.client(&name).await)
    }
}

/// The server of all tests.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}
