//! `highwater server`: the parts, wired.
//!
//! Starting goes up the crate graph (log, broker, worker, streams, HTTP) and stopping goes down it,
//! so that nothing runs without what it stands on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use highwater_connector::AllowedPaths;
use highwater_file::{FileSinkConnector, FileSourceConnector};
use highwater_kafka::{Bootstrap, KafkaError};
use highwater_postgres::PostgresConnector;
use highwater_streams::{Streams, StreamsConfig};
use highwater_worker::{Plugin, Worker, WorkerConfig, WorkerError};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use crate::announcement::{self, LogPlace, Places};
use crate::apache;
use crate::checkup::{Checked, Checkup};
use crate::cli::ServerFlags;
use crate::copy_jobs::CopyJobs;
use crate::embedded::Embedded;
use crate::failure::{Exit, Failure};
use crate::folders;
use crate::http::{self, Gate};
use crate::http_listener;
use crate::kafka;
use crate::log_levels::LogLevels;
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

/// Code of an HTTP address that cannot be listened on.
pub(crate) const HTTP_ADDRESS: &str = "HTTP_ADDRESS";

/// How often a start that takes long says how far it is.
const STARTING: Duration = Duration::from_secs(2);

/// HTTP connections take at most a tenth of the open files.
const HTTP_FILES: u64 = 10;

/// The connectors of a server, given where files may lie.
pub type Plugins = fn(AllowedPaths) -> Vec<Plugin>;

/// The connectors of this release: one line a system and direction.
pub fn plugins(allowed: AllowedPaths) -> Vec<Plugin> {
    vec![
        Plugin::Source(Arc::new(PostgresConnector::new())),
        Plugin::Source(Arc::new(FileSourceConnector::new(allowed.clone()))),
        Plugin::Sink(Arc::new(FileSinkConnector::new(allowed))),
    ]
}

pub(crate) async fn run(flags: &ServerFlags, plugins: Plugins) -> Result<(), Failure> {
    let settings = settings::load(flags)?;
    if flags.check {
        let users = settings.users()?;
        settings.http_guard.open(&users)?;
        match settings.apache {
            Some(_) => settings.sharing.check_files()?,
            None => drop(settings.kafka_guard.open(&users)?),
        }
        output::line(&settings.text())?;
        for warning in blocking(move || folders::check(&settings, plugins)).await? {
            output::note(&warning);
        }
        return Ok(());
    }
    let log_levels = logging::start(&settings)?;
    let files = OpenFiles::claim();
    // Before anyone is told that the server is up, and may ask it to stop.
    let mut asked = StopSignals::catch()?;
    let server = tokio::select! {
        server = Server::start(&settings, plugins, log_levels, files) => server?,
        () = asked.next() => {
            output::note("stopped while starting; the next start begins where this one did");
            return Ok(());
        }
    };
    // The server goes on when nobody reads what it prints.
    let _ = output::line(&announcement::text(&server.places(&settings)));
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
    /// The log, where a cluster does not keep it.
    embedded: Option<Embedded>,
    worker: Worker,
    streams: Streams,
    /// Backups, of an embedded log.
    copies: Option<Arc<CopyJobs>>,
    gate: Arc<Gate>,
    http_address: SocketAddr,
    http: JoinHandle<()>,
    stop_http: watch::Sender<bool>,
}

impl Server {
    async fn start(
        settings: &Settings,
        plugins: Plugins,
        log_levels: Arc<LogLevels>,
        files: OpenFiles,
    ) -> Result<Self, Failure> {
        let metrics = measures::record()
            .map_err(|error| Failure::new(Exit::Failed, "METRICS", error.to_string()))?;
        let users = settings.users()?;
        let guard = settings.http_guard.open(&users)?;
        let listener = listen_http(settings.http_listen).await?;
        let http_address = listener.local_addr()?;
        // HTTP comes first, so that whoever asks meanwhile is told how far the start has come.
        let gate = Arc::new(Gate::new());
        let allowed = settings.allowed_hosts.clone();
        let router = http::router(Arc::clone(&gate), metrics, allowed, guard.access());
        let (stop_http, stopping) = watch::channel(false);
        let connections =
            files.connections("http.max_connections", settings.http_max_connections, HTTP_FILES);
        let listening = http_listener::serve(listener, guard.tls(), router, connections, stopping);
        let http = tokio::spawn(listening);
        tokio::spawn(guard.clone().follow());

        let (embedded, bootstrap) = match &settings.apache {
            Some(cluster) => {
                gate.readiness.wait_for(format!("asking {cluster}"));
                watched(&gate, apache::reach(cluster, &gate.readiness)).await?;
                (None, cluster.clone())
            }
            None => {
                let embedded = Embedded::start(settings, files, &gate, &users).await?;
                let bootstrap = embedded.bootstrap();
                (Some(embedded), bootstrap)
            }
        };
        gate.readiness.enter(Phase::Worker);
        let worker =
            watched(&gate, start_worker(settings, plugins, log_levels, &bootstrap, http_address))
                .await?;
        gate.measure_tasks(worker.clone());
        gate.readiness.enter(Phase::Streams);
        let streams = watched(&gate, start_streams(settings, &bootstrap)).await?;
        let checked = match &embedded {
            Some(embedded) => Checked::Embedded {
                log: embedded.log.clone(),
                data_dir: settings.data_dir.clone(),
                guard: embedded.guard.clone(),
            },
            None => Checked::Cluster(bootstrap),
        };
        let kafka = embedded.as_ref().map(|embedded| ("--kafka-listen", embedded.address()));
        let listeners = kafka.into_iter().chain([("--http-listen", http_address)]).collect();
        let checkup = Checkup {
            one: Mutex::default(),
            http: guard,
            log: checked,
            worker: worker.clone(),
            streams: streams.clone(),
            listeners,
        };
        let copies = embedded.as_ref().map(|embedded| embedded.copies(settings));
        let ours = copies.as_ref().map_or_else(axum::Router::new, CopyJobs::router);
        let ours = ours.merge(checkup.router());
        gate.open(ours.merge(streams.router()).merge(worker.router()));
        Ok(Self { embedded, worker, streams, copies, gate, http_address, http, stop_http })
    }

