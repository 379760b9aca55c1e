//! What is known of a cluster: its brokers, and who leads which partition.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use highwater_protocol::{
    ErrorCode, MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic,
    Request,
};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use crate::KafkaError;
use crate::backoff::Backoff;
use crate::connection::{CallError, Connection, Limits};
use crate::error::told;
use crate::pool::Pool;
use crate::security::Bootstrap;

/// Why an attempt failed, and whether another is worth its while.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Connections, leaders and brokers come back.
    Transient(KafkaError),
    /// The same question gets the same answer.
    Final(KafkaError),
}

impl Failure {
    pub(crate) fn into_error(self) -> KafkaError {
        match self {
            Self::Transient(error) | Self::Final(error) => error,
        }
    }
}

/// The broker that leads a partition, as far as known.
#[derive(Clone, Debug)]
pub(crate) struct Leader {
    pub(crate) topic: String,
    pub(crate) address: String,
    /// Which answer said so.
    lesson: u64,
}

/// A cluster, reached through any of its brokers. All readers share one.
#[derive(Debug)]
pub(crate) struct Cluster {
    bootstrap: Bootstrap,
    pool: Pool,
    pub(crate) limits: Limits,
    retry_for: Duration,
    known: Mutex<Known>,
    /// Held while asking for metadata, so that one answer serves all who wait for it.
    asking: tokio::sync::Mutex<()>,
}

/// What brokers have said of the cluster.
#[derive(Debug, Default)]
struct Known {
    brokers: HashMap<i32, String>,
    controller: Option<i32>,
    topics: HashMap<String, Topic>,
    /// Answers learnt from, so that a leader that proved wrong is forgotten once.
    lessons: u64,
}

#[derive(Debug)]
struct Topic {
    /// Broker by partition.
    leaders: HashMap<i32, i32>,
    lesson: u64,
}

impl Cluster {
    pub(crate) fn new(bootstrap: Bootstrap, limits: Limits, retry_for: Duration) -> Self {
        Self {
            pool: Pool::new(limits.clone(), bootstrap.security.clone()),
            bootstrap,
            limits,
            retry_for,
            known: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) const fn bootstrap(&self) -> &Bootstrap {
        &self.bootstrap
    }

    /// Attempts until one succeeds, fails for good, or time runs out.
    pub(crate) async fn persist<T, F>(
        &self,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, KafkaError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let deadline = Instant::now() + self.retry_for;
        let mut backoff = Backoff::default();
        let mut last = None;
        loop {
            match timeout_at(deadline, attempt()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(Failure::Final(error))) => return Err(error),
                Ok(Err(Failure::Transient(error))) => last = Some(error),
                Err(_) => return Err(last.unwrap_or_else(|| self.unreachable("time ran out"))),
            }
            let pause = backoff.pause();
            if Instant::now() + pause >= deadline {
                return Err(last.unwrap_or_else(|| self.unreachable("time ran out")));
            }
            sleep(pause).await;
        }
    }

    /// Who leads a partition, asking the cluster when that is not known.
    pub(crate) async fn leader(&self, topic: &str, partition: i32) -> Result<Leader, Failure> {
        if let Some(leader) = self.known.lock().leader(topic, partition) {
            return Ok(leader);
        }
        let _asking = self.asking.lock().await;
        if let Some(leader) = self.known.lock().leader(topic, partition) {
            return Ok(leader);
        }
        let answer = self.metadata(Some(&[topic])).await?;
        let told = answer.topics.iter().find(|told| told.name.as_deref() == Some(topic));
        self.known.lock().leader(topic, partition).ok_or_else(|| no_leader(topic, partition, told))
    }

    /// Forgets who leads a topic, if nothing newer was learnt meanwhile.
    pub(crate) fn forget(&self, leader: &Leader) {
        let mut known = self.known.lock();
        if known.topics.get(&leader.topic).is_some_and(|topic| topic.lesson == leader.lesson) {
            known.topics.remove(&leader.topic);
        }
    }

    /// Asks a partition's leader. A broken connection makes the next attempt look for the leader.
    pub(crate) async fn ask<R: Request>(
        &self,
        leader: &Leader,
        request: &R,
    ) -> Result<R::Response, Failure> {
        let asked = async { self.pool.connection(&leader.address).await?.call(request).await };
        asked.await.map_err(|error| self.failed(leader, error))
    }

    /// A connection to a partition's leader.
    pub(crate) async fn connection(&self, leader: &Leader) -> Result<Arc<Connection>, Failure> {
        let connection = self.pool.connection(&leader.address).await;
        connection.map_err(|error| self.failed(leader, error))
    }

    /// How many partitions a topic has.
    pub(crate) async fn partition_count(&self, topic: &str) -> Result<i32, Failure> {
        let answer = self.metadata(Some(&[topic])).await?;
        let told = answer.topics.iter().find(|told| told.name.as_deref() == Some(topic));
        match told.map(|told| told.partitions.len()) {
            Some(count @ 1..) => Ok(i32::try_from(count).unwrap_or(i32::MAX)),
            _ => Err(no_leader(topic, 0, told)),
        }
    }

