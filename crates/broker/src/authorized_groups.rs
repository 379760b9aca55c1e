//! Who may take part in groups, see them, and keep offsets with them.

use std::collections::HashMap;

use highwater_access::{Operation, Resource};
use highwater_protocol::{
    Coordinator, DeletableGroupResult, DeleteGroupsRequest, DescribeGroupsRequest, DescribedGroup,
    ErrorCode, FindCoordinatorRequest, FindCoordinatorResponse, HeartbeatRequest,
    HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse,
    ListGroupsRequest, OffsetCommitRequest, OffsetCommitRequestTopic, OffsetCommitResponse,
    OffsetCommitResponsePartition, OffsetCommitResponseTopic, OffsetDeleteRequest,
    OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
    OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse, OffsetFetchResponseGroup,
    OffsetFetchResponsePartition, OffsetFetchResponseTopic, SyncGroupRequest, SyncGroupResponse,
};

use crate::authorized::{Authorized, Verdict, take};
use crate::gate::Gate;
use crate::once::once;

const TOPIC: ErrorCode = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
const GROUP: ErrorCode = ErrorCode::GROUP_AUTHORIZATION_FAILED;

/// Taking part in a group takes Read on it, and is one thing.
macro_rules! members {
    ($($request:ident => $response:ident;)*) => { $(
        impl Authorized for $request {
            fn authorize(self, gate: &Gate) -> Verdict<Self> {
                let allowed = gate.may_group(Operation::Read, &self.group_id);
                Verdict::whole(self, allowed, |_| $response {
                    error_code: GROUP,
                    ..Default::default()
                })
            }
        }
    )* };
}

members! {
    JoinGroupRequest => JoinGroupResponse;
    SyncGroupRequest => SyncGroupResponse;
    HeartbeatRequest => HeartbeatResponse;
    LeaveGroupRequest => LeaveGroupResponse;
}

impl Authorized for FindCoordinatorRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        const OF_TRANSACTIONS: i8 = 1;
        let kind = self.key_type;
        let may = |key: &String| match kind {
            OF_TRANSACTIONS => gate.may_transact(Operation::Describe, key),
            _ => gate.may_group(Operation::Describe, key),
        };
        let error_code = match kind {
            OF_TRANSACTIONS => ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _ => GROUP,
        };
        if self.coordinator_keys.is_empty() {
            let allowed = may(&self.key);
            return Verdict::whole(self, allowed, |_| FindCoordinatorResponse {
                error_code,
                node_id: -1,
                port: -1,
                ..Default::default()
            });
        }
        let refused = take(&mut self.coordinator_keys, may);
        let answers: Vec<_> = refused
            .into_iter()
            .map(|key| Coordinator { key, node_id: -1, port: -1, error_code, ..Default::default() })
            .collect();
        if self.coordinator_keys.is_empty() {
            // An empty list is another version's way to ask.
            return Verdict::No(FindCoordinatorResponse {
                coordinators: answers,
                ..Default::default()
            });
        }
        Verdict::beside(self, answers, |all| &mut all.coordinators)
    }
}

impl Authorized for OffsetCommitRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        if !gate.may_group(Operation::Read, &self.group_id) {
            let topics = self.topics.into_iter().map(|topic| not_committed(topic, GROUP));
            let topics = topics.collect();
            return Verdict::No(OffsetCommitResponse { topics, ..Default::default() });
        }
        let refused = take(&mut self.topics, |topic| gate.may_topic(Operation::Read, &topic.name));
        let answers = refused.into_iter().map(|topic| not_committed(topic, TOPIC));
        Verdict::beside(self, answers, |all| &mut all.topics)
    }
}

fn not_committed(
    topic: OffsetCommitRequestTopic,
    error_code: ErrorCode,
) -> OffsetCommitResponseTopic {
    let partition = |partition_index| OffsetCommitResponsePartition { partition_index, error_code };
    let partitions = topic.partitions.iter().map(|one| partition(one.partition_index));
    OffsetCommitResponseTopic { partitions: partitions.collect(), name: topic.name }
}

impl Authorized for OffsetFetchRequest {
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        if self.groups.is_empty() { of_one_group(self, gate) } else { of_groups(self, gate) }
    }
}

/// Versions up to 7 ask about one group.
fn of_one_group(mut asked: OffsetFetchRequest, gate: &Gate) -> Verdict<OffsetFetchRequest> {
    if !gate.may_group(Operation::Describe, &asked.group_id) {
        let topics = asked.topics.into_iter().flatten();
        return Verdict::No(OffsetFetchResponse {
            topics: topics.map(|topic| not_fetched(topic, GROUP)).collect(),
            error_code: GROUP,
            ..Default::default()
        });
    }
    let refused = asked.topics.as_mut().map(|topics| without_refused(topics, gate));
    let gate = gate.clone();
    Verdict::rest(asked, move |answer| show(&mut answer.topics, refused, &gate))
}

