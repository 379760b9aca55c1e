//! How the Kafka listener is guarded: its settings, and the files that are looked at again while
//! the server runs.

use std::path::PathBuf;
use std::time::Duration;

use highwater_access::{Mechanism, SubjectRules};
use highwater_broker::{BrokerConfig, SaslSettings, TlsFiles};
use highwater_connector::{Config, ConfigKey, Finding, Importance, KeyType};

use crate::failure::Failure;
use crate::listener_tls::{self, Listener, ListenerTls};
use crate::user_store::UserStore;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The keys of the configuration file.
pub(crate) fn keys() -> Vec<ConfigKey> {
    use Importance::{High, Low, Medium};
    let key = ConfigKey::new;
    let text = KeyType::String;
    let millis = KeyType::Int { min: 0, max: 86_400_000 };
    vec![
        key(
            "access.users_file",
            text,
            Some(""),
            High,
            "File of the users, as `highwater user` writes it. Empty: nobody logs in. With it each has to, over Kafka by SASL or a client certificate, over HTTP as http.login says. Read again within two seconds of a change. Flag --users-file.",
        ),
        key(
            "kafka.tls.cert",
            text,
            Some(""),
            High,
            "Certificate of the Kafka listener with those between it and its root, PEM. Empty: no TLS. Read again, with its key, within three seconds of a change; files that do not fit leave the old ones in use. Flag --kafka-tls-cert.",
        ),
        key(
            "kafka.tls.key",
            text,
            Some(""),
            High,
            "Key of the certificate, PEM. Flag --kafka-tls-key.",
        ),
        key(
            "kafka.tls.client_auth",
            KeyType::Choice(&["none", "optional", "required"]),
            Some("none"),
            Medium,
            "Whether clients show a certificate. optional: who has one is its user, others log in. required: nobody connects without one. Kafka's ssl.client.auth.",
        ),
        key(
            "kafka.tls.client_ca",
            text,
            Some(""),
            Medium,
            "Certificates of the authorities that vouch for clients, PEM.",
        ),
        key(
            "kafka.tls.principal_rules",
            text,
            Some("DEFAULT"),
            Low,
            "Which user a certificate stands for, in the form of Kafka's ssl.principal.mapping.rules: `RULE:pattern/replacement/[LU]` or DEFAULT (the whole subject, as CN=ann,O=shop), separated by commas; the first that fits the whole subject counts; at most 64.",
        ),
        key(
            "kafka.sasl.mechanisms",
            KeyType::List,
            Some("SCRAM-SHA-512,SCRAM-SHA-256,PLAIN"),
            Medium,
            "Mechanisms that clients may log in with. Kafka's sasl.enabled.mechanisms.",
        ),
        key(
            "kafka.sasl.plain_in_clear",
            KeyType::Boolean,
            Some("false"),
            Low,
            "Offers PLAIN without TLS beyond loopback, where the network sees the passwords.",
        ),
        key(
            "kafka.sasl.max_reauth_ms",
            millis,
            Some("0"),
            Low,
            "After which time a client has to log in again on its connection, in milliseconds; 0 for never. Kafka's connections.max.reauth.ms.",
        ),
        key(
            "kafka.sasl.failure_delay_ms",
            KeyType::Int { min: 0, max: 10_000 },
            Some("100"),
            Low,
            "How long the answer to a failed login waits, in milliseconds. Kafka's connection.failed.authentication.delay.ms.",
        ),
        key(
            "kafka.max_connections_per_address",
            KeyType::Int { min: 1, max: 1_000_000 },
            Some("1000000"),
            Low,
            "Connections of Kafka clients from one address open at once. Where all are taken, the oldest one of the address that has not brought a request (and logged in) yet makes room. Kafka's max.connections.per.ip.",
        ),
    ]
}

/// How the Kafka listener is guarded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KafkaGuard {
    pub(crate) users_file: Option<PathBuf>,
    pub(crate) tls: Option<TlsFiles>,
    rules: String,
    mechanisms: Vec<Mechanism>,
    plain_in_clear: bool,
    lifetime: Option<Duration>,
    failure_delay: Duration,
    connections_per_address: usize,
}

