//! The dead-letter topic of a sink: records that it cannot handle, as they lay in the log, with
//! headers that say why (KIP-298).

use std::borrow::Cow;
use std::collections::VecDeque;

use bytes::Bytes;
use highwater_connector::{ConnectorError, LogRecord, TopicPartition};
use highwater_kafka::{NewTopic, OutgoingRecord, Writer};

use crate::cluster::{Cluster, Sending, log_error};
use crate::sink_keys::DEAD_LETTER_REPLICAS;
use crate::tolerance::{DeadLetterSettings, Stage};
use crate::topics;

/// Why a record is bad, and whose it is.
pub(crate) struct Cause<'a> {
    pub(crate) connector: &'a str,
    pub(crate) task: u32,
    pub(crate) stage: Stage,
    /// What was at work: the class of a sink, a converter or a transform.
    pub(crate) class: &'a str,
    pub(crate) error: &'a ConnectorError,
}

/// Writes dead letters, and knows which are not acknowledged.
pub(crate) struct DeadLetters {
    settings: DeadLetterSettings,
    writer: Box<dyn Writer>,
    /// In the order of sending.
    under_way: VecDeque<(u64, TopicPartition, i64)>,
}

impl DeadLetters {
    /// Makes the topic, with one partition, where it is missing.
    pub(crate) async fn open(
        settings: DeadLetterSettings,
        cluster: &Cluster,
        sending: Sending,
    ) -> Result<Self, ConnectorError> {
        let replication = settings.replication;
        let topic = NewTopic { replication, ..NewTopic::of_one(&settings.topic) };
        topics::make_as_said(&cluster.admin, &topic, DEAD_LETTER_REPLICAS).await?;
        let writer = cluster.writer(sending, None).map_err(|error| log_error(&error))?;
        Ok(Self { settings, writer, under_way: VecDeque::new() })
    }

    /// Sends a letter, waiting while too many are under way.
    pub(crate) async fn send(
        &mut self,
        record: &LogRecord,
        cause: &Cause<'_>,
    ) -> Result<(), ConnectorError> {
        let letter = letter(&self.settings, record, cause);
        let sequence = self.writer.send(letter).await.map_err(|error| log_error(&error))?;
        self.under_way.push_back((sequence, record.from.clone(), record.offset));
        Ok(())
    }

    /// The records whose letters were acknowledged since.
    pub(crate) fn collect(&mut self) -> Result<Vec<(TopicPartition, i64)>, ConnectorError> {
        let acknowledged = self.writer.acknowledged().map_err(|error| log_error(&error))?;
        let Some(last) = acknowledged.last().map(|last| last.sequence) else {
            return Ok(Vec::new());
        };
        let safe = self.under_way.iter().take_while(|(sequence, ..)| *sequence <= last).count();
        Ok(self.under_way.drain(..safe).map(|(_, partition, offset)| (partition, offset)).collect())
    }

    /// Waits until all are acknowledged.
    pub(crate) async fn settle(&mut self) -> Result<Vec<(TopicPartition, i64)>, ConnectorError> {
        self.writer.commit().await.map_err(|error| log_error(&error))?;
        self.collect()
    }
}

/// How the names of the headers begin.
const PREFIX: &str = "__connect.errors.";

fn letter(settings: &DeadLetterSettings, record: &LogRecord, cause: &Cause<'_>) -> OutgoingRecord {
    let own = record.headers.iter().map(|(name, value)| (name.clone().into(), value.clone()));
    let mut headers: Vec<(Cow<'static, str>, Bytes)> = own.collect();
    if settings.headers {
        headers.extend(context(record, cause));
    }
    OutgoingRecord {
        topic: settings.topic.as_str().into(),
        partition: None,
        key: record.key.clone(),
        value: record.value.clone(),
        headers,
    }
}

/// Text all of them, numbers too.
fn context(
    record: &LogRecord,
    cause: &Cause<'_>,
) -> impl Iterator<Item = (Cow<'static, str>, Bytes)> {
    let Cause { connector, task, stage, class, error } = cause;
    let entries = [
        ("topic", record.from.topic.to_string()),
        ("partition", record.from.partition.to_string()),
        ("offset", record.offset.to_string()),
        ("connector.name", (*connector).to_owned()),
        ("task.id", task.to_string()),
        ("stage", stage.name().to_owned()),
        ("class.name", (*class).to_owned()),
        ("exception.class.name", error.code.to_owned()),
        ("exception.message", error.what.clone()),
        ("exception.stacktrace", error.to_string()),
    ];
    entries.into_iter().map(|(name, value)| (format!("{PREFIX}{name}").into(), value.into()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use highwater_connector::ErrorKind;

    use super::*;

    #[test]
    fn a_letter_is_the_record_with_its_story_behind_its_own_headers() {
        let record = LogRecord {
            from: TopicPartition::new("orders", 2),
            offset: 17,
            timestamp: 5,
            key: Some("k".into()),
            value: None,
            headers: vec![("trace".to_owned(), "t".into())],
        };
        let error = ConnectorError::stop("X_1", ErrorKind::Data, "it is odd", "mend it");
        let cause = Cause {
            connector: "c",
            task: 3,
            stage: Stage::ValueConverter,
            class: "Json",
            error: &error,
        };
        let mut settings =
            DeadLetterSettings { topic: "dead".to_owned(), replication: -1, headers: false };
        let plain = letter(&settings, &record, &cause);
        assert_eq!((&*plain.topic, plain.key, plain.value), ("dead", Some("k".into()), None));
        assert_eq!(plain.headers, [("trace".into(), Bytes::from("t"))]);
        settings.headers = true;
        let told: BTreeMap<_, _> = letter(&settings, &record, &cause).headers.into_iter().collect();
        for (name, value) in [
            ("trace", "t"),
            ("__connect.errors.topic", "orders"),
            ("__connect.errors.partition", "2"),
            ("__connect.errors.offset", "17"),
            ("__connect.errors.connector.name", "c"),
            ("__connect.errors.task.id", "3"),
            ("__connect.errors.stage", "VALUE_CONVERTER"),
            ("__connect.errors.class.name", "Json"),
            ("__connect.errors.exception.class.name", "X_1"),
            ("__connect.errors.exception.message", "it is odd"),
        ] {
            assert_eq!(told[name], value, "{name}");
        }
        assert_eq!(told.len(), 11);
    }
}
