//! Servers on one Apache Kafka bring each other requests over TLS: by an authority of their own, each with
//! a certificate, for callers that are known by theirs; and nobody else speaks for others.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::zombie_processes,
    missing_docs,
    reason = "tests"
)]

#[path = "process/cluster.rs"]
mod cluster;
#[path = "process/https.rs"]
mod https;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster::{Node, Server, highwater};
use highwater_kafka::{Pem, PemPlace, Tls};
use https::{Authority, ask};
use serde_json::{Value, json};

/// After how long something does not come any more.
const PATIENCE: Duration = Duration::from_secs(90);

const BEHALF: &str = "Highwater-On-Behalf-Of";

/// A Kafka, and a folder with certificates and users.
struct Bench {
    node: Node,
    folder: tempfile::TempDir,
    token: String,
}

/// What a server has to call others with.
struct Calls {
    ca: Option<&'static str>,
    cert: Option<&'static str>,
}

const WHOLE: Calls = Calls { ca: Some("ca.pem"), cert: Some("worker") };

/// A server of the group.
struct Worker {
    _server: Server,
    port: u16,
}

impl Bench {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let (ours, others) = (Authority::new(dir, "ca.pem"), Authority::new(dir, "other-ca.pem"));
        ours.host(dir, "host", &["localhost"]);
        others.host(dir, "other-host", &["localhost"]);
        for name in ["worker", "ops", "guest"] {
            ours.user(dir, name);
        }
        let users = dir.join("users.toml");
        user(&users, &["add", "root", "--role", "admin", "--no-password"]);
        user(&users, &["add", "ops", "--role", "operate", "--no-password"]);
        user(&users, &["add", "guest", "--role", "view", "--no-password"]);
        // It may nothing by itself.
        user(&users, &["add", "worker", "--no-password"]);
        let token = dir.join("root.token");
        user(&users, &["token", "root", "--to-file", token.to_str().unwrap()]);
        let token = std::fs::read_to_string(token).unwrap().trim().to_owned();
        Self { node: Node::start(&[]), folder, token }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A server whose own certificate is `host`.
    fn server(&self, host: &str, calls: &Calls) -> Worker {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = |name: &str| format!("{:?}", self.path(name));
        let mut settings = format!(
            "kafka.bootstrap = '{}'\nhttp.listen = '127.0.0.1:{port}'\n\
             access.users_file = {}\nhttp.tls.cert = {}\nhttp.tls.key = {}\n\
             http.tls.client_auth = 'required'\nhttp.tls.client_ca = {}\n\
             http.tls.principal_rules = 'RULE:CN=([a-z]+),O=shop/$1/'\n[worker]\n\
             advertised_url = 'https://localhost:{port}'\nheartbeat_interval_ms = 300\n\
             allowed_paths = [{:?}]\nforward_users = ['worker']\n",
            self.node.address,
            file("users.toml"),
            file(&format!("{host}.pem")),
            file(&format!("{host}.key")),
            file("ca.pem"),
            self.folder.path(),
        );
        if let Some(ca) = calls.ca {
            settings.push_str(&format!("forward_ca = {}\n", file(ca)));
        }
        if let Some(cert) = calls.cert {
            let (pem, key) = (file(&format!("{cert}.pem")), file(&format!("{cert}.key")));
            settings.push_str(&format!("forward_cert = {pem}\nforward_key = {key}\n"));
        }
        let config = self.path(&format!("{port}.toml"));
        std::fs::write(&config, settings).unwrap();
        let mut command = highwater(&["server", "--config"]);
        command.arg(config);
        Worker { _server: Server::start(command), port }
    }

