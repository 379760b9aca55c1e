//! A Kafka cluster that keeps the log in place of the embedded one: reached, described, looked at.

use std::time::Duration;

use highwater_connector::{ConfigKey, Finding, Importance, KeyType, Severity};
use highwater_kafka::{Admin, Bootstrap, KafkaError, Reader, ReaderSettings};

use crate::failure::Failure;
use crate::kafka;
use crate::readiness::Readiness;

/// How long one attempt to reach it may take.
const ATTEMPT: Duration = Duration::from_secs(5);

/// Between attempts.
const PAUSE: Duration = Duration::from_secs(1);

const BOOTSTRAP: &str = "Brokers of an Apache Kafka that keeps the log, as HOST:PORT, several separated by commas. Empty: the embedded log. With it, data_dir, log.*, access.* but access.users_file (for HTTP), archive.*, backup.* and the other kafka.* keys but kafka.config are refused. Flag --kafka.";
const CONFIG: &str = "File of client settings for kafka.bootstrap, in the names of Kafka's Java clients or of librdkafka: security.protocol, sasl.*, ssl.*. Flag --kafka-config.";

/// The keys of the configuration file that name it.
pub(crate) fn keys() -> Vec<ConfigKey> {
    let key =
        |name, importance, what| ConfigKey::new(name, KeyType::String, Some(""), importance, what);
    vec![
        key("kafka.bootstrap", Importance::High, BOOTSTRAP),
        key("kafka.config", Importance::Medium, CONFIG),
    ]
}

/// Waits until the cluster answers, for as long as it takes. What waiting does not mend ends the
/// start: a broker that is too old, or does not let us in.
pub(crate) async fn reach(bootstrap: &Bootstrap, readiness: &Readiness) -> Result<(), Failure> {
    loop {
        match ask(bootstrap).await {
            Ok(()) => return Ok(()),
            Err(error) if passes(&error) => {
                tracing::warn!(%error, "Kafka does not answer yet");
                readiness.wait_for(error.to_string());
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(kafka::failure(&error).kept("nothing was started")),
        }
    }
}

/// Whether it is worth waiting.
fn passes(error: &KafkaError) -> bool {
    let wrong = matches!(
        error,
        KafkaError::Authentication { .. }
            | KafkaError::Unsupported { .. }
            | KafkaError::Malformed { .. }
    );
    !wrong && !kafka::is_denied(error)
}

async fn ask(bootstrap: &Bootstrap) -> Result<(), KafkaError> {
    let settings = ReaderSettings {
        connect_timeout: ATTEMPT,
        retry_for: ATTEMPT,
        ..ReaderSettings::default()
    };
    Admin::new(Reader::with_settings(bootstrap, settings)).check_release().await
}

/// Where it is, how it is spoken to, and as whom.
pub(crate) fn described(bootstrap: &Bootstrap) -> String {
    let security = &bootstrap.security;
    let over = if security.tls.is_some() { ", over TLS" } else { "" };
    let user = security.sasl.as_ref().map_or_else(String::new, |sasl| {
        format!(", as user {} by {}", sasl.username, sasl.mechanism.name())
    });
    format!("Kafka at {bootstrap}{over}{user}")
}

/// What an operator should know of it.
pub(crate) async fn examine(bootstrap: &Bootstrap) -> Option<Finding> {
    let error = ask(bootstrap).await.err()?;
    let failure = kafka::failure(&error);
    let code = kafka::code(&error);
    let reason = "nothing is captured and no stream moves until it can be used; the sources keep \
                  what was not read";
    let finding = Finding::new(Severity::Error, code, failure.what, reason, failure.remedy);
    Some(finding.about(format!("Kafka at {bootstrap}")))
}

#[cfg(test)]
mod tests {
    use highwater_kafka::{Mechanism, Password, Sasl, Security, Tls};

    use super::*;

    #[test]
    fn it_is_described_without_its_password() {
        let sasl = Sasl {
            mechanism: Mechanism::ScramSha512,
            username: "app".to_owned(),
            password: Password::from("s3cret"),
        };
        let security = Security { tls: Some(Tls::default()), sasl: Some(sasl) };
        let described = described(&Bootstrap::new("a:1,b:1").with(security));
        assert_eq!(described, "Kafka at a:1,b:1, over TLS, as user app by SCRAM-SHA-512");
    }

    #[test]
    fn what_waiting_does_not_mend_is_not_waited_for() {
        let away = KafkaError::Unreachable { bootstrap: String::new(), detail: String::new() };
        let old = KafkaError::Unsupported { what: String::new() };
        let denied = KafkaError::Authentication { detail: String::new() };
        assert!(passes(&away) && !passes(&old) && !passes(&denied));
    }
}
