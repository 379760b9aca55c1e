//! Makes the topics that a worker needs, and refuses existing ones that would break a promise
//! (rules L1 and R2).

use std::collections::BTreeMap;

use highwater_connector::{ConnectorError, ErrorKind, Keeps, Routing};
use highwater_kafka::{Admin, ErrorCode, KafkaError, NewTopic, TOPIC_NAME_RULE, is_topic_name};

use crate::cluster::{REQUEST_OVERHEAD, log_error};
use crate::pipeline::Pipeline;
use crate::topic_creation::TopicSettings;

/// Topic configuration of the embedded log that says when a write is safe (rule L1).
const FLUSH: &str = "highwater.flush";
const DURABLE: &str = "durable";
/// The same, that says who alone writes a topic (rule R2).
const OWNER: &str = "highwater.owner";

/// How the names of the server's own topics begin.
pub(crate) const RESERVED: &str = "highwater.";

/// Rule A4: what lies there is for the server and admins.
pub(crate) fn is_internal(topic: &str) -> bool {
    topic.starts_with(RESERVED) || matches!(topic, "__consumer_offsets" | "__transaction_state")
}

/// Why a connector may not name this topic, behind the key that does.
pub(crate) fn misnamed(topic: &str) -> Option<String> {
    if is_internal(topic) {
        return Some(format!("names {topic}, which is the server's own"));
    }
    unnameable(topic)
}

/// Why no topic can be called so, behind the key that names it.
pub(crate) fn unnameable(topic: &str) -> Option<String> {
    (!is_topic_name(topic))
        .then(|| format!("leads to {topic:?}, which is no name of a topic: {TOPIC_NAME_RULE}"))
}

/// Topics of state are compacted, and read whole at start: small segments have compaction keep them small.
const STATE: [(&str, &str); 3] =
    [("cleanup.policy", "compact"), ("segment.bytes", "16777216"), ("segment.ms", "86400000")];

/// Makes a compacted topic of one partition for the worker's own state, unless it exists; whether it did.
pub(crate) async fn ensure_internal(admin: &Admin, name: &str) -> Result<bool, KafkaError> {
    create(admin, name, &STATE).await
}

/// Makes the topics of a connector, or checks them when they exist.
///
/// # Errors
/// `TOPIC_UNFIT` by name when an existing topic would break a promise; what the log says when it
/// cannot be asked.
pub(crate) async fn ensure_connector(
    admin: &Admin,
    pipeline: &Pipeline,
) -> Result<(), ConnectorError> {
    if let Routing::Trail(trail) = &pipeline.topics.routing {
        ensure_trail(admin, trail, pipeline).await?;
    }
    if let Some(schema) = pipeline.topics.schema.as_deref() {
        ensure_beside(admin, schema, Keeps::Newest, &pipeline.name).await?;
    }
    for side in &pipeline.topics.side {
        ensure_beside(admin, &side.name, side.keeps, &pipeline.name).await?;
    }
    Ok(())
}

/// A topic beside the records of connector `owner`.
async fn ensure_beside(
    admin: &Admin,
    name: &str,
    keeps: Keeps,
    owner: &str,
) -> Result<(), ConnectorError> {
    let retention = match keeps {
        Keeps::Newest => None,
        Keeps::For(time) => Some(time.as_millis().to_string()),
    };
    let policy: &[_] = match &retention {
        None => &STATE,
        Some(retention) => &[("cleanup.policy", "delete"), ("retention.ms", retention)],
    };
    let configs = [policy, &[(OWNER, owner)]].concat();
    create(admin, name, &configs).await.map_err(|error| log_error(&error))?;
    let purpose = if retention.is_none() { Use::State } else { Use::Table };
    check(admin, name, purpose).await
}

