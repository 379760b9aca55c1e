//! Our own broker over its log, behind a proxy, stopped and started at will.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use highwater_broker::{Broker, BrokerConfig, Coordinator, CoordinatorConfig, Endpoint};
use highwater_kafka::{Admin, NewTopic, Reader};
use highwater_log::{Log, LogConfig, LogError, RealFileSystem};
use tempfile::TempDir;

use crate::proxy::{Line, Proxy};

pub(crate) struct Server {
    dir: TempDir,
    pub(crate) proxy: Proxy,
    running: Option<(Broker, Log)>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Self { dir, proxy: Proxy::start().await, running: None };
        server.up().await;
        server
    }

    /// A server with a topic `trail` of one partition.
    pub(crate) async fn with_trail() -> Self {
        let server = Self::start().await;
        server.create("trail", 1, &[]).await;
        server
    }

    pub(crate) async fn create(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        let config = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let configs = configs.iter().map(config).collect();
        let topic = NewTopic { name: name.to_owned(), partitions, configs };
        assert!(Admin::new(self.reader()).create_topic(&topic).await.unwrap());
    }

    pub(crate) fn bootstrap(&self) -> String {
        self.proxy.address.to_string()
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(&self.bootstrap())
    }

    pub(crate) fn log(&self) -> &Log {
        &self.running.as_ref().unwrap().1
    }

    /// Stops as a kill does: connections end in the middle, the log is not closed.
    pub(crate) async fn down(&mut self) {
        self.proxy.set(Line::Closed);
        if let Some((broker, _log)) = self.running.take() {
            broker.shutdown().await;
        }
    }

    /// Starts on the data that is there.
    pub(crate) async fn up(&mut self) {
        let log = open(self.dir.path()).await;
        let address = self.proxy.address;
        let mut config = BrokerConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        config.advertise = Some(Endpoint { host: address.ip().to_string(), port: address.port() });
        let coordinator = Coordinator::start(&log, CoordinatorConfig::default());
        let broker = Broker::start(config, log.clone(), coordinator).await.unwrap();
        self.proxy.lead_to(broker.local_addr());
        self.proxy.set(Line::Open);
        self.running = Some((broker, log));
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
