//! `highwater server`: the parts, wired.
//!
//! Starting goes up the crate graph (log, broker, worker, streams, HTTP) and stopping goes down it,
//! so that nothing runs without what it stands on.

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;
use std::time::Duration;

use highwater_broker::{
    Broker, BrokerConfig, BrokerError, Coordinator, CoordinatorConfig, Endpoint, Reach,
};
use highwater_connector::SourceConnector;
use highwater_log::{Log, LogConfig, LogError, RealFileSystem};
use highwater_postgres::PostgresConnector;
use highwater_streams::{Streams, StreamsConfig};
use highwater_worker::{Worker, WorkerConfig};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use crate::announcement::{self, Places};
use crate::checkup::Checkup;
use crate::cli::ServerFlags;
use crate::copy_jobs::CopyJobs;
use crate::failure::{Exit, Failure};
use crate::http::{self, Gate};
use crate::http_listener;
use crate::kafka_guard::OpenGuard;
use crate::logging;
use crate::measures;
use crate::open_files::OpenFiles;
use crate::output;
use crate::readiness::Phase;
use crate::service_manager;
use crate::settings::{self, Settings};
use crate::shutdown::{self, StopSignals, Stopping};

/// How long HTTP connections may take to end once the streams on them were closed.
const HTTP_PATIENCE: Duration = Duration::from_secs(3);

/// What the log has to close, where the other parts took all the time there was.
const LOG_PATIENCE: Duration = Duration::from_secs(10);

/// Code of an HTTP address that cannot be listened on.
pub(crate) const HTTP_ADDRESS: &str = "HTTP_ADDRESS";

/// How often a start that takes long says how far it is.
const STARTING: Duration = Duration::from_secs(2);

/// Kafka connections take at most one half of the open files, HTTP connections a tenth.
const KAFKA_FILES: u64 = 2;
const HTTP_FILES: u64 = 10;

/// The source systems of this release: one line a system.
fn sources() -> Vec<Arc<dyn SourceConnector>> {
    vec![Arc::new(PostgresConnector::new())]
}

pub(crate) async fn run(flags: &ServerFlags) -> Result<(), Failure> {
    let settings = settings::load(flags)?;
    if flags.check {
        return Ok(output::line(&settings.text())?);
    }
    logging::start(&settings)?;
    let files = OpenFiles::claim();
    // Before anyone is told that the server is up, and may ask it to stop.
    let mut asked = StopSignals::catch()?;
    let server = tokio::select! {
        server = Server::start(&settings, files) => server?,
        () = asked.next() => {
            output::note("stopped while starting; the next start begins where this one did");
            return Ok(());
        }
    };
    // The server goes on when nobody reads what it prints.
    let _ = output::line(&announcement::text(&server.places(&settings), server.log.opening()));
    service_manager::notify(service_manager::READY);
    asked.next().await;
    service_manager::notify(service_manager::STOPPING);
    let _ =
        output::line("stopping: the sources end at a transaction boundary, then the log closes");
    tokio::select! {
        stopped = server.stop(settings.shutdown_timeout) => stopped,
        () = asked.next() => Err(shutdown::at_once()),
    }
}

/// A running server.
struct Server {
    log: Log,
    coordinator: Coordinator,
    broker: Broker,
    /// Where the server's own parts reach the log, whatever clients are told (rule L9).
    private: Broker,
    worker: Worker,
    streams: Streams,
    copies: Arc<CopyJobs>,
    gate: Arc<Gate>,
    http_address: SocketAddr,
    http: JoinHandle<()>,
    stop_http: watch::Sender<bool>,
}