    /// The version that a leader would be asked at.
    pub(crate) async fn version<R: Request>(&self, leader: &Leader) -> Result<i16, Failure> {
        let connection = self.pool.connection(&leader.address).await;
        let version = connection.and_then(|connection| connection.version::<R>());
        version.map_err(|error| self.failed(leader, error))
    }

    /// A leader that cannot be asked may have been followed by another.
    fn failed(&self, leader: &Leader, error: CallError) -> Failure {
        self.forget(leader);
        self.failure(error)
    }

    /// What a leader's error code means: for some the leader has to be looked for again.
    pub(crate) fn check(
        &self,
        leader: &Leader,
        code: ErrorCode,
        what: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if code.is_ok() {
            return Ok(());
        }
        let error = refused(what(), code, None);
        if !code.is_retriable() {
            return Err(Failure::Final(error));
        }
        self.forget(leader);
        Err(Failure::Transient(error))
    }

    /// Brokers and the named topics; all topics without names.
    pub(crate) async fn metadata(
        &self,
        topics: Option<&[&str]>,
    ) -> Result<MetadataResponse, Failure> {
        let named = |name: &&str| MetadataRequestTopic {
            name: Some((*name).to_owned()),
            ..Default::default()
        };
        let request = MetadataRequest {
            topics: topics.map(|names| names.iter().map(named).collect()),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        let answer = self.ask_any(&request).await?;
        self.known.lock().learn(&answer);
        Ok(answer)
    }

    /// Asks the controller, where one is named; only it changes topics on an old cluster.
    pub(crate) async fn ask_controller<R: Request>(
        &self,
        request: &R,
    ) -> Result<R::Response, Failure> {
        self.metadata(Some(&[])).await?;
        let Some(address) = self.known.lock().controller_address() else {
            return self.ask_any(request).await;
        };
        let asked = async { self.pool.connection(&address).await?.call(request).await };
        asked.await.map_err(|error| self.failure(error))
    }

    /// Asks any broker.
    pub(crate) async fn ask_any<R: Request>(&self, request: &R) -> Result<R::Response, Failure> {
        let asked = async { self.any_connection().await?.call(request).await };
        asked.await.map_err(|error| self.failure(error))
    }

    /// Asks every broker that the cluster has named; each address with its answer.
    pub(crate) async fn ask_each<R: Request>(
        &self,
        request: &R,
    ) -> Result<Vec<(String, R::Response)>, Failure> {
        let brokers: Vec<String> = self.known.lock().brokers.values().cloned().collect();
        let mut answers = Vec::with_capacity(brokers.len());
        for address in brokers {
            let asked = async { self.pool.connection(&address).await?.call(request).await };
            let answer = asked.await.map_err(|error| self.failure(error))?;
            answers.push((address, answer));
        }
        Ok(answers)
    }

    /// Fails where the broker that is asked first does not speak `least` of an API.
    pub(crate) async fn needs<R: Request>(&self, least: i16, why: &str) -> Result<(), Failure> {
        let connection = self.any_connection().await.map_err(|error| self.failure(error))?;
        match connection.version::<R>() {
            Ok(version) if version >= least => Ok(()),
            _ => {
                let what = format!("{why}: {:?} in version {least} is needed", R::KEY);
                Err(Failure::Final(KafkaError::Unsupported { what }))
            }
        }
    }

    /// A connection to the first broker that can be reached: those given at first, then those
    /// that the cluster has named.
    async fn any_connection(&self) -> Result<Arc<Connection>, CallError> {
        let mut last = CallError::Lost("no address is given".to_owned());
        for address in self.addresses() {
            match self.pool.connection(&address).await {
                Ok(connection) => return Ok(connection),
                // Nobody is asked with a password that one broker does not take.
                Err(denied @ CallError::Denied(_)) => return Err(denied),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn addresses(&self) -> Vec<String> {
        let given = self
            .bootstrap
            .addresses
            .split(',')
            .map(str::trim)
            .filter(|address| !address.is_empty());
        let mut addresses: Vec<String> = given.map(str::to_owned).collect();
        for named in self.known.lock().brokers.values() {
            if !addresses.contains(named) {
                addresses.push(named.clone());
            }
        }
        addresses
    }

    pub(crate) fn failure(&self, error: CallError) -> Failure {
        match error {
            CallError::Lost(detail) => Failure::Transient(self.unreachable(&detail)),
            CallError::Malformed { address, what, detail } => {
                let what = format!("{address}'s answer to {what}");
                Failure::Final(KafkaError::Malformed { what, detail })
            }
            CallError::Unsupported(what) => Failure::Final(KafkaError::Unsupported { what }),
            CallError::Denied(detail) => Failure::Final(KafkaError::Authentication { detail }),
        }
    }

    fn unreachable(&self, detail: &str) -> KafkaError {
        KafkaError::Unreachable { bootstrap: self.bootstrap.to_string(), detail: detail.to_owned() }
    }
}

impl Known {
    fn leader(&self, topic: &str, partition: i32) -> Option<Leader> {
        let known = self.topics.get(topic)?;
        let address = self.brokers.get(known.leaders.get(&partition)?)?;
        Some(Leader { topic: topic.to_owned(), address: address.clone(), lesson: known.lesson })
    }

    fn controller_address(&self) -> Option<String> {
        self.brokers.get(&self.controller?).cloned()
    }

    fn learn(&mut self, answer: &MetadataResponse) {
        self.lessons += 1;
        let lesson = self.lessons;
        self.brokers = answer
            .brokers
            .iter()
            .map(|broker| (broker.node_id, address(&broker.host, broker.port)))
            .collect();
        self.controller = Some(answer.controller_id);
        for topic in &answer.topics {
            let Some(name) = &topic.name else { continue };
            let led = topic.partitions.iter().filter(|partition| partition.leader_id >= 0);
            let leaders = led.map(|led| (led.partition_index, led.leader_id)).collect();
            self.topics.insert(name.clone(), Topic { leaders, lesson });
        }
    }
}

pub(crate) fn address(host: &str, port: i32) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Why a topic's metadata names no leader for a partition.
fn no_leader(topic: &str, partition: i32, told: Option<&MetadataResponseTopic>) -> Failure {
    let unknown = || KafkaError::UnknownPartition { topic: topic.to_owned(), partition };
    let code = told.map_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, |told| told.error_code);
    let exists = told
        .is_some_and(|told| told.partitions.iter().any(|known| known.partition_index == partition));
    let what = || format!("find the leader of {topic}-{partition}");
    if exists || code == ErrorCode::LEADER_NOT_AVAILABLE {
        Failure::Transient(refused(what(), ErrorCode::LEADER_NOT_AVAILABLE, None))
    } else if code.is_ok() || code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
        Failure::Final(unknown())
    } else if code.is_retriable() {
        Failure::Transient(refused(what(), code, None))
    } else {
        Failure::Final(refused(what(), code, None))
    }
}

/// The error for a code that a broker answered with.
pub(crate) fn refused(what: String, code: ErrorCode, message: Option<&str>) -> KafkaError {
    KafkaError::Refused {
        what,
        code: code.0,
        name: code.name().unwrap_or("an error without a name here"),
        detail: message.map_or_else(String::new, |message| format!(": {}", told(message))),
    }
}

#[cfg(test)]
mod tests {
    use highwater_protocol::{MetadataResponseBroker, MetadataResponsePartition};

    use super::*;

    fn answer(leader_id: i32) -> MetadataResponse {
        let broker = |node_id, host: &str| MetadataResponseBroker {
            node_id,
            host: host.to_owned(),
            port: 9092,
            rack: None,
        };
        let partition = MetadataResponsePartition { leader_id, ..Default::default() };
        MetadataResponse {
            brokers: vec![broker(1, "one"), broker(2, "::1")],
            controller_id: 2,
            topics: vec![MetadataResponseTopic {
                name: Some("trail".to_owned()),
                partitions: vec![partition],
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn cluster() -> Cluster {
        let limits = Limits {
            connect: Duration::from_secs(1),
            request: Duration::from_secs(1),
            max_frame: 1 << 20,
            lease: None,
        };
        Cluster::new("one:9092, three:9092".into(), limits, Duration::from_secs(1))
    }

    #[test]
    fn a_leader_is_forgotten_once_however_many_found_it_wrong() {
        let cluster = cluster();
        cluster.known.lock().learn(&answer(1));
        let old = cluster.known.lock().leader("trail", 0).unwrap();
        cluster.forget(&old);
        assert!(cluster.known.lock().leader("trail", 0).is_none());
        cluster.known.lock().learn(&answer(2));
        cluster.forget(&old);
        assert_eq!(cluster.known.lock().leader("trail", 0).unwrap().address, "[::1]:9092");
    }

    #[test]
    fn addresses_given_come_before_addresses_learnt() {
        let cluster = cluster();
        cluster.known.lock().learn(&answer(1));
        assert_eq!(cluster.addresses(), ["one:9092", "three:9092", "[::1]:9092"]);
        assert_eq!(cluster.known.lock().controller_address().unwrap(), "[::1]:9092");
    }

    #[test]
    fn a_partition_without_a_leader_is_not_one_that_does_not_exist() {
        let answer = answer(-1);
        let told = answer.topics.first();
        let is_final = |failure| matches!(failure, Failure::Final(_));
        assert!(!is_final(no_leader("trail", 0, told)));
        assert!(is_final(no_leader("trail", 1, told)));
        assert!(is_final(no_leader("other", 0, None)));
    }
}
