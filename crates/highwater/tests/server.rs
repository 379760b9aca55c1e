//! The real binary: what it says when it starts, is refused, and stops.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

#[path = "process/http.rs"]
mod http;
mod process;

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use http::get;
use process::{Server, highwater};

/// How long a server may take to start or stop on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn serve(data_dir: &Path, kafka: &str, http: &str) -> Command {
    let mut command =
        highwater(&["server", "--kafka-listen", kafka, "--http-listen", http, "--data-dir"]);
    command.arg(data_dir);
    command
}

impl Server {
    fn start(data_dir: &Path) -> Self {
        Self::of(serve(data_dir, "127.0.0.1:0", "127.0.0.1:0"))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        highwater(arguments).args(["--url", &self.url]).output().unwrap()
    }

    /// Sends SIGTERM and waits; whether it ended well.
    fn terminate(self) -> bool {
        self.ends_after(&["TERM"]) == Some(0)
    }

    /// Sends signals, each once the one before was taken note of, and waits; the exit code.
    fn ends_after(mut self, signals: &[&str]) -> Option<i32> {
        let mut sent = signals.iter();
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            // A server that stops says so; until then a second signal would count as the first.
            if (sent.len() == signals.len() || !self.is_ready())
                && let Some(signal) = sent.next()
            {
                let (signal, child) = (format!("-{signal}"), self.child.id().to_string());
                assert!(Command::new("kill").args([signal, child]).status().unwrap().success());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    fn is_ready(&self) -> bool {
        get(&self.url, "/highwater/v1/health/ready").starts_with("HTTP/1.1 200")
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn it_says_where_it_is_and_stops_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("new").join("data");
    let server = Server::start(&data_dir);
    assert!(TcpStream::connect(&server.kafka).is_ok());
    let list = server.run(&["connector", "list"]);
    assert!(list.status.success());
    assert!(String::from_utf8_lossy(&list.stdout).contains("no connectors"));
    assert!(server.terminate());
    // Passwords of connectors are in it.
    let mode = std::fs::metadata(&data_dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    // A clean stop releases the folder.
    assert!(Server::start(&data_dir).terminate());
}

/// What a server says up to the empty line, in its own words.
fn announced(data_dir: &Path) -> String {
    let mut child =
        serve(data_dir, "127.0.0.1:0", "127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let text: Vec<String> = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
    // As a crash would.
    child.kill().unwrap();
    child.wait().unwrap();
    text.join("\n")
}

#[test]
fn it_says_how_the_log_was_found() {
    let folder = tempfile::tempdir().unwrap();
    assert!(announced(folder.path()).contains("new"));
    let after_kill = announced(folder.path());
    assert!(after_kill.contains("recovered: the last stop did not close"), "{after_kill}");
    assert!(Server::start(folder.path()).terminate());
    let after_stop = announced(folder.path());
    assert!(after_stop.contains("closed cleanly"), "{after_stop}");
}

#[test]
fn peers_that_hang_do_not_keep_it_from_stopping() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut http = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    http.write_all(b"POST /connectors HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        .unwrap();
    let mut kafka = TcpStream::connect(&server.kafka).unwrap();
    kafka.write_all(&[0, 0, 1]).unwrap();
    assert!(server.terminate());
}

const STOPPED_CONNECTOR: &str = r#"{"name": "shop", "initial_state": "STOPPED", "config": {
    "connector.class": "postgres", "database.hostname": "h", "database.user": "u",
    "database.dbname": "d", "topic.prefix": "shop", "database.password": "s3cret-word"}}"#;

/// A server with a connector whose database takes connections and never says a word, and the file
/// of its errors. `bound` is what a stop may take, in milliseconds.
fn with_a_source_that_hangs(folder: &Path, bound: u32) -> (Server, TcpListener, PathBuf) {
    let (config, errors) = (folder.join("highwater.toml"), folder.join("errors"));
    std::fs::write(&config, format!("shutdown_timeout_ms = {bound}")).unwrap();
    let mut command = serve(&folder.join("data"), "127.0.0.1:0", "127.0.0.1:0");
    command.arg("--config").arg(&config).stderr(std::fs::File::create(&errors).unwrap());
    let server = Server::of(command);
    let database = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = database.local_addr().unwrap().port();
    let body = format!(
        r#"{{"name": "shop", "config": {{"connector.class": "postgres", "topic.prefix": "shop",
        "database.hostname": "127.0.0.1", "database.port": "{port}", "database.user": "u",
        "database.dbname": "d", "database.connect.timeout.ms": "600000"}}}}"#
    );
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let mut http = TcpStream::connect(&address).unwrap();
    write!(
        http,
        "POST /connectors HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    http.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    // The connector has come to where it waits.
    drop(database.accept().unwrap());
    (server, database, errors)
}

