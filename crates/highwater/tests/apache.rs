//! The real binary on Apache Kafka: how it starts, what it is refused, what it says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::zombie_processes,
    missing_docs,
    reason = "tests"
)]

#[path = "process/cluster.rs"]
mod cluster;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use cluster::{Node, Server, highwater};

const PATIENCE: Duration = Duration::from_secs(60);

fn serve(kafka: &str, config: Option<&str>) -> Command {
    let mut command = highwater(&["server", "--http-listen", "127.0.0.1:0", "--kafka", kafka]);
    if let Some(config) = config {
        command.args(["--kafka-config", config]);
    }
    command
}

/// What a server says that ends by itself.
fn refused(mut command: Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn it_runs_over_tls_as_a_user_once_that_user_may() {
    let authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    let node = Node::start(&["security=sasl_ssl", &format!("authorizer.class.name={authorizer}")]);
    let config = node.file("client.properties");
    let wrong = node.file("wrong.properties");
    let text = std::fs::read_to_string(&config).unwrap().replace("app-secret", "s3cret");
    std::fs::write(&wrong, text).unwrap();
    let (code, said) = refused(serve(&node.address, Some(&wrong)));
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("KAFKA_AUTHENTICATION") && !said.contains("s3cret"), "{said}");

    let (code, said) = refused(serve(&node.address, Some(&config)));
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("KAFKA_DENIED"), "{said}");

    let user = ["kafka-acls", "--add", "--allow-principal", "User:app", "--resource-pattern-type"];
    let operations = ["Create", "Describe", "DescribeConfigs", "Read", "Write"];
    let mut grant = [&user[..], &["prefixed", "--topic", "highwater."]].concat();
    operations.iter().for_each(|operation| grant.extend(["--operation", operation]));
    node.tool(&grant);
    let group = ["literal", "--group", "highwater", "--operation", "Read"];
    node.tool(&[&user[..], &group].concat());

    let server = Server::start(serve(&node.address, Some(&config)));
    let described = format!("Kafka at {}, over TLS, as user app by SCRAM-SHA-512", node.address);
    assert!(server.said.contains(&described), "{}", server.said);
    assert!(!server.said.contains("data folder"), "{}", server.said);
    let list = highwater(&["connector", "list", "--url", &server.url]).output().unwrap();
    assert!(String::from_utf8_lossy(&list.stdout).contains("no connectors"));
    let doctor = highwater(&["doctor", "--url", &server.url]).output().unwrap();
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
    let mut topics = highwater(&["topic", "list", "--internal", "--output", "json"]);
    topics.args(["--kafka", &node.address, "--kafka-config", &config]);
    let topics = String::from_utf8(topics.output().unwrap().stdout).unwrap();
    for name in ["configs", "offsets", "status", "streams"] {
        assert!(topics.contains(&format!("highwater.{name}")), "{topics}");
    }
}

#[test]
fn a_cluster_that_is_away_is_waited_for_and_the_reason_is_told() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let http = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = highwater(&["server", "--kafka", &dead.to_string(), "--http-listen"]);
    let mut child = command.arg(http.to_string()).stderr(Stdio::null()).spawn().unwrap();
    let since = Instant::now();
    let ready = loop {
        let ready = get(&http.to_string(), "/highwater/v1/health/ready");
        if ready.contains("refused") || since.elapsed() > PATIENCE {
            break ready;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    assert!(ready.contains(&format!("no broker at {dead} answered")), "{ready}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_only_the_embedded_log_has_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = serve("127.0.0.1:1", None);
    command.arg("--data-dir").arg(folder.path()).args(["--kafka-listen", "127.0.0.1:0"]);
    let (code, said) = refused(command);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("data_dir, kafka.listen only the embedded log has"), "{said}");
    assert!(is_empty(folder.path()));
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

fn get(address: &str, path: &str) -> String {
    let Ok(mut connection) = TcpStream::connect(address) else { return String::new() };
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    let _ = connection.write_all(request.as_bytes());
    let _ = connection.read_to_string(&mut answer);
    answer
}

#[test]
fn the_doctor_finds_topics_that_do_not_keep_what_is_written() {
    let node = Node::start(&[]);
    let make = |name: &str, more: &[&str]| {
        node.tool(&[&["kafka-topics", "--create", "--topic", name], more].concat());
    };
    make("highwater.configs", &["--partitions", "3", "--config", "cleanup.policy=compact"]);
    let unclean = "unclean.leader.election.enable=true";
    make("highwater.offsets", &["--config", "cleanup.policy=delete", "--config", unclean]);
    let server = Server::start(serve(&node.address, None));
    let doctor = || {
        let mut command = highwater(&["doctor", "--output", "json", "--url", &server.url]);
        let output = command.output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap();
        let text = |finding: &serde_json::Value, key: &str| {
            let text = finding[key].as_str().unwrap().to_owned();
            assert!(!text.is_empty(), "{key} of {finding}");
            text
        };
        let found: Vec<(String, String)> = findings
            .iter()
            .inspect(|finding| drop((text(finding, "do"), text(finding, "reason"))))
            .map(|finding| (text(finding, "code"), text(finding, "subject")))
            .collect();
        (output.status.code(), found)
    };
    let (code, found) = doctor();
    let has = |found: &[(String, String)], code: &str, topic: &str| {
        found.contains(&(code.to_owned(), format!("topic highwater.{topic}")))
    };
    assert_eq!(code, Some(1), "{found:?}");
    for (code, topic) in [
        ("KAFKA_TOPIC_PARTITIONS", "configs"),
        ("KAFKA_TOPIC_POLICY", "offsets"),
        ("KAFKA_TOPIC_UNCLEAN_ELECTION", "offsets"),
        ("KAFKA_TOPIC_REPLICAS", "status"),
        ("KAFKA_TOPIC_MIN_IN_SYNC", "status"),
    ] {
        assert!(has(&found, code, topic), "{code} is not among {found:?}");
    }
    assert!(!has(&found, "KAFKA_TOPIC_POLICY", "configs"), "{found:?}");
    assert!(!has(&found, "KAFKA_TOPIC_UNCLEAN_ELECTION", "status"), "{found:?}");
    assert!(found.iter().all(|(code, _)| code != "KAFKA_CLOCK"), "{found:?}");

    node.tool(&[
        "kafka-configs",
        "--alter",
        "--topic",
        "highwater.offsets",
        "--add-config",
        "cleanup.policy=compact,unclean.leader.election.enable=false",
    ]);
    let (_, mended) = doctor();
    assert!(!has(&mended, "KAFKA_TOPIC_POLICY", "offsets"), "{mended:?}");
    assert!(!has(&mended, "KAFKA_TOPIC_UNCLEAN_ELECTION", "offsets"), "{mended:?}");
    node.tool(&["kafka-topics", "--delete", "--topic", "highwater.status"]);
    let since = Instant::now();
    while !has(&doctor().1, "KAFKA_TOPIC_GONE", "status") {
        assert!(since.elapsed() < PATIENCE, "{:?}", doctor());
        std::thread::sleep(Duration::from_millis(200));
    }
}
