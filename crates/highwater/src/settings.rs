//! Settings of `highwater server`: the file, the flags over it, and the defaults under both.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use highwater_broker::CoordinatorConfig;
use highwater_connector::{
    AllowedPaths, Config, ConfigDef, ConfigKey, Importance, KeyType, Problem,
};
use highwater_kafka::Bootstrap;
use highwater_log::{ArchiveConfig, CompactionConfig};
use highwater_worker::ExactlyOnceSupport;

use crate::apache;
use crate::cli::{LogFormat, ServerFlags};
use crate::compaction_settings;
use crate::coordinator_settings;
use crate::copy_settings;
use crate::failure::Failure;
use crate::guard;
use crate::http_guard::{self, HttpGuard};
use crate::kafka;
use crate::kafka_guard::{self, KafkaGuard};
use crate::log_limit::LogLimit;
use crate::output;
use crate::sharing_settings::{self, SharingSettings};
use crate::user_store::UserStore;
use crate::worker_settings::{self, WorkerSettings};

/// What the server runs with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    /// The cluster that keeps the log; none where the embedded log does.
    pub(crate) apache: Option<Bootstrap>,
    pub(crate) kafka_listen: SocketAddr,
    pub(crate) kafka_advertise: Option<(String, u16)>,
    pub(crate) kafka_max_connections: usize,
    pub(crate) kafka_auto_create_topics: bool,
    pub(crate) kafka_guard: KafkaGuard,
    pub(crate) http_guard: HttpGuard,
    pub(crate) http_listen: SocketAddr,
    pub(crate) http_max_connections: usize,
    /// HOST[:PORT] under which HTTP is reached, where it is not the listener.
    pub(crate) http_advertise: Option<String>,
    /// Host names beside loopback that the HTTP listener answers to, in lower case.
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) log_limit: LogLimit,
    pub(crate) producer_id_expiration: Duration,
    pub(crate) retention_interval: Duration,
    /// Where closed segments are kept before they are removed.
    pub(crate) archive: Option<ArchiveConfig>,
    /// Below which the server writes backups.
    pub(crate) backup_dir: Option<PathBuf>,
    pub(crate) compaction: CompactionConfig,
    pub(crate) coordinators: CoordinatorConfig,
    pub(crate) offset_flush_interval: Duration,
    /// Folders below which connectors may open files.
    pub(crate) allowed_paths: Vec<PathBuf>,
    pub(crate) exactly_once: ExactlyOnceSupport,
    /// Name of the group of workers.
    pub(crate) worker_group: String,
    pub(crate) worker: WorkerSettings,
    pub(crate) sharing: SharingSettings,
    pub(crate) stream_linger: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) log_format: LogFormat,
    /// Directives of `tracing-subscriber`, such as `highwater_worker=debug,info`.
    pub(crate) log_level: String,
}

impl Settings {
    /// The users, for all listeners.
    pub(crate) fn users(&self) -> Result<UserStore, Failure> {
        UserStore::open(self.kafka_guard.users_file.as_deref())
    }

    /// Where connectors may open files.
    pub(crate) fn allowed_paths(&self) -> AllowedPaths {
        AllowedPaths::new(ALLOWED_PATHS, self.allowed_paths.clone())
    }

    /// HOST:PORT under which clients reach HTTP that listens at `address`. What a listener on loopback
    /// without TLS advertises is the address of who stands before it.
    pub(crate) fn reached_at(&self, address: SocketAddr) -> String {
        let is_before = !address.ip().is_loopback() || self.http_guard.is_secure();
        match self.http_advertise.as_ref().filter(|_| is_before) {
            None => address.to_string(),
            Some(host) if has_port(host) => host.clone(),
            Some(host) => format!("{host}:{}", address.port()),
        }
    }

