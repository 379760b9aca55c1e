//! Connections over the real broker and log: purge, cut, a topic made anew, restarts, a slow
//! reader. What can go wrong in between is tested over a log in memory, in `src/tests`.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use highwater_broker::{Broker, BrokerConfig, Coordinator, CoordinatorConfig};
use highwater_connector::{Generation, HW_HEADER, Hw};
use highwater_kafka::{
    Admin, NewTopic, OutgoingRecord, Reader, Writer, WriterSettings, at_least_once,
};
use highwater_log::{Log, LogConfig, LogError, RealFileSystem};
use highwater_streams::{Streams, StreamsConfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// No step takes longer, unless something hangs.
const PATIENCE: Duration = Duration::from_secs(30);
const TRAIL: &str = "shop";

/// Broker, log and streams of one data directory.
struct Server {
    dir: TempDir,
    listen: SocketAddr,
    running: Option<Running>,
}

struct Running {
    broker: Broker,
    log: Log,
    streams: Streams,
    http: SocketAddr,
    serving: tokio::task::JoinHandle<()>,
    writer: Box<dyn Writer>,
}

impl Server {
    /// With an empty trail and a stream `orders` over it.
    async fn start() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { dir: tempfile::tempdir().unwrap(), listen, running: None };
        server.up().await;
        server.make_trail().await;
        let body = json!({
            "source": {"trail": TRAIL},
            "encoding": {"json": {
                "includeObjectMetadataRecords": false, "includeJSONSchemaRecord": false,
            }},
        });
        let (status, answer) = server.request("POST", "orders", "", &body.to_string()).await;
        assert_eq!(status, 201, "{answer}");
        server
    }

    async fn make_trail(&self) {
        let configs = [("cleanup.policy".to_owned(), "delete".to_owned())].into();
        let topic = NewTopic { configs, ..NewTopic::of_one(TRAIL) };
        let admin = Admin::new(Reader::new(&self.listen.to_string()));
        assert!(admin.create_topic(&topic).await.unwrap());
    }

    async fn up(&mut self) {
        let log = open(self.dir.path()).await;
        let config = BrokerConfig::new(self.listen);
        let coordinator = Coordinator::start(&log, CoordinatorConfig::default());
        let broker = Broker::start(config, log.clone(), coordinator).await.unwrap();
        self.listen = broker.local_addr();
        let bootstrap = self.listen.to_string();
        let mut config = StreamsConfig::new(&bootstrap);
        config.limits.hold_ahead = Duration::from_millis(100);
        let streams = Streams::start(config).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = listener.local_addr().unwrap();
        let router = streams.router();
        let serving =
            tokio::spawn(async move { axum::serve(listener, router).await.unwrap_or_default() });
        let writer = at_least_once(&WriterSettings::new(&bootstrap)).unwrap();
        self.running = Some(Running { broker, log, streams, http, serving, writer });
    }

    async fn down(&mut self) {
        let running = self.running.take().unwrap();
        running.streams.shutdown().await;
        running.serving.abort();
        drop(running.writer);
        running.broker.shutdown().await;
    }

    fn running(&mut self) -> &mut Running {
        self.running.as_mut().unwrap()
    }

    /// A producer that lost records of its own to a cut cannot go on.
    fn make_writer(&mut self) {
        let bootstrap = self.listen.to_string();
        self.running().writer = at_least_once(&WriterSettings::new(&bootstrap)).unwrap();
    }

    async fn write(&mut self, ids: impl IntoIterator<Item = u64>) {
        let writer = &mut self.running().writer;
        for id in ids {
            writer.send(row(id, "")).await.unwrap();
        }
        tokio::time::timeout(PATIENCE, writer.commit()).await.unwrap().unwrap();
    }

    async fn request(&self, method: &str, name: &str, query: &str, body: &str) -> (u16, Value) {
        let upgrade = if method == "GET" {
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        } else {
            "Connection: close\r\n"
        };
        let request = format!(
            "{method} /services/v2/stream/{name}{query} HTTP/1.1\r\nHost: localhost\r\n{upgrade}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let http = self.running.as_ref().unwrap().http;
        let mut socket = TcpStream::connect(http).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !is_whole(&answer) {
            assert!(socket.read_buf(&mut answer).await.unwrap() > 0, "cut off");
        }
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    async fn refused(&self, pos: &str) -> (u16, String) {
        let (status, answer) = self.request("GET", "orders", &format!("?begin={pos}"), "").await;
        (status, answer["code"].as_str().unwrap().to_owned())
    }

    async fn connect(&self, query: &str) -> Client {
        let http = self.running.as_ref().unwrap().http;
        let url = format!("ws://{http}/services/v2/stream/orders{query}");
        let (socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        Client { socket, waiting: Vec::new() }
    }
}

/// Whether an answer has come whole.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// The last tasks of a broker may hold the log for a moment after it was stopped.
async fn open(dir: &Path) -> Log {
    for _ in 0..500 {
        match Log::open(Arc::new(RealFileSystem), dir, LogConfig::default()) {
            Err(LogError::Locked { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            opened => return opened.unwrap(),
        }
    }
    panic!("the log is still held after 5 s");
}

/// A one-row transaction.
fn row(id: u64, padding: &str) -> OutgoingRecord {
    let hw = Hw {
        generation: Generation::from_bits(7),
        lane: Some("pg".to_owned()),
        position: format!("00000000/{id:08X}"),
        index: 0,
        part: 0,
        commit_time_us: Some(1_793_000_000_000_000),
        table_version: Some(1),
        xid: Some(id.to_string()),
        count: Some(1),
    };
    let value = json!({
        "before": null,
        "after": {"id": id, "padding": padding},
        "source": {"schema": "public", "table": "orders"},
        "op": "c",
    });
    OutgoingRecord {
        topic: Arc::from(TRAIL),
        partition: Some(0),
        key: Some(Bytes::from(json!({"id": id}).to_string())),
        value: Some(Bytes::from(value.to_string())),
        headers: vec![(HW_HEADER.into(), hw.encode().into())],
    }
}

struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    waiting: Vec<Value>,
}

impl Client {
    /// The next record with a position, or the close code.
    async fn next(&mut self) -> Result<Value, u16> {
        loop {
            while let Some(record) = self.waiting.pop() {
                if record.get("pos").is_some() {
                    return Ok(record);
                }
            }
            match tokio::time::timeout(PATIENCE, self.socket.next()).await.unwrap() {
                Some(Ok(Message::Text(text))) => {
                    self.waiting = serde_json::from_str(&text).unwrap();
                    self.waiting.reverse();
                }
                Some(Ok(Message::Close(Some(frame)))) => return Err(frame.code.into()),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The ids and positions of the next rows.
    async fn rows(&mut self, count: usize) -> (Vec<u64>, Vec<String>) {
        let (mut ids, mut positions) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let record = self.next().await.unwrap();
            ids.push(record["after"]["id"].as_u64().unwrap());
            positions.push(record["pos"].as_str().unwrap().to_owned());
        }
        (ids, positions)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_sees_everything_once_through_restarts_and_re_appends() {
    let mut server = Server::start().await;
    server.write(1..=50).await;
    let mut client = server.connect("?begin=earliest").await;
    let (ids, positions) = client.rows(20).await;
    assert_eq!(ids, Vec::from_iter(1..=20));
    drop(client);
    server.down().await;
    server.up().await;
    // The source delivers again what it does not know to be stored.
    server.write(31..=70).await;
    let mut client = server.connect(&format!("?begin={}", positions[19])).await;
    let mut now = server.connect("?begin=now").await;
    let (ids, later) = client.rows(50).await;
    assert_eq!(ids, Vec::from_iter(21..=70));
    server.write(61..=80).await;
    assert_eq!(client.rows(10).await.0, Vec::from_iter(71..=80));
    assert_eq!(now.rows(10).await.0, Vec::from_iter(71..=80));
    // The same records have the same positions from everywhere.
    let (_, whole) = server.connect("").await.rows(70).await;
    assert_eq!(whole, [positions, later].concat());
    server.down().await;
    assert_eq!(client.next().await, Err(1001));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_position_is_gone_and_the_one_before_the_start_is_not() {
    let mut server = Server::start().await;
    server.write(1..=10).await;
    let (_, positions) = server.connect("").await.rows(10).await;
    let partition = server.running().log.partition(TRAIL, 0).unwrap();
    partition.delete_records(4).unwrap();
    assert_eq!(server.refused(&positions[2]).await, (410, "position_gone".to_owned()));
    let (ids, _) = server.connect(&format!("?begin={}", positions[3])).await.rows(6).await;
    assert_eq!(ids, Vec::from_iter(5..=10));
    // An idle trail that aged whole: a client at its end has missed nothing.
    partition.delete_records(10).unwrap();
    let mut client = server.connect(&format!("?begin={}", positions[9])).await;
    server.write([11]).await;
    assert_eq!(client.rows(1).await.0, [11]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_or_remade_trail_is_another_history() {
    let mut server = Server::start().await;
    // Two batches, for a log is cut between batches.
    server.write(1..=6).await;
    server.write(7..=10).await;
    let mut client = server.connect("").await;
    let (_, positions) = client.rows(10).await;
    let changed = (409, "history_changed".to_owned());
    let log = server.running().log.clone();
    log.partition(TRAIL, 0).unwrap().truncate(6).unwrap();
    assert_eq!(server.refused(&positions[9]).await, changed);
    server.make_writer();
    server.write(21..=30).await;
    assert_eq!(client.next().await, Err(4015));
    assert_eq!(server.refused(&positions[9]).await, changed);
    assert_eq!(server.refused(&positions[6]).await, changed);
    let mut client = server.connect(&format!("?begin={}", positions[5])).await;
    assert_eq!(client.rows(10).await.0, Vec::from_iter(21..=30));
    log.delete_topic(TRAIL).unwrap();
    server.make_trail().await;
    assert_eq!(server.refused(&positions[0]).await, changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_gets_everything() {
    const ROWS: u64 = 1_500;
    let mut server = Server::start().await;
    let padding = "x".repeat(20_000);
    let writer = &mut server.running().writer;
    for id in 1..=ROWS {
        writer.send(row(id, &padding)).await.unwrap();
    }
    writer.commit().await.unwrap();
    let mut client = server.connect("").await;
    assert_eq!(client.rows(1).await.0, [1]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let rest = usize::try_from(ROWS - 1).unwrap();
    assert_eq!(client.rows(rest).await.0, Vec::from_iter(2..=ROWS));
}

/// A part of the change of key `event` to `event + 1000`, as a connector with topics of tables
/// writes it: the key chooses the partition.
fn part(event: u64, part: u32) -> OutgoingRecord {
    let key = |id: u64| Bytes::from(json!({"id": id}).to_string());
    let (old, new) = (event, event + 1_000);
    let mut record = row(event, "");
    let Some((_, header)) = record.headers.first_mut() else { return record };
    let hw = Hw::decode(header).unwrap();
    *header = Hw { part, ..hw }.encode().into();
    let image = |name: &str, id: u64, op: &str| {
        let source = json!({"name": TRAIL, "schema": "public", "table": "orders"});
        Bytes::from(json!({name: {"id": id}, "source": source, "op": op}).to_string())
    };
    record.topic = Arc::from("shop.public.orders");
    record.partition = None;
    record.key = Some(key(if part == 2 { new } else { old }));
    record.value = match part {
        0 => Some(image("before", old, "d")),
        1 => None,
        _ => Some(image("after", new, "c")),
    };
    match part {
        0 => record.headers.push(("__debezium.newkey".into(), key(new))),
        2 => record.headers.push(("__debezium.oldkey".into(), key(old))),
        _ => {}
    }
    record
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_key_is_shown_by_the_streams_of_its_partitions() {
    const EVENTS: u64 = 60;
    const PARTITIONS: i32 = 3;
    let mut server = Server::start().await;
    let name = "shop.public.orders";
    let configs = [("cleanup.policy".to_owned(), "compact".to_owned())].into();
    let topic = NewTopic { partitions: PARTITIONS, configs, ..NewTopic::of_one(name) };
    let reader = Reader::new(&server.listen.to_string());
    assert!(Admin::new(reader.clone()).create_topic(&topic).await.unwrap());
    for event in 1..=EVENTS {
        let writer = &mut server.running().writer;
        for number in 0..3 {
            writer.send(part(event, number)).await.unwrap();
        }
    }
    server.running().writer.commit().await.unwrap();
    let (mut updates, mut halves) = (0, 0);
    for partition in 0..PARTITIONS {
        // What the topic holds says what a stream has to show, wherever the keys' hashes led.
        let mut deleted = Vec::new();
        let mut created = Vec::new();
        let mut sort = |record: highwater_kafka::ReadRecord| {
            let hw = Hw::decode(record.header(HW_HEADER).unwrap()).unwrap();
            match hw.part {
                0 => deleted.push(hw.position),
                2 => created.push(hw.position),
                _ => {}
            }
        };
        reader.read_all(name, partition, &mut sort).await.unwrap();
        let both = deleted.iter().filter(|event| created.contains(event)).count();
        let body = json!({
            "source": {"topic": name, "partition": partition},
            "encoding": {"json": {
                "includeObjectMetadataRecords": false, "includeJSONSchemaRecord": false,
            }},
        });
        server.request("DELETE", "orders", "", "").await;
        let (status, answer) = server.request("POST", "orders", "", &body.to_string()).await;
        assert_eq!(status, 201, "{answer}");
        let mut client = server.connect("").await;
        for _ in 0..deleted.len() + created.len() - both {
            let row = client.next().await.unwrap();
            let marked = row.get("key_change").is_some();
            let joined = row["op_type"] == "UPDATE";
            assert!(joined != marked, "{row}");
            updates += usize::from(joined);
            halves += usize::from(marked);
        }
    }
    assert!(updates > 0 && halves > 0, "{updates} {halves}");
    assert_eq!(updates * 2 + halves, 2 * usize::try_from(EVENTS).unwrap());
}