impl KafkaGuard {
    /// Reads the settings; else the key that is wrong, and what is.
    pub(crate) fn of(config: &Config) -> Result<Self, (&'static str, String)> {
        let users_file = config.text("access.users_file").trim();
        let users_file = (!users_file.is_empty()).then(|| PathBuf::from(users_file));
        let tls = listener_tls::files(Listener::Kafka, config, users_file.is_some())?;
        let rules = config.text("kafka.tls.principal_rules").to_owned();
        if let Err(error) = SubjectRules::parse(&rules) {
            return Err(("kafka.tls.principal_rules", error.to_string()));
        }
        let mechanisms = config.list("kafka.sasl.mechanisms").into_iter().map(|name| {
            Mechanism::named(name).ok_or_else(|| {
                let known = Mechanism::ALL.map(Mechanism::name).join(", ");
                ("kafka.sasl.mechanisms", format!("names {name:?}; it must name some of {known}"))
            })
        });
        let lifetime = config.millis("kafka.sasl.max_reauth_ms");
        let most = config.int("kafka.max_connections_per_address");
        Ok(Self {
            users_file,
            tls,
            rules,
            mechanisms: mechanisms.collect::<Result<_, _>>()?,
            plain_in_clear: config.flag("kafka.sasl.plain_in_clear"),
            lifetime: (!lifetime.is_zero()).then_some(lifetime),
            failure_delay: config.millis("kafka.sasl.failure_delay_ms"),
            connections_per_address: usize::try_from(most).unwrap_or(usize::MAX),
        })
    }

    /// Whether nobody comes in from another machine without TLS and a login (rule A2).
    pub(crate) const fn is_whole(&self) -> bool {
        self.tls.is_some() && self.users_file.is_some()
    }

    /// What `highwater server --check` says.
    pub(crate) fn text(&self) -> String {
        let login = match &self.users_file {
            Some(file) => format!("users of {}", file.display()),
            None => "nobody logs in".to_owned(),
        };
        let tls = match &self.tls {
            Some(files) => format!("TLS with {}", files.cert.display()),
            None => "no TLS".to_owned(),
        };
        format!("{tls}, {login}")
    }

    /// Reads the files.
    pub(crate) fn open(&self, users: &UserStore) -> Result<OpenGuard, Failure> {
        let load = |files| ListenerTls::load(Listener::Kafka, files);
        Ok(OpenGuard {
            settings: self.clone(),
            users: users.clone(),
            tls: self.tls.clone().map(load).transpose()?,
        })
    }
}

/// A guard whose files were read.
#[derive(Clone)]
pub(crate) struct OpenGuard {
    settings: KafkaGuard,
    users: UserStore,
    tls: Option<ListenerTls>,
}

impl OpenGuard {
    /// Guards a listener.
    pub(crate) fn put_before(&self, config: &mut BrokerConfig) {
        let settings = &self.settings;
        config.access = self.users.access();
        config.tls = self.tls.as_ref().map(ListenerTls::tls);
        // The settings parsed them.
        config.subjects = SubjectRules::parse(&settings.rules).unwrap_or_default();
        config.limits.connections_per_address = settings.connections_per_address;
        config.sasl = SaslSettings {
            mechanisms: settings.mechanisms.clone(),
            plain_in_clear: settings.plain_in_clear,
            lifetime: settings.lifetime,
            failure_delay: settings.failure_delay,
        };
    }

    /// Whether a listener with it may be reached from other machines.
    pub(crate) const fn is_whole(&self) -> bool {
        self.settings.is_whole()
    }

    /// Looks at the certificate again and again; the users are looked at for all listeners.
    pub(crate) async fn follow(self) {
        let Some(tls) = self.tls else { return };
        loop {
            let tls = tls.clone();
            // Files may lie on a disk that takes its time.
            let _ = tokio::task::spawn_blocking(move || tls.look()).await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What is wrong with the certificate, or will be.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.tls.iter().flat_map(ListenerTls::findings).collect()
    }
}