    /// What `highwater server --check` says.
    pub(crate) fn text(&self) -> String {
        let advertised = |host: &Option<(String, u16)>| match host {
            Some((host, port)) => format!(", advertised as {host}:{port}"),
            None => String::new(),
        };
        let log = match &self.apache {
            Some(cluster) => vec![("log", apache::described(cluster))],
            None => vec![
                ("data folder", self.data_dir.display().to_string()),
                (
                    "Kafka clients",
                    format!("{}{}", self.kafka_listen, advertised(&self.kafka_advertise)),
                ),
                ("Kafka listener", self.kafka_guard.text()),
                ("the log holds at most", self.log_limit.to_string()),
                ("archive", folder(self.archive.as_ref().map(|archive| &archive.dir))),
                ("backups below", folder(self.backup_dir.as_ref())),
            ],
        };
        let http = match &self.http_advertise {
            Some(host) => format!("{}, advertised as {host}", self.http_listen),
            None => self.http_listen.to_string(),
        };
        let others = [
            ("HTTP", http),
            ("HTTP listener", self.http_guard.text()),
            ("further Host names", listed(&self.allowed_hosts)),
            ("offset flush", format!("{:?}", self.offset_flush_interval)),
            ("group of workers", self.worker_group.clone()),
            ("topics of state", self.sharing.topics().join(", ")),
            ("connectors of files", folder(self.worker.connectors_dir())),
            ("files of connectors", below(&self.allowed_paths)),
            ("exactly-once sources", self.exactly_once.name().to_owned()),
            ("stream linger", format!("{:?}", self.stream_linger)),
            ("shutdown within", format!("{:?}", self.shutdown_timeout)),
            ("log lines", format!("{:?}, {}", self.log_format, self.log_level).to_lowercase()),
        ];
        let facts = [log, Vec::from(others)].concat();
        format!("the settings are valid\n{}", output::facts(&facts))
    }
}

fn below(folders: &[PathBuf]) -> String {
    let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    if folders.is_empty() { "none".to_owned() } else { format!("below {}", folders.join(", ")) }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Whether HOST[:PORT] has a port; the colons of an IPv6 address stand in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit(']').next().is_some_and(|end| end.contains(':'))
}

fn folder(dir: Option<&PathBuf>) -> String {
    dir.map_or_else(|| "none".to_owned(), |dir| dir.display().to_string())
}

/// Keys of the file with a table in front, such as `kafka.listen`, and their values.
type Values = BTreeMap<String, String>;

const DATA_DIR: &str =
    "Folder of the log; made when missing; one server at a time. Flag --data-dir.";
const KAFKA_CONNECTIONS: &str = "Connections of Kafka clients open at once, at most half of the open files that the system allows. Where all are taken, the oldest one that has not brought a request yet makes room.";
const AUTO_CREATE: &str = "Whether a topic that a Kafka client names and that is not there is made, with one partition and default settings, where the client asks for that and may make it. Kafka's auto.create.topics.enable, whose default is true.";
const HTTP_CONNECTIONS: &str = "HTTP connections open at once, WebSockets apart, at most a tenth of the open files. Where all are taken, the oldest one that has not brought a request yet makes room.";
const PRODUCER_EXPIRATION: &str = "How long a partition remembers a producer that is silent, so that what it sends again is not appended again, in milliseconds; one whose transaction is open is never forgotten. Kafka's producer.id.expiration.ms.";
/// Key of the folders below which connectors may open files (rule A4).
pub(crate) const ALLOWED_PATHS: &str = "worker.allowed_paths";
const ALLOWED_PATHS_TEXT: &str = "Folders below which file connectors may read and write, and references such as ${file:PATH:KEY} may lead, symbolic links followed. Whoever may make connectors can read and write all that the server's user can there: never a folder with the server's own data, configuration or keys. Empty: no file is opened for a connector.";
const MILLIS: KeyType = KeyType::Int { min: 1, max: i64::MAX };
const CONNECTIONS: KeyType = KeyType::Int { min: 1, max: 1_000_000 };

/// The keys of the configuration file, in the order of the reference.
pub(crate) fn definition() -> ConfigDef {
    let mut keys = keys();
    keys.extend(keys_of_parts());
    keys.extend(worker_settings::keys());
    keys.extend(sharing_settings::keys());
    keys.extend(compaction_settings::keys());
    keys.extend(copy_settings::keys());
    keys.extend(coordinator_settings::keys());
    keys.extend(kafka_guard::keys());
    keys.extend(http_guard::keys());
    keys.extend(apache::keys());
    ConfigDef::new(keys)
}

fn keys() -> Vec<ConfigKey> {
    use Importance::{High, Low, Medium};
    let key = ConfigKey::new;
    vec![
        key("data_dir", KeyType::String, Some("highwater-data"), High, DATA_DIR),
        key(
            "kafka.listen",
            KeyType::String,
            Some("127.0.0.1:9092"),
            High,
            "Address for Kafka clients. Flag --kafka-listen.",
        ),
        key(
            "kafka.advertise",
            KeyType::String,
            Some(""),
            Medium,
            "HOST:PORT that Kafka clients are told. Empty: the listener; required for a wildcard listener. Flag --kafka-advertise.",
        ),
        key("kafka.max_connections", CONNECTIONS, Some("10000"), Low, KAFKA_CONNECTIONS),
        key("kafka.auto_create_topics", KeyType::Boolean, Some("false"), Medium, AUTO_CREATE),
        key(
            "http.listen",
            KeyType::String,
            Some("127.0.0.1:8083"),
            High,
            "Address for REST, streams, health and metrics. Flag --http-listen.",
        ),
        key(
            "http.advertise",
            KeyType::String,
            Some(""),
            Medium,
            "HOST[:PORT] under which HTTP is reached. Empty: the listener; required for a wildcard listener. Flag --http-advertise.",
        ),
        key(
            "http.allowed_hosts",
            KeyType::List,
            Some(""),
            Low,
            "Further names that a request's Host may bear; loopback names always may.",
        ),
        key("http.max_connections", CONNECTIONS, Some("1000"), Low, HTTP_CONNECTIONS),
        key(
            "insecure_listen",
            KeyType::Boolean,
            Some("false"),
            Medium,
            "Allows listeners beyond loopback without TLS and authentication, which are http.tls.cert or kafka.tls.cert, and access.users_file. Flag --insecure-listen.",
        ),
    ]
}