#[test]
fn a_start_that_is_refused_leaves_the_log_closed() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Server::start(folder.path()).terminate());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = serve(folder.path(), &address, "127.0.0.1:0").output().unwrap();
    assert!(stderr(&refused).contains("KAFKA_ADDRESS_TAKEN"), "{}", stderr(&refused));
    let next = announced(folder.path());
    assert!(next.contains("closed cleanly"), "{next}");
}

#[test]
fn a_source_that_hangs_does_not_keep_it_from_stopping() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _database, _) = with_a_source_that_hangs(folder.path(), 30_000);
    assert_eq!(server.ends_after(&["TERM"]), Some(0));
}

#[test]
fn a_stop_that_takes_longer_than_its_bound_is_told_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _database, errors) = with_a_source_that_hangs(folder.path(), 1_000);
    assert_eq!(server.ends_after(&["INT"]), Some(1));
    let said = std::fs::read_to_string(errors).unwrap();
    assert!(said.contains("SHUTDOWN_INCOMPLETE") && said.contains("the connectors"), "{said}");
    let next = announced(&folder.path().join("data"));
    assert!(next.contains("closed cleanly"), "{next}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _database, errors) = with_a_source_that_hangs(folder.path(), 600_000);
    let since = Instant::now();
    assert_eq!(server.ends_after(&["TERM", "TERM"]), Some(1));
    // The connector alone would take longer.
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    assert!(std::fs::read_to_string(errors).unwrap().contains("SHUTDOWN_AT_ONCE"));
}

#[test]
fn log_lines_in_json_bear_the_connectors_name_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let (config, errors) = (folder.path().join("shop.json"), folder.path().join("errors"));
    let mut command = serve(&folder.path().join("data"), "127.0.0.1:0", "127.0.0.1:0");
    command.args(["--log-format", "json", "--log-level", "debug"]);
    command.stderr(std::fs::File::create(&errors).unwrap());
    let server = Server::of(command);
    // Nobody listens at this address any more, so the connector complains.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut body: serde_json::Value = serde_json::from_str(STOPPED_CONNECTOR).unwrap();
    body["initial_state"] = "RUNNING".into();
    body["config"]["database.hostname"] = "127.0.0.1".into();
    body["config"]["database.port"] = gone.port().to_string().into();
    std::fs::write(&config, body.to_string()).unwrap();
    let created = server.run(&["connector", "create", "--file", config.to_str().unwrap()]);
    let told = stderr(&created);
    assert!(told.contains("PG_CONNECTION") && told.contains("does not run yet"), "{told}");
    assert_eq!(created.status.code(), Some(1));
    assert!(server.terminate());
    let text = std::fs::read_to_string(errors).unwrap();
    assert!(!text.contains("s3cret-word"), "{text}");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let complaint = lines.iter().find(|line| line["message"] == "the task is started again");
    assert_eq!(complaint.expect(&text)["span"]["connector"], "shop");
}

