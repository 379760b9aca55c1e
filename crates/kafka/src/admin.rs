//! Topics and their configurations.

use std::collections::BTreeMap;
use std::time::Duration;

use highwater_protocol::{
    CreatableTopic, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest,
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DescribeConfigsRequest,
    DescribeConfigsResource, DescribeConfigsResult, ErrorCode, MetadataResponseTopic,
};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::cluster::{Cluster, Failure, refused};
use crate::{KafkaError, Reader};

/// How long the cluster may take to make or delete a topic.
const CHANGE_TIMEOUT_MS: i32 = 30_000;

/// How long we wait for a new topic to be led everywhere.
const SETTLE: Duration = Duration::from_secs(10);

/// The kind of resource that a topic is, in DescribeConfigs.
const TOPIC_RESOURCE: i8 = 2;

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

    /// Makes a topic and waits until it can be used; `Ok(false)` when it exists already.
    ///
    /// The replication factor is the cluster's default (KIP-464).
    ///
    /// # Errors
    /// When the cluster refuses or cannot be reached.
    pub async fn create_topic(&self, topic: &NewTopic) -> Result<bool, KafkaError> {
        let cluster = self.cluster();
        let made = cluster.persist(|| create(cluster, topic)).await?;
        if made {
            self.settle(topic).await?;
        }
        Ok(made)
    }

    /// Deletes a topic; `Ok(false)` when there is none.
    ///
    /// # Errors
    /// When the cluster refuses, does not offer it, or cannot be reached.
    pub async fn delete_topic(&self, name: &str) -> Result<bool, KafkaError> {
        let cluster = self.cluster();
        cluster.persist(|| delete(cluster, name)).await
    }

    /// Describes a topic; `None` when it does not exist.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn describe_topic(&self, name: &str) -> Result<Option<TopicDescription>, KafkaError> {
        let cluster = self.cluster();
        cluster.persist(|| describe(cluster, name)).await
    }

    /// All topics.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn topics(&self) -> Result<Vec<TopicDescription>, KafkaError> {
        let cluster = self.cluster();
        let answer = cluster.persist(|| cluster.metadata(None)).await?;
        let known = answer.topics.into_iter().filter(|topic| topic.error_code.is_ok());
        Ok(known.filter_map(description).collect())
    }

    /// A topic's configuration as the cluster sees it, defaults included. Secret values are left
    /// out.
    ///
    /// # Errors
    /// When the topic does not exist or the cluster cannot be asked.
    pub async fn topic_config(&self, name: &str) -> Result<BTreeMap<String, String>, KafkaError> {
        let cluster = self.cluster();
        let told = cluster.persist(|| describe_config(cluster, name)).await?;
        let told = told.configs.into_iter();
        Ok(told.filter_map(|entry| Some((entry.name, entry.value?))).collect())
    }

    /// The cluster's id.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn cluster_id(&self) -> Result<String, KafkaError> {
        let cluster = self.cluster();
        let answer = cluster.persist(|| cluster.metadata(Some(&[]))).await?;
        answer.cluster_id.ok_or_else(|| KafkaError::Unsupported { what: "cluster ids".to_owned() })
    }

    fn cluster(&self) -> &Cluster {
        self.reader.cluster()
    }

    /// A cluster of several brokers tells them one after the other of a new topic.
    async fn settle(&self, topic: &NewTopic) -> Result<(), KafkaError> {
        let deadline = Instant::now() + SETTLE;
        while Instant::now() < deadline {
            let answer = self.cluster().metadata(Some(&[&topic.name])).await;
            let answer = answer.map_err(Failure::into_error)?;
            if answer.topics.iter().any(|told| is_led(told, topic.partitions)) {
                return Ok(());
            }
            sleep(Duration::from_millis(20)).await;
        }
        let what = format!("wait for leaders of the new topic {}", topic.name);
        Err(refused(what, ErrorCode::LEADER_NOT_AVAILABLE, None))
    }
}