impl Server {
    async fn start(settings: &Settings, files: OpenFiles) -> Result<Self, Failure> {
        let metrics = measures::record()
            .map_err(|error| Failure::new(Exit::Failed, "METRICS", error.to_string()))?;
        let listener = listen_http(settings.http_listen).await?;
        let http_address = listener.local_addr()?;
        // HTTP comes first, so that whoever asks meanwhile is told how far the start has come.
        let gate = Arc::new(Gate::new());
        let router = http::router(Arc::clone(&gate), metrics, settings.allowed_hosts.clone());
        let (stop_http, stopping) = watch::channel(false);
        let connections =
            files.connections("http.max_connections", settings.http_max_connections, HTTP_FILES);
        let http = tokio::spawn(http_listener::serve(listener, router, connections, stopping));

        let log = watched(&gate, open_log(settings, &gate)).await?;
        gate.measure(log.clone(), settings.data_dir.clone());
        tokio::spawn(settings.log_limit.follow(log.clone(), settings.data_dir.clone()));
        gate.readiness.enter(Phase::Kafka);
        let guard = settings.kafka_guard.open()?;
        tokio::spawn(guard.clone().follow());
        let coordinator = Coordinator::start(&log, CoordinatorConfig::default());
        let config = broker_config(settings, &guard, files);
        let broker = Broker::start(config, log.clone(), coordinator.clone())
            .await
            .map_err(|error| broker_failure("--kafka-listen", &error))?;
        let private = Broker::start(BrokerConfig::local(), log.clone(), coordinator.clone())
            .await
            .map_err(|error| broker_failure("the private listener", &error))?;
        let bootstrap = private.local_addr().to_string();
        gate.readiness.enter(Phase::Worker);
        let worker = watched(&gate, start_worker(settings, &bootstrap, http_address)).await?;
        gate.readiness.enter(Phase::Streams);
        let streams = watched(&gate, start_streams(settings, &bootstrap)).await?;
        let checkup = Checkup {
            one: Mutex::default(),
            log: log.clone(),
            worker: worker.clone(),
            streams: streams.clone(),
            data_dir: settings.data_dir.clone(),
            kafka_guard: guard,
            listeners: [("--kafka-listen", broker.local_addr()), ("--http-listen", http_address)],
        };
        let archive = settings.archive.as_ref().map(|archive| archive.dir.clone());
        let copies = CopyJobs::new(log.clone(), settings.backup_dir.clone(), archive);
        let ours = checkup.router().merge(copies.router());
        gate.open(ours.merge(streams.router()).merge(worker.router()));
        Ok(Self {
            log,
            coordinator,
            broker,
            private,
            worker,
            streams,
            copies,
            gate,
            http_address,
            http,
            stop_http,
        })
    }

    fn places(&self, settings: &Settings) -> Places {
        Places {
            data_dir: settings.data_dir.clone(),
            kafka: self.broker.local_addr(),
            http: self.http_address,
        }
    }

    async fn stop(self, within: Duration) -> Result<(), Failure> {
        self.gate.readiness.enter(Phase::Stopping);
        let mut stopping = Stopping::within(within);
        self.copies.stop().await;
        stopping.part("the streams' connections", self.streams.shutdown()).await;
        stopping.part("the connectors", self.worker.shutdown()).await;
        let _ = self.stop_http.send(true);
        stopping.part("the HTTP connections", end_http(self.http)).await;
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
        closed.and(stopping.done())
    }
}

/// Waits for a step of the start, and says from time to time how far it is.
async fn watched<T>(gate: &Gate, step: impl Future<Output = T>) -> T {
    let mut step = std::pin::pin!(step);
    loop {
        match tokio::time::timeout(STARTING, &mut step).await {
            Ok(done) => return done,
            Err(_) => output::note(&gate.readiness.what()),
        }
    }
}

async fn end_http(mut http: JoinHandle<()>) {
    if tokio::time::timeout(HTTP_PATIENCE, &mut http).await.is_err() {
        tracing::warn!("HTTP connections are cut: they took too long to end");
        http.abort();
    }
}

async fn listen_http(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::new(Exit::Failed, HTTP_ADDRESS, format!("--http-listen {address}: {error}"))
            .kept("nothing was started")
            .remedy("stop who listens there, or choose another address with --http-listen")
    })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::new(Exit::Failed, "PANIC", error.to_string()))
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
    let (fs, config) = (
        Arc::new(RealFileSystem),
        LogConfig { total_max_bytes, archive: settings.archive.clone(), ..LogConfig::default() },
    );
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
    config.advertise = settings.kafka_advertise.clone().map(|(host, port)| Endpoint { host, port });
    // The settings refused what was not asked for in so many words (rule A2).
    config.reach = Reach::Anywhere;
    config
}

fn broker_failure(listener: &str, error: &BrokerError) -> Failure {
    Failure::new(Exit::Failed, error.code(), format!("{listener}: {error}"))
        .kept("nothing was started")
}

async fn start_worker(
    settings: &Settings,
    bootstrap: &str,
    http: SocketAddr,
) -> Result<Worker, Failure> {
    let mut config = WorkerConfig::new(bootstrap, &http.to_string());
    config.offset_flush_interval = settings.offset_flush_interval;
    Worker::start(config, sources())
        .await
        .map_err(|error| Failure::new(Exit::Failed, "WORKER_START", error.to_string()))
}

async fn start_streams(settings: &Settings, bootstrap: &str) -> Result<Streams, Failure> {
    let mut config = StreamsConfig::new(bootstrap);
    config.limits.linger = settings.stream_linger;
    Streams::start(config)
        .await
        .map_err(|error| Failure::new(Exit::Failed, "STREAMS_START", error.to_string()))
}