    fn places(&self, settings: &Settings) -> Places {
        let log = match &self.embedded {
            Some(embedded) => LogPlace::Embedded {
                data_dir: settings.data_dir.clone(),
                kafka: embedded.address(),
                found: announcement::found(embedded.log.opening()),
            },
            None => LogPlace::Cluster(
                settings.apache.as_ref().map_or_else(String::new, apache::described),
            ),
        };
        Places {
            log,
            http: settings.reached_at(self.http_address),
            secure: settings.http_guard.is_secure(),
            login: settings.http_guard.asks(),
        }
    }

    async fn stop(self, within: Duration) -> Result<(), Failure> {
        self.gate.readiness.enter(Phase::Stopping);
        let mut stopping = Stopping::within(within);
        if let Some(copies) = &self.copies {
            copies.stop().await;
        }
        stopping.part("the streams' connections", self.streams.shutdown()).await;
        stopping.part("the connectors", self.worker.shutdown()).await;
        let _ = self.stop_http.send(true);
        stopping.part("the HTTP connections", end_http(self.http)).await;
        let closed = match self.embedded {
            Some(embedded) => embedded.stop(&mut stopping).await,
            None => Ok(()),
        };
        closed.and(stopping.done())
    }
}

/// Waits for a step of the start, and says from time to time how far it is.
pub(crate) async fn watched<T>(gate: &Gate, step: impl Future<Output = T>) -> T {
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

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::new(Exit::Failed, "PANIC", error.to_string()))
}

/// What connectors are checked against and run with.
pub(crate) fn worker_config(
    settings: &Settings,
    bootstrap: &Bootstrap,
    http: SocketAddr,
) -> WorkerConfig {
    let mut config = WorkerConfig::new(bootstrap, &http.to_string());
    config.offset_flush_interval = settings.offset_flush_interval;
    config.exactly_once = settings.exactly_once;
    config.group_id.clone_from(&settings.worker_group);
    settings.worker.apply(settings.allowed_paths(), &mut config);
    if settings.apache.is_some() {
        settings.sharing.apply(&mut config, http);
    }
    config
}

async fn start_worker(
    settings: &Settings,
    plugins: Plugins,
    log_levels: Arc<LogLevels>,
    bootstrap: &Bootstrap,
    http: SocketAddr,
) -> Result<Worker, Failure> {
    let mut config = worker_config(settings, bootstrap, http);
    config.loggers = log_levels;
    if settings.apache.is_some() {
        settings.sharing.check_files()?;
    }
    let started = Worker::start(config, plugins(settings.allowed_paths())).await;
    started.map_err(|error| match &error {
        WorkerError::Log { source, .. } => lasting(source)
            .unwrap_or_else(|| Failure::new(Exit::Failed, "WORKER_START", error.to_string())),
        WorkerError::GroupTaken { group, .. } => group_taken(group, &error),
    })
}

/// Two kinds of workers would run the same connectors.
fn group_taken(group: &str, error: &WorkerError) -> Failure {
    Failure::new(Exit::Refused, "WORKER_GROUP_TAKEN", error.to_string())
        .kept("everything: no connector was started and none was changed")
        .remedy(format!(
            "stop all workers of Kafka Connect whose group.id is {group} and start again, or set \
             another worker.group_id and three topics of its own"
        ))
}

/// A log that does not let us in, or does not allow it, says so under a code of its own.
fn lasting(error: &KafkaError) -> Option<Failure> {
    let denied = matches!(error, KafkaError::Authentication { .. }) || kafka::is_denied(error);
    denied.then(|| kafka::failure(error))
}

async fn start_streams(settings: &Settings, bootstrap: &Bootstrap) -> Result<Streams, Failure> {
    let mut config = StreamsConfig::new(bootstrap);
    config.limits.linger = settings.stream_linger;
    Streams::start(config)
        .await
        .map_err(|error| Failure::new(Exit::Failed, "STREAMS_START", error.to_string()))
}