    /// Asks a server, known by a certificate alone unless headers say otherwise.
    async fn ask(
        &self,
        (worker, user): (&Worker, &str),
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let pem = |setting, name: &str| Pem { setting, place: PemPlace::File(self.path(name)) };
        let identity = (pem("cert", &format!("{user}.pem")), pem("key", &format!("{user}.key")));
        let tls = Tls {
            authorities: Some(pem("ca", "ca.pem")),
            identity: Some(identity),
            ..Tls::default()
        };
        ask(worker.port, &tls, method, path, headers, body).await
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Makes a connector that is stopped, as `root` with a token.
    async fn create(&self, worker: &Worker, name: &str) -> (u16, String) {
        let config = json!({
            "connector.class": "FileStreamSource",
            "file": self.path("in.txt"),
            "topic": "t",
        });
        let body =
            json!({ "name": name, "config": config, "initial_state": "STOPPED" }).to_string();
        let bearer = self.bearer();
        let headers = [("Authorization", bearer.as_str())];
        self.ask((worker, "guest"), ("POST", "/connectors"), &headers, &body).await
    }
}

fn user(users: &Path, arguments: &[&str]) {
    let mut command = highwater(&["user"]);
    let done = command.args(arguments).arg("--users-file").arg(users).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn body(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or(Value::Null)
}

/// Asks until the group is settled: until then nobody leads.
async fn settled<F: Future<Output = (u16, String)>>(ask: impl Fn() -> F) -> (u16, String) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let (status, answer) = ask().await;
        if status != 409 || body(&answer)["code"] != "WORKERS_REBALANCING" {
            return (status, answer);
        }
        assert!(tokio::time::Instant::now() < deadline, "{answer}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn requests_go_on_over_mutual_tls_as_who_asked_and_nobody_else_speaks_for_others() {
    let bench = Bench::start();
    let (one, two) = (bench.server("host", &WHOLE), bench.server("host", &WHOLE));
    // One of them leads, and the other one brings it there: with a token, ...
    for (worker, name) in [(&one, "a"), (&two, "b")] {
        let (status, answer) = settled(|| bench.create(worker, name)).await;
        assert_eq!(status, 201, "{answer}");
    }
    for worker in [&one, &two] {
        // ... and as who shows a certificate, with that one's rights and no others.
        let pause = ("PUT", "/connectors/a/pause");
        let (status, answer) = settled(|| bench.ask((worker, "ops"), pause, &[], "")).await;
        assert_eq!(status, 202, "{answer}");
        let (status, answer) = bench.ask((worker, "guest"), pause, &[], "").await;
        assert_eq!((status, &body(&answer)["code"]), (403, &json!("HTTP_NOT_ALLOWED")), "{answer}");
        let (status, answer) =
            settled(|| bench.ask((worker, "ops"), ("DELETE", "/connectors/a"), &[], "")).await;
        assert_eq!((status, &body(&answer)["code"]), (403, &json!("HTTP_NOT_ALLOWED")), "{answer}");

        // Who is no server speaks for nobody, whatever else it shows.
        let bearer = bench.bearer();
        for (user, headers) in [
            ("ops", &[(BEHALF, "root")][..]),
            ("ops", &[(BEHALF, "ops")]),
            ("ops", &[("highwater-on-behalf-of", "root"), (BEHALF, "ops")]),
            ("ops", &[(BEHALF, "root"), ("Authorization", &bearer)]),
            ("worker", &[(BEHALF, "ops"), ("Authorization", &bearer)]),
        ] {
            let (status, answer) = bench.ask((worker, user), pause, headers, "").await;
            let code = body(&answer)["code"].clone();
            assert_eq!(
                (status, &code),
                (403, &json!("HTTP_MAY_SPEAK_FOR_NOBODY")),
                "{headers:?}: {answer}"
            );
        }
        // A server speaks for users that there are, and may nothing by itself.
        for (headers, wanted) in [
            (&[(BEHALF, "ops")][..], 202),
            (&[(BEHALF, "guest")], 403),
            (&[(BEHALF, "nobody")], 401),
            (&[(BEHALF, "")], 401),
            (&[(BEHALF, "guest"), (BEHALF, "root")], 401),
            (&[], 403),
        ] {
            let asked = || bench.ask((worker, "worker"), pause, headers, "");
            let (status, answer) = settled(asked).await;
            assert_eq!(status, wanted, "{headers:?}: {answer}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_brought_there_safely_is_refused_by_name() {
    let bench = Bench::start();
    // The first one leads.
    let leader = bench.server("host", &WHOLE);
    let (status, answer) = settled(|| bench.create(&leader, "a")).await;
    assert_eq!(status, 201, "{answer}");
    let pause = ("PUT", "/connectors/a/pause");
    let bearer = bench.bearer();
    let token = [("Authorization", bearer.as_str())];
    for (calls, with_token, with_certificate) in [
        // It trusts another authority, or those of the system.
        (Calls { ca: Some("other-ca.pem"), ..WHOLE }, "WORKER_TLS_FAILED", "WORKER_TLS_FAILED"),
        (Calls { ca: None, ..WHOLE }, "WORKER_TLS_FAILED", "WORKER_TLS_FAILED"),
        // It has no certificate to show.
        (Calls { cert: None, ..WHOLE }, "WORKER_TLS_FAILED", "WORKER_CALLER_UNKNOWN"),
    ] {
        let worker = bench.server("host", &calls);
        for (headers, code) in [(&token[..], with_token), (&[], with_certificate)] {
            let asked = || bench.ask((&worker, "ops"), pause, headers, "");
            let (status, answer) = settled(asked).await;
            let body = body(&answer);
            assert_eq!(body["code"], code, "{status} {answer}");
            assert!(body["what"].as_str().unwrap().contains(&leader.port.to_string()), "{answer}");
            assert!(!answer.contains(&bench.token), "{answer}");
        }
    }
    // The doctor tells it before anybody needs it.
    let strange = bench.server("host", &Calls { ca: Some("other-ca.pem"), ..WHOLE });
    let doctor = ("GET", "/highwater/v1/doctor");
    for (worker, other) in [(&strange, &leader), (&leader, &strange)] {
        let (_, report) = settled(|| bench.ask((worker, "ops"), doctor, &[], "")).await;
        let report = body(&report);
        let findings = report["findings"].as_array().unwrap();
        let told = findings.iter().any(|finding| {
            finding["code"] == "WORKER_TLS_FAILED"
                && finding["subject"] == format!("worker localhost:{}", other.port)
        });
        assert_eq!(told, worker.port == strange.port, "{report}");
    }
    let (_, status) = bench.ask((&leader, "ops"), ("GET", "/connectors/a/status"), &[], "").await;
    assert_eq!(body(&status)["connector"]["state"], "STOPPED", "nothing of it was done: {status}");
}

#[tokio::test]
async fn a_leader_whose_certificate_nobody_vouches_for_is_told_nothing() {
    let bench = Bench::start();
    let _leader = bench.server("other-host", &WHOLE);
    let follower = bench.server("host", &WHOLE);
    let (status, answer) = settled(|| bench.create(&follower, "a")).await;
    let said = body(&answer);
    assert_eq!((status, &said["code"]), (500, &json!("WORKER_TLS_FAILED")), "{answer}");
    assert!(said["what"].as_str().unwrap().contains("UnknownIssuer"), "{answer}");
}

#[test]
fn files_for_calling_others_are_tried_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("highwater.toml");
    let refused = |more: &str| {
        std::fs::write(&config, format!("kafka.bootstrap = 'k:1'\n{more}")).unwrap();
        let checked = highwater(&["server", "--check", "--config"]).arg(&config).output().unwrap();
        assert!(!checked.status.success());
        String::from_utf8_lossy(&checked.stderr).into_owned()
    };
    let said = refused("worker.forward_cert = 'a.pem'\n");
    assert!(said.contains("worker.forward_cert needs worker.forward_key"), "{said}");
    let said = refused("worker.forward_ca = '/no/such.pem'\n");
    assert!(said.contains("WORKER_TLS_FILE") && said.contains("/no/such.pem"), "{said}");
    let said = refused("worker.forward_users = ['a']\n");
    assert!(said.contains("worker.forward_users needs http.tls.client_auth"), "{said}");
}