#[test]
fn a_stop_says_nothing_of_its_own_listeners() {
    let folder = tempfile::tempdir().unwrap();
    let errors = folder.path().join("errors");
    let mut command = serve(&folder.path().join("data"), "127.0.0.1:0", "127.0.0.1:0");
    command.stderr(std::fs::File::create(&errors).unwrap());
    let server = Server::of(command);
    // The worker writes its status through a client of the log.
    let config = folder.path().join("shop.json");
    std::fs::write(&config, STOPPED_CONNECTOR).unwrap();
    let created = server.run(&["connector", "create", "--file", config.to_str().unwrap()]);
    assert!(created.status.success(), "{}", stderr(&created));
    assert!(server.terminate());
    assert_eq!(std::fs::read_to_string(errors).unwrap(), "");
}

#[test]
fn readiness_is_told_part_by_part() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ready = get(&server.url, "/highwater/v1/health/ready");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("\"part\":\"worker\""), "{ready}");
    assert!(get(&server.url, "/highwater/v1/health/live").starts_with("HTTP/1.1 200"));
    assert!(get(&server.url, "/health").contains("healthy"));
}

#[test]
fn the_doctor_finds_nothing_wrong_with_a_new_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let doctor = server.run(&["doctor", "--output", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(doctor.status.success() && report["errors"] == 0, "{report}");
    let config = folder.path().join("shop.json");
    std::fs::write(&config, STOPPED_CONNECTOR).unwrap();
    server.run(&["connector", "create", "--file", config.to_str().unwrap()]);
    let doctor = server.run(&["doctor", "--output", "json"]);
    let report = String::from_utf8(doctor.stdout).unwrap();
    // Nobody answers at the connector's host, so a start would fail.
    assert_eq!(doctor.status.code(), Some(1), "{report}");
    for said in ["CONNECTOR_NOT_RUNNING", "CONNECTOR_SECRET_LITERAL", "PG_CONNECTION"] {
        assert!(report.contains(said), "{said} is missing in {report}");
    }
    assert!(report.contains("database.password") && !report.contains("s3cret-word"), "{report}");
}

#[test]
fn the_doctor_tells_a_server_elsewhere_from_none() {
    let folder = tempfile::tempdir().unwrap();
    let _server = Server::start(folder.path());
    let nobody =
        format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let look = |dir: &Path| {
        let dir = dir.to_str().unwrap();
        highwater(&["doctor", "--url", &nobody, "--data-dir", dir]).output().unwrap()
    };
    let elsewhere = look(folder.path());
    assert_eq!(elsewhere.status.code(), Some(1));
    let said = String::from_utf8(elsewhere.stdout).unwrap();
    assert!(said.contains("one holds the data folder"), "{said}");
    let none = String::from_utf8(look(&folder.path().join("none")).stdout).unwrap();
    assert!(none.contains("highwater server --data-dir"), "{none}");
}

#[test]
fn a_wrong_command_line_is_told_in_the_form_asked_for() {
    let refused = highwater(&["connector", "lst", "--output", "json"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let error: serde_json::Value = serde_json::from_slice(&refused.stderr).unwrap();
    for part in ["code", "what", "kept", "do"] {
        assert!(error["error"][part].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    }
    assert!(highwater(&["--help"]).output().unwrap().status.success());
}

#[test]
fn each_shell_has_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let script = highwater(&["completions", shell]).output().unwrap();
        let script = String::from_utf8(script.stdout).unwrap();
        assert!(script.contains("doctor") && script.contains("offsets"), "{shell}");
    }
}

#[test]
fn every_metric_is_documented() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let config = folder.path().join("shop.json");
    std::fs::write(&config, STOPPED_CONNECTOR).unwrap();
    server.run(&["connector", "create", "--file", config.to_str().unwrap()]);
    let scrape = get(&server.url, "/metrics");
    let names = |text: &str, begin: &str| -> std::collections::BTreeSet<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(begin));
        lines.map(|line| line.split([' ', '`']).next().unwrap().to_owned()).collect()
    };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let documented = names(&std::fs::read_to_string(page).unwrap(), "| `");
    let scraped = names(&scrape, "# TYPE ");
    let unknown: Vec<_> = scraped.difference(&documented).collect();
    assert!(unknown.is_empty() && !scraped.is_empty(), "not documented: {unknown:?}");
    // What has no label, or one that every server has, is there from the start; a time that nothing took
    // yet is not.
    let from_start = |name: &&String| {
        let begins = name.starts_with("process_") || name.starts_with("highwater_log_");
        begins && *name != "highwater_log_compaction_seconds"
    };
    let missing: Vec<_> = documented.difference(&scraped).filter(from_start).collect();
    assert!(missing.is_empty(), "not in the scrape: {missing:?}");
    assert!(
        scrape.contains("highwater_connector_running{connector=\"shop\",task=\"0\"} 0"),
        "{scrape}"
    );
    assert!(scrape.contains("highwater_connector_wanted{connector=\"shop\"} 0"), "{scrape}");
    assert!(scrape.contains("highwater_log_sync_seconds_bucket"), "{scrape}");
    // The first refusal is an increase.
    for counter in [
        "highwater_stream_refusals_total{code=\"position_gone\"}",
        "highwater_kafka_connections_refused_total",
        "highwater_http_connections_refused_total",
        "highwater_kafka_client_connects_total{outcome=\"denied\"}",
        "highwater_http_logins_total{scheme=\"basic\",outcome=\"failed\"}",
    ] {
        assert!(scrape.contains(&format!("\n{counter} 0\n")), "{counter}: {scrape}");
    }
    server.run(&["connector", "delete", "shop"]);
    let scrape = get(&server.url, "/metrics");
    assert!(!scrape.contains("connector=\"shop\""), "an alert would never end: {scrape}");
}