fn keys_of_parts() -> Vec<ConfigKey> {
    use Importance::{High, Low, Medium};
    let key = ConfigKey::new;
    let millis = |min, max| KeyType::Int { min, max };
    vec![
        key(
            "log.total_max_bytes",
            KeyType::String,
            Some("80%"),
            High,
            "The most that all topics may hold together: bytes, a share of the volume on which the data folder lies, such as 80%, or -1 for as much as fits. At the limit a write is refused with LOG_NO_SPACE, to be tried again, and reads go on; nothing goes that a topic's own retention would keep.",
        ),
        key("log.producer_id_expiration_ms", MILLIS, Some("86400000"), Low, PRODUCER_EXPIRATION),
        key(
            "log.retention_interval_ms",
            millis(100, 86_400_000),
            Some("300000"),
            Low,
            "How often topics are looked at for what their retention lets go, and for producers to forget, in milliseconds. Kafka's log.retention.check.interval.ms.",
        ),
        key(
            "worker.offset_flush_interval_ms",
            millis(10, 3_600_000),
            Some("1000"),
            Medium,
            "Longest time between an acknowledgement and the offset record that covers it, in milliseconds.",
        ),
        key(ALLOWED_PATHS, KeyType::List, Some(""), Medium, ALLOWED_PATHS_TEXT),
        key(
            "worker.exactly_once_source_support",
            KeyType::Choice(&ExactlyOnceSupport::NAMES),
            Some("disabled"),
            Medium,
            "Whether source connectors write records and positions in one transaction: disabled, preparing (as disabled, and it fences for servers of its group that are enabled already), enabled, or required (as enabled, and a connector that cannot go on exactly where it stopped is refused). Kafka Connect's exactly.once.source.support.",
        ),
        key(
            "worker.group_id",
            KeyType::String,
            Some("highwater"),
            Medium,
            "Name of the group of workers on a cluster: transactional ids begin with it, and two groups on one cluster need two names. Kafka Connect's group.id.",
        ),
        key(
            "streams.linger_ms",
            millis(0, 1_000),
            Some("5"),
            Low,
            "Longest time that a record of a data stream waits for others to share its message, in milliseconds. It waits only while more records are at hand: when there is nothing more, or the message is full, it goes at once.",
        ),
        key(
            "shutdown_timeout_ms",
            millis(1_000, 3_600_000),
            Some("30000"),
            Medium,
            "What the parts have, all together, to end when the server is asked to stop, in milliseconds; each has at least 1000, and the log 10000 to close. What did not end is named, and the exit code is 1. A second signal ends the server at once.",
        ),
        key(
            "logging.format",
            KeyType::Choice(&["text", "json"]),
            Some("text"),
            Medium,
            "How log lines look on standard error: text for people, json for programs, one object a line. Flag --log-format.",
        ),
        key(
            "logging.level",
            KeyType::String,
            Some("info"),
            Medium,
            "Least level of the log lines: error, warn, info, debug, trace, or one for each part, such as highwater_worker=debug,info. Flag --log-level; the environment variable HIGHWATER_LOG stands for it.",
        ),
    ]
}

/// A connector that may write into the data folder could rewrite the log.
fn allowed_paths(config: &Config) -> Result<Vec<PathBuf>, Problem> {
    let paths = config.list(ALLOWED_PATHS);
    paths.iter().try_for_each(|path| copy_settings::apart(ALLOWED_PATHS, path, config))?;
    Ok(paths.into_iter().map(PathBuf::from).collect())
}

/// Reads the file, if one is named, and lays the flags over it.
pub(crate) fn load(flags: &ServerFlags) -> Result<Settings, Failure> {
    let Some(path) = &flags.config else { return settings(flags, Values::new(), "the flags") };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("{} cannot be read: {error}", path.display()))
            .remedy("name a file with --config, or leave it out: every setting has a default")
    })?;
    let place = path.display().to_string();
    settings(flags, read(&text, path)?, &place)
}

