//! Steps of the generator: groups, their members and their offsets. A group has one member at most, so
//! that nobody waits for another; a second one comes and goes within one step
//! ([`second_members`](crate::second_members)).

use std::collections::HashMap;

use bytes::Bytes;
use highwater_protocol::{
    DeleteGroupsRequest, DescribeGroupsRequest, ErrorCode, FindCoordinatorRequest,
    HeartbeatRequest, JoinGroupRequest, JoinGroupRequestProtocol, LeaveGroupRequest,
    ListGroupsRequest, MemberIdentity, OffsetCommitRequest, OffsetCommitRequestPartition,
    OffsetCommitRequestTopic, OffsetDeleteRequest, OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic, OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic,
    SyncGroupRequest, SyncGroupRequestAssignment,
};

use crate::names::NOBODY;
use crate::pair::Pair;
use crate::world::World;

/// The topic of which offsets are committed. It stays: when a topic goes, its offsets go some time later.
pub(crate) const TOPIC: &str = "d-offsets";

pub(crate) const GROUPS: [&str; 4] = ["d-group-0", "d-group-1", "d-group-2", "d-group-3"];

/// The members that were let in, by group.
#[derive(Default)]
pub(crate) struct Members(pub(crate) HashMap<String, Member>);

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: String,
    pub(crate) instance: Option<String>,
    pub(crate) generation: i32,
}

fn group(world: &mut World) -> String {
    match world.random.below(14) {
        0 => String::new(),
        1 => "d-no-such-group".to_owned(),
        _ => world.random.one_of(&GROUPS).to_owned(),
    }
}

/// Who somebody says to be in a group: mostly who it is.
fn identity(world: &mut World, group: &str) -> Member {
    let nobody = Member { id: String::new(), instance: None, generation: -1 };
    let known = world.members.0.get(group).cloned();
    let mut member = known.unwrap_or(nobody);
    match world.random.below(12) {
        0 => member.id = NOBODY.to_owned(),
        1 => member.generation += 1,
        2 => member.generation -= 1,
        3 => member.instance = Some("d-other-instance".to_owned()),
        _ => {}
    }
    member
}

pub(crate) fn find_coordinator(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=4);
    let key = group(world);
    let key_type = if version == 0 { 0 } else { world.random.one_of(&[0, 0, 1, 1, 9]) };
    let coordinator_keys = vec![key.clone(), "d-another".to_owned()];
    let request = match version {
        4 => FindCoordinatorRequest { key_type, coordinator_keys, ..Default::default() },
        _ => FindCoordinatorRequest { key, key_type, ..Default::default() },
    };
    pair.ask("FindCoordinator", version, |_| request.clone());
}

pub(crate) fn join_group(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=9);
    let group_id = group(world);
    let known = world.members.0.get(&group_id).cloned();
    let mut request = JoinGroupRequest {
        group_id: group_id.clone(),
        session_timeout_ms: world.random.one_of(&[300_000, 300_000, 300_000, 300_000, 5, i32::MAX]),
        rebalance_timeout_ms: 300_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![JoinGroupRequestProtocol {
            name: world.random.one_of(&["range", "range", "range", "sticky"]).to_owned(),
            metadata: world.random.one_of(&["one", "two"]).into(),
        }],
        ..Default::default()
    };
    match known {
        Some(member) => {
            request.member_id = member.id;
            request.group_instance_id = member.instance.filter(|_| version >= 5);
            // Of somebody new nothing would be taken, and only Kafka have a group then.
            match world.random.below(4) {
                0 => request.protocol_type.clear(),
                1 => request.protocols.clear(),
                _ => {}
            }
            if world.random.percent(10) {
                request.member_id = NOBODY.to_owned();
            }
        }
        None if version >= 5 && world.random.percent(30) => {
            request.group_instance_id = Some("d-instance".to_owned());
        }
        None if world.random.percent(10) => request.member_id = NOBODY.to_owned(),
        None => {}
    }
    let mut answer = ask_to_join(pair, version, &request);
    if answer.error_code == ErrorCode::MEMBER_ID_REQUIRED {
        // Who was given an id and does not come back would hold the group up.
        request.member_id = answer.member_id;
        answer = ask_to_join(pair, version, &request);
    }
    if answer.error_code.is_ok() {
        let instance = request.group_instance_id;
        let member = Member { id: answer.member_id, instance, generation: answer.generation_id };
        world.members.0.insert(group_id, member);
    }
}

fn ask_to_join(
    pair: &mut Pair,
    version: i16,
    request: &JoinGroupRequest,
) -> highwater_protocol::JoinGroupResponse {
    pair.ask("JoinGroup", version, |names| JoinGroupRequest {
        member_id: names.member_id(&request.member_id),
        ..request.clone()
    })
}

pub(crate) fn sync_group(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=5);
    let group_id = group(world);
    let member = identity(world, &group_id);
    let (named, names_protocol) = (world.random.percent(80), world.random.percent(80));
    let assignment = Bytes::from_static(world.random.one_of(&[b"all", b"any"]));
    pair.ask("SyncGroup", version, |names| SyncGroupRequest {
        group_id: group_id.clone(),
        generation_id: member.generation,
        member_id: names.member_id(&member.id),
        group_instance_id: member.instance.clone().filter(|_| version >= 3),
        protocol_type: named.then(|| "consumer".to_owned()),
        protocol_name: names_protocol.then(|| "range".to_owned()),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: names.member_id(&member.id),
            assignment: assignment.clone(),
        }],
    });
}