#[test]
fn a_code_is_explained_without_a_server() {
    let page = highwater(&["explain", "log_locked"]).output().unwrap();
    assert!(String::from_utf8(page.stdout).unwrap().starts_with("# LOG_LOCKED"));
    assert_eq!(highwater(&["explain", "NO_SUCH"]).output().unwrap().status.code(), Some(6));
}

#[test]
fn settings_can_be_checked_without_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("highwater.toml");
    let check = || {
        highwater(&["server", "--check", "--config", config.to_str().unwrap()]).output().unwrap()
    };
    std::fs::write(&config, "data_dir = 'd'").unwrap();
    let said = check();
    assert!(said.status.success());
    let said = String::from_utf8(said.stdout).unwrap();
    for part in ["group of workers", "highwater.configs, highwater.offsets, highwater.status"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!folder.path().join("d").exists() && !Path::new("d").exists());
    std::fs::write(&config, "data_dri = 'd'").unwrap();
    let refused = check();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("did you mean data_dir?"), "{}", stderr(&refused));
    // A start tolerates it.
    std::fs::write(&config, "data_dir = 'd'\nworker.connectors_dir = '/no/such'").unwrap();
    let warned = check();
    assert!(warned.status.success() && warned.stdout.starts_with(b"the settings are valid"));
    assert!(stderr(&warned).contains("warning CONNECTOR_FILE: /no/such"), "{}", stderr(&warned));
    std::fs::write(&config, "[kafka.tls]\ncert = '/no/such.pem'\nkey = '/no/such.key'").unwrap();
    let refused = check();
    assert!(stderr(&refused).contains("TLS_FILE: /no/such"), "{}", stderr(&refused));
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = Server::start(folder.path());
    let second = serve(folder.path(), "127.0.0.1:0", "127.0.0.1:0").output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let holder = format!("in use by another process, number {}", first.child.id());
    assert!(stderr(&second).contains(&holder), "{}", stderr(&second));
}

