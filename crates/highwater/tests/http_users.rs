//! The real binary with TLS and users in front of HTTP: who gets in, by what, and what each may do.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

#[path = "process/https.rs"]
mod https;
mod process;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Output;

use highwater_kafka::{Pem, PemPlace, Tls};
use https::Authority;
use process::{Server, highwater, text};
use serde_json::{Value, json};

const ROLES: [&str; 3] = ["view", "operate", "admin"];

/// What each role may: everything from the first that is named on. `-` in a path stands for a name.
const TABLE: &[(&str, &str, &str)] = &[
    ("get", "/", "view"),
    ("get", "/health", "view"),
    ("get", "/metrics", "view"),
    ("get", "/openapi.json", "view"),
    ("get", "/highwater/v1/doctor", "view"),
    ("get", "/highwater/v1/backup", "view"),
    ("post", "/highwater/v1/backup", "admin"),
    ("get", "/highwater/v1/restore", "view"),
    ("post", "/highwater/v1/restore", "admin"),
    ("get", "/highwater/v1/streams", "view"),
    ("get", "/highwater/v1/streams/-", "view"),
    ("get", "/services/v2/stream", "view"),
    ("get", "/services/v2/stream/-", "view"),
    ("delete", "/services/v2/stream/-", "operate"),
    ("get", "/connector-plugins", "view"),
    ("get", "/connector-plugins/{plugin}/config", "view"),
    ("put", "/connector-plugins/{plugin}/config/validate", "admin"),
    ("get", "/admin/loggers", "view"),
    ("get", "/admin/loggers/{logger}", "view"),
    ("put", "/admin/loggers/{logger}", "admin"),
    ("get", "/connectors", "view"),
    ("post", "/connectors", "admin"),
    ("get", "/connectors/{connector}", "view"),
    ("delete", "/connectors/{connector}", "admin"),
    ("get", "/connectors/{connector}/config", "view"),
    ("put", "/connectors/{connector}/config", "admin"),
    ("patch", "/connectors/{connector}/config", "admin"),
    ("get", "/connectors/{connector}/status", "view"),
    ("post", "/connectors/{connector}/restart", "operate"),
    ("put", "/connectors/{connector}/pause", "operate"),
    ("put", "/connectors/{connector}/resume", "operate"),
    ("put", "/connectors/{connector}/stop", "operate"),
    ("get", "/connectors/{connector}/tasks", "view"),
    ("get", "/connectors/{connector}/tasks/{task}/status", "view"),
    ("post", "/connectors/{connector}/tasks/{task}/restart", "operate"),
    ("get", "/connectors/{connector}/offsets", "view"),
    ("patch", "/connectors/{connector}/offsets", "admin"),
    ("delete", "/connectors/{connector}/offsets", "admin"),
    ("get", "/connectors/{connector}/topics", "view"),
    ("put", "/connectors/{connector}/topics/reset", "operate"),
    ("get", "/nothing/at/all", "view"),
    ("post", "/nothing/at/all", "admin"),
];

/// A server behind TLS and users, each with a role and a token of its name.
struct Guarded {
    folder: tempfile::TempDir,
    server: Server,
    port: u16,
}

