//! The topics of offsets: the worker's own, and those that connectors name for theirs alone (KIP-618).
//!
//! A connector that names one goes on from the worker's own topic until the named one has its offset.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_connector::{Problem, Routing, SourceOffset, SourcePartition, Topics};
use highwater_kafka::KafkaError;
use tokio::sync::Mutex;

use crate::cluster::Cluster;
use crate::keys;
use crate::offsets::{Offsets, StoredOffset};
use crate::topics;

/// See the module's text.
pub(crate) struct OffsetTopics {
    cluster: Cluster,
    own: Offsets,
    /// Opened when first needed; at most one a connector.
    named: Mutex<BTreeMap<String, Arc<Offsets>>>,
}

impl OffsetTopics {
    pub(crate) async fn open(cluster: &Cluster, own: &str) -> Result<Self, KafkaError> {
        let own = Offsets::open(cluster, own).await?;
        Ok(Self { cluster: cluster.clone(), own, named: Mutex::default() })
    }

    /// The topic that a connector's offsets are written to, where it names `named`.
    pub(crate) fn written<'a>(&'a self, named: Option<&'a str>) -> &'a str {
        named.unwrap_or_else(|| self.own.topic())
    }

    /// The topics that an operator's change of an offset goes to: what is removed is removed from all,
    /// or the worker's own would have it again once the named one has forgotten the removal.
    pub(crate) fn edited<'a>(
        &'a self,
        named: Option<&'a str>,
        offset: Option<&SourceOffset>,
    ) -> Vec<&'a str> {
        let mut topics = vec![self.written(named)];
        if offset.is_none() && self.written(named) != self.own.topic() {
            topics.push(self.own.topic());
        }
        topics
    }

    /// The newest record of one partition, as the log has it now.
    pub(crate) async fn find(
        &self,
        named: Option<&str>,
        connector: &str,
        partition: &SourcePartition,
    ) -> Result<Option<StoredOffset>, KafkaError> {
        if let Some(named) = self.other(named).await?
            && let Some(found) = named.find(connector, partition).await?
        {
            return Ok(Some(found));
        }
        self.own.find(connector, partition).await
    }

    /// The newest records of all partitions of a connector, as the log has them now.
    pub(crate) async fn all(
        &self,
        named: Option<&str>,
        connector: &str,
    ) -> Result<Vec<StoredOffset>, KafkaError> {
        let mut found = match self.other(named).await? {
            Some(named) => named.all(connector).await?,
            None => Vec::new(),
        };
        let own = self.own.all(connector).await?.into_iter();
        let missing: Vec<_> =
            own.filter(|own| !found.iter().any(|named| named.partition == own.partition)).collect();
        found.extend(missing);
        Ok(found)
    }

    /// The topic of this name, made where it is missing; `None` for the worker's own.
    async fn other(&self, named: Option<&str>) -> Result<Option<Arc<Offsets>>, KafkaError> {
        let Some(name) = named.filter(|name| *name != self.own.topic()) else { return Ok(None) };
        let mut open = self.named.lock().await;
        if let Some(offsets) = open.get(name) {
            return Ok(Some(Arc::clone(offsets)));
        }
        topics::ensure_internal(&self.cluster.admin, name).await?;
        let offsets = Arc::new(Offsets::open(&self.cluster, name).await?);
        open.insert(name.to_owned(), Arc::clone(&offsets));
        Ok(Some(offsets))
    }
}

/// A connector must not write records where its offsets are, nor offsets where the server keeps
/// something else.
pub(crate) fn problem(named: Option<&str>, own: &str, written_to: &Topics) -> Option<Problem> {
    let named = named.filter(|named| *named != own)?;
    let written = match &written_to.routing {
        Routing::Trail(topic) | Routing::Topic(topic) => topic == named,
        Routing::Tables(prefix) => {
            named.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.starts_with('.'))
        }
    };
    if let Some(message) = topics::unnameable(named) {
        return Some(Problem::new(keys::OFFSETS_TOPIC, message));
    }
    let message = if written || written_to.schema.as_deref() == Some(named) {
        "is a topic that the connector writes its records to"
    } else if named.starts_with("highwater.") {
        "begins with highwater., as the server's own topics do"
    } else {
        return None;
    };
    Some(Problem { key: keys::OFFSETS_TOPIC.to_owned(), message: message.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_do_not_go_where_records_or_the_servers_own_state_are() {
        let trail = Routing::Trail("shop".to_owned());
        let tables = Routing::Tables("shop".to_owned());
        let refused = |routing: &Routing, named| {
            let topics = Topics {
                routing: routing.clone(),
                schema: Some("shop.schema".to_owned()),
                side: Vec::new(),
            };
            problem(named, "highwater.offsets", &topics).is_some()
        };
        assert!(refused(&trail, Some("shop")) && refused(&trail, Some("shop.schema")));
        assert!(refused(&tables, Some("shop.public.t")));
        assert!(refused(&trail, Some("highwater.configs")));
        assert!(refused(&trail, Some("a/b")) && refused(&trail, Some("")));
        for fine in [None, Some("highwater.offsets"), Some("shop.offsets")] {
            assert!(!refused(&trail, fine), "{fine:?}");
        }
    }
}