async fn ensure_trail(
    admin: &Admin,
    trail: &str,
    pipeline: &Pipeline,
) -> Result<(), ConnectorError> {
    let max_bytes =
        pipeline.settings.sending.max_record_bytes.saturating_add(REQUEST_OVERHEAD).to_string();
    let configs = [
        ("cleanup.policy", "delete"),
        // Age counts from the append: a snapshot of ten-year-old rows must survive (rule L5).
        ("message.timestamp.type", "LogAppendTime"),
        ("retention.ms", &pipeline.settings.retention_ms),
        ("retention.bytes", &pipeline.settings.retention_bytes),
        ("max.message.bytes", &max_bytes),
        (OWNER, &pipeline.name),
    ];
    create(admin, trail, &configs).await.map_err(|error| log_error(&error))?;
    check(admin, trail, Use::Trail).await
}

/// Makes the topic of a table, or checks it when it exists; without `settings` it has to.
///
/// # Errors
/// As [`ensure_connector`]; `TOPIC_MISSING` when it had to exist.
pub(crate) async fn ensure_table(
    admin: &Admin,
    topic: &str,
    settings: Option<&TopicSettings>,
) -> Result<(), ConnectorError> {
    match settings {
        Some(settings) => make(admin, topic, settings).await?,
        None => exists(admin, topic).await?,
    }
    check(admin, topic, Use::Table).await
}

async fn make(admin: &Admin, topic: &str, settings: &TopicSettings) -> Result<(), ConnectorError> {
    let new = NewTopic {
        name: topic.to_owned(),
        partitions: settings.partitions,
        replication: settings.replication,
        configs: settings.configs.clone(),
    };
    make_as_said(admin, &new, &settings.replication_key).await
}

/// Makes a topic, unless it exists, whose replication factor `key` of a connector says.
///
/// # Errors
/// What the log says.
pub(crate) async fn make_as_said(
    admin: &Admin,
    topic: &NewTopic,
    key: &str,
) -> Result<(), ConnectorError> {
    let made = admin.create_durable_topic(topic).await;
    made.map(drop).map_err(|error| not_made(&error, topic.replication, key))
}

/// More replicas than there are brokers are a mistake of the configuration, at which Kafka Connect's task
/// fails, too. What the cluster itself asks for may be met once all its brokers are up.
fn not_made(error: &KafkaError, replication: i16, key: &str) -> ConnectorError {
    if replication < 0 || !error.is(ErrorCode::INVALID_REPLICATION_FACTOR) {
        return log_error(error);
    }
    let remedy = format!(
        "set {key}, which is {replication}, to no more than there are brokers, then restart the connector"
    );
    ConnectorError::stop("LOG_REFUSED", ErrorKind::Log, error.to_string(), remedy)
}

async fn exists(admin: &Admin, topic: &str) -> Result<(), ConnectorError> {
    let described = admin.describe_topic(topic).await.map_err(|error| log_error(&error))?;
    described.map(drop).ok_or_else(|| {
        ConnectorError::stop(
            "TOPIC_MISSING",
            ErrorKind::Log,
            format!("topic {topic} does not exist, and this server makes none for connectors"),
            "make the topic and restart the connector, or set worker.topic_creation_enable=true",
        )
    })
}

/// A record of a connector among the worker's own would be read as one of them.
pub(crate) fn own(topic: &str) -> ConnectorError {
    ConnectorError::stop(
        "TOPIC_UNFIT",
        ErrorKind::Log,
        format!("topic {topic} is the server's own"),
        "name another topic in the connector's configuration or its transforms, then restart the \
         connector",
    )
}

/// Makes a topic of one partition.
async fn create(admin: &Admin, name: &str, configs: &[(&str, &str)]) -> Result<bool, KafkaError> {
    let topic = NewTopic {
        configs: configs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
        ..NewTopic::of_one(name)
    };
    admin.create_durable_topic(&topic).await
}

/// What a topic is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Trail,
    Table,
    State,
}

async fn check(admin: &Admin, name: &str, purpose: Use) -> Result<(), ConnectorError> {
    let described = admin.describe_topic(name).await.map_err(|error| log_error(&error))?;
    let config = admin.topic_config(name).await.map_err(|error| log_error(&error))?;
    let partitions = described.map_or(0, |topic| topic.partitions);
    match unfit(purpose, partitions, &config) {
        None => Ok(()),
        Some((what, remedy)) => Err(ConnectorError::stop(
            "TOPIC_UNFIT",
            ErrorKind::Log,
            format!("topic {name} {what}"),
            remedy,
        )),
    }
}

