//! The settings of a server that shares its connectors with others of one Kafka cluster.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use highwater_connector::{Config, ConfigKey, Importance, KeyType, Problem};
use highwater_kafka::{Pem, PemPlace, Tls};
use highwater_worker::{Sharing, WorkerConfig};

use crate::failure::{Exit, Failure};
use crate::guard;

const URL: &str = "worker.advertised_url";
const SESSION: &str = "worker.session_timeout_ms";
const HEARTBEAT: &str = "worker.heartbeat_interval_ms";
const REBALANCE: &str = "worker.rebalance_timeout_ms";
const CONFIGS: &str = "worker.configs_topic";
const OFFSETS: &str = "worker.offsets_topic";
const STATUS: &str = "worker.status_topic";

const CA: &str = "worker.forward_ca";
const CERT: &str = "worker.forward_cert";
const KEY: &str = "worker.forward_key";
pub(crate) const FORWARD_USERS: &str = "worker.forward_users";

const KEYS: [&str; 11] =
    [URL, CA, CERT, KEY, FORWARD_USERS, SESSION, HEARTBEAT, REBALANCE, CONFIGS, OFFSETS, STATUS];

const URL_TEXT: &str = "Where the other servers of worker.group_id reach this one's HTTP listener, such as http://host:8083; with kafka.bootstrap only, as are the next ones. Empty: http.advertise, with https:// where http.tls.cert is set, or the listener. Kafka Connect's rest.advertised.host.name and port.";
const CA_TEXT: &str = "Certificates of the authorities that vouch for the other servers, to which this one brings requests, PEM. Empty: those that the system trusts. Read at each connection, as are the next two.";
const CERT_TEXT: &str = "Certificate that this server shows the others, with those between it and its root, PEM. It is needed where their http.tls.client_auth is required, and to speak for callers that are known by a client certificate. Empty: none.";
const KEY_TEXT: &str = "Key of that certificate, PEM.";
const FORWARD_USERS_TEXT: &str = "Users that are servers of the group: one of them, known by the certificate of its connection alone, may say for which user it brings a request (header Highwater-On-Behalf-Of). Whoever has the key of one may do what any user may. Empty: nobody.";
const SESSION_TEXT: &str = "After how long a silence of this server the others take over its connectors and tasks, in milliseconds; it stops them itself after two thirds of that. The brokers' group.min.session.timeout.ms (6000) is the least. Kafka Connect's session.timeout.ms.";
const HEARTBEAT_TEXT: &str = "How often the server says that it lives, in milliseconds; so soon it hears that work is shared out anew. At most a third of worker.session_timeout_ms. Kafka Connect's heartbeat.interval.ms.";
const REBALANCE_TEXT: &str = "How long the others wait for this server when work is shared out anew, in milliseconds. Kafka Connect's rebalance.timeout.ms.";
const CONFIGS_TEXT: &str = "Topic of connectors' configurations: the same of all servers of a group. Kafka Connect's config.storage.topic.";
const OFFSETS_TEXT: &str = "Topic of sources' offsets. Kafka Connect's offset.storage.topic.";
const STATUS_TEXT: &str = "Topic of statuses. Kafka Connect's status.storage.topic.";

/// The keys of the configuration file.
pub(crate) fn keys() -> Vec<ConfigKey> {
    use Importance::{Low, Medium};
    let key = |name, key_type, default, importance, text| {
        ConfigKey::new(name, key_type, Some(default), importance, text)
    };
    let millis = KeyType::Int { min: 100, max: 3_600_000 };
    vec![
        key(URL, KeyType::String, "", Medium, URL_TEXT),
        key(CA, KeyType::String, "", Medium, CA_TEXT),
        key(CERT, KeyType::String, "", Medium, CERT_TEXT),
        key(KEY, KeyType::String, "", Medium, KEY_TEXT),
        key(FORWARD_USERS, KeyType::List, "", Medium, FORWARD_USERS_TEXT),
        key(SESSION, millis, "10000", Medium, SESSION_TEXT),
        key(HEARTBEAT, millis, "1000", Low, HEARTBEAT_TEXT),
        key(REBALANCE, millis, "60000", Low, REBALANCE_TEXT),
        key(CONFIGS, KeyType::String, "highwater.configs", Medium, CONFIGS_TEXT),
        key(OFFSETS, KeyType::String, "highwater.offsets", Medium, OFFSETS_TEXT),
        key(STATUS, KeyType::String, "highwater.status", Medium, STATUS_TEXT),
    ]
}

/// Whether a key is for servers on a cluster alone.
pub(crate) fn is_of_cluster(key: &str) -> bool {
    KEYS.contains(&key)
}

/// What is set of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SharingSettings {
    url: Option<String>,
    /// How the others are called.
    tls: Tls,
    session_timeout: Duration,
    heartbeat_interval: Duration,
    rebalance_timeout: Duration,
    configs_topic: String,
    offsets_topic: String,
    status_topic: String,
}

