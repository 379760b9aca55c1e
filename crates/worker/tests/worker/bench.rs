//! Broker, log and worker in one process; a worker's life can end at any moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use highwater_broker::{Broker, BrokerConfig, Coordinator, CoordinatorConfig, Endpoint};
use highwater_kafka::{
    Admin, OutgoingRecord, Reader, TransactionSettings, Writer, WriterSettings, at_least_once,
};
use highwater_log::{FileSystem, Log, LogConfig, RealFileSystem};
use highwater_worker::{Plugin, Worker, WorkerConfig};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::group::Group;
use crate::source::{CLASS, Fake, Server};

/// How long a test waits for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A log behind the Kafka protocol, and the source.
pub(crate) struct Bench {
    pub(crate) log: Log,
    pub(crate) server: Server,
    pub(crate) reader: Reader,
    pub(crate) admin: Admin,
    pub(crate) bootstrap: String,
    broker: Broker,
    _dir: tempfile::TempDir,
}

impl Bench {
    pub(crate) async fn start(server: Server) -> Self {
        Self::start_on(Arc::new(RealFileSystem), server).await
    }

    /// A log whose groups `group` looks after.
    pub(crate) async fn start_behind(group: &Group, server: Server) -> Self {
        let (host, port) = (group.address.ip().to_string(), group.address.port());
        let mut config = BrokerConfig::local();
        config.advertise = Some(Endpoint { host, port });
        let bench = Self::start_as(config, Arc::new(RealFileSystem), server).await;
        group.stand_before(bench.broker.local_addr());
        bench
    }

    pub(crate) async fn start_on(fs: Arc<dyn FileSystem>, server: Server) -> Self {
        Self::start_as(BrokerConfig::local(), fs, server).await
    }

    async fn start_as(config: BrokerConfig, fs: Arc<dyn FileSystem>, server: Server) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(fs, dir.path(), LogConfig::default()).unwrap();
        let coordinator = Coordinator::start(&log, CoordinatorConfig::default());
        let broker = Broker::start(config, log.clone(), coordinator).await.unwrap();
        let bootstrap = broker.local_addr().to_string();
        let reader = Reader::new(&bootstrap);
        let admin = Admin::new(reader.clone());
        drop(server.reader.set(reader.clone()));
        Self { log, server, reader, admin, bootstrap, broker, _dir: dir }
    }

    pub(crate) fn config(&self) -> WorkerConfig {
        let mut config = WorkerConfig::new(&self.bootstrap, "worker-1:8083");
        config.offset_flush_interval = Duration::from_millis(20);
        config
    }

    /// A life in the test's own runtime, to be ended in order.
    pub(crate) async fn life(&self) -> Life {
        self.life_of(self.config()).await
    }

    /// The same with a configuration of its own.
    pub(crate) async fn life_of(&self, config: WorkerConfig) -> Life {
        Life::start(config, &self.server).await
    }

    /// The newest value of a key in a topic of state; `None` when it is gone.
    pub(crate) async fn newest(&self, topic: &str, key: &str) -> Option<Value> {
        let mut newest = None;
        let mut each = |record: highwater_kafka::ReadRecord| {
            if record.key.as_deref() == Some(key.as_bytes()) {
                newest = record.value.map(|value| serde_json::from_slice(&value).unwrap());
            }
        };
        self.reader.read_all(topic, 0, &mut each).await.unwrap();
        newest
    }

    /// Writes configurations as another worker does.
    pub(crate) async fn write_configs(&self, records: &[(impl AsRef<str>, Value)]) {
        let mut writer = at_least_once(&WriterSettings::new(self.bootstrap.as_str())).unwrap();
        send_configs(&mut *writer, records).await;
        writer.commit().await.unwrap();
    }

    /// Begins to write configurations in a transaction, which is open until the writer commits.
    pub(crate) async fn begin_configs(
        &self,
        records: &[(impl AsRef<str>, Value)],
    ) -> Box<dyn Writer> {
        let (id, timeout) = ("other".to_owned(), Duration::from_secs(600));
        let transactions = Some(TransactionSettings { id, timeout });
        let settings = WriterSettings { transactions, ..WriterSettings::new(&self.bootstrap) };
        let mut writer = highwater_kafka::writer(&settings).unwrap();
        writer.begin().await.unwrap();
        send_configs(&mut *writer, records).await;
        writer.ready().await.unwrap();
        writer
    }

    /// A life in a runtime of its own, which can be dropped at any moment.
    pub(crate) async fn doomed(&self, config: WorkerConfig) -> Doomed {
        Doomed::start(config, &self.server).await
    }
}

