//! The topics that a task writes, each made or checked before its first record.

use std::collections::HashMap;
use std::sync::Arc;

use highwater_connector::ConnectorError;
use highwater_kafka::Admin;

use crate::active_topics::UsedTopics;
use crate::cluster::log_error;
use crate::topic_creation::TopicCreation;
use crate::topics;

/// What is to be known of a topic before it is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TopicFacts {
    /// Its `max.message.bytes`, when the broker says it.
    pub(crate) max_message_bytes: Option<usize>,
    /// Whether it is compacted, and so takes no record without a key.
    pub(crate) compacted: bool,
}

/// See the module's text.
pub(crate) struct TaskTopics {
    known: HashMap<Arc<str>, TopicFacts>,
    /// Who is told of the topics that are written to, and of which it was not yet.
    used: Option<UsedTopics>,
    /// How topics of tables are made; without it none is.
    tables: Option<(Admin, TopicCreation)>,
    /// Topics of the worker itself.
    forbidden: Vec<String>,
}

impl TaskTopics {
    /// These topics and no others.
    pub(crate) fn fixed(known: impl IntoIterator<Item = (Arc<str>, TopicFacts)>) -> Self {
        Self { known: known.into_iter().collect(), used: None, tables: None, forbidden: Vec::new() }
    }

    /// These topics, and those of tables as they come, but for these of the worker itself.
    pub(crate) fn with_tables(
        mut self,
        admin: Admin,
        creation: TopicCreation,
        forbidden: impl IntoIterator<Item = String>,
    ) -> Self {
        self.tables = Some((admin, creation));
        self.forbidden.extend(forbidden);
        self
    }

    /// Tells of each topic that is written to.
    pub(crate) fn telling(mut self, used: UsedTopics) -> Self {
        self.used = Some(used);
        self
    }

    /// The topic, ready to be written to.
    ///
    /// # Errors
    /// When it cannot be made, or an existing one would break a promise.
    pub(crate) async fn ready(&mut self, topic: &Arc<str>) -> Result<TopicFacts, ConnectorError> {
        if let Some(used) = &mut self.used {
            used.note(topic).await;
        }
        if let Some(facts) = self.known.get(topic) {
            return Ok(*facts);
        }
        let Some((admin, creation)) = &self.tables else { return Ok(TopicFacts::default()) };
        if topics::is_internal(topic) || self.forbidden.iter().any(|own| **own == **topic) {
            return Err(topics::own(topic));
        }
        topics::ensure_table(admin, topic, creation.of(topic)).await?;
        let facts = facts(admin, topic).await?;
        self.known.insert(Arc::clone(topic), facts);
        Ok(facts)
    }
}

/// What the log says of a topic.
///
/// # Errors
/// When it cannot be asked.
pub(crate) async fn facts(admin: &Admin, topic: &str) -> Result<TopicFacts, ConnectorError> {
    let config = admin.topic_config(topic).await.map_err(|error| log_error(&error))?;
    let value = |key| config.get(key).map(String::as_str);
    Ok(TopicFacts {
        max_message_bytes: value("max.message.bytes").and_then(|text| text.parse().ok()),
        compacted: value("cleanup.policy").unwrap_or_default().contains("compact"),
    })
}