impl SharingSettings {
    /// Reads a checked configuration.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub(crate) fn of(config: &Config) -> Result<Self, Problem> {
        let topic = |key| config.text(key).trim().to_owned();
        let settings = Self {
            url: url(config)?,
            tls: tls(config)?,
            session_timeout: config.millis(SESSION),
            heartbeat_interval: config.millis(HEARTBEAT),
            rebalance_timeout: config.millis(REBALANCE),
            configs_topic: topic(CONFIGS),
            offsets_topic: topic(OFFSETS),
            status_topic: topic(STATUS),
        };
        if settings.heartbeat_interval * 3 > settings.session_timeout {
            return Err(Problem::new(HEARTBEAT, format!("must be at most a third of {SESSION}")));
        }
        let topics = [&settings.configs_topic, &settings.offsets_topic, &settings.status_topic];
        if topics.into_iter().collect::<BTreeSet<_>>().len() < topics.len() {
            return Err(Problem::new(
                CONFIGS,
                format!("{OFFSETS} and {STATUS} must be three topics"),
            ));
        }
        if topics.iter().any(|topic| topic.is_empty()) {
            return Err(Problem::new(CONFIGS, format!("{OFFSETS} and {STATUS} must not be empty")));
        }
        Ok(settings)
    }

    /// The topics of configurations, offsets and statuses.
    pub(crate) fn topics(&self) -> [&str; 3] {
        [&self.configs_topic, &self.offsets_topic, &self.status_topic].map(String::as_str)
    }

    /// The host under which other servers reach this one.
    pub(crate) fn host(&self) -> Option<String> {
        guard::host_name(authority(self.url.as_deref()?))
    }

    /// Tries the files with which the others are called.
    pub(crate) fn check_files(&self) -> Result<(), Failure> {
        let refused = |why| {
            Failure::new(Exit::Failed, "WORKER_TLS_FILE", why)
                .kept("nothing was started")
                .remedy(format!("correct {CA}, {CERT} or {KEY}"))
        };
        // What the system trusts is no file of these.
        if self.tls == Tls::default() { Ok(()) } else { self.tls.check().map_err(refused) }
    }

    /// Tells the worker of a cluster, which listens at `http`.
    pub(crate) fn apply(&self, config: &mut WorkerConfig, http: SocketAddr) {
        let url = self.url.clone().unwrap_or_else(|| format!("http://{http}"));
        authority(&url).clone_into(&mut config.worker_id);
        config.configs_topic.clone_from(&self.configs_topic);
        config.offsets_topic.clone_from(&self.offsets_topic);
        config.status_topic.clone_from(&self.status_topic);
        config.sharing = Some(Sharing {
            url,
            tls: self.tls.clone(),
            session_timeout: self.session_timeout,
            heartbeat_interval: self.heartbeat_interval,
            rebalance_timeout: self.rebalance_timeout,
        });
    }
}

fn tls(config: &Config) -> Result<Tls, Problem> {
    let pem = |setting| {
        let path = Some(config.text(setting).trim()).filter(|path| !path.is_empty())?;
        Some(Pem { setting, place: PemPlace::File(path.into()) })
    };
    let identity = match (pem(CERT), pem(KEY)) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (None, None) => None,
        (Some(_), None) => return Err(Problem::new(CERT, format!("needs {KEY}"))),
        (None, Some(_)) => return Err(Problem::new(KEY, format!("needs {CERT}"))),
    };
    Ok(Tls { authorities: pem(CA), identity, verify_host: true })
}

fn url(config: &Config) -> Result<Option<String>, Problem> {
    let given = config.text(URL).trim().trim_end_matches('/');
    if given.is_empty() {
        let advertised = config.text("http.advertise").trim();
        let scheme = if config.text("http.tls.cert").trim().is_empty() { "http" } else { "https" };
        return Ok((!advertised.is_empty()).then(|| format!("{scheme}://{advertised}")));
    }
    let is_web = given.starts_with("http://") || given.starts_with("https://");
    let is_host = guard::host_name(authority(given)).is_some_and(|host| !host.is_empty());
    if is_web && is_host {
        return Ok(Some(given.to_owned()));
    }
    Err(Problem::new(
        URL,
        format!("is {given:?}; it must be http://HOST:PORT or https://HOST:PORT"),
    ))
}

fn authority(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, authority)| authority)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::settings::definition;

    fn read(given: &[(&str, &str)]) -> Result<SharingSettings, Problem> {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let values: BTreeMap<_, _> = given.iter().map(pair).collect();
        SharingSettings::of(&definition().parse(&values, &[]).unwrap())
    }

    #[test]
    fn a_server_is_known_by_where_it_is_reached() {
        let http = "127.0.0.1:8083".parse().unwrap();
        for (given, url, id, host) in [
            (&[][..], "http://127.0.0.1:8083", "127.0.0.1:8083", None),
            (&[("http.advertise", "a:1")], "http://a:1", "a:1", Some("a")),
            (
                &[("http.advertise", "a:1"), ("http.tls.cert", "c.pem")],
                "https://a:1",
                "a:1",
                Some("a"),
            ),
            (
                &[(URL, "https://b.example:2/")],
                "https://b.example:2",
                "b.example:2",
                Some("b.example"),
            ),
        ] {
            let settings = read(given).unwrap();
            let mut config = WorkerConfig::new("k:1", "x");
            settings.apply(&mut config, http);
            assert_eq!(
                (config.sharing.unwrap().url.as_str(), config.worker_id.as_str()),
                (url, id)
            );
            assert_eq!(settings.host().as_deref(), host);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_key() {
        for (given, key) in [
            ((URL, "b.example:2"), URL),
            ((URL, "ftp://b"), URL),
            ((URL, "http://"), URL),
            ((HEARTBEAT, "5000"), HEARTBEAT),
            ((OFFSETS, "highwater.configs"), CONFIGS),
            ((STATUS, " "), CONFIGS),
            ((CERT, "a.pem"), CERT),
            ((KEY, "a.key"), KEY),
        ] {
            assert_eq!(read(&[given]).unwrap_err().key, key, "{given:?}");
        }
    }
}
