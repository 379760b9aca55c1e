//! TLS of a listener: its settings, and the certificate that is looked at again while the server runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use highwater_broker::{ClientCertificates, Tls, TlsError, TlsFiles};
use highwater_connector::{Config, Finding, Severity};
use metrics::{Unit, describe_gauge, gauge};

use crate::failure::{Exit, Failure};

/// How long before a certificate ends somebody is told.
const SOON: i64 = 21 * 24 * 60 * 60;

/// A listener that may have TLS: its keys, and what its certificate is called elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listener {
    Kafka,
    Http,
}

impl Listener {
    /// The keys of certificate, key, `client_auth` and `client_ca`.
    const fn keys(self) -> [&'static str; 4] {
        match self {
            Self::Kafka => {
                ["kafka.tls.cert", "kafka.tls.key", "kafka.tls.client_auth", "kafka.tls.client_ca"]
            }
            Self::Http => {
                ["http.tls.cert", "http.tls.key", "http.tls.client_auth", "http.tls.client_ca"]
            }
        }
    }

    const fn flag(self) -> &'static str {
        match self {
            Self::Kafka => "--kafka-tls-cert",
            Self::Http => "--http-tls-cert",
        }
    }

    /// Whether its files could not be taken, and when its certificate ends.
    const fn gauges(self) -> [&'static str; 2] {
        match self {
            Self::Kafka => [
                "highwater_kafka_tls_reload_failed",
                "highwater_kafka_tls_certificate_end_time_seconds",
            ],
            Self::Http => [
                "highwater_http_tls_reload_failed",
                "highwater_http_tls_certificate_end_time_seconds",
            ],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Kafka => "Kafka",
            Self::Http => "HTTP",
        }
    }
}

/// Tells the recorder what the numbers mean.
pub(crate) fn describe_metrics() {
    for listener in [Listener::Kafka, Listener::Http] {
        let ([failed, ends], name) = (listener.gauges(), listener.name());
        describe_gauge!(
            failed,
            format!(
                "1 while the files of the {name} listener's TLS have changed and do not fit; those before are in use"
            )
        );
        describe_gauge!(
            ends,
            Unit::Seconds,
            format!("When the {name} listener's certificate ends, as Unix time")
        );
    }
}

/// The files that the settings name; else the key that is wrong, and what is.
pub(crate) fn files(
    listener: Listener,
    config: &Config,
    has_users: bool,
) -> Result<Option<TlsFiles>, (&'static str, String)> {
    let path = |key| Some(config.text(key).trim()).filter(|it| !it.is_empty()).map(PathBuf::from);
    let needs = |key, other: &str| Err((key, format!("needs {other}")));
    let [cert_key, key_key, auth_key, ca_key] = listener.keys();
    let auth = config.text(auth_key);
    let (cert, key) = match (path(cert_key), path(key_key)) {
        (Some(cert), Some(key)) => (cert, key),
        (None, None) if auth == "none" => return Ok(None),
        (None, None) => return needs(auth_key, cert_key),
        (Some(_), None) => return needs(cert_key, key_key),
        (None, Some(_)) => return needs(key_key, cert_key),
    };
    let clients = match (auth, path(ca_key)) {
        ("none", _) => ClientCertificates::Ignored,
        (_, None) => return needs(auth_key, ca_key),
        // Without users nobody has a right, and with none asked for everybody would have all.
        _ if !has_users => return needs(auth_key, "access.users_file"),
        ("optional", Some(ca)) => ClientCertificates::Optional(ca),
        (_, Some(ca)) => ClientCertificates::Required(ca),
    };
    Ok(Some(TlsFiles { cert, key, clients }))
}

/// TLS of a listener, whose files were read.
#[derive(Clone)]
pub(crate) struct ListenerTls {
    listener: Listener,
    tls: Arc<Tls>,
}

impl ListenerTls {
    /// Reads the files.
    pub(crate) fn load(listener: Listener, files: TlsFiles) -> Result<Self, Failure> {
        let refused = |error: TlsError| {
            let [cert, key, _, ca] = listener.keys();
            Failure::new(Exit::Failed, error.code(), error.to_string())
                .kept("nothing was started")
                .remedy(format!("correct {cert}, {key} or {ca}"))
        };
        Ok(Self { listener, tls: Arc::new(Tls::load(files).map_err(refused)?) })
    }

    pub(crate) fn tls(&self) -> Arc<Tls> {
        Arc::clone(&self.tls)
    }

    /// Looks at the files.
    pub(crate) fn look(&self) {
        let name = self.listener.name();
        match self.tls.refresh() {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!(
                    listener = name,
                    ends = self.tls.ends(),
                    "the certificate was read again"
                );
            }
            Err(error) => {
                tracing::error!(listener = name, %error, code = error.code(), "the certificate stays as it was");
            }
        }
        let [failed, ends] = self.listener.gauges();
        gauge!(failed).set(f64::from(u8::from(self.tls.fault().is_some())));
        #[allow(clippy::cast_precision_loss, reason = "seconds fit a double for ages")]
        gauge!(ends).set(self.tls.ends() as f64);
    }

    /// What is wrong with it, or will be.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let flag = self.listener.flag();
        let fault = self.tls.fault().map(|error| {
            let reason = "the certificate before is in use, until it ends";
            let remedy = "put a certificate and its key in place that fit";
            Finding::new(Severity::Error, error.code(), error.to_string(), reason, remedy)
                .about(flag)
        });
        [fault, ending(flag, self.tls.ends(), now())].into_iter().flatten().collect()
    }
}

/// A certificate that ends soon, or has.
fn ending(flag: &'static str, ends: i64, now: i64) -> Option<Finding> {
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
    Some(finding.about(flag))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_ends_is_told_in_time() {
        let found = |left| {
            let at = 1_000_000_000;
            ending("--kafka-tls-cert", at + left, at).map(|finding| finding.severity)
        };
        assert_eq!(found(SOON + 1), None);
        assert_eq!(found(SOON), Some(Severity::Warning));
        assert_eq!(found(0), Some(Severity::Error));
    }
}
