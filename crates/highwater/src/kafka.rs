//! A Kafka cluster as the command line asks it, and its errors in the parts of rule U3.

use std::path::Path;
use std::time::Duration;

use highwater_kafka::{
    Admin, Bootstrap, ErrorCode, KafkaError, OffsetSpec, PartitionDescription, Reader,
    ReaderSettings, Security,
};

use crate::failure::{Exit, Failure};

/// How long a command tries to reach a cluster. A person waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections to one cluster; made when first used.
pub(crate) struct Cluster {
    pub(crate) admin: Admin,
    pub(crate) reader: Reader,
}

impl Cluster {
    pub(crate) fn new(bootstrap: &Bootstrap) -> Self {
        let settings = ReaderSettings {
            connect_timeout: PATIENCE,
            retry_for: PATIENCE,
            ..ReaderSettings::default()
        };
        let reader = Reader::with_settings(bootstrap, settings);
        Self { admin: Admin::new(reader.clone()), reader }
    }

    /// The partitions of a topic.
    ///
    /// # Errors
    /// When there is no such topic.
    pub(crate) async fn partitions(
        &self,
        topic: &str,
    ) -> Result<Vec<PartitionDescription>, Failure> {
        let partitions = self.admin.partitions(topic).await.map_err(|error| failure(&error))?;
        partitions.ok_or_else(|| topic_missing(topic, self.reader.bootstrap()))
    }
}

pub(crate) fn topic_missing(topic: &str, bootstrap: &Bootstrap) -> Failure {
    let what = format!("there is no topic {topic} at {bootstrap}");
    Failure::new(Exit::NotFound, "TOPIC_NOT_FOUND", what)
        .kept("nothing was changed")
        .remedy("highwater topic list --internal shows what there is")
}

/// A failed question to a cluster.
pub(crate) fn failure(error: &KafkaError) -> Failure {
    let (exit, code, remedy) = meaning(error);
    Failure::new(exit, code, error.to_string()).kept("nothing was changed").remedy(remedy)
}

/// The code of a failed question.
pub(crate) fn code(error: &KafkaError) -> &'static str {
    meaning(error).1
}

/// Whether the cluster knows who asks, and does not allow it.
pub(crate) fn is_denied(error: &KafkaError) -> bool {
    DENIED.into_iter().any(|denied| error.is(denied))
}

/// Exit code, code and remedy of a failed question.
fn meaning(error: &KafkaError) -> (Exit, &'static str, &'static str) {
    match error {
        KafkaError::Unreachable { .. } => (
            Exit::Unreachable,
            "KAFKA_UNREACHABLE",
            "start it, or name its brokers as HOST:PORT; one that wants TLS or a login also needs \
             --kafka-config FILE",
        ),
        KafkaError::Authentication { .. } => (
            Exit::Denied,
            "KAFKA_AUTHENTICATION",
            "correct the file of --kafka-config; highwater explain KAFKA_AUTHENTICATION shows one",
        ),
        KafkaError::UnknownPartition { .. } => (
            Exit::NotFound,
            "TOPIC_NOT_FOUND",
            "highwater topic list --internal shows what there is",
        ),
        KafkaError::Unsupported { .. } => (
            Exit::Refused,
            "BROKER_TOO_OLD",
            "ask for something else, or ask a broker of a later release",
        ),
        error if is_denied(error) => {
            let remedy = "have the cluster's operator allow it: highwater user change NAME --grant …, or \
                          kafka-acls on Apache Kafka";
            (Exit::Denied, "KAFKA_DENIED", remedy)
        }
        error if error.is(ErrorCode::OFFSET_OUT_OF_RANGE) => (
            Exit::Refused,
            "OFFSET_OUT_OF_RANGE",
            "highwater topic show TOPIC says which offsets it holds",
        ),
        _ => (Exit::Failed, "KAFKA_FAILED", "see the broker's log, then try again"),
    }
}

