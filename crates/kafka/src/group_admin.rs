//! Groups, as an operator sees them: what they are, their offsets, and taking both away.

use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_protocol::{
    DeleteGroupsRequest, DescribeGroupsRequest, DescribedGroup, DescribedGroupMember, ErrorCode,
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic, TopicPartition,
};

use crate::admin::silent;
use crate::cluster::{Failure, refused};
use crate::coordinator::{Coordinator, KeyType};
use crate::group_offsets::{self, Commit, GroupOffsets, by_topic};
use crate::membership::Identity;
use crate::subscription::partitions;
use crate::{Admin, KafkaError};

/// What a cluster says of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// `Stable`, `PreparingRebalance`, `CompletingRebalance` or `Empty`.
    pub state: String,
    /// What kind of group it is, `consumer` for consumers; empty where only offsets are kept.
    pub protocol_type: String,
    /// Its members.
    pub members: Vec<GroupMemberDescription>,
}

/// What a cluster says of a member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMemberDescription {
    /// Its id.
    pub member_id: String,
    /// The name of a static member.
    pub instance_id: Option<String>,
    /// What its client calls itself.
    pub client_id: String,
    /// Where it is connected from.
    pub client_host: String,
    /// The partitions of a consumer, while its group is stable.
    pub partitions: BTreeSet<TopicPartition>,
}

impl Admin {
    /// Describes a group; `None` when it does not exist.
    ///
    /// # Errors
    /// When the cluster refuses or cannot be asked.
    pub async fn describe_group(
        &self,
        group: &str,
    ) -> Result<Option<GroupDescription>, KafkaError> {
        let coordinator = self.coordinator(group);
        coordinator.persist(|| describe(&coordinator, group)).await
    }

    /// All offsets of a group; none of one that does not exist.
    ///
    /// # Errors
    /// When the cluster refuses or cannot be asked.
    pub async fn group_offsets(&self, group: &str) -> Result<GroupOffsets, KafkaError> {
        group_offsets::fetch(&self.coordinator(group), group, None).await
    }

    /// Sets offsets of a group without members; the others stay.
    ///
    /// # Errors
    /// `NON_EMPTY_GROUP` when it has members; else when the cluster refuses or cannot be asked.
    pub async fn alter_group_offsets(
        &self,
        group: &str,
        offsets: &GroupOffsets,
    ) -> Result<(), KafkaError> {
        let coordinator = self.coordinator(group);
        let nobody = Identity::new(None);
        match group_offsets::commit(&coordinator, group, &nobody, offsets).await? {
            Commit::Stored => Ok(()),
            Commit::Lost => {
                let what = format!("set offsets of group {group}");
                Err(refused(what, ErrorCode::NON_EMPTY_GROUP, None))
            }
        }
    }

    /// Takes away offsets of a group, which then counts as not having read those partitions.
    ///
    /// # Errors
    /// `GROUP_SUBSCRIBED_TO_TOPIC` while its members read there; else when the cluster refuses or
    /// cannot be asked.
    pub async fn delete_group_offsets(
        &self,
        group: &str,
        partitions: &BTreeSet<TopicPartition>,
    ) -> Result<(), KafkaError> {
        let coordinator = self.coordinator(group);
        coordinator.persist(|| delete_offsets(&coordinator, group, partitions)).await
    }

    /// Deletes a group with its offsets; `Ok(false)` when there is none.
    ///
    /// # Errors
    /// `NON_EMPTY_GROUP` when it has members; else when the cluster refuses or cannot be asked.
    pub async fn delete_group(&self, group: &str) -> Result<bool, KafkaError> {
        let coordinator = self.coordinator(group);
        coordinator.persist(|| delete(&coordinator, group)).await
    }

    fn coordinator(&self, group: &str) -> Coordinator {
        Coordinator::new(Arc::clone(self.shared_cluster()), KeyType::Group, group)
    }
}

async fn describe(
    coordinator: &Coordinator,
    group: &str,
) -> Result<Option<GroupDescription>, Failure> {
    let request = DescribeGroupsRequest {
        groups: vec![group.to_owned()],
        include_authorized_operations: false,
    };
    let answer = coordinator.ask(&request).await?;
    let told = answer.groups.into_iter().find(|told| told.group_id == group);
    let told: DescribedGroup = told.ok_or_else(|| silent("DescribeGroups", group))?;
    // Before version 6 one that does not exist is called dead.
    if told.error_code == ErrorCode::GROUP_ID_NOT_FOUND || told.group_state == "Dead" {
        return Ok(None);
    }
    coordinator.check(told.error_code, || format!("describe group {group}")).await?;
    let members = told.members.into_iter().map(member).collect();
    Ok(Some(GroupDescription {
        state: told.group_state,
        protocol_type: told.protocol_type,
        members,
    }))
}

fn member(told: DescribedGroupMember) -> GroupMemberDescription {
    GroupMemberDescription {
        member_id: told.member_id,
        instance_id: told.group_instance_id,
        client_id: told.client_id,
        client_host: told.client_host,
        // Of a group of another kind nothing can be said.
        partitions: partitions(told.member_assignment).unwrap_or_default(),
    }
}

async fn delete_offsets(
    coordinator: &Coordinator,
    group: &str,
    partitions: &BTreeSet<TopicPartition>,
) -> Result<(), Failure> {
    let partition =
        |at: &TopicPartition| OffsetDeleteRequestPartition { partition_index: at.partition };
    let topics = by_topic(partitions.iter().map(|at| (at, partition(at))));
    let request = OffsetDeleteRequest {
        group_id: group.to_owned(),
        topics: topics
            .into_iter()
            .map(|(name, partitions)| OffsetDeleteRequestTopic { name, partitions })
            .collect(),
    };
    let answer = coordinator.ask(&request).await?;
    let what = || format!("delete offsets of group {group}");
    if answer.error_code != ErrorCode::GROUP_ID_NOT_FOUND {
        coordinator.check(answer.error_code, what).await?;
    }
    for told in answer.topics.iter().flat_map(|topic| &topic.partitions) {
        // A topic that is gone has taken its offsets with it.
        if told.error_code != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
            coordinator.check(told.error_code, what).await?;
        }
    }
    Ok(())
}

async fn delete(coordinator: &Coordinator, group: &str) -> Result<bool, Failure> {
    let request = DeleteGroupsRequest { groups_names: vec![group.to_owned()] };
    let answer = coordinator.ask(&request).await?;
    let told = answer.results.into_iter().find(|told| told.group_id == group);
    let told = told.ok_or_else(|| silent("DeleteGroups", group))?;
    if told.error_code == ErrorCode::GROUP_ID_NOT_FOUND {
        return Ok(false);
    }
    coordinator.check(told.error_code, || format!("delete group {group}")).await.map(|()| true)
}