async fn send_configs(writer: &mut dyn Writer, records: &[(impl AsRef<str>, Value)]) {
    for (key, value) in records {
        let record = OutgoingRecord {
            topic: "highwater.configs".into(),
            partition: None,
            key: Some(key.as_ref().to_owned().into()),
            value: Some(value.to_string().into()),
            headers: Vec::new(),
        };
        writer.send(record).await.unwrap();
    }
}

impl Doomed {
    pub(crate) async fn start(config: WorkerConfig, server: &Server) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_on(config, server, listener).await
    }

    pub(crate) async fn start_on(
        config: WorkerConfig,
        server: &Server,
        listener: tokio::net::TcpListener,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = server.clone();
        let listener = listener.into_std().unwrap();
        let life = runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            Life::start_on(config, &server, listener).await
        });
        Self { life: Some(life.await.unwrap()), runtime: Some(runtime) }
    }
}

/// A worker with its REST API.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) worker: Worker,
    pub(crate) api: Api,
}

impl Life {
    pub(crate) async fn start(config: WorkerConfig, server: &Server) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_on(config, server, listener).await
    }

    /// The same with a listener that others know already.
    pub(crate) async fn start_on(
        config: WorkerConfig,
        server: &Server,
        listener: tokio::net::TcpListener,
    ) -> Self {
        let worker =
            Worker::start(config, vec![Plugin::Source(Arc::new(Fake::new(server.clone())))]).await;
        let worker = worker.unwrap();
        let address = listener.local_addr().unwrap();
        let router = worker.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { worker, api: Api { url: format!("http://{address}"), client: client() } }
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().timeout(PATIENCE).build().unwrap()
}

/// A life that ends without notice.
pub(crate) struct Doomed {
    life: Option<Life>,
    runtime: Option<Runtime>,
}

impl Doomed {
    pub(crate) fn api(&self) -> &Api {
        &self.life.as_ref().unwrap().api
    }

    /// Drops everything where it stands: nothing is flushed, nobody is told.
    pub(crate) fn crash(self) {}
}

impl Drop for Doomed {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.life = None;
    }
}

/// The REST API of a life.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) url: String,
    pub(crate) client: reqwest::Client,
}

impl Api {
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        Answer::of(request.send().await.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, None).await
    }

    pub(crate) async fn put(&self, path: &str) -> Answer {
        self.call(Method::PUT, path, None).await
    }

    pub(crate) async fn create(&self, name: &str, config: Value) -> Answer {
        let body = json!({ "name": name, "config": config });
        self.call(Method::POST, "/connectors", Some(body)).await
    }

    /// Waits until the status satisfies `is`, and returns it.
    pub(crate) async fn until(&self, name: &str, is: impl Fn(&Value) -> bool) -> Value {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let status = self.get(&format!("/connectors/{name}/status")).await.body;
            if is(&status) {
                return status;
            }
            assert!(tokio::time::Instant::now() < deadline, "it stays {status}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn until_task(&self, name: &str, state: &str) -> Value {
        self.until(name, |status| status["tasks"][0]["state"] == state).await
    }

    pub(crate) async fn until_task_says(&self, name: &str, words: &str) -> Value {
        let says = |status: &Value| status["tasks"][0]["highwater"]["activity"].to_string();
        self.until(name, |status| says(status).contains(words)).await
    }
}

/// An answer of the REST API.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

impl Answer {
    async fn of(response: Response) -> Self {
        let status = response.status();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        let text = response.text().await.unwrap();
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        Self { status, headers, body }
    }

    /// The message of a refusal with this status; Kafka Connect's shape.
    pub(crate) fn refusal(&self, status: u16) -> &str {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.body["error_code"], status, "{self:?}");
        self.body["message"].as_str().unwrap()
    }

    /// The body of an answer with this status.
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self.body
    }
}

/// What another worker writes of a connector with one task.
pub(crate) fn written(name: &str, config: &Value) -> Vec<(String, Value)> {
    let given = json!({ "properties": config });
    vec![
        (format!("target-state-{name}"), json!({ "state": "STARTED", "state.v2": "STARTED" })),
        (format!("connector-{name}"), given.clone()),
        (format!("task-{name}-0"), given),
        (format!("commit-{name}"), json!({ "tasks": 1 })),
    ]
}

/// A configuration of the source whose trail is `trail`.
pub(crate) fn config(trail: &str) -> Value {
    json!({ "connector.class": CLASS, "topic.prefix": trail })
}