const DENIED: [ErrorCode; 3] = [
    ErrorCode::TOPIC_AUTHORIZATION_FAILED,
    ErrorCode::CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode::GROUP_AUTHORIZATION_FAILED,
];

/// A list of brokers with the client settings of a file, where one is named.
///
/// # Errors
/// When it is no list of addresses, or the file cannot be used.
pub(crate) fn bootstrap(
    flag: &str,
    addresses: &str,
    config: Option<&Path>,
) -> Result<Bootstrap, Failure> {
    let is_address = |text: &str| {
        let parts = text.rsplit_once(':');
        parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    if !addresses.split(',').map(str::trim).all(is_address) {
        return Err(Failure::usage(format!("{flag} {addresses} is not HOST:PORT"))
            .remedy("name brokers as HOST:PORT, several separated by commas"));
    }
    let bootstrap = Bootstrap::new(addresses);
    let Some(path) = config else { return Ok(bootstrap) };
    let security = Security::load(path).map_err(|error| {
        Failure::new(Exit::Usage, "KAFKA_CONFIG_INVALID", format!("{}: {error}", path.display()))
            .kept("nothing was changed")
            .remedy("correct it; highwater explain KAFKA_CONFIG_INVALID shows a whole one")
    })?;
    Ok(bootstrap.with(security))
}

/// Reads an offset spec as the flags take it.
///
/// # Errors
/// When it is none.
pub(crate) fn offset_spec(flag: &str, text: &str) -> Result<OffsetSpec, Failure> {
    match text {
        "earliest" => Ok(OffsetSpec::Earliest),
        "latest" => Ok(OffsetSpec::Latest),
        "max-timestamp" => Ok(OffsetSpec::MaxTimestamp),
        text => milliseconds(text).map(OffsetSpec::Timestamp).ok_or_else(|| {
            Failure::usage(format!(
                "{flag} {text:?} is neither earliest, latest, max-timestamp nor a time"
            ))
            .remedy("give a time as 2026-11-29T08:00:00Z, or in milliseconds since 1970")
        }),
    }
}

fn milliseconds(text: &str) -> Option<i64> {
    let number = || text.parse().ok();
    let time = || Some(text.parse::<jiff::Timestamp>().ok()?.as_millisecond());
    number().or_else(time).filter(|time| *time >= 0)
}

/// A record's or a broker's time as ISO 8601; the number where it has no such form.
pub(crate) fn time_text(milliseconds: i64) -> String {
    match jiff::Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        Err(_) => milliseconds.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_a_word_or_a_time() {
        let spec = |text| offset_spec("--spec", text);
        assert_eq!(spec("max-timestamp").unwrap(), OffsetSpec::MaxTimestamp);
        let time = OffsetSpec::Timestamp(1_000);
        assert_eq!(spec("1000").unwrap(), time);
        assert_eq!(spec("1970-01-01T01:00:01+01:00").unwrap(), time);
        for text in ["", "newest", "-5", "2026-11-29", "1960-01-01T00:00:00Z"] {
            assert_eq!(spec(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
    }

    #[test]
    fn a_bootstrap_names_ports() {
        let named = |text| bootstrap("--bootstrap", text, None);
        assert!(named("a:9092, [::1]:9093").is_ok());
        for text in ["", "localhost", ":9092", "a:b", "a:9092,"] {
            assert_eq!(named(text).err().map(|f| f.exit), Some(Exit::Usage), "{text}");
        }
    }

    #[test]
    fn errors_have_their_exit_codes() {
        let old = KafkaError::Unsupported { what: "MaxTimestamp".to_owned() };
        assert_eq!(failure(&old).exit, Exit::Refused);
        let denied = KafkaError::Refused {
            what: String::new(),
            code: ErrorCode::TOPIC_AUTHORIZATION_FAILED.0,
            name: "",
            detail: String::new(),
        };
        assert_eq!(failure(&denied).exit, Exit::Denied);
    }
}
