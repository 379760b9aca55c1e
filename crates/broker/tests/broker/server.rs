//! A broker over a log in a folder of its own.

use std::sync::Arc;

use highwater_broker::{
    Broker, BrokerConfig, BrokerError, Coordinator, CoordinatorConfig, GroupSettings,
};
use highwater_log::{Log, LogConfig, Partition, RealFileSystem, TopicConfig};
use tempfile::TempDir;

use crate::client::Client;

pub(crate) struct Server {
    pub(crate) broker: Broker,
    pub(crate) log: Log,
    pub(crate) coordinator: Coordinator,
    pub(crate) dir: TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut BrokerConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::start_in(dir, LogConfig::default(), change).await
    }

    /// With other settings of groups, also after a restart.
    pub(crate) async fn with_groups(groups: GroupSettings) -> Self {
        Self::with_coordinators(CoordinatorConfig { groups, ..CoordinatorConfig::default() }).await
    }

    /// With other bounds of both coordinators.
    pub(crate) async fn with_coordinators(coordinators: CoordinatorConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::start_whole(dir, LogConfig::default(), BrokerConfig::local(), coordinators).await
    }

    /// A log that syncs only when it is told to.
    pub(crate) async fn without_flush() -> Self {
        let config = LogConfig { flush_threads: 0, housekeeping: None, ..LogConfig::default() };
        Self::start_in(tempfile::tempdir().unwrap(), config, |_| {}).await
    }

    async fn start_in(
        dir: TempDir,
        log_config: LogConfig,
        change: impl FnOnce(&mut BrokerConfig),
    ) -> Self {
        let mut config = BrokerConfig::local();
        change(&mut config);
        Self::start_whole(dir, log_config, config, CoordinatorConfig::default()).await
    }

    async fn start_whole(
        dir: TempDir,
        log_config: LogConfig,
        config: BrokerConfig,
        coordinators: CoordinatorConfig,
    ) -> Self {
        let log = Log::open(Arc::new(RealFileSystem), dir.path(), log_config).unwrap();
        let coordinator = Coordinator::start(&log, coordinators);
        let started = Broker::start(config, log.clone(), coordinator.clone());
        let broker = started.await.unwrap();
        Self { broker, log, coordinator, dir }
    }

    /// Stops all, changes the folder, and starts again.
    pub(crate) async fn restart(self, change: impl FnOnce(&std::path::Path)) -> Self {
        let Self { broker, log, coordinator, dir } = self;
        broker.shutdown().await;
        coordinator.shutdown().await;
        drop(coordinator);
        log.close().unwrap();
        drop(log);
        change(dir.path());
        Self::start_in(dir, LogConfig::default(), |_| {}).await
    }

    /// One more broker in front of the same log.
    pub(crate) async fn another(&self, config: BrokerConfig) -> Result<Broker, BrokerError> {
        Broker::start(config, self.log.clone(), self.coordinator.clone()).await
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.broker.local_addr()).await
    }

    /// A topic of one partition.
    pub(crate) fn topic(&self, name: &str) -> Arc<Partition> {
        self.topic_with(name, 1, &[])
    }

    /// A topic; its first partition.
    pub(crate) fn topic_with(
        &self,
        name: &str,
        partitions: i32,
        settings: &[(&str, &str)],
    ) -> Arc<Partition> {
        let texts = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let config = TopicConfig::parse(texts.collect()).unwrap();
        self.log.create_topic(name, partitions, config).unwrap();
        self.partition(name, 0)
    }

    pub(crate) fn partition(&self, name: &str, index: i32) -> Arc<Partition> {
        self.log.partition(name, index).unwrap()
    }
}