fn read(text: &str, path: &Path) -> Result<Values, Failure> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        // Not the error's own text: it quotes the line, which may hold a secret.
        let before = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..before].iter().filter(|byte| **byte == b'\n').count() + 1;
        invalid(&format!("{} line {line}: {}", path.display(), error.message()))
    })?;
    let (mut values, mut problems) = (Values::new(), Vec::new());
    flatten("", table, &mut values, &mut problems);
    if problems.is_empty() {
        Ok(values)
    } else {
        Err(refused(&path.display().to_string(), &problems))
    }
}

/// Writes the table's entries as flat keys and texts.
fn flatten(prefix: &str, table: toml::Table, values: &mut Values, problems: &mut Vec<Problem>) {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        match value {
            toml::Value::Table(inner) => flatten(&format!("{key}."), inner, values, problems),
            value => match text(&value) {
                Some(text) => drop(values.insert(key, text)),
                None => problems.push(Problem {
                    key,
                    message:
                        "is a list of lists or tables; it must be one value or a list of texts"
                            .to_owned(),
                }),
            },
        }
    }
}

fn text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Array(items) => {
            let items: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            items.map(|items| items.join(","))
        }
        toml::Value::Table(_) => None,
        other => Some(other.to_string()),
    }
}

fn settings(flags: &ServerFlags, mut values: Values, place: &str) -> Result<Settings, Failure> {
    values.extend(flags.values());
    let apache = apache(&values, place)?;
    let config = definition().parse(&values, &[]).map_err(|problems| refused(place, &problems))?;
    let kafka_listen = address(&config, "kafka.listen", place)?;
    let http_listen = address(&config, "http.listen", place)?;
    let given =
        |key: &str| Some(config.text(key).trim().to_owned()).filter(|text| !text.is_empty());
    let (kafka_advertise, http_advertise) = (given("kafka.advertise"), given("http.advertise"));
    let insecure = config.flag("insecure_listen");
    let kafka_guard = KafkaGuard::of(&config)
        .map_err(|(key, message)| refused(place, &[Problem { key: key.to_owned(), message }]))?;
    let http_guard = HttpGuard::of(&config, kafka_guard.users_file.is_some())
        .map_err(|(key, message)| refused(place, &[Problem { key: key.to_owned(), message }]))?;
    let guarded = insecure || http_guard.is_whole();
    check_listener("--http-listen", http_listen, http_advertise.as_deref(), guarded)?;
    if apache.is_none() {
        let guarded = insecure || kafka_guard.is_whole();
        check_listener("--kafka-listen", kafka_listen, kafka_advertise.as_deref(), guarded)?;
        check_ports(kafka_listen, http_listen)?;
    }
    let sharing = SharingSettings::of(&config).map_err(|problem| refused(place, &[problem]))?;
    let mut allowed_hosts: Vec<String> =
        config.list("http.allowed_hosts").into_iter().map(str::to_owned).collect();
    allowed_hosts.extend(http_advertise.as_deref().map(advertised_host).transpose()?);
    if let Some(host) = sharing.host().filter(|host| !allowed_hosts.contains(host)) {
        allowed_hosts.push(host);
    }
    if !http_listen.ip().is_loopback() && !http_listen.ip().is_unspecified() {
        allowed_hosts.push(http_listen.ip().to_string());
    }
    Ok(Settings {
        data_dir: config.text("data_dir").into(),
        apache,
        kafka_listen,
        kafka_advertise: kafka_advertise.as_deref().map(host_and_port).transpose()?,
        kafka_max_connections: connections(&config, "kafka.max_connections"),
        kafka_auto_create_topics: config.flag("kafka.auto_create_topics"),
        kafka_guard,
        http_guard,
        http_listen,
        http_max_connections: connections(&config, "http.max_connections"),
        http_advertise,
        allowed_hosts: allowed_hosts.iter().map(|name| name.to_ascii_lowercase()).collect(),
        log_limit: log_limit(&config, place)?,
        producer_id_expiration: config.millis("log.producer_id_expiration_ms"),
        retention_interval: config.millis("log.retention_interval_ms"),
        archive: copy_settings::archive(&config).map_err(|problem| refused(place, &[problem]))?,
        backup_dir: copy_settings::backups(&config)
            .map_err(|problem| refused(place, &[problem]))?,
        compaction: compaction_settings::config(&config),
        coordinators: coordinator_settings::config(&config)
            .map_err(|problem| refused(place, &[problem]))?,
        offset_flush_interval: config.millis("worker.offset_flush_interval_ms"),
        allowed_paths: allowed_paths(&config).map_err(|problem| refused(place, &[problem]))?,
        exactly_once: ExactlyOnceSupport::from_name(
            config.text("worker.exactly_once_source_support"),
        )
        .unwrap_or_default(),
        worker_group: worker_group(&config, place)?,
        worker: WorkerSettings::of(&config).map_err(|problems| refused(place, &problems))?,
        sharing,
        stream_linger: config.millis("streams.linger_ms"),
        shutdown_timeout: config.millis("shutdown_timeout_ms"),
        log_format: if config.text("logging.format") == "json" {
            LogFormat::Json
        } else {
            LogFormat::Text
        },
        log_level: log_level(&config, place)?,
    })
}

