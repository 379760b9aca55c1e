//! The real binary with TLS and users: who gets in, what each may do, and that the server's own parts work
//! behind it.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

#[path = "process/https.rs"]
mod https;
mod process;

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use https::Authority;
use process::{Server, highwater, text};
use rcgen::KeyPair;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server behind TLS and users.
struct Guarded {
    folder: tempfile::TempDir,
    server: Server,
}

impl Guarded {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        certificates(folder.path());
        let users = folder.path().join("users.toml");
        add(&users, "ann", &["--role", "view", "--grant", "read topic shop*"]);
        add(&users, "root", &["--role", "admin"]);
        let mut command = highwater(&["server", "--http-listen", "127.0.0.1:0"]);
        // Beyond loopback, and not insecure (rule A2).
        let port = free_port();
        command.args(["--kafka-listen", &format!("0.0.0.0:{port}")]);
        command.args(["--kafka-advertise", &format!("localhost:{port}")]);
        command.arg("--data-dir").arg(folder.path().join("data"));
        command.arg("--users-file").arg(users);
        command.arg("--kafka-tls-cert").arg(folder.path().join("server.pem"));
        command.arg("--kafka-tls-key").arg(folder.path().join("server.key"));
        let mut server = Server::of(command);
        server.kafka = server.kafka.replace("0.0.0.0", "127.0.0.1");
        Self { folder, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command that asks the server over HTTP, as a user.
    fn command(&self, user: &str, arguments: &[&str]) -> Output {
        let mut command = highwater(arguments);
        command.args(["--url", &self.server.url, "--login", user]);
        command.env("HIGHWATER_LOGIN_PASSWORD", format!("secret of {user}")).output().unwrap()
    }

    /// Runs `highwater topic …` as a user; as nobody without one.
    fn topic(&self, user: Option<(&str, &str)>, arguments: &[&str]) -> Output {
        let mut command = highwater(&["topic", "--bootstrap", &self.server.kafka]);
        command.args(arguments);
        if let Some((user, password)) = user {
            let config = self.path("client.properties");
            std::fs::write(&config, properties(&self.path("ca.pem"), user, password)).unwrap();
            command.arg("--kafka-config").arg(config);
        }
        command.output().unwrap()
    }
}

/// A port that is told to clients has to be known before the start.
fn free_port() -> u16 {
    std::net::TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
}

fn properties(ca: &Path, user: &str, password: &str) -> String {
    format!(
        "security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={}\n\
         sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config=\
         org.apache.kafka.common.security.scram.ScramLoginModule required \
         username=\"{user}\" password=\"{password}\";\n",
        ca.display()
    )
}

fn add(users: &Path, name: &str, more: &[&str]) {
    let mut command = highwater(&["user", "add", name, "--password-env", "PASSWORD"]);
    command.args(more).arg("--users-file").arg(users).env("PASSWORD", format!("secret of {name}"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

fn certificates(folder: &Path) {
    Authority::new(folder, "ca.pem").host(folder, "server", &["localhost", "127.0.0.1"]);
}

#[test]
fn users_come_in_and_the_server_works_behind_the_guard() {
    let guarded = Guarded::start();
    let (ann, root) = (Some(("ann", "secret of ann")), Some(("root", "secret of root")));

    // The worker's own topics are there: it got in through its own listener.
    let listed = guarded.topic(ann, &["list", "--internal"]);
    assert!(listed.status.success(), "{}", text(&listed));
    assert!(text(&listed).contains("highwater.configs"), "{}", text(&listed));
    let connectors = guarded.command("ann", &["connector", "list"]);
    assert!(connectors.status.success(), "{}", text(&connectors));

    let wrong = guarded.topic(Some(("ann", "secret of bob")), &["list"]);
    assert_eq!(wrong.status.code(), Some(4), "{}", text(&wrong));
    assert!(!text(&wrong).contains("secret"), "{}", text(&wrong));
    assert!(!guarded.topic(None, &["list"]).status.success());

    // Open beyond loopback, and the doctor has nothing to say of it.
    let doctor = guarded.command("ann", &["doctor"]);
    assert!(!text(&doctor).contains("--kafka-listen"), "{}", text(&doctor));

    // Only administrators read where passwords of connectors lie.
    let denied = guarded.topic(ann, &["offsets", "highwater.configs"]);
    assert!(denied.status.success(), "where it stands is no secret: {}", text(&denied));
    let read = |who| guarded.topic(who, &["read", "highwater.configs", "--max", "1"]);
    assert!(read(root).status.success(), "{}", text(&read(root)));

    // Who is removed is out, while the server runs.
    let users = guarded.path("users.toml");
    let removed =
        highwater(&["user", "remove", "ann", "--users-file"]).arg(users).output().unwrap();
    assert!(removed.status.success(), "{}", text(&removed));
    let since = Instant::now();
    while guarded.topic(ann, &["list"]).status.code() != Some(4) {
        assert!(since.elapsed() < PATIENCE, "{}", text(&guarded.topic(ann, &["list"])));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(guarded.topic(root, &["list"]).status.success());
}

#[test]
fn users_or_certificates_that_cannot_be_read_start_nothing() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(folder.path().join("users.toml"), "s3cret").unwrap();
    std::fs::write(folder.path().join("other.pem"), KeyPair::generate().unwrap().serialize_pem())
        .unwrap();
    let refused = |more: &[&str]| {
        let data = path("data");
        let mut command = highwater(&["server", "--kafka-listen", "127.0.0.1:0"]);
        command.args(["--http-listen", "127.0.0.1:0", "--data-dir", &data]).args(more);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        text(&output)
    };
    let said = refused(&["--users-file", &path("missing.toml")]);
    assert!(said.contains("USERS_FILE:"), "{said}");
    // Written without a mode of its own, others may read it.
    let said = refused(&["--users-file", &path("users.toml")]);
    assert!(said.contains("USERS_FILE_EXPOSED") && !said.contains("s3cret"), "{said}");
    let (cert, key) = (path("server.pem"), path("other.pem"));
    let said = refused(&["--kafka-tls-cert", &cert, "--kafka-tls-key", &key]);
    assert!(said.contains("TLS_PAIR_INVALID"), "{said}");
}
