//! Records of state: configurations, statuses and edited offsets.

use highwater_kafka::{Journal, OutgoingRecord};

use crate::cluster::{Cluster, Sending};

/// Largest record of state: a configuration with a generous certificate in it.
const MAX_RECORD_BYTES: usize = 4 << 20;

/// What writes them.
pub(crate) fn journal(cluster: &Cluster) -> Journal {
    let cluster = cluster.clone();
    Journal::new(move || cluster.writer(Sending::up_to(MAX_RECORD_BYTES), None))
}

/// A record of a topic of state: text key, JSON value or tombstone.
pub(crate) fn record(topic: &str, key: &str, value: Option<&serde_json::Value>) -> OutgoingRecord {
    OutgoingRecord {
        topic: topic.into(),
        partition: None,
        key: Some(key.to_owned().into_bytes().into()),
        value: value.map(|value| value.to_string().into_bytes().into()),
        headers: Vec::new(),
    }
}