/// A name that transactional ids can begin with.
fn worker_group(config: &Config, place: &str) -> Result<String, Failure> {
    const KEY: &str = "worker.group_id";
    let name = config.text(KEY);
    if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
        let message = "must be 1 to 255 bytes without control characters".to_owned();
        return Err(refused(place, &[Problem { key: KEY.to_owned(), message }]));
    }
    Ok(name.to_owned())
}

/// The cluster that keeps the log. What only the embedded log has is refused by name beside it.
fn apache(values: &Values, place: &str) -> Result<Option<Bootstrap>, Failure> {
    let given = |key: &str| values.get(key).map(|text| text.trim()).filter(|text| !text.is_empty());
    let Some(addresses) = given("kafka.bootstrap") else {
        let of_cluster = values.keys().find(|key| sharing_settings::is_of_cluster(key));
        if let Some(key) = of_cluster {
            return Err(invalid(&format!(
                "{place}: {key} is for servers that share a cluster, kafka.bootstrap (--kafka), \
                 which is missing"
            )));
        }
        return match given("kafka.config") {
            Some(_) => Err(invalid(&format!(
                "{place}: kafka.config is for kafka.bootstrap (--kafka), which is missing"
            ))),
            None => Ok(None),
        };
    };
    let idle = values.keys().filter(|key| is_embedded(key)).map(String::as_str);
    let idle: Vec<&str> = idle.collect();
    if !idle.is_empty() {
        return Err(invalid(&format!(
            "{place}: {} only the embedded log has, and --kafka {addresses} takes its place",
            idle.join(", ")
        ))
        .remedy("remove them, or remove --kafka"));
    }
    let config = given("kafka.config").map(Path::new);
    kafka::bootstrap("--kafka", addresses, config)
        .map(Some)
        .map_err(|failure| failure.kept("nothing was started"))
}

/// Whether a key is for the embedded log alone.
fn is_embedded(key: &str) -> bool {
    const TABLES: [&str; 3] = ["log.", "archive.", "backup."];
    let of_kafka = key.starts_with("kafka.") && key != "kafka.bootstrap" && key != "kafka.config";
    key == "data_dir" || of_kafka || TABLES.iter().any(|table| key.starts_with(table))
}

/// The definition bounds the number.
fn connections(config: &Config, key: &str) -> usize {
    usize::try_from(config.int(key)).unwrap_or(usize::MAX)
}

fn address(config: &Config, key: &str, place: &str) -> Result<SocketAddr, Failure> {
    let text = config.text(key);
    text.parse().map_err(|_| {
        let message =
            format!("is {text:?}; it must be an address and a port, such as 127.0.0.1:9092");
        refused(place, &[Problem { key: key.to_owned(), message }])
    })
}

/// A level, or levels by part of the program. A bare word that is no level would be taken for the
/// name of a part, and everything else be silent.
fn log_level(config: &Config, place: &str) -> Result<String, Failure> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let level = config.text("logging.level");
    let is_level = |word: &str| LEVELS.iter().any(|known| known.eq_ignore_ascii_case(word));
    let bare = |word: &&str| !word.contains(['=', '[']) && !is_level(word.trim());
    let wrong = match tracing_subscriber::EnvFilter::try_new(level) {
        Ok(_) => level.split(',').find(bare).map(|word| format!("{word:?} is no level")),
        Err(error) => Some(error.to_string()),
    };
    let Some(wrong) = wrong else { return Ok(level.to_owned()) };
    let message = format!("is {level:?}: {wrong}; it must be one of {}", LEVELS.join(", "));
    Err(refused(place, &[Problem { key: "logging.level".to_owned(), message }]))
}

fn log_limit(config: &Config, place: &str) -> Result<LogLimit, Failure> {
    let text = config.text("log.total_max_bytes").trim();
    LogLimit::parse(text).ok_or_else(|| {
        let message =
            format!("is {text:?}; it must be bytes from 1048576, 1% to 100% of the volume, or -1");
        refused(place, &[Problem { key: "log.total_max_bytes".to_owned(), message }])
    })
}