impl Guarded {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "ca.pem");
        authority.host(folder.path(), "host", &["localhost"]);
        authority.user(folder.path(), "operate");
        let users = folder.path().join("users.toml");
        for role in ROLES {
            user(&users, &["add", role, "--role", role, "--password-env", "PASSWORD"], role);
            let token = folder.path().join(format!("{role}.token"));
            user(&users, &["token", role, "--to-file", token.to_str().unwrap()], role);
        }
        // Beyond loopback, and not insecure (rule A2).
        let port = std::net::TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
        let path = |name: &str| format!("{:?}", folder.path().join(name));
        // Where connectors may read, apart from what is the server's.
        let files = folder.path().join("files");
        std::fs::create_dir(&files).unwrap();
        let settings = format!(
            "data_dir = {}\nkafka.listen = '127.0.0.1:0'\nhttp.listen = '0.0.0.0:{port}'\n\
             worker.allowed_paths = [{:?}]\nhttp.advertise = 'localhost:{port}'\naccess.users_file = {}\n\
             http.tls.cert = {}\nhttp.tls.key = {}\nhttp.tls.client_auth = 'optional'\n\
             http.tls.client_ca = {}\nhttp.tls.principal_rules = 'RULE:CN=([a-z]+),O=shop/$1/'\n",
            path("data"),
            files,
            path("users.toml"),
            path("host.pem"),
            path("host.key"),
            path("ca.pem"),
        );
        std::fs::write(folder.path().join("highwater.toml"), settings).unwrap();
        let mut command = highwater(&["server", "--config"]);
        command.arg(folder.path().join("highwater.toml")).env("HIGHWATER_LOG", "debug");
        command.stderr(File::create(folder.path().join("log")).unwrap());
        let server = Server::of(command);
        assert_eq!(server.url, format!("https://localhost:{port}"), "what commands can ask");
        Self { folder, server, port }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn token(&self, role: &str) -> String {
        let text = std::fs::read_to_string(self.path(&format!("{role}.token"))).unwrap();
        text.trim().to_owned()
    }

    /// Runs a command that asks the server.
    fn run(&self, arguments: &[&str], login: &[&str]) -> Output {
        let mut command = highwater(arguments);
        command.args(["--url", &format!("https://localhost:{}", self.port), "--ca-file"]);
        command.arg(self.path("ca.pem")).args(login);
        command.env("HIGHWATER_LOGIN_PASSWORD", "secret of view").output().unwrap()
    }

    /// The status and the text of an answer.
    async fn ask(&self, method: &str, path: &str, login: Option<&str>) -> (u16, String) {
        let headers: Vec<_> = login.map(|login| ("Authorization", login)).into_iter().collect();
        let body = if method == "get" { "" } else { "{}" };
        self.send(&method.to_ascii_uppercase(), path, &headers, body).await
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let pem = Pem { setting: "ca", place: PemPlace::File(self.path("ca.pem")) };
        let tls = Tls { authorities: Some(pem), ..Tls::default() };
        https::ask(self.port, &tls, method, path, headers, body).await
    }
}

