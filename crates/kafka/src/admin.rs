//! Topics and their configurations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use highwater_protocol::{
    CreatableTopic, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest,
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DescribeConfigsRequest,
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult, ErrorCode,
    FetchRequest, InitProducerIdRequest, ListOffsetsRequest, MetadataRequest,
    MetadataResponsePartition, MetadataResponseTopic, OffsetForLeaderEpochRequest, ProduceRequest,
};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::cluster::{Cluster, Failure, refused};
use crate::{KafkaError, Reader};

/// How long the cluster may take to make or delete a topic.
const CHANGE_TIMEOUT_MS: i32 = 30_000;

/// How long we wait for a new topic to be led everywhere.
const SETTLE: Duration = Duration::from_secs(10);

/// Topic configuration of the embedded log that says when a write is safe, and its strictest value.
const FLUSH: &str = "highwater.flush";
/// What all settings of the embedded log alone begin with.
const OURS: &str = "highwater.";
const DURABLE: &str = "durable";

/// The kind of resource that a topic is, in DescribeConfigs.
pub(crate) const TOPIC_RESOURCE: i8 = 2;

/// The source of a configuration entry that was set on the topic, in DescribeConfigs.
const OF_THE_TOPIC: i8 = 1;

/// A topic to be made.
#[derive(Clone, Debug)]
pub struct NewTopic {
    /// Name.
    pub name: String,
    /// Number of partitions; -1 for the cluster's own default.
    pub partitions: i32,
    /// Number of replicas; -1 for the cluster's own default.
    pub replication: i16,
    /// Topic configuration, such as `cleanup.policy`.
    pub configs: BTreeMap<String, String>,
}

impl NewTopic {
    /// A topic of one partition, in everything else as the cluster makes them.
    pub fn of_one(name: &str) -> Self {
        Self { name: name.to_owned(), partitions: 1, replication: -1, configs: BTreeMap::new() }
    }
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
    /// Whether the cluster calls it its own.
    pub internal: bool,
}

/// What a cluster says of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionDescription {
    /// Its index.
    pub index: i32,
    /// The broker that leads it; none while it has no leader.
    pub leader: Option<i32>,
    /// The leader's epoch, when the cluster says it.
    pub leader_epoch: Option<i32>,
    /// Brokers that hold it.
    pub replicas: Vec<i32>,
    /// Those that are in sync.
    pub in_sync: Vec<i32>,
}