#[test]
fn a_taken_port_is_named_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    for (kafka, http, flag) in [
        (address.as_str(), "127.0.0.1:0", "--kafka-listen"),
        ("127.0.0.1:0", address.as_str(), "--http-listen"),
    ] {
        let refused = serve(folder.path(), kafka, http).output().unwrap();
        assert_eq!(refused.status.code(), Some(1));
        let said = stderr(&refused);
        assert!(said.contains(flag) && said.contains(&address), "{said}");
    }
}

#[test]
fn listening_beyond_loopback_is_refused_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let refused = serve(folder.path(), "0.0.0.0:0", "127.0.0.1:0").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--insecure-listen"), "{}", stderr(&refused));
}

#[test]
fn its_own_parts_do_not_need_the_address_that_clients_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = serve(folder.path(), "127.0.0.1:0", "127.0.0.1:0");
    // Nobody listens there.
    command.args(["--kafka-advertise", "127.0.0.1:1"]);
    assert!(Server::of(command).terminate());
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.run(&["connector", "show", "nobody"]).status.code(), Some(6));
    assert_eq!(server.run(&["stream", "tail", "nobody"]).status.code(), Some(6));
    assert_eq!(server.run(&["connector", "frobnicate"]).status.code(), Some(2));

    let config = folder.path().join("bad.json");
    std::fs::write(&config, r#"{"name": "x", "config": {"connector.class": "postgres"}}"#).unwrap();
    let refused = server.run(&["connector", "create", "--file", config.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(stderr(&refused).contains("database.hostname"), "{}", stderr(&refused));

    // Each value is refused by its key before anything is made.
    for (key, value) in [
        ("slot.name", "A b"),
        ("topic.prefix", "a b"),
        ("topic.prefix", "highwater.configs"),
        ("database.port", "seventy"),
        ("snapshot_mode", "initial"),
    ] {
        let mut body: serde_json::Value = serde_json::from_str(STOPPED_CONNECTOR).unwrap();
        body["config"][key] = value.into();
        std::fs::write(&config, body.to_string()).unwrap();
        let refused = server.run(&["connector", "create", "--file", config.to_str().unwrap()]);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(3), "{said}");
        assert!(said.contains(key) && !said.contains("s3cret-word"), "{said}");
    }
    let list = server.run(&["connector", "list"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("no connectors"));

    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nobody}");
    let unreachable = highwater(&["connector", "list", "--url", &url]).output().unwrap();
    assert_eq!(unreachable.status.code(), Some(5));
}

/// A topic of two partitions with one record in the first and two in the second.
async fn fill(kafka: &str) {
    use highwater_kafka::{Admin, NewTopic, OutgoingRecord, Reader, WriterSettings};
    let topic = NewTopic {
        partitions: 2,
        configs: [("retention.ms".to_owned(), "86400000".to_owned())].into(),
        ..NewTopic::of_one("shop.public.orders")
    };
    Admin::new(Reader::new(kafka)).create_durable_topic(&topic).await.unwrap();
    let mut writer = highwater_kafka::at_least_once(&WriterSettings::new(kafka)).unwrap();
    writer.begin().await.unwrap();
    for (partition, id) in [(0, 1), (1, 2), (1, 3)] {
        let hw = format!(r#"{{"v":1,"g":"000000000000000a","lane":"pg","pos":"0/{id}","i":0}}"#);
        let value = format!(
            r#"{{"op":"c","before":null,"after":{{"id":{id},"note":"a\tb"}},"source":{{"name":"shop","schema":"public","table":"orders"}}}}"#
        );
        let record = OutgoingRecord {
            topic: "shop.public.orders".into(),
            partition: Some(partition),
            key: Some(format!(r#"{{"id":{id}}}"#).into()),
            value: Some(value.into()),
            headers: vec![("hw".into(), hw.into())],
        };
        writer.send(record).await.unwrap();
    }
    writer.commit().await.unwrap();
}

#[test]
fn topics_are_listed_shown_read_and_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fill(&server.kafka));
    let topic = |arguments: &[&str]| {
        let mut command = highwater(&["topic"]);
        command.args(arguments).args(["--bootstrap", &server.kafka]).output().unwrap()
    };
    let text = |arguments: &[&str]| {
        let output = topic(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let list = text(&["list"]);
    assert!(list.contains("shop.public.orders") && !list.contains("highwater."), "{list}");
    assert!(text(&["list", "--internal"]).contains("highwater.streams"));

    let name = "shop.public.orders";
    let show = text(&["show", name]);
    assert!(show.contains("retention.ms = 86400000") && show.contains("LAST STABLE"), "{show}");

    let read = text(&["read", name]);
    let lines: Vec<&str> = read.lines().collect();
    assert_eq!(lines.len(), 3, "{read}");
    assert!(lines[0].starts_with("shop.public.orders-0@0  ") && !read.contains('\t'), "{read}");
    assert!(lines[0].contains("[pg 0/1 event 0, generation 000000000000000a]"), "{read}");
    let last = text(&["read", name, "--partition", "1", "--offset", "1", "--output", "json"]);
    let last: serde_json::Value = serde_json::from_str(last.trim()).unwrap();
    assert_eq!((&last["offset"], &last["key"]), (&"1".into(), &r#"{"id":3}"#.into()));
    assert_eq!(text(&["read", name, "--max", "2"]).lines().count(), 2);
    assert_eq!(text(&["read", name, "--begin", "latest"]), "");
    // It ends by itself once it has what it was asked for.
    let followed = text(&["read", name, "--partition", "1", "--follow", "--max", "2"]);
    assert_eq!(followed.lines().count(), 2);

    assert!(text(&["offsets", name]).contains("1          2"), "{}", text(&["offsets", name]));
    let newest = text(&["offsets", name, "--spec", "max-timestamp", "--output", "json"]);
    let newest: serde_json::Value = serde_json::from_str(&newest).unwrap();
    assert_eq!(newest[0]["offset"], "0");
    assert!(text(&["offsets", name, "--spec", "2200-01-01T00:00:00Z"]).contains("no record"));

    let exit = |arguments: &[&str]| topic(arguments).status.code();
    assert_eq!(exit(&["show", "nothing"]), Some(6));
    assert_eq!(exit(&["read", name, "--partition", "7"]), Some(6));
    assert_eq!(exit(&["read", name, "--offset", "1"]), Some(2));
    assert_eq!(exit(&["read", name, "--partition", "0", "--offset", "9"]), Some(3));
    assert_eq!(exit(&["offsets", name, "--spec", "newest"]), Some(2));
    let nobody = highwater(&["topic", "list", "--bootstrap", "127.0.0.1:1"]).output().unwrap();
    assert_eq!(nobody.status.code(), Some(5));
    assert!(stderr(&nobody).contains("KAFKA_UNREACHABLE"), "{}", stderr(&nobody));
}

#[test]
fn a_topic_is_made_by_command() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let create = |arguments: &[&str]| {
        let mut command = highwater(&["topic", "--bootstrap", &server.kafka, "create"]);
        command.args(arguments).output().unwrap()
    };
    let made = create(&["orders", "--partitions", "3", "cleanup.policy=compact"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let show = highwater(&["topic", "show", "orders", "--bootstrap", &server.kafka]).output();
    let show = String::from_utf8(show.unwrap().stdout).unwrap();
    assert!(show.contains("cleanup.policy = compact") && show.lines().count() == 8, "{show}");
    for (arguments, exit, code) in [
        (["orders", "--partitions=3", ""], 3, "LOG_TOPIC_EXISTS"),
        (["a b", "", ""], 3, "LOG_INVALID_TOPIC: \"a b\""),
        (["other", "no.such=1", ""], 3, "TOPIC_SETTING_REFUSED"),
        (["other", "--partitions=1000000000", ""], 3, "LOG_INVALID_PARTITIONS"),
        (["highwater.mine", "", ""], 4, "KAFKA_DENIED"),
        (["other", "retention.ms", ""], 2, "USAGE"),
        (["other", "--partitions=0", ""], 2, "USAGE"),
    ] {
        let arguments: Vec<&str> = arguments.into_iter().filter(|it| !it.is_empty()).collect();
        let refused = create(&arguments);
        assert_eq!(refused.status.code(), Some(exit), "{arguments:?} {}", stderr(&refused));
        assert!(stderr(&refused).contains(code), "{arguments:?} {}", stderr(&refused));
    }
}

/// Asks for a topic as a Kafka client does that allows it to be made (Metadata 4).
fn name_topic(kafka: &str, topic: &str) {
    let length = u16::try_from(topic.len()).unwrap().to_be_bytes();
    let head = [0, 3, 0, 4, 0, 0, 0, 1, 255, 255, 0, 0, 0, 1];
    let request = [&head[..], &length, topic.as_bytes(), &[1]].concat();
    let mut stream = std::net::TcpStream::connect(kafka).unwrap();
    stream.write_all(&u32::try_from(request.len()).unwrap().to_be_bytes()).unwrap();
    stream.write_all(&request).unwrap();
    stream.read_exact(&mut [0; 8]).unwrap();
}

#[test]
fn a_topic_that_a_client_names_is_made_where_the_settings_say_so() {
    for (made, exit) in [(false, 6), (true, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("highwater.toml");
        std::fs::write(&config, format!("kafka.auto_create_topics = {made}")).unwrap();
        let mut command = serve(&folder.path().join("data"), "127.0.0.1:0", "127.0.0.1:0");
        command.arg("--config").arg(&config);
        let server = Server::of(command);
        name_topic(&server.kafka, "new");
        let show = highwater(&["topic", "show", "new", "--bootstrap", &server.kafka]).output();
        assert_eq!(show.unwrap().status.code(), Some(exit));
    }
}

#[test]
fn a_stream_is_made_followed_and_deleted_by_command() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fill(&server.kafka));
    let run = |arguments: &[&str]| {
        let output = server.run(&[&["stream"], arguments].concat());
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr(&output),
        )
    };
    let topic = "shop.public.orders";
    let (code, _, error) = run(&["create", "orders", "--topic", topic]);
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains("trail_partitioned") && error.contains("partition"), "{error}");
    let make = ["create", "orders", "--topic", topic, "--partition", "1"];
    let (code, made, error) = run(&make);
    assert_eq!(code, Some(0), "{error}");
    assert!(made.contains("reads topic shop.public.orders partition 1"), "{made}");
    assert_eq!(run(&make).0, Some(3));

    let tail = ["tail", "orders", "--begin", "earliest", "--count", "2"];
    let (code, text, error) = run(&tail);
    assert_eq!(code, Some(0), "{error}");
    let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[0].contains("INSERT  public.orders  id=2  note=a\\tb"), "{text}");
    let (_, json, _) = run(&[&tail[..], &["--output", "json"]].concat());
    let rows = json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    assert_eq!(rows.filter(|row| row.get("pos").is_some()).count(), 2);

    assert!(run(&["list"]).1.contains("partition 1"));
    assert!(run(&["show", "orders"]).1.contains("nobody is connected"));
    let nowhere = folder.path().join("nowhere").join("pos");
    let late = [&tail[..], &["--checkpoint", nowhere.to_str().unwrap()]].concat();
    assert_eq!(run(&late).0, Some(2));
    assert_eq!(run(&["delete", "orders"]).0, Some(0));
    assert_eq!(run(&["delete", "orders"]).0, Some(6));
    let bare = highwater(&["stream", "list", "--url", "127.0.0.1:8083"]).output().unwrap();
    assert_eq!(bare.status.code(), Some(2));
    assert!(stderr(&bare).contains("http://127.0.0.1:8083"), "{}", stderr(&bare));
}
