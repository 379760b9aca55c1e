//! The embedded log: the log itself, and the Kafka listeners in front of it.

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;
use std::time::Duration;

use highwater_access::Access;
use highwater_broker::{
    AutoCreate, Broker, BrokerConfig, BrokerError, Coordinator, Endpoint, Reach,
};
use highwater_kafka::{Bootstrap, Mechanism, Password, Sasl, Security};
use highwater_log::{Log, LogConfig, LogError, RealFileSystem};

use crate::copy_jobs::CopyJobs;
use crate::failure::{Exit, Failure};
use crate::http::Gate;
use crate::kafka_guard::OpenGuard;
use crate::open_files::OpenFiles;
use crate::readiness::Phase;
use crate::server::{blocking, watched};
use crate::settings::Settings;
use crate::shutdown::Stopping;
use crate::user_store::UserStore;

/// What the log has to close, where the other parts took all the time there was.
const LOG_PATIENCE: Duration = Duration::from_secs(10);

/// Kafka connections take at most one half of the open files.
const KAFKA_FILES: u64 = 2;

pub(crate) struct Embedded {
    pub(crate) log: Log,
    pub(crate) guard: OpenGuard,
    coordinator: Coordinator,
    broker: Broker,
    /// Where the server's own parts reach the log, whatever clients are told (rule L9).
    private: Broker,
    /// Who we are there: of this start alone.
    own: Security,
}

impl Embedded {
    pub(crate) async fn start(
        settings: &Settings,
        files: OpenFiles,
        gate: &Gate,
        users: &UserStore,
    ) -> Result<Self, Failure> {
        let log = watched(gate, open_log(settings, gate)).await?;
        gate.measure(log.clone(), settings.data_dir.clone());
        tokio::spawn(settings.log_limit.follow(log.clone(), settings.data_dir.clone()));
        gate.readiness.enter(Phase::Kafka);
        let coordinator = Coordinator::start(&log, settings.coordinators.clone());
        let listening = Self::listen(settings, files, users, &log, &coordinator).await;
        if listening.is_err() {
            // Else the next start would read everything to its end, and speak of a crash.
            coordinator.shutdown().await;
            let _ = blocking(move || log.close()).await;
        }
        listening
    }

    /// The listeners in front of the log.
    async fn listen(
        settings: &Settings,
        files: OpenFiles,
        users: &UserStore,
        log: &Log,
        coordinator: &Coordinator,
    ) -> Result<Self, Failure> {
        let (log, coordinator) = (log.clone(), coordinator.clone());
        let guard = settings.kafka_guard.open(users)?;
        let config = broker_config(settings, &guard, files);
        let broker = Broker::start(config, log.clone(), coordinator.clone())
            .await
            .map_err(|error| broker_failure("--kafka-listen", &error))?;
        tokio::spawn(guard.clone().follow());
        let (access, own) = Access::private();
        let mut config = BrokerConfig::local();
        config.access = Arc::new(access);
        let private = Broker::start(config, log.clone(), coordinator.clone())
            .await
            .map_err(|error| broker_failure("the private listener", &error))?;
        let own = Security::sasl(Sasl {
            mechanism: Mechanism::ScramSha256,
            username: own.name().to_owned(),
            password: Password::from(own.secret()),
        });
        Ok(Self { log, guard, coordinator, broker, private, own })
    }

    /// Where Kafka clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.broker.local_addr()
    }

    /// Where the server's own parts do.
    pub(crate) fn bootstrap(&self) -> Bootstrap {
        Bootstrap::new(self.private.local_addr().to_string()).with(self.own.clone())
    }

    /// Its backups and restores.
    pub(crate) fn copies(&self, settings: &Settings) -> Arc<CopyJobs> {
        let archive = settings.archive.as_ref().map(|archive| archive.dir.clone());
        CopyJobs::new(self.log.clone(), settings.backup_dir.clone(), archive)
    }

    pub(crate) async fn stop(self, stopping: &mut Stopping) -> Result<(), Failure> {
        stopping.part("the private Kafka listener", self.private.shutdown()).await;
        stopping.part("the Kafka connections", self.broker.shutdown()).await;
        stopping.part("the coordinators", self.coordinator.shutdown()).await;
        stopping.extend(LOG_PATIENCE);
        let log = self.log;
        let mut closed = Ok(());
        stopping
            .part("the log", async {
                closed = blocking(move || log.close())
                    .await
                    .and_then(|closed| closed.map_err(|error| log_failure(&error)));
            })
            .await;
        closed
    }
}

async fn open_log(settings: &Settings, gate: &Gate) -> Result<Log, Failure> {
    let dir = settings.data_dir.clone();
    // Connector configurations, with their passwords, are in the log: a new folder is ours alone.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.map_err(|error| {
        Failure::new(Exit::Failed, "DATA_DIR", format!("{}: {error}", dir.display()))
            .kept("nothing was started")
            .remedy("make the folder, or choose another one with --data-dir")
    })?;
    let total_max_bytes = settings.log_limit.bytes(&dir)?;
    let (archive, compaction) = (settings.archive.clone(), settings.compaction.clone());
    let fs = Arc::new(RealFileSystem);
    let config = LogConfig {
        total_max_bytes,
        archive,
        compaction,
        producer_id_expiration: settings.producer_id_expiration,
        retention_interval: settings.retention_interval,
        ..LogConfig::default()
    };
    let opening = gate.readiness.opening();
    blocking(move || Log::open_observed(fs, &dir, config, opening))
        .await?
        .map_err(|error| log_failure(&error))
}

fn log_failure(error: &LogError) -> Failure {
    Failure::new(Exit::Failed, error.code(), error.to_string())
}

fn broker_config(settings: &Settings, guard: &OpenGuard, files: OpenFiles) -> BrokerConfig {
    let mut config = BrokerConfig::new(settings.kafka_listen);
    guard.put_before(&mut config);
    let wanted = settings.kafka_max_connections;
    config.limits.connections = files.connections("kafka.max_connections", wanted, KAFKA_FILES);
    if settings.kafka_auto_create_topics {
        config.auto_create = AutoCreate::WhenAsked;
    }
    config.advertise = settings.kafka_advertise.clone().map(|(host, port)| Endpoint { host, port });
    // The settings refused what was not asked for in so many words (rule A2).
    config.reach = Reach::Anywhere;
    config
}

fn broker_failure(listener: &str, error: &BrokerError) -> Failure {
    Failure::new(Exit::Failed, error.code(), format!("{listener}: {error}"))
        .kept("nothing was started")
}