/// One entry of a topic's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSetting {
    /// Key.
    pub name: String,
    /// Value; none where it is a secret.
    pub value: Option<String>,
    /// Whether it was set on the topic itself.
    pub own: bool,
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

    /// Makes a topic, unless it exists, on whose acknowledged writes one can rely (rule L1);
    /// `Ok(false)` when it exists already.
    ///
    /// Apache Kafka does not know the embedded log's settings and refuses them: there the replicas make
    /// a write safe, so the topic is then made without.
    ///
    /// # Errors
    /// When the cluster refuses or cannot be reached.
    pub async fn create_durable_topic(&self, topic: &NewTopic) -> Result<bool, KafkaError> {
        let mut durable = topic.clone();
        durable.configs.insert(FLUSH.to_owned(), DURABLE.to_owned());
        match self.create_topic(&durable).await {
            Err(error) if error.is(ErrorCode::INVALID_CONFIG) => {
                durable.configs.retain(|name, _| !name.starts_with(OURS));
                self.create_topic(&durable).await
            }
            other => other,
        }
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
        let told = self.topic_settings(name).await?.into_iter();
        Ok(told.filter_map(|setting| Some((setting.name, setting.value?))).collect())
    }

    /// A topic's configuration, with what was set on the topic itself told apart.
    ///
    /// # Errors
    /// When the topic does not exist or the cluster cannot be asked.
    pub async fn topic_settings(&self, name: &str) -> Result<Vec<TopicSetting>, KafkaError> {
        let cluster = self.cluster();
        let told = cluster.persist(|| describe_config(cluster, name)).await?;
        Ok(told.configs.into_iter().map(setting).collect())
    }

    /// The partitions of a topic, in order; `None` when it does not exist.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn partitions(
        &self,
        name: &str,
    ) -> Result<Option<Vec<PartitionDescription>>, KafkaError> {
        let cluster = self.cluster();
        let told = cluster.persist(|| told(cluster, name)).await?;
        Ok(told.map(|topic| {
            let mut partitions: Vec<_> = topic.partitions.into_iter().map(partition).collect();
            partitions.sort_by_key(|partition| partition.index);
            partitions
        }))
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

    /// Whether the cluster speaks all that reading and writing here need: topic ids, which positions
    /// bear, make it Kafka 2.8 or later.
    ///
    /// # Errors
    /// [`KafkaError::Unsupported`] names what is missing; else why it cannot be asked.
    pub async fn check_release(&self) -> Result<(), KafkaError> {
        let cluster = self.cluster();
        cluster.persist(|| missing(cluster)).await
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        self.reader.cluster()
    }

    pub(crate) const fn shared_cluster(&self) -> &Arc<Cluster> {
        self.reader.shared_cluster()
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

/// The first version of each API that there is no doing without.
async fn missing(cluster: &Cluster) -> Result<(), Failure> {
    const TOPIC_IDS: i16 = 10;
    const DEFAULT_REPLICATION: i16 = 4;
    cluster.needs::<MetadataRequest>(TOPIC_IDS, "topic ids").await?;
    cluster.needs::<CreateTopicsRequest>(DEFAULT_REPLICATION, "a default replication").await?;
    cluster.needs::<ListOffsetsRequest>(2, "isolation levels").await?;
    cluster.needs::<FetchRequest>(4, "isolation levels").await?;
    cluster.needs::<ProduceRequest>(3, "record headers").await?;
    cluster.needs::<InitProducerIdRequest>(0, "idempotent producers").await?;
    cluster.needs::<OffsetForLeaderEpochRequest>(2, "leader epochs").await
}

/// Whether as many partitions as were asked for have a leader; all there are, and one at least, where
/// their number was left to the cluster.
fn is_led(topic: &MetadataResponseTopic, partitions: i32) -> bool {
    let led = topic.partitions.iter().filter(|partition| partition.leader_id >= 0).count();
    led >= usize::try_from(partitions).unwrap_or_else(|_| topic.partitions.len().max(1))
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
            replication_factor: topic.replication,
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
    Ok(told(cluster, name).await?.and_then(description))
}

/// What the metadata says of a topic; `None` when it does not exist.
async fn told(cluster: &Cluster, name: &str) -> Result<Option<MetadataResponseTopic>, Failure> {
    let answer = cluster.metadata(Some(&[name])).await?;
    let told = answer.topics.into_iter().find(|topic| topic.name.as_deref() == Some(name));
    let told = told.ok_or_else(|| silent("Metadata", name))?;
    if told.error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
        return Ok(None);
    }
    check(told.error_code, None, || format!("describe topic {name}"))?;
    Ok(Some(told))
}

fn description(topic: MetadataResponseTopic) -> Option<TopicDescription> {
    let partitions = i32::try_from(topic.partitions.len()).ok()?;
    let MetadataResponseTopic { topic_id: id, is_internal: internal, .. } = topic;
    Some(TopicDescription { name: topic.name?, id, partitions, internal })
}

fn partition(told: MetadataResponsePartition) -> PartitionDescription {
    PartitionDescription {
        index: told.partition_index,
        leader: Some(told.leader_id).filter(|leader| *leader >= 0),
        leader_epoch: Some(told.leader_epoch).filter(|epoch| *epoch >= 0),
        replicas: told.replica_nodes,
        in_sync: told.isr_nodes,
    }
}

fn setting(told: DescribeConfigsResourceResult) -> TopicSetting {
    TopicSetting { name: told.name, value: told.value, own: told.config_source == OF_THE_TOPIC }
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

pub(crate) fn check(
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
pub(crate) fn silent(api: &str, name: &str) -> Failure {
    let detail = format!("it says nothing of {name}");
    Failure::Final(KafkaError::Malformed { what: format!("the answer to {api}"), detail })
}
