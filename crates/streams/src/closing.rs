//! Why a connection ends: the close code, and the record before it that says more.

use highwater_kafka::KafkaError;
use serde_json::{Value, json};

use crate::change::Undecodable;
use crate::encoding::Encoding;
use crate::metafields::Meta;
use crate::trail::TopicPartition;

/// WebSocket close codes. Those from 4000 on are ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CloseCode {
    /// The server stops.
    GoingAway = 1001,
    /// A message from the client is too large.
    TooLarge = 1009,
    /// The client sent what it must not send.
    ProtocolError = 4002,
    /// The client did not show that it lives.
    Liveness = 4004,
    /// The stream was changed or deleted.
    Reconfigured = 4012,
    /// Records were purged before they could be sent.
    Purged = 4014,
    /// The log went on differently below the connection.
    HistoryChanged = 4015,
    /// The trail holds a record that cannot be shown.
    Undecodable = 4016,
    /// The log cannot be read.
    LogUnavailable = 4020,
}

/// Why a connection ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The client closed it, or the network did.
    Left,
    /// The server closes it.
    Closed { close: CloseCode, code: &'static str, what: String, remedy: String },
}

/// How soon a client may come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Retry {
    Now,
    Later,
    Never,
}

impl CloseCode {
    const fn retry(self) -> Retry {
        match self {
            Self::GoingAway | Self::LogUnavailable => Retry::Later,
            Self::Liveness | Self::Reconfigured => Retry::Now,
            Self::TooLarge
            | Self::ProtocolError
            | Self::Purged
            | Self::HistoryChanged
            | Self::Undecodable => Retry::Never,
        }
    }
}

impl Ending {
    pub(crate) fn closed(
        close: CloseCode,
        code: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Closed { close, code, what: what.into(), remedy: remedy.into() }
    }

    pub(crate) fn shutdown() -> Self {
        Self::closed(
            CloseCode::GoingAway,
            "server_stopping",
            "the server is stopping",
            "reconnect with the pos of the last record that you processed",
        )
    }

    pub(crate) fn reconfigured(stream: &str) -> Self {
        Self::closed(
            CloseCode::Reconfigured,
            "stream_reconfigured",
            format!("the configuration of stream {stream} was changed"),
            "reconnect with the last pos; if it is refused, the encoding has changed",
        )
    }

    pub(crate) fn deleted(stream: &str) -> Self {
        Self::closed(
            CloseCode::Reconfigured,
            "stream_deleted",
            format!("the stream {stream} was deleted"),
            "ask who deleted it; a stream of the same name and encoding takes the same positions",
        )
    }

    pub(crate) fn purged(next: i64, log_start: i64) -> Self {
        Self::closed(
            CloseCode::Purged,
            "records_purged",
            format!(
                "records from offset {next} on were purged before they could be sent: the oldest \
                 that is kept is {log_start}"
            ),
            "reconnect with the last pos and onGone=next to go on behind the gap, or reconcile",
        )
    }

    pub(crate) fn history_changed(topic: &str) -> Self {
        Self::closed(
            CloseCode::HistoryChanged,
            "history_changed",
            format!("the topic {topic} was cut or made anew below this connection"),
            "reconcile, then begin at earliest",
        )
    }

    pub(crate) fn unavailable(error: &KafkaError) -> Self {
        Self::closed(
            CloseCode::LogUnavailable,
            "log_unavailable",
            format!("the log cannot be read: {error}"),
            "reconnect in a few seconds with the last pos",
        )
    }

    pub(crate) fn undecodable(source: &TopicPartition, error: &Undecodable) -> Self {
        let TopicPartition { topic, partition } = source;
        let behind = error.offset + 1;
        Self::closed(
            CloseCode::Undecodable,
            "record_undecodable",
            format!("topic {topic}: {error}"),
            format!(
                "see what writes to the topic besides its connector. Nothing is skipped by itself: to \
                 go on behind it, once everybody has read what stands before, have the records of \
                 partition {partition} below offset {behind} deleted (kafka-delete-records does it) \
                 and reconnect with the last pos and onGone=next, which reports the gap"
            ),
        )
    }

    pub(crate) fn undescribed(table: &str, version: u32, topic: &str) -> Self {
        Self::closed(
            CloseCode::LogUnavailable,
            "table_description_missing",
            format!("version {version} of table {table} is not described in topic {topic}"),
            "see that the schema topic is whole and readable, then reconnect with the last pos",
        )
    }

    /// The last record of a connection.
    pub(crate) fn record(&self, encoding: &Encoding) -> Option<Value> {
        let Self::Closed { close, code, what, remedy } = self else { return None };
        let retry = match close.retry() {
            Retry::Now => "now",
            Retry::Later => "later",
            Retry::Never => "never",
        };
        Some(json!({
            encoding.meta_fields.name_or_default(Meta::OpType): "ERROR",
            "code": code,
            "what": what,
            "kept": "your saved position and everything in the log",
            "do": remedy,
            "close_code": *close as u16,
            "retry": retry,
        }))
    }
}