/// Two listeners cannot share an address.
fn check_ports(kafka: SocketAddr, http: SocketAddr) -> Result<(), Failure> {
    if kafka.port() != 0 && kafka == http {
        return Err(invalid(&format!("--kafka-listen and --http-listen are both {kafka}"))
            .remedy("give one of them another port"));
    }
    Ok(())
}

fn refused(place: &str, problems: &[Problem]) -> Failure {
    let texts: Vec<String> =
        problems.iter().map(|problem| format!("{} {}", problem.key, problem.message)).collect();
    invalid(&format!("{place}: {}", texts.join("; ")))
}

fn invalid(what: &str) -> Failure {
    Failure::new(crate::failure::Exit::Usage, "SETTINGS_INVALID", what)
        .kept("nothing was started")
        .remedy("correct it; docs/reference/configuration.md names every key, and `highwater server --check` tries the file")
}

/// Rules A2 and L9: what lies beyond loopback must be asked for in so many words.
fn check_listener(
    flag: &str,
    address: SocketAddr,
    advertise: Option<&str>,
    allowed: bool,
) -> Result<(), Failure> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    if !allowed {
        return Err(invalid(&format!(
            "{flag} {address} is beyond loopback, and this listener has not both TLS and authentication"
        ))
        .remedy(guard_it(flag)));
    }
    if address.ip().is_unspecified() && advertise.is_none() {
        let advertise_flag = flag.replace("listen", "advertise");
        return Err(invalid(&format!(
            "{flag} {address} listens everywhere, so clients cannot be told where to connect"
        ))
        .remedy(format!("add {advertise_flag} HOST:PORT")));
    }
    Ok(())
}

fn guard_it(flag: &str) -> &'static str {
    match flag {
        "--kafka-listen" => {
            "give kafka.tls.cert, kafka.tls.key and access.users_file, or listen on 127.0.0.1, or add --insecure-listen on a network that you trust"
        }
        _ => {
            "give http.tls.cert, http.tls.key and access.users_file, or listen on 127.0.0.1, or add --insecure-listen on a network that you trust"
        }
    }
}

/// The users file that a configuration file names.
pub(crate) fn users_file(config: &Path) -> Result<Option<PathBuf>, Failure> {
    let flags = ServerFlags { config: Some(config.to_owned()), ..ServerFlags::default() };
    Ok(load(&flags)?.kafka_guard.users_file)
}

fn advertised_host(text: &str) -> Result<String, Failure> {
    guard::host_name(text)
        .ok_or_else(|| invalid(&format!("--http-advertise {text} is not HOST[:PORT]")))
}

