//! What the members of a consumer group share out: the partitions of the topics that they want.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use highwater_protocol::stored::{AssignedTopic, ConsumerAssignment, ConsumerSubscription};
use highwater_protocol::{DecodeError, TopicPartition};
use regex::Regex;

use crate::KafkaError;
use crate::assignor::{self, Share, Subscriber};
use crate::cluster::Cluster;
use crate::member::{GroupMember, GroupProtocol};

/// Which topics a consumer wants.
#[derive(Clone, Debug)]
pub enum Subscription {
    /// Those of these names. One that does not exist is read once it does.
    Topics(BTreeSet<String>),
    /// All whose whole name matches, save the cluster's own; also those that are made later. Made by
    /// [`Subscription::pattern`].
    Pattern {
        /// For whole names.
        pattern: Regex,
        /// Topics whose name begins so are left out.
        except: &'static str,
    },
}

impl Subscription {
    /// A pattern for whole names, as Java's `matches`.
    ///
    /// # Errors
    /// When it is no regular expression, or one with look-around or back references, which take
    /// unbounded time.
    pub fn pattern(pattern: &str, except: &'static str) -> Result<Self, regex::Error> {
        Ok(Self::Pattern { pattern: Regex::new(&format!("^(?:{pattern})$"))?, except })
    }

    /// The topics that it wants now, whether those that it names exist or not.
    async fn topics(&self, cluster: &Cluster) -> Result<BTreeSet<String>, KafkaError> {
        let (pattern, except) = match self {
            Self::Topics(names) => return Ok(names.clone()),
            Self::Pattern { pattern, except } => (pattern, *except),
        };
        let answer = cluster.persist(|| cluster.metadata(None)).await?;
        let fits = |name: &String| {
            (except.is_empty() || !name.starts_with(except)) && pattern.is_match(name)
        };
        let known = answer.topics.into_iter().filter(|topic| !topic.is_internal);
        Ok(known.filter_map(|topic| topic.name).filter(fits).collect())
    }

    /// What of it does not exist for a consumer that has these partitions.
    pub(crate) async fn awaited(
        &self,
        cluster: &Cluster,
        share: &BTreeSet<TopicPartition>,
    ) -> Result<Option<Awaited>, KafkaError> {
        let held: BTreeSet<&str> = share.iter().map(|held| &*held.topic).collect();
        match self {
            Self::Topics(names) if names.iter().all(|name| held.contains(name.as_str())) => {
                Ok(None)
            }
            Self::Topics(names) => {
                let there = counts(cluster, names).await?;
                let missing = names.iter().filter(|name| !there.contains_key(*name)).cloned();
                let missing: BTreeSet<_> = missing.collect();
                Ok((!missing.is_empty()).then_some(Awaited::Topics(missing)))
            }
            Self::Pattern { .. } if !held.is_empty() => Ok(None),
            Self::Pattern { .. } => {
                Ok(self.topics(cluster).await?.is_empty().then_some(Awaited::Match))
            }
        }
    }
}

/// What a consumer waits for, since it does not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// These of the topics that it names.
    Topics(BTreeSet<String>),
    /// Any topic that its pattern matches.
    Match,
}

/// How many partitions each of these has; without those that do not exist.
async fn counts(
    cluster: &Cluster,
    topics: &BTreeSet<String>,
) -> Result<BTreeMap<String, i32>, KafkaError> {
    if topics.is_empty() {
        return Ok(BTreeMap::new());
    }
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    let answer = cluster.persist(|| cluster.metadata(Some(&names))).await?;
    let counted = answer.topics.into_iter().filter_map(|topic| {
        let count = i32::try_from(topic.partitions.len()).ok()?;
        Some((topic.name?, count)).filter(|_| count > 0)
    });
    Ok(counted.collect())
}

/// The `consumer` protocol of a group, by the range assignor.
pub(crate) struct Subscribing {
    cluster: Arc<Cluster>,
    subscription: Subscription,
    /// What the group was told that we want.
    told: BTreeSet<String>,
    /// How many partitions the topics of the whole group had when we shared them out.
    shared: BTreeMap<String, i32>,
    /// Topics of the whole group.
    wanted: BTreeSet<String>,
}

impl Subscribing {
    pub(crate) fn new(cluster: Arc<Cluster>, subscription: Subscription) -> Self {
        let (told, shared, wanted) = Default::default();
        Self { cluster, subscription, told, shared, wanted }
    }
}

