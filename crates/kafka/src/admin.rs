//! Topics and their configurations.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::{KafkaError, Reader};

/// A topic to be made.
#[derive(Clone, Debug)]
pub struct NewTopic {
    /// Name.
    pub name: String,
    /// Number of partitions.
    pub partitions: i32,
    /// Topic configuration, such as `cleanup.policy`.
    pub configs: BTreeMap<String, String>,
}

/// What a cluster says of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDescription {
    /// Name.
    pub name: String,
    /// The id that a topic of the same name made later does not have.
    pub id: Uuid,
    /// Number of partitions.
    pub partitions: i32,
}

/// Asks a cluster for topics and changes them.
#[derive(Clone, Debug)]
pub struct Admin {
    reader: Reader,
}

impl Admin {
    /// An admin over the connections of `reader`.
    pub const fn new(reader: Reader) -> Self {
        Self { reader }
    }

    /// Makes a topic; `Ok(false)` when it exists already.
    ///
    /// # Errors
    /// When the cluster refuses or cannot be reached.
    pub async fn create_topic(&self, topic: &NewTopic) -> Result<bool, KafkaError> {
        let _ = (&self.reader, topic);
        Err(KafkaError::Unsupported { what: "create_topic".to_owned() })
    }

    /// Describes a topic; `None` when it does not exist.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn describe_topic(&self, name: &str) -> Result<Option<TopicDescription>, KafkaError> {
        Err(KafkaError::Unsupported { what: format!("describe_topic {name}") })
    }

    /// Names of all topics.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn topics(&self) -> Result<Vec<TopicDescription>, KafkaError> {
        Err(KafkaError::Unsupported { what: "topics".to_owned() })
    }

    /// A topic's configuration as the cluster sees it, defaults included.
    ///
    /// # Errors
    /// When the topic does not exist or the cluster cannot be asked.
    pub async fn topic_config(&self, name: &str) -> Result<BTreeMap<String, String>, KafkaError> {
        Err(KafkaError::Unsupported { what: format!("topic_config {name}") })
    }

    /// The cluster's id.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn cluster_id(&self) -> Result<String, KafkaError> {
        Err(KafkaError::Unsupported { what: "cluster_id".to_owned() })
    }
}