fn is_led(topic: &MetadataResponseTopic, partitions: i32) -> bool {
    let led = topic.partitions.iter().filter(|partition| partition.leader_id >= 0).count();
    usize::try_from(partitions).is_ok_and(|asked| led >= asked)
}

async fn create(cluster: &Cluster, topic: &NewTopic) -> Result<bool, Failure> {
    let config = |(name, value): (&String, &String)| CreatableTopicConfig {
        name: name.clone(),
        value: Some(value.clone()),
    };
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: topic.name.clone(),
            num_partitions: topic.partitions,
            replication_factor: -1,
            configs: topic.configs.iter().map(config).collect(),
            ..Default::default()
        }],
        timeout_ms: CHANGE_TIMEOUT_MS,
        validate_only: false,
    };
    let answer = cluster.ask_controller(&request).await?;
    let made = answer.topics.into_iter().find(|made| made.name == topic.name);
    let made: CreatableTopicResult = made.ok_or_else(|| silent("CreateTopics", &topic.name))?;
    if made.error_code == ErrorCode::TOPIC_ALREADY_EXISTS {
        return Ok(false);
    }
    let what = || format!("make topic {}", topic.name);
    check(made.error_code, made.error_message.as_deref(), what).map(|()| true)
}

async fn delete(cluster: &Cluster, name: &str) -> Result<bool, Failure> {
    let state = DeleteTopicState { name: Some(name.to_owned()), topic_id: Uuid::nil() };
    let request = DeleteTopicsRequest {
        topics: vec![state],
        topic_names: vec![name.to_owned()],
        timeout_ms: CHANGE_TIMEOUT_MS,
    };
    let answer = cluster.ask_controller(&request).await?;
    let mut deleted = answer.responses.into_iter();
    let deleted = deleted.find(|deleted| deleted.name.as_deref() == Some(name));
    let deleted: DeletableTopicResult = deleted.ok_or_else(|| silent("DeleteTopics", name))?;
    if deleted.error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
        return Ok(false);
    }
    let what = || format!("delete topic {name}");
    check(deleted.error_code, deleted.error_message.as_deref(), what).map(|()| true)
}

async fn describe(cluster: &Cluster, name: &str) -> Result<Option<TopicDescription>, Failure> {
    let answer = cluster.metadata(Some(&[name])).await?;
    let told = answer.topics.into_iter().find(|topic| topic.name.as_deref() == Some(name));
    let told = told.ok_or_else(|| silent("Metadata", name))?;
    if told.error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
        return Ok(None);
    }
    check(told.error_code, None, || format!("describe topic {name}"))?;
    Ok(description(told))
}

fn description(topic: MetadataResponseTopic) -> Option<TopicDescription> {
    let partitions = i32::try_from(topic.partitions.len()).ok()?;
    Some(TopicDescription { name: topic.name?, id: topic.topic_id, partitions })
}

async fn describe_config(cluster: &Cluster, name: &str) -> Result<DescribeConfigsResult, Failure> {
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: TOPIC_RESOURCE,
            resource_name: name.to_owned(),
            configuration_keys: None,
        }],
        ..Default::default()
    };
    let answer = cluster.ask_any(&request).await?;
    let told = answer.results.into_iter().find(|told| told.resource_name == name);
    let told = told.ok_or_else(|| silent("DescribeConfigs", name))?;
    let what = || format!("describe the configuration of topic {name}");
    if told.error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
        return Err(Failure::Final(refused(what(), told.error_code, None)));
    }
    check(told.error_code, told.error_message.as_deref(), what)?;
    Ok(told)
}

fn check(
    code: ErrorCode,
    message: Option<&str>,
    what: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if code.is_ok() {
        return Ok(());
    }
    let error = refused(what(), code, message);
    Err(if code.is_retriable() { Failure::Transient(error) } else { Failure::Final(error) })
}

/// The failure for an answer that leaves out what was asked for.
fn silent(api: &str, topic: &str) -> Failure {
    let detail = format!("it says nothing of topic {topic}");
    Failure::Final(KafkaError::Malformed { what: format!("the answer to {api}"), detail })
}
