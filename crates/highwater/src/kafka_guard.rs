//! How the Kafka listener is guarded: its settings, and the files that are looked at again while
//! the server runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highwater_access::{Access, AccessError, Mechanism, SubjectRules, UsersFile};
use highwater_broker::{BrokerConfig, ClientCertificates, SaslSettings, Tls, TlsError, TlsFiles};
use highwater_connector::{Config, ConfigKey, Finding, Importance, KeyType, Severity};
use metrics::{Unit, describe_gauge, gauge};
use tokio::sync::watch;

use crate::failure::{Exit, Failure};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long before a certificate ends somebody is told.
const SOON: i64 = 21 * 24 * 60 * 60;

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
            "File of the users, as `highwater user` writes it. Empty: Kafka clients do not log in. With it each has to, by SASL or a client certificate. Read again within two seconds of a change. Flag --users-file.",
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
        let path =
            |key| Some(config.text(key).trim()).filter(|it| !it.is_empty()).map(PathBuf::from);
        let users_file = path("access.users_file");
        let tls = tls(config, users_file.is_some(), path)?;
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
        let lifetime = millis(config, "kafka.sasl.max_reauth_ms");
        let most = config.int("kafka.max_connections_per_address");
        Ok(Self {
            users_file,
            tls,
            rules,
            mechanisms: mechanisms.collect::<Result<_, _>>()?,
            plain_in_clear: config.flag("kafka.sasl.plain_in_clear"),
            lifetime: (!lifetime.is_zero()).then_some(lifetime),
            failure_delay: millis(config, "kafka.sasl.failure_delay_ms"),
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
    pub(crate) fn open(&self) -> Result<OpenGuard, Failure> {
        let access = match &self.users_file {
            None => Access::open(),
            Some(path) => Access::of_users(UsersFile::new(path)).map_err(|error| users(&error))?,
        };
        let tls = self.tls.clone().map(Tls::load).transpose().map_err(|error| refused(&error))?;
        Ok(OpenGuard {
            settings: self.clone(),
            access: Arc::new(access),
            tls: tls.map(Arc::new),
            users_fault: watch::Sender::new(None),
        })
    }
}

fn millis(config: &Config, key: &str) -> Duration {
    Duration::from_millis(config.int(key).unsigned_abs())
}

fn tls(
    config: &Config,
    has_users: bool,
    path: impl Fn(&'static str) -> Option<PathBuf>,
) -> Result<Option<TlsFiles>, (&'static str, String)> {
    let auth = config.text("kafka.tls.client_auth");
    let (cert, key) = match (path("kafka.tls.cert"), path("kafka.tls.key")) {
        (Some(cert), Some(key)) => (cert, key),
        (None, None) if auth == "none" => return Ok(None),
        (None, None) => return Err(("kafka.tls.client_auth", "needs kafka.tls.cert".to_owned())),
        (Some(_), None) => return Err(("kafka.tls.cert", "needs kafka.tls.key".to_owned())),
        (None, Some(_)) => return Err(("kafka.tls.key", "needs kafka.tls.cert".to_owned())),
    };
    let ca = path("kafka.tls.client_ca");
    let clients = match (auth, ca) {
        ("none", _) => ClientCertificates::Ignored,
        (_, None) => {
            return Err(("kafka.tls.client_auth", "needs kafka.tls.client_ca".to_owned()));
        }
        // Without users nobody has a right, and with none asked for everybody would have all.
        _ if !has_users => {
            return Err(("kafka.tls.client_auth", "needs access.users_file".to_owned()));
        }
        ("optional", Some(ca)) => ClientCertificates::Optional(ca),
        (_, Some(ca)) => ClientCertificates::Required(ca),
    };
    Ok(Some(TlsFiles { cert, key, clients }))
}

fn users(error: &AccessError) -> Failure {
    Failure::new(Exit::Failed, error.code(), error.to_string()).kept("nothing was started").remedy(
        "highwater user list --users-file FILE tries the file; highwater user add makes one",
    )
}

fn refused(error: &TlsError) -> Failure {
    Failure::new(Exit::Failed, error.code(), error.to_string())
        .kept("nothing was started")
        .remedy("correct kafka.tls.cert, kafka.tls.key or kafka.tls.client_ca")
}

/// A guard whose files were read.
#[derive(Clone)]
pub(crate) struct OpenGuard {
    settings: KafkaGuard,
    access: Arc<Access>,
    tls: Option<Arc<Tls>>,
    /// Why the users are not those of the file as it is now.
    users_fault: watch::Sender<Option<(&'static str, String)>>,
}

impl OpenGuard {
    /// Guards a listener.
    pub(crate) fn put_before(&self, config: &mut BrokerConfig) {
        let settings = &self.settings;
        config.access = Arc::clone(&self.access);
        config.tls = self.tls.clone();
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

    /// Looks at the files again and again.
    pub(crate) async fn follow(self) {
        let this = Arc::new(self);
        loop {
            let guard = Arc::clone(&this);
            // Files may lie on a disk that takes its time.
            let _ = tokio::task::spawn_blocking(move || guard.look()).await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn look(&self) {
        match self.access.refresh() {
            Ok(false) => {}
            Ok(true) => {
                self.users_fault.send_replace(None);
                tracing::info!("the users were read again");
            }
            Err(error) => {
                tracing::error!(%error, code = error.code(), "the users stay as they were");
                self.users_fault.send_replace(Some((error.code(), error.to_string())));
            }
        }
        let failed = f64::from(u8::from(self.users_fault.borrow().is_some()));
        gauge!("highwater_users_reload_failed").set(failed);
        let Some(tls) = &self.tls else { return };
        match tls.refresh() {
            Ok(false) => {}
            Ok(true) => tracing::info!(ends = tls.ends(), "the certificate was read again"),
            Err(error) => {
                tracing::error!(%error, code = error.code(), "the certificate stays as it was");
            }
        }
        gauge!("highwater_kafka_tls_reload_failed").set(f64::from(u8::from(tls.fault().is_some())));
        #[allow(clippy::cast_precision_loss, reason = "seconds fit a double for ages")]
        gauge!("highwater_kafka_tls_certificate_end_time_seconds").set(tls.ends() as f64);
    }

    /// What is wrong with it, or will be.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let users = self.users_fault.borrow().clone().map(|(code, what)| {
            let remedy = "highwater user list --users-file FILE tries the file";
            let reason = "the users are those of the file before; changes since do not count";
            Finding::new(Severity::Error, code, what, reason, remedy).about("users")
        });
        let tls = self.tls.iter().flat_map(|tls| {
            let fault = tls.fault().map(|error| {
                let reason = "the certificate before is in use, until it ends";
                let remedy = "put a certificate and its key in place that fit";
                Finding::new(Severity::Error, error.code(), error.to_string(), reason, remedy)
                    .about("--kafka-tls-cert")
            });
            [fault, ending(tls.ends(), now())]
        });
        users.into_iter().chain(tls.flatten()).collect()
    }
}

/// A certificate that ends soon, or has.
fn ending(ends: i64, now: i64) -> Option<Finding> {
    let left = ends - now;
    let day = jiff::Timestamp::from_second(ends).map(|at| at.to_string()).unwrap_or_default();
    let (severity, what, reason) = match left {
        ..=0 => (Severity::Error, format!("the certificate ended at {day}"), "clients refuse it"),
        1..=SOON => (
            Severity::Warning,
            format!("the certificate ends at {day}"),
            "clients refuse it from then on",
        ),
        _ => return None,
    };
    let remedy = "put a new certificate and its key in place; the server takes them by itself";
    let finding = Finding::new(severity, "TLS_CERTIFICATE_ENDS", what, reason, remedy);
    Some(finding.about("--kafka-tls-cert"))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Tells the recorder what the numbers mean.
pub(crate) fn describe_metrics() {
    describe_gauge!(
        "highwater_users_reload_failed",
        "1 while the users file has changed and cannot be read; the users before are in use"
    );
    describe_gauge!(
        "highwater_kafka_tls_reload_failed",
        "1 while the files of the Kafka listener's TLS have changed and do not fit; those before are in use"
    );
    describe_gauge!(
        "highwater_kafka_tls_certificate_end_time_seconds",
        Unit::Seconds,
        "When the Kafka listener's certificate ends, as Unix time"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_ends_is_told_in_time() {
        let found = |left| ending(1_000_000_000 + left, 1_000_000_000).map(|it| it.severity);
        assert_eq!(found(SOON + 1), None);
        assert_eq!(found(SOON), Some(Severity::Warning));
        assert_eq!(found(0), Some(Severity::Error));
    }
}