pub(crate) fn heartbeat(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=4);
    let group_id = group(world);
    let member = identity(world, &group_id);
    pair.ask("Heartbeat", version, |names| HeartbeatRequest {
        group_id: group_id.clone(),
        generation_id: member.generation,
        member_id: names.member_id(&member.id),
        group_instance_id: member.instance.clone().filter(|_| version >= 3),
    });
}

pub(crate) fn leave_group(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=5);
    let group_id = group(world);
    let member = identity(world, &group_id);
    let answer = pair.ask("LeaveGroup", version, |names| {
        let member_id = names.member_id(&member.id);
        let group_id = group_id.clone();
        if version < 3 {
            return LeaveGroupRequest { group_id, member_id, ..Default::default() };
        }
        let group_instance_id = member.instance.clone();
        let identity = MemberIdentity { member_id, group_instance_id, reason: None };
        LeaveGroupRequest { group_id, members: vec![identity], ..Default::default() }
    });
    let of_member = answer.members.first().map_or(answer.error_code, |one| one.error_code);
    if answer.error_code.is_ok() && of_member.is_ok() {
        world.members.0.remove(&group_id);
    }
}

pub(crate) fn offset_commit(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(2..=9);
    let group_id = group(world);
    let member = identity(world, &group_id);
    let random = &mut world.random;
    let metadata = match random.below(12) {
        0 => Some("m".repeat(5_000)),
        1 => None,
        _ => Some("by the judge".to_owned()),
    };
    let partitions = (0..random.one_of(&[1, 2])).map(|_| OffsetCommitRequestPartition {
        partition_index: random.one_of(&[0, 1]),
        committed_offset: random.between(0, 50),
        committed_leader_epoch: random.one_of(&[-1, 0, 3]),
        committed_metadata: metadata.clone(),
    });
    let mut partitions: Vec<_> = partitions.collect();
    partitions.dedup_by_key(|partition| partition.partition_index);
    if metadata.is_some_and(|text| text.len() > 4096) {
        // Something of it is taken, or only Kafka has a group then.
        partitions.truncate(1);
        let good = OffsetCommitRequestPartition {
            partition_index: 1 - partitions[0].partition_index,
            committed_metadata: None,
            ..partitions[0].clone()
        };
        partitions.push(good);
    }
    let topics = vec![OffsetCommitRequestTopic { name: TOPIC.to_owned(), partitions }];
    pair.ask("OffsetCommit", version, |names| OffsetCommitRequest {
        group_id: group_id.clone(),
        generation_id_or_member_epoch: member.generation,
        member_id: names.member_id(&member.id),
        group_instance_id: member.instance.clone().filter(|_| version >= 7),
        topics: topics.clone(),
        ..Default::default()
    });
}

pub(crate) fn offset_fetch(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(1..=9);
    let group_id = group(world);
    let random = &mut world.random;
    let all = version >= 2 && random.percent(30);
    let topics = (!all).then(|| {
        let name = random.one_of(&[TOPIC, TOPIC, TOPIC, "d-missing"]).to_owned();
        vec![OffsetFetchRequestTopic { name, partition_indexes: vec![0, 1, 9] }]
    });
    let require_stable = version >= 7 && random.percent(50);
    let request = if version < 8 {
        OffsetFetchRequest { group_id, topics, require_stable, ..Default::default() }
    } else {
        let group = OffsetFetchRequestGroup { group_id, topics, ..Default::default() };
        OffsetFetchRequest { groups: vec![group], require_stable, ..Default::default() }
    };
    pair.ask("OffsetFetch", version, |_| request.clone());
}

pub(crate) fn offset_delete(pair: &mut Pair, world: &mut World) {
    let name = world.random.one_of(&[TOPIC, TOPIC, "d-missing"]).to_owned();
    let partition_index = world.random.one_of(&[0, 1, 9]);
    let partitions = vec![OffsetDeleteRequestPartition { partition_index }];
    let topics = vec![OffsetDeleteRequestTopic { name, partitions }];
    let request = OffsetDeleteRequest { group_id: group(world), topics };
    pair.ask("OffsetDelete", 0, |_| request.clone());
}

pub(crate) fn describe_groups(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=6);
    let include_authorized_operations = version >= 3 && world.random.percent(50);
    let request =
        DescribeGroupsRequest { groups: vec![group(world)], include_authorized_operations };
    pair.ask("DescribeGroups", version, |_| request.clone());
}

pub(crate) fn list_groups(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=5);
    let states: &[&str] =
        world.random.one_of(&[&[], &[], &["Stable"], &["Empty", "Dead"], &["Asleep"]]);
    let types: &[&str] = world.random.one_of(&[&[], &[], &["classic"], &["consumer"]]);
    let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let request = ListGroupsRequest {
        states_filter: if version >= 4 { texts(states) } else { Vec::new() },
        types_filter: if version >= 5 { texts(types) } else { Vec::new() },
    };
    pair.ask("ListGroups", version, |_| request.clone());
}

pub(crate) fn delete_groups(pair: &mut Pair, world: &mut World) {
    let request = DeleteGroupsRequest { groups_names: vec![group(world)] };
    pair.ask("DeleteGroups", world.random.version(0..=2), |_| request.clone());
}