/// Why a topic cannot be used as it is, and what to do.
fn unfit(
    purpose: Use,
    partitions: i32,
    config: &BTreeMap<String, String>,
) -> Option<(String, &'static str)> {
    let value = |key| config.get(key).map(String::as_str);
    // Apache Kafka has no such key: its replicas make an acknowledged write safe.
    if let Some(flush) = value(FLUSH).filter(|flush| *flush != DURABLE) {
        let what = format!("has {FLUSH}={flush}: an acknowledged record could be taken back");
        return Some((what, "set highwater.flush=durable on the topic, or name another one"));
    }
    if purpose == Use::Trail && partitions != 1 {
        let what = format!("has {partitions} partitions; a trail is one, to keep one order");
        return Some((what, "name a topic that does not exist yet, and it is made"));
    }
    let policy = value("cleanup.policy").unwrap_or_default();
    if purpose == Use::Trail && policy.contains("compact") {
        let what = format!("has cleanup.policy={policy}; compaction would tear holes into a trail");
        return Some((what, "set cleanup.policy=delete on the topic, or name another one"));
    }
    if purpose == Use::State && policy != "compact" {
        let what = format!("has cleanup.policy={policy}; retention would take what is in use");
        return Some((what, "set cleanup.policy=compact on the topic"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_replicas_than_brokers_stop_by_the_key_that_asks_for_them() {
        use highwater_connector::Retry;

        let error = KafkaError::Refused {
            what: "make topic dead".to_owned(),
            code: ErrorCode::INVALID_REPLICATION_FACTOR.0,
            name: "INVALID_REPLICATION_FACTOR",
            detail: String::new(),
        };
        let said = not_made(&error, 3, "the.key");
        assert_eq!((said.code, said.retry), ("LOG_REFUSED", Retry::Never));
        assert!(said.remedy.contains("set the.key, which is 3,"), "{said}");
        assert_eq!(not_made(&error, -1, "the.key").retry, Retry::Backoff, "the cluster's own");
    }

    fn config(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_topic_of_ours_is_fit() {
        let trail = config(&[(FLUSH, DURABLE), ("cleanup.policy", "delete")]);
        assert_eq!(unfit(Use::Trail, 1, &trail), None);
        let schema = config(&[(FLUSH, DURABLE), ("cleanup.policy", "compact")]);
        assert_eq!(unfit(Use::State, 1, &schema), None);
    }

    #[test]
    fn apache_kafka_without_the_key_is_fit() {
        assert_eq!(unfit(Use::Trail, 1, &config(&[("cleanup.policy", "delete")])), None);
    }

    #[test]
    fn less_than_durable_is_refused() {
        for (purpose, policy) in
            [(Use::Trail, "delete"), (Use::Table, "compact"), (Use::State, "compact")]
        {
            let config = config(&[(FLUSH, "interval"), ("cleanup.policy", policy)]);
            assert!(unfit(purpose, 1, &config).unwrap().0.contains("highwater.flush=interval"));
        }
    }

    #[test]
    fn the_topic_of_a_table_may_have_partitions_and_be_compacted() {
        for policy in ["delete", "compact", "compact,delete"] {
            assert_eq!(unfit(Use::Table, 7, &config(&[("cleanup.policy", policy)])), None);
        }
    }

    #[test]
    fn a_trail_is_one_partition_and_never_compacted() {
        let fit = config(&[("cleanup.policy", "delete")]);
        assert!(unfit(Use::Trail, 2, &fit).unwrap().0.contains("2 partitions"));
        let compacted = config(&[("cleanup.policy", "delete,compact")]);
        assert!(unfit(Use::Trail, 1, &compacted).unwrap().0.contains("compact"));
    }
}