fn of_groups(mut asked: OffsetFetchRequest, gate: &Gate) -> Verdict<OffsetFetchRequest> {
    once(&mut asked.groups, |group| group.group_id.clone());
    let refused =
        take(&mut asked.groups, |group| gate.may_group(Operation::Describe, &group.group_id));
    let mut answers: Vec<_> = refused
        .into_iter()
        .map(|group| OffsetFetchResponseGroup {
            group_id: group.group_id,
            error_code: GROUP,
            ..Default::default()
        })
        .collect();
    if asked.groups.is_empty() {
        // An empty list is another version's way to ask.
        return Verdict::No(OffsetFetchResponse { groups: answers, ..Default::default() });
    }
    let mut of_group: HashMap<_, _> = asked
        .groups
        .iter_mut()
        .map(|group| {
            let refused = group.topics.as_mut().map(|topics| without_refused(topics, gate));
            (group.group_id.clone(), refused)
        })
        .collect();
    let gate = gate.clone();
    Verdict::rest(asked, move |answer| {
        for group in &mut answer.groups {
            let refused = of_group.remove(&group.group_id).flatten();
            show(&mut group.topics, refused, &gate);
        }
        answer.groups.append(&mut answers);
    })
}

/// Takes out the topics that may not be seen, and answers for them.
fn without_refused(
    topics: &mut Vec<OffsetFetchRequestTopic>,
    gate: &Gate,
) -> Vec<OffsetFetchResponseTopic> {
    let refused = take(topics, |topic| gate.may_topic(Operation::Describe, &topic.name));
    refused.into_iter().map(|topic| not_fetched(topic, TOPIC)).collect()
}

/// Where all topics were asked for, those that may not be seen are left out.
fn show(
    topics: &mut Vec<OffsetFetchResponseTopic>,
    refused: Option<Vec<OffsetFetchResponseTopic>>,
    gate: &Gate,
) {
    topics.retain(|topic| gate.may_topic(Operation::Describe, &topic.name));
    topics.extend(refused.into_iter().flatten());
}

fn not_fetched(topic: OffsetFetchRequestTopic, error_code: ErrorCode) -> OffsetFetchResponseTopic {
    let partition = |partition_index| OffsetFetchResponsePartition {
        partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(String::new()),
        error_code,
    };
    let partitions = topic.partition_indexes.into_iter().map(partition).collect();
    OffsetFetchResponseTopic { name: topic.name, partitions }
}

impl Authorized for DescribeGroupsRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let refused = take(&mut self.groups, |group| gate.may_group(Operation::Describe, group));
        let refused = refused.into_iter().map(|group_id| DescribedGroup {
            error_code: GROUP,
            group_id,
            ..Default::default()
        });
        let mut refused: Vec<_> = refused.collect();
        let (operations, gate) = (self.include_authorized_operations, gate.clone());
        Verdict::rest(self, move |answer| {
            // Of a group that is not there (from version 6 on an error) nothing is said.
            let there = answer.groups.iter_mut().filter(|group| group.error_code.is_ok());
            for group in there.filter(|_| operations) {
                group.authorized_operations = gate.group_operations(&group.group_id);
            }
            answer.groups.append(&mut refused);
        })
    }
}

impl Authorized for ListGroupsRequest {
    /// Who may describe the cluster sees all groups, others those that they may describe.
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        if gate.may(Operation::Describe, Resource::Cluster) {
            return Verdict::all(self);
        }
        let gate = gate.clone();
        Verdict::rest(self, move |answer| {
            answer.groups.retain(|group| gate.may_group(Operation::Describe, &group.group_id));
        })
    }
}

impl Authorized for DeleteGroupsRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let refused =
            take(&mut self.groups_names, |group| gate.may_group(Operation::Delete, group));
        let answers = refused
            .into_iter()
            .map(|group_id| DeletableGroupResult { group_id, error_code: GROUP });
        Verdict::beside(self, answers, |all| &mut all.results)
    }
}

impl Authorized for OffsetDeleteRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        if !gate.may_group(Operation::Delete, &self.group_id) {
            return Verdict::No(OffsetDeleteResponse { error_code: GROUP, ..Default::default() });
        }
        let refused = take(&mut self.topics, |topic| gate.may_topic(Operation::Read, &topic.name));
        let partition =
            |partition_index| OffsetDeleteResponsePartition { partition_index, error_code: TOPIC };
        let answers = refused.into_iter().map(|topic| OffsetDeleteResponseTopic {
            partitions: topic.partitions.iter().map(|one| partition(one.partition_index)).collect(),
            name: topic.name,
        });
        Verdict::beside(self, answers, |all| &mut all.topics)
    }
}