fn user(users: &Path, arguments: &[&str], name: &str) {
    let mut command = highwater(&["user"]);
    command.args(arguments).arg("--users-file").arg(users);
    let output = command.env("PASSWORD", format!("secret of {name}")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

/// A path with names that are nobody's in it.
fn filled(path: &str) -> String {
    path.replace("{task}", "0")
        .split('/')
        .map(|part| if part.starts_with('{') { "-" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

#[tokio::test]
async fn every_route_is_for_the_roles_that_the_table_says() {
    let guarded = Guarded::start();
    let admin = format!("Bearer {}", guarded.token("admin"));
    let (status, document) = guarded.ask("get", "/openapi.json", Some(&admin)).await;
    assert_eq!(status, 200, "{document}");
    let document = body(&document);
    let served: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (method.clone(), path.clone()))
        })
        .collect();
    let known: BTreeSet<_> =
        TABLE.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
    let missing: Vec<_> = served.difference(&known).collect();
    assert!(missing.is_empty() && !served.is_empty(), "routes without a rule: {missing:?}");
    let changing = TABLE.iter().filter(|(method, ..)| *method != "get");
    let loose: Vec<_> = changing.filter(|(_, _, least)| *least == "view").collect();
    assert!(loose.is_empty(), "changes that who only looks may make: {loose:?}");
    for (method, path, least) in TABLE {
        let path = filled(path);
        let (status, answer) = guarded.ask(method, &path, None).await;
        assert_eq!(status, 401, "{method} {path}: {answer}");
        let least = ROLES.iter().position(|role| role == least).unwrap();
        for (rank, role) in ROLES.iter().enumerate() {
            let login = format!("Bearer {}", guarded.token(role));
            let (status, answer) = guarded.ask(method, &path, Some(&login)).await;
            let copies = path.ends_with("/backup") || path.ends_with("/restore");
            let let_in = status != 401
                && (status != 403 || (copies && !answer.contains("HTTP_NOT_ALLOWED")));
            assert_eq!(let_in, rank >= least, "{role}: {method} {path}: {answer}");
        }
    }
    for path in ["/highwater/v1/health/live", "/highwater/v1/health/ready"] {
        assert_eq!(guarded.ask("get", path, None).await.0, 200, "a probe has no login: {path}");
    }
}

fn body(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// A path with names of what is there.
fn real(path: &str) -> String {
    path.replace("{plugin}", "FileStreamSource")
        .replace("{logger}", "highwater_worker")
        .replace("{connector}", "-")
        .replace("{task}", "0")
}

/// The path in other words, which a check and a router could read in two ways.
fn disguised(path: &str) -> Vec<String> {
    let (head, last) = path.rsplit_once('/').unwrap();
    let escaped: String = last.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let twice: String = last.bytes().map(|byte| format!("%25{byte:02X}")).collect();
    vec![
        path.to_owned(),
        format!("{path}/"),
        format!("{path}//"),
        format!("/{path}"),
        format!("{head}//{last}"),
        format!("{head}%2f{last}"),
        format!("{head}%2F{last}"),
        format!("{head}/{escaped}"),
        format!("{head}/{twice}"),
        format!("{head}/./{last}"),
        format!("{head}/x/../{last}"),
        format!("{head}/x/%2e%2e/{last}"),
        format!("{head}\\{last}"),
        format!("{head}/{last};a=b"),
        format!("{head}/{last}%00"),
        format!("{head}/{last}%20"),
        format!("{head}/{}", last.to_uppercase()),
        path.to_uppercase(),
        format!("/connectors/..{path}"),
        format!("/highwater/v1/health/live/..{path}"),
        format!("/highwater/v1/health/live/%2e%2e/%2e%2e/%2e%2e/%2e%2e{path}"),
        format!("https://localhost{path}"),
        format!("{path}?forward=true"),
        format!("{path}?forward=false"),
        format!("{path}?_method=GET"),
        format!("{path}?includeTasks=true&forward=true&release=true"),
    ]
}

/// What the server would show of a change: all but numbers that move by themselves.
async fn shown(guarded: &Guarded, admin: &str) -> Value {
    let mut shown = json!({});
    for path in [
        "/connectors?expand=info",
        "/connectors/-/offsets",
        "/connectors/-/topics",
        "/admin/loggers",
        "/services/v2/stream",
        "/highwater/v1/restore",
        "/highwater/v1/backup",
    ] {
        let (status, answer) = guarded.ask("get", path, Some(admin)).await;
        shown[path] = if status == 200 { body(&answer) } else { json!(status) };
    }
    let (_, status) = guarded.ask("get", "/connectors/-/status", Some(admin)).await;
    let status = body(&status);
    shown["connector"] =
        json!([status["connector"]["state"], status["connector"]["highwater"]["since"]]);
    shown["task"] = json!([status["tasks"][0]["state"], status["tasks"][0]["highwater"]["since"]]);
    shown
}

#[tokio::test]
async fn whoever_may_not_do_something_may_not_in_any_disguise_of_it() {
    let guarded = Guarded::start();
    let token = |role| format!("Bearer {}", guarded.token(role));
    let admin = token("admin");
    let input = guarded.path("files/in.txt");
    std::fs::write(&input, "one\n").unwrap();
    let config = json!({ "connector.class": "FileStreamSource", "file": input, "topic": "t" });
    let new = json!({ "name": "-", "config": config }).to_string();
    let (status, answer) =
        guarded.send("POST", "/connectors", &[("Authorization", &admin)], &new).await;
    assert_eq!(status, 201, "{answer}");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while guarded
        .ask("get", "/connectors/-/offsets", Some(&admin))
        .await
        .1
        .contains("\"offsets\":[]")
    {
        assert!(std::time::Instant::now() < deadline, "nothing is read");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let before = shown(&guarded, &admin).await;
    assert_eq!(before["task"][0], "RUNNING", "{before}");

    for (method, path, least) in TABLE.iter().filter(|(_, _, least)| *least != "view") {
        let least = ROLES.iter().position(|role| role == least).unwrap();
        for role in &ROLES[..least] {
            let login = token(role);
            let own = ("Authorization", login.as_str());
            let method = method.to_ascii_uppercase();
            for path in disguised(&real(path)) {
                let (status, answer) = guarded.send(&method, &path, &[own], "{}").await;
                assert!((400..500).contains(&status), "{role}: {method} {path}: {answer}");
            }
            // What looks is let through and does nothing, whatever it is said to be.
            let path = real(path);
            for looks in ["GET", "HEAD", "OPTIONS"] {
                for header in ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"] {
                    guarded.send(looks, &path, &[own, (header, &method)], "").await;
                }
            }
            let lower = method.to_ascii_lowercase();
            for odd in [lower.as_str(), "BREW", "CONNECT", "TRACE"] {
                let (status, answer) = guarded.send(odd, &path, &[own], "{}").await;
                assert!((400..500).contains(&status), "{role}: {odd} {path}: {answer}");
            }
            let (status, answer) = guarded
                .send(&method, &path, &[own, ("Highwater-On-Behalf-Of", "admin")], "{}")
                .await;
            assert_eq!(status, 403, "{role}: {method} {path}: {answer}");
        }
    }
    assert_eq!(shown(&guarded, &admin).await, before, "somebody has changed something");
}

#[tokio::test]
async fn commands_log_in_by_token_password_or_certificate_and_no_secret_is_told() {
    let guarded = Guarded::start();
    let file = |name: &str| guarded.path(name).to_str().unwrap().to_owned();
    let list: &[&str] = &["connector", "list"];
    for login in [
        ["--token-file", &file("view.token"), "", ""],
        ["--login", "view", "", ""],
        ["--client-cert", &file("operate.pem"), "--client-key", &file("operate.key")],
    ] {
        let login: Vec<&str> = login.into_iter().filter(|word| !word.is_empty()).collect();
        let listed = guarded.run(list, &login);
        assert!(listed.status.success(), "{login:?}: {}", text(&listed));
    }
    for login in [&[][..], &["--login", "operate"]] {
        let refused = guarded.run(list, login);
        assert_eq!(refused.status.code(), Some(4), "{login:?}: {}", text(&refused));
    }
    let odd = guarded.run(list, &["--token-file", &file("operate.key")]);
    assert_eq!(odd.status.code(), Some(2), "of several lines: {}", text(&odd));
    assert!(!text(&odd).contains("PRIVATE"), "{}", text(&odd));
    // A view sees how things stand and no record: a stream is read by who is granted it.
    let tailed = guarded.run(&["stream", "tail", "shop"], &["--token-file", &file("view.token")]);
    assert_eq!(tailed.status.code(), Some(4), "{}", text(&tailed));
    assert!(text(&tailed).contains("read on stream shop"), "{}", text(&tailed));
    let paused = guarded.run(
        &["connector", "pause", "-"],
        &["--client-cert", &file("operate.pem"), "--client-key", &file("operate.key")],
    );
    assert_eq!(
        paused.status.code(),
        Some(6),
        "an operator may, and it is not there: {}",
        text(&paused)
    );

    // A token that was taken away lets nobody in, while the server runs.
    user(&guarded.path("users.toml"), &["token", "view", "--revoke"], "view");
    let since = std::time::Instant::now();
    while guarded.run(list, &["--token-file", &file("view.token")]).status.code() != Some(4) {
        assert!(since.elapsed() < std::time::Duration::from_secs(60), "it still lets in");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }

    let log = std::fs::read_to_string(guarded.path("log")).unwrap();
    assert!(log.contains("a login over HTTP failed"), "{log}");
    for role in ROLES {
        assert!(!log.contains(&guarded.token(role)), "a token is in the log");
        assert!(!log.contains(&format!("secret of {role}")), "a password is in the log");
    }
    assert!(guarded.server.url.starts_with("https://"), "{}", guarded.server.url);
    assert!(guarded.server.kafka.starts_with("127.0.0.1:"), "{}", guarded.server.kafka);
}
