//! A server over a log in memory, and a client of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::memory::MemoryLog;
use super::trails::{TRAIL, describe, orders};
use crate::config::StreamsConfig;
use crate::service::Streams;

/// No answer takes longer, unless something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) streams: Streams,
    pub(crate) address: SocketAddr,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The settings of tests: nothing waits longer than it must.
pub(crate) fn config() -> StreamsConfig {
    let mut config = StreamsConfig::new("memory");
    config.limits.hold_ahead = Duration::from_millis(50);
    config.limits.table_wait = Duration::from_millis(100);
    config.limits.log_patience = Duration::from_millis(300);
    config
}

/// A log with an empty trail and a described table.
pub(crate) fn log() -> Arc<MemoryLog> {
    let log = MemoryLog::new();
    log.make(TRAIL, 1);
    describe(&log, &orders(1));
    log
}

impl Server {
    pub(crate) async fn start(log: &Arc<MemoryLog>, config: StreamsConfig) -> Self {
        let streams = Streams::start_over(log.clone(), config).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = streams.router();
        let serving =
            tokio::spawn(async move { axum::serve(listener, router).await.unwrap_or_default() });
        Self { streams, address, serving }
    }

    /// With a stream `orders` over the trail, of this configuration besides.
    pub(crate) async fn with_stream(log: &Arc<MemoryLog>, mut body: Value) -> Self {
        let server = Self::start(log, config()).await;
        body["source"] = json!({"trail": TRAIL});
        let (status, answer) = server.send("POST", "/services/v2/stream/orders", &body).await;
        assert_eq!(status, 201, "{answer}");
        server
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address)).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        self.ask(&(head + &body)).await
    }

    /// Asks for an upgrade that is refused.
    pub(crate) async fn refused(&self, query: &str) -> (u16, Value) {
        self.ask(&format!(
            "GET /services/v2/stream/{query} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.address
        ))
        .await
    }

    /// Sends a request as it stands and reads the answer.
    pub(crate) async fn ask(&self, request: &str) -> (u16, Value) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let (head, length) = loop {
            assert!(socket.read_buf(&mut answer).await.unwrap() > 0, "cut off: {answer:?}");
            let text = String::from_utf8_lossy(&answer).into_owned();
            if let Some((head, _)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
                });
                break (head.to_owned(), length.unwrap_or(0_usize));
            }
        };
        while answer.len() < head.len() + 4 + length {
            assert!(socket.read_buf(&mut answer).await.unwrap() > 0, "cut off");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = &answer[head.len() + 4..];
        (status, serde_json::from_slice(body).unwrap_or(Value::Null))
    }

    /// The status of a stream, once it is as wanted.
    pub(crate) async fn status_once(&self, stream: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/highwater/v1/streams/{stream}");
        let asking = async {
            loop {
                let (_, status) = self.get(&path).await;
                if wanted(&status) {
                    return status;
                }
            }
        };
        tokio::time::timeout(PATIENCE, asking).await.unwrap()
    }

    pub(crate) async fn connect(&self, query: &str) -> Client {
        let url = format!("ws://{}/services/v2/stream/{query}", self.address);
        let connecting = tokio_tungstenite::connect_async(url);
        let (socket, _) = tokio::time::timeout(PATIENCE, connecting).await.unwrap().unwrap();
        Client { socket, waiting: Vec::new() }
    }
}

pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    waiting: Vec<Value>,
}

/// How a connection ended.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) code: u16,
    pub(crate) reason: String,
}

impl Client {
    /// The next record of any kind.
    pub(crate) async fn next(&mut self) -> Result<Value, Closed> {
        tokio::time::timeout(PATIENCE, self.receive()).await.unwrap()
    }

    async fn receive(&mut self) -> Result<Value, Closed> {
        while self.waiting.is_empty() {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    let records: Vec<Value> = serde_json::from_str(&text).unwrap();
                    assert!(!records.is_empty(), "an empty message");
                    self.waiting = records.into_iter().rev().collect();
                }
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Err(Closed {
                        code: frame.code.into(),
                        reason: frame.reason.to_string(),
                    });
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
        Ok(self.waiting.pop().unwrap())
    }

    /// The next record that carries a position.
    pub(crate) async fn data(&mut self) -> Value {
        loop {
            let record = self.next().await.unwrap();
            if record.get("pos").is_some() {
                return record;
            }
        }
    }

    /// The ids of the next rows.
    pub(crate) async fn ids(&mut self, count: usize) -> Vec<u64> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.data().await["after"]["id"].as_u64().unwrap());
        }
        ids
    }

    /// Everything up to the close frame.
    pub(crate) async fn rest(&mut self) -> (Vec<Value>, Closed) {
        let mut records = Vec::new();
        loop {
            match self.next().await {
                Ok(record) => records.push(record),
                Err(closed) => return (records, closed),
            }
        }
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }
}