#[async_trait]
impl GroupProtocol for Subscribing {
    fn kind(&self) -> &'static str {
        "consumer"
    }

    async fn protocols(&mut self) -> Result<Vec<(String, Bytes)>, KafkaError> {
        self.told = self.subscription.topics(&self.cluster).await?;
        let topics = self.told.iter().cloned().collect();
        let metadata = ConsumerSubscription { topics, user_data: None }.to_metadata();
        Ok(vec![(assignor::RANGE.to_owned(), metadata)])
    }

    async fn assign(
        &mut self,
        _protocol: &str,
        members: Vec<GroupMember>,
    ) -> Result<Vec<(String, Bytes)>, KafkaError> {
        let members: Vec<_> = members.into_iter().map(subscriber).collect::<Result<_, _>>()?;
        self.wanted = members.iter().flat_map(|member| member.topics.clone()).collect();
        self.shared = counts(&self.cluster, &self.wanted).await?;
        let missing: Vec<_> =
            self.wanted.iter().filter(|topic| !self.shared.contains_key(*topic)).collect();
        if !missing.is_empty() {
            tracing::warn!(?missing, "topics that do not exist are waited for");
        }
        let shares = assignor::range(members, &self.shared);
        Ok(shares.into_iter().map(|(member_id, share)| (member_id, assignment(share))).collect())
    }

    fn waits(&self) -> bool {
        self.shared.len() < self.wanted.len()
    }

    async fn is_stale(&mut self, leads: bool) -> Result<bool, KafkaError> {
        if self.subscription.topics(&self.cluster).await? != self.told {
            return Ok(true);
        }
        // The leader looks after the topics of all.
        Ok(leads && counts(&self.cluster, &self.wanted).await? != self.shared)
    }
}

fn subscriber(member: GroupMember) -> Result<Subscriber, KafkaError> {
    let GroupMember { member_id, instance_id, metadata } = member;
    let subscription = ConsumerSubscription::from_metadata(metadata)
        .map_err(|error| malformed(format!("what member {member_id} tells its group"), &error))?;
    let topics = subscription.topics.into_iter().collect();
    Ok(Subscriber { member_id, instance_id, topics })
}

fn assignment(share: Share) -> Bytes {
    let topic = |(topic, partitions)| AssignedTopic { topic, partitions };
    let assigned_partitions = share.into_iter().map(topic).collect();
    ConsumerAssignment { assigned_partitions, user_data: None }.to_assignment()
}

/// The partitions of an assignment.
pub(crate) fn partitions(assignment: Bytes) -> Result<BTreeSet<TopicPartition>, KafkaError> {
    let assignment = ConsumerAssignment::from_assignment(assignment)
        .map_err(|error| malformed("what the group's leader assigned".to_owned(), &error))?;
    let of_topic = |assigned: AssignedTopic| {
        let topic: Arc<str> = assigned.topic.into();
        let partition = move |index| TopicPartition { topic: Arc::clone(&topic), partition: index };
        assigned.partitions.into_iter().map(partition)
    };
    Ok(assignment.assigned_partitions.into_iter().flat_map(of_topic).collect())
}

fn malformed(what: String, error: &DecodeError) -> KafkaError {
    KafkaError::Malformed { what, detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        let length = i16::try_from(text.len()).unwrap();
        [&length.to_be_bytes(), text.as_bytes()].concat()
    }

    /// As Java's consumer of Kafka 4 writes it: version 3, with what it owned, a generation and no
    /// rack behind the fields that we read.
    #[test]
    fn what_java_members_say_is_read() {
        let topics = [text("orders"), text("shop.items")].concat();
        let (version, two, none) = ([0, 3], [0, 0, 0, 2], [0xff; 4]);
        let owned = [&[0, 0, 0, 1], &text("orders")[..], &[0, 0, 0, 1, 0, 0, 0, 5]].concat();
        let behind = [&owned[..], &[0, 0, 0, 7], &[0xff; 2]].concat();
        let said = [&version[..], &two, &topics, &none, &behind].concat();
        let member =
            GroupMember { member_id: "m".to_owned(), instance_id: None, metadata: said.into() };
        let topics = ["orders", "shop.items"].map(str::to_owned);
        assert_eq!(subscriber(member).unwrap().topics, topics.into());

        let topic = text("orders");
        let share = [&[0, 0, 0, 2], &[0, 0, 0, 0][..], &[0, 0, 0, 1]].concat();
        let told = [&version[..], &[0, 0, 0, 1], &topic, &share, &none].concat();
        let read = partitions(told.into()).unwrap();
        assert_eq!(read, [0, 1].map(|index| TopicPartition::new("orders", index)).into());
        assert!(partitions(Bytes::new()).unwrap().is_empty(), "nothing was assigned");
        assert!(partitions(Bytes::from_static(&[0, 3, 0x7f])).is_err());
    }

    #[test]
    fn a_pattern_is_for_whole_names() {
        let Ok(Subscription::Pattern { pattern, .. }) = Subscription::pattern("a|b.*", "") else {
            panic!("it is one");
        };
        let fits = ["a", "b1", "ab", "xa"].map(|name| pattern.is_match(name));
        assert_eq!(fits, [true, true, false, false]);
    }
}
