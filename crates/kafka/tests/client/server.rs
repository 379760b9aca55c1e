//! A broker behind a proxy, stopped and started at will: our own over its log, or Apache Kafka.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use highwater_broker::{Broker, BrokerConfig, Coordinator, CoordinatorConfig, Endpoint};
use highwater_kafka::{Admin, NewTopic, Reader};
use highwater_log::{Log, LogConfig, LogError, RealFileSystem};
use tempfile::TempDir;

use crate::apache::Apache;
use crate::proxy::{Line, Proxy};

pub(crate) struct Server {
    pub(crate) proxy: Proxy,
    engine: Engine,
}

enum Engine {
    Embedded { dir: TempDir, running: Option<(Broker, Log)> },
    Apache(Apache),
}

impl Server {
    pub(crate) async fn start() -> Self {
        let engine = Engine::Embedded { dir: tempfile::tempdir().unwrap(), running: None };
        let mut server = Self { proxy: Proxy::start().await, engine };
        server.up().await;
        server
    }

    /// Apache Kafka, whose clients are told of the proxy.
    pub(crate) async fn apache() -> Self {
        let proxy = Proxy::start().await;
        let node = Apache::start(&[&format!("advertise={}", proxy.address)]).await;
        proxy.lead_to(node.address);
        Self { proxy, engine: Engine::Apache(node) }
    }

    /// A server with a topic `trail` of one partition.
    pub(crate) async fn with_trail() -> Self {
        let server = Self::start().await;
        server.create_trail().await;
        server
    }

    pub(crate) async fn create_trail(&self) {
        self.create("trail", 1, &[]).await;
    }

    pub(crate) async fn create(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        let config = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let configs = configs.iter().map(config).collect();
        let topic = NewTopic { partitions, configs, ..NewTopic::of_one(name) };
        assert!(Admin::new(self.reader()).create_topic(&topic).await.unwrap());
    }

    /// Takes away what a test has made, and opens the line.
    pub(crate) async fn clear(&self) {
        self.proxy.set(Line::Open);
        let admin = Admin::new(self.reader());
        for topic in admin.topics().await.unwrap().into_iter().filter(|topic| !topic.internal) {
            admin.delete_topic(&topic.name).await.unwrap();
        }
    }

    pub(crate) fn bootstrap(&self) -> String {
        self.proxy.address.to_string()
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(&self.bootstrap())
    }

    pub(crate) fn log(&self) -> &Log {
        match &self.engine {
            Engine::Embedded { running, .. } => &running.as_ref().unwrap().1,
            Engine::Apache(_) => panic!("its log is not ours"),
        }
    }

    /// Stops as a kill does: connections end in the middle, the log is not closed.
    pub(crate) async fn down(&mut self) {
        self.proxy.set(Line::Closed);
        match &mut self.engine {
            Engine::Embedded { running, .. } => {
                if let Some((broker, _log)) = running.take() {
                    broker.shutdown().await;
                }
            }
            Engine::Apache(node) => node.kill().await,
        }
    }

    /// Starts on the data that is there.
    pub(crate) async fn up(&mut self) {
        let address = self.proxy.address;
        match &mut self.engine {
            Engine::Embedded { dir, running } => {
                let log = open(dir.path()).await;
                let mut config = BrokerConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
                config.advertise =
                    Some(Endpoint { host: address.ip().to_string(), port: address.port() });
                let coordinator = Coordinator::start(&log, CoordinatorConfig::default());
                let broker = Broker::start(config, log.clone(), coordinator).await.unwrap();
                self.proxy.lead_to(broker.local_addr());
                *running = Some((broker, log));
            }
            Engine::Apache(node) => node.resume().await,
        }
        self.proxy.set(Line::Open);
    }

    /// How often a test may start it anew: Apache Kafka takes seconds each time.
    pub(crate) fn restarts(&self) -> usize {
        match self.engine {
            Engine::Embedded { .. } => 4,
            Engine::Apache(_) => 2,
        }
    }

    pub(crate) async fn restart(&mut self) {
        self.down().await;
        self.up().await;
    }
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