fn host_and_port(text: &str) -> Result<(String, u16), Failure> {
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    guard::host_name(text)
        .filter(|host| !host.is_empty())
        .zip(port)
        .ok_or_else(|| invalid(&format!("--kafka-advertise {text} is not HOST:PORT")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(flags: ServerFlags, file: &str) -> Result<Settings, Failure> {
        settings(&flags, read(file, Path::new("test.toml"))?, "test.toml")
    }

    fn refusal(file: &str) -> String {
        let failure = with(ServerFlags::default(), file).unwrap_err();
        assert_eq!(failure.code, "SETTINGS_INVALID");
        failure.what
    }

    fn flags(kafka_listen: &str) -> ServerFlags {
        ServerFlags { kafka_listen: Some(kafka_listen.parse().unwrap()), ..ServerFlags::default() }
    }

    #[test]
    fn defaults_are_loopback() {
        let settings = with(ServerFlags::default(), "").unwrap();
        assert_eq!(settings.kafka_listen.to_string(), "127.0.0.1:9092");
        assert_eq!(settings.http_listen.to_string(), "127.0.0.1:8083");
        assert_eq!(settings.offset_flush_interval, Duration::from_secs(1));
    }

    #[test]
    fn connectors_open_no_file_unless_a_folder_apart_from_the_log_is_named() {
        assert!(with(ServerFlags::default(), "").unwrap().allowed_paths.is_empty());
        let of = |paths: &str| format!("data_dir = '/a/log'\nworker.allowed_paths = [{paths}]");
        let settings = with(ServerFlags::default(), &of("'/srv/in', '/srv/out'")).unwrap();
        assert_eq!(settings.allowed_paths, [PathBuf::from("/srv/in"), PathBuf::from("/srv/out")]);
        for paths in ["'/a'", "'/srv', '/a/log/topics'", "'/'"] {
            let what = refusal(&of(paths));
            assert!(what.contains("worker.allowed_paths") && what.contains("apart"), "{what}");
        }
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let flags = ServerFlags { data_dir: Some("/a".into()), ..ServerFlags::default() };
        assert_eq!(with(flags, "data_dir = '/b'").unwrap().data_dir, PathBuf::from("/a"));
        assert_eq!(
            with(ServerFlags::default(), "data_dir = '/b'").unwrap().data_dir,
            PathBuf::from("/b")
        );
    }

    #[test]
    fn beyond_loopback_is_refused_unless_asked_for() {
        assert!(with(flags("0.0.0.0:9092"), "").unwrap_err().what.contains("beyond loopback"));
        let insecure = ServerFlags { insecure_listen: true, ..flags("0.0.0.0:9092") };
        assert!(with(insecure, "").unwrap_err().remedy.contains("--kafka-advertise"));
        let advertised = ServerFlags {
            insecure_listen: true,
            kafka_advertise: Some("db1.example:9092".to_owned()),
            ..flags("0.0.0.0:9092")
        };
        let advertise = with(advertised, "").unwrap().kafka_advertise;
        assert_eq!(advertise, Some(("db1.example".to_owned(), 9092)));
    }

    #[test]
    fn beyond_loopback_takes_tls_and_users() {
        let file = |guard: &str| format!("[kafka]\nlisten = '192.0.2.1:9092'\n{guard}");
        let whole = "tls.cert = 'c'\ntls.key = 'k'\n[access]\nusers_file = 'u'";
        assert!(with(ServerFlags::default(), &file(whole)).is_ok());
        for part in ["tls.cert = 'c'\ntls.key = 'k'", "[access]\nusers_file = 'u'"] {
            assert!(refusal(&file(part)).contains("not both TLS and authentication"), "{part}");
        }
    }

    #[test]
    fn a_guard_that_does_not_hold_together_is_named_by_its_key() {
        for (file, parts) in [
            ("[kafka.tls]\ncert = 'c'", ["kafka.tls.cert", "needs kafka.tls.key"]),
            ("[kafka.tls]\nkey = 'k'", ["kafka.tls.key", "needs kafka.tls.cert"]),
            ("[kafka.tls]\nclient_auth = 'required'", ["client_auth", "needs kafka.tls.cert"]),
            (
                "[kafka.tls]\ncert = 'c'\nkey = 'k'\nclient_auth = 'required'",
                ["client_auth", "needs kafka.tls.client_ca"],
            ),
            (
                "[kafka.tls]\ncert = 'c'\nkey = 'k'\nclient_auth = 'optional'\nclient_ca = 'a'",
                ["client_auth", "needs access.users_file"],
            ),
            ("[kafka.tls]\nprincipal_rules = 'x'", ["principal_rules", "begins with RULE:"]),
            ("[kafka.sasl]\nmechanisms = ['GSSAPI']", ["sasl.mechanisms", "SCRAM-SHA-512"]),
        ] {
            let what = refusal(file);
            assert!(parts.iter().all(|part| what.contains(part)), "{what}");
        }
    }

    #[test]
    fn an_advertised_host_is_a_name_or_an_address() {
        for (text, host) in [("Db1.example:1", "db1.example"), ("[fe80::1]:1", "fe80::1")] {
            let flags = ServerFlags {
                kafka_advertise: Some(text.to_owned()),
                http_advertise: Some(text.to_owned()),
                ..ServerFlags::default()
            };
            let settings = with(flags, "").unwrap();
            assert_eq!(settings.kafka_advertise, Some((host.to_owned(), 1)));
            assert_eq!(settings.allowed_hosts, [host]);
        }
        for text in ["db1.example", ":1", "fe80::1", ""] {
            assert!(host_and_port(text).is_err(), "{text}");
        }
        assert!(advertised_host("a b").is_err());
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest_right_one() {
        let what = refusal("[kafka]\nlistn = '127.0.0.1:1'");
        assert!(what.contains("kafka.listn is not known; did you mean kafka.listen?"), "{what}");
    }

    #[test]
    fn a_wrong_value_is_said_with_its_key_what_it_is_and_what_it_must_be() {
        for (file, parts) in [
            ("[kafka]\nlisten = 9092", ["kafka.listen", "9092", "such as 127.0.0.1:9092"]),
            ("insecure_listen = 'yes'", ["insecure_listen", "yes", "true or false"]),
            ("shutdown_timeout_ms = 5", ["shutdown_timeout_ms", "5", "from 1000 to 3600000"]),
            ("[logging]\nformat = 'xml'", ["logging.format", "xml", "text, json"]),
            ("[logging]\nlevel = 'a=b=c'", ["logging.level", "a=b=c", "must be one of off,"]),
            ("[logging]\nlevel = 'warning'", ["logging.level", "warning", "is no level"]),
            ("data_dir = '/a'\n[archive]\ndir = '/a/b'", ["archive.dir", "/a/b", "must lie apart"]),
            ("data_dir = '/a/b'\n[backup]\ndir = '/a'", ["backup.dir", "/a", "must lie apart"]),
            ("[http]\nallowed_hosts = [1]", ["http.allowed_hosts", "list", "texts"]),
        ] {
            let what = refusal(file);
            assert!(parts.iter().all(|part| what.contains(part)), "{what}");
        }
    }

    #[test]
    fn all_problems_are_named_at_once() {
        let what = refusal("a = 1\nshutdown_timeout_ms = 'x'");
        assert!(what.contains("a is not known") && what.contains("shutdown_timeout_ms"), "{what}");
    }

    #[test]
    fn a_file_that_is_no_toml_is_refused_by_line_without_quoting_it() {
        let what = refusal("data_dir = 'a'\npassword = s3cret s3cret\n");
        assert!(what.contains("line 2") && !what.contains("s3cret"), "{what}");
    }

    #[test]
    fn apache_kafka_takes_the_place_of_the_embedded_log() {
        let flags = || ServerFlags { kafka: Some("a:1,b:2".to_owned()), ..ServerFlags::default() };
        let settings = with(flags(), "").unwrap();
        assert_eq!(settings.apache.as_ref().unwrap().addresses, "a:1,b:2");
        assert!(settings.text().contains("Kafka at a:1,b:2") && !settings.text().contains("data"));
        let file = "data_dir = 'd'\n[kafka]\nlisten = '127.0.0.1:1'\n[log]\ntotal_max_bytes = -1";
        let what = with(flags(), file).unwrap_err().what;
        assert!(what.contains("data_dir, kafka.listen, log.total_max_bytes only the"), "{what}");
        assert!(refusal("[kafka]\nconfig = 'x'").contains("kafka.bootstrap"));
        let bare = ServerFlags { kafka: Some("a".to_owned()), ..ServerFlags::default() };
        assert!(with(bare, "").unwrap_err().what.contains("--kafka a is not HOST:PORT"));
        let missing = ServerFlags { kafka_config: Some("/no/file".into()), ..flags() };
        assert_eq!(with(missing, "").unwrap_err().code, "KAFKA_CONFIG_INVALID");
    }

    #[test]
    fn groups_and_transactions_have_the_coordinators_bounds_unless_others_are_set() {
        let ours = |file: &str| with(ServerFlags::default(), file).unwrap().coordinators;
        assert_eq!(ours(""), CoordinatorConfig::default());
        let set = ours(
            "[kafka.groups]\nmax_size = 7\n[kafka.offsets]\nretention_minutes = 2\n[kafka.transactions]\nmax_timeout_ms = 5",
        );
        assert_eq!((set.groups.max_size, set.groups.offsets_retention_ms), (7, 120_000));
        assert_eq!(set.transactions.max_timeout, Duration::from_millis(5));
        let what = refusal("[kafka.groups]\nmin_session_timeout_ms = 2000000");
        assert!(what.contains("kafka.groups.max_session_timeout_ms"), "{what}");
    }

    #[test]
    fn two_listeners_on_one_address_are_refused() {
        let what = refusal("[kafka]\nlisten = '127.0.0.1:8083'");
        assert!(what.contains("--kafka-listen and --http-listen"), "{what}");
    }

    /// Rule T5: whatever stands in the file, it is settings or an error.
    #[test]
    fn any_file_is_settings_or_an_error() {
        use highwater_fuzz::trial::{Memory, Trial};
        use highwater_fuzz::{Entry, corpus};
        fn run(input: &[u8]) {
            let Ok(text) = std::str::from_utf8(input) else { return };
            let path = Path::new("highwater.toml");
            let _ = read(text, path)
                .and_then(|values| settings(&ServerFlags::default(), values, "highwater.toml"));
        }
        let inputs = corpus::read("server-settings").unwrap();
        let inputs: Vec<_> = inputs.into_iter().map(|(_, input)| input).collect();
        let trial = Trial {
            entry: Entry { name: "server-settings", run },
            memory: Memory::UNKNOWN,
            room: 0,
            failures: std::env::temp_dir().join("highwater-fuzz"),
        };
        let time = Duration::from_millis(200);
        let outcome = inputs.iter().try_for_each(|input| trial.run(input));
        outcome.and_then(|()| trial.mutate(1, &inputs, time)).unwrap();
    }
}
