//! `highwater server`: the parts, wired.
//!
//! Starting goes up the crate graph (log, broker, worker, streams, HTTP) and stopping goes down it,
//! so that nothing runs without what it stands on.

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use highwater_broker::{Broker, BrokerConfig, BrokerError, Endpoint, Reach};
use highwater_connector::SourceConnector;
use highwater_log::{Log, LogConfig, LogError, RealFileSystem};
use highwater_postgres::PostgresConnector;
use highwater_streams::{Streams, StreamsConfig};
use highwater_worker::{Worker, WorkerConfig};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cli::ServerFlags;
use crate::failure::{Exit, Failure};
use crate::http;
use crate::output;
use crate::settings::{self, Settings};

/// How long HTTP connections may take to end once the streams on them were closed.
const HTTP_PATIENCE: Duration = Duration::from_secs(3);

/// The source systems of this release: one line a system.
fn sources() -> Vec<Arc<dyn SourceConnector>> {
    vec![Arc::new(PostgresConnector::new())]
}

pub(crate) async fn run(flags: &ServerFlags) -> Result<(), Failure> {
    start_logging()?;
    let settings = settings::load(flags)?;
    allow_open_files();
    // Before anyone is told that the server is up, and may ask it to stop.
    let mut terminate = signal(SignalKind::terminate())?;
    let server = Server::start(&settings).await?;
    // The server goes on when nobody reads what it prints.
    let _ = server.announce(&settings);
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    let _ =
        output::line("stopping: the sources end at a transaction boundary, then the log closes");
    server.stop().await
}

fn start_logging() -> Result<(), Failure> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("HIGHWATER_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .try_init()
        .map_err(|error| Failure::new(Exit::Failed, "LOGGING", error.to_string()))
}

/// Takes as many open files as the system allows: a partition keeps three a segment open, and many
/// systems give a process 1,024 unless it asks.
fn allow_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::warn!(%error, "the limit of open files stays as it was");
    }
}

/// A running server.
struct Server {
    log: Log,
    broker: Broker,
    /// Where the server's own parts reach the log, whatever clients are told (rule L9).
    private: Broker,
    worker: Worker,
    streams: Streams,
    http_address: SocketAddr,
    http: JoinHandle<std::io::Result<()>>,
    stop_http: watch::Sender<bool>,
}

impl Server {
    async fn start(settings: &Settings) -> Result<Self, Failure> {
        let metrics = PrometheusBuilder::new()
            .install_recorder()
            .map_err(|error| Failure::new(Exit::Failed, "METRICS", error.to_string()))?;
        let listener = listen_http(settings.http_listen).await?;
        let http_address = listener.local_addr()?;
        let log = open_log(settings).await?;
        let broker = Broker::start(broker_config(settings), log.clone())
            .await
            .map_err(|error| broker_failure("--kafka-listen", &error))?;
        let private = Broker::start(BrokerConfig::local(), log.clone())
            .await
            .map_err(|error| broker_failure("the private listener", &error))?;
        let bootstrap = private.local_addr().to_string();
        let worker = start_worker(settings, &bootstrap, http_address).await?;
        let streams = start_streams(&bootstrap).await?;
        let parts = Router::new().merge(streams.router()).merge(worker.router());
        let router = http::router(parts, metrics, settings.allowed_hosts.clone());
        let (stop_http, stopping) = watch::channel(false);
        let http = tokio::spawn(serve(listener, router, stopping));
        Ok(Self { log, broker, private, worker, streams, http_address, http, stop_http })
    }

    fn announce(&self, settings: &Settings) -> std::io::Result<()> {
        let facts = [
            ("data folder", settings.data_dir.display().to_string()),
            ("Kafka clients", self.broker.local_addr().to_string()),
            ("REST and streams", format!("http://{}", self.http_address)),
            ("health", format!("http://{}/health", self.http_address)),
            ("metrics", format!("http://{}/metrics", self.http_address)),
        ];
        output::line(&format!("highwater {} is up", env!("CARGO_PKG_VERSION")))?;
        output::line(&output::facts(&facts))?;
        output::line("next: highwater connector create --file FILE")
    }

    async fn stop(self) -> Result<(), Failure> {
        self.streams.shutdown().await;
        self.worker.shutdown().await;
        let _ = self.stop_http.send(true);
        if tokio::time::timeout(HTTP_PATIENCE, self.http).await.is_err() {
            tracing::warn!("HTTP connections are cut: they took too long to end");
        }
        self.private.shutdown().await;
        self.broker.shutdown().await;
        let log = self.log;
        blocking(move || log.close()).await?.map_err(|error| log_failure(&error))
    }
}

async fn serve(
    listener: TcpListener,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) -> std::io::Result<()> {
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            // An error means that the server is gone, which is as good a reason to stop.
            let _ = stopping.wait_for(|stop| *stop).await;
        })
        .await
}

async fn listen_http(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::new(Exit::Failed, "HTTP_ADDRESS", format!("--http-listen {address}: {error}"))
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

async fn open_log(settings: &Settings) -> Result<Log, Failure> {
    let dir = settings.data_dir.clone();
    // Connector configurations, with their passwords, are in the log: a new folder is ours alone.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.map_err(|error| {
        Failure::new(Exit::Failed, "DATA_DIR", format!("{}: {error}", dir.display()))
            .kept("nothing was started")
            .remedy("make the folder, or choose another one with --data-dir")
    })?;
    blocking(move || Log::open(Arc::new(RealFileSystem), &dir, LogConfig::default()))
        .await?
        .map_err(|error| log_failure(&error))
}

fn log_failure(error: &LogError) -> Failure {
    Failure::new(Exit::Failed, error.code(), error.to_string())
}

fn broker_config(settings: &Settings) -> BrokerConfig {
    let mut config = BrokerConfig::new(settings.kafka_listen);
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
    config.offset_flush_interval = Duration::from_millis(settings.offset_flush_interval_ms);
    Worker::start(config, sources())
        .await
        .map_err(|error| Failure::new(Exit::Failed, "WORKER_START", error.to_string()))
}

async fn start_streams(bootstrap: &str) -> Result<Streams, Failure> {
    Streams::start(StreamsConfig::new(bootstrap))
        .await
        .map_err(|error| Failure::new(Exit::Failed, "STREAMS_START", error.to_string()))
}
