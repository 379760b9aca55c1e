//! A step of the generator: a second member joins a group, shares its work, and one of the two leaves.

use highwater_protocol::{
    DescribeGroupsRequest, ErrorCode, HeartbeatRequest, JoinGroupRequest, JoinGroupRequestProtocol,
    LeaveGroupRequest, MemberIdentity, SyncGroupRequest, SyncGroupRequestAssignment,
};

use crate::groups::{GROUPS, Member};
use crate::names::Names;
use crate::pair::Pair;
use crate::world::World;

/// Versions that know static members.
const JOIN: i16 = 7;
const SYNC: i16 = 5;
const LEAVE: i16 = 5;

pub(crate) fn second_member(pair: &mut Pair, world: &mut World) {
    let group = world.random.one_of(&GROUPS);
    let Some(mut first) = world.members.0.get(group).cloned() else { return };
    if !rejoin(pair, group, &mut first) || !sync(pair, group, &first, &[&first]) {
        return;
    }
    world.members.0.insert(group.to_owned(), first.clone());
    let nobody = Member { id: String::new(), instance: None, generation: -1 };
    let asked = pair.ask("JoinGroup", JOIN, |names| join(group, &nobody, names));
    if asked.error_code != ErrorCode::MEMBER_ID_REQUIRED {
        return;
    }
    let mut second = Member { id: asked.member_id, ..nobody };
    pair.ask_beside(JOIN, |names| join(group, &second, names));
    pair.until_rebalanced(|names| heartbeat(group, &first, names));
    rejoin(pair, group, &mut first);
    let joined = pair.answer_beside::<JoinGroupRequest>("JoinGroup", JOIN);
    second.generation = joined.generation_id;
    share(pair, group, &first, &second);
    let (leaving, mut staying) =
        if world.random.percent(50) { (first, second) } else { (second, first) };
    leave(pair, group, &leaving);
    pair.ask("Heartbeat", 4, |names| heartbeat(group, &leaving, names));
    pair.ask("Heartbeat", 4, |names| heartbeat(group, &staying, names));
    rejoin(pair, group, &mut staying);
    world.members.0.insert(group.to_owned(), staying);
}

/// Both are given their work by the first.
fn share(pair: &mut Pair, group: &str, first: &Member, second: &Member) {
    pair.ask_beside(SYNC, |names| assignment(group, second, &[], names));
    sync(pair, group, first, &[first, second]);
    pair.answer_beside::<SyncGroupRequest>("SyncGroup", SYNC);
    for member in [first, second] {
        pair.ask("Heartbeat", 4, |names| heartbeat(group, member, names));
    }
    let request = DescribeGroupsRequest { groups: vec![group.to_owned()], ..Default::default() };
    pair.ask("DescribeGroups", 5, |_| request.clone());
}

/// True where it is a member of a new generation.
fn rejoin(pair: &mut Pair, group: &str, member: &mut Member) -> bool {
    let answer = pair.ask("JoinGroup", JOIN, |names| join(group, member, names));
    if answer.error_code.is_ok() {
        member.generation = answer.generation_id;
    }
    answer.error_code.is_ok()
}

fn join(group: &str, member: &Member, names: &Names) -> JoinGroupRequest {
    let range = JoinGroupRequestProtocol { name: "range".to_owned(), metadata: "one".into() };
    JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 300_000,
        rebalance_timeout_ms: 300_000,
        member_id: names.member_id(&member.id),
        group_instance_id: member.instance.clone(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![range],
        ..Default::default()
    }
}

/// True where the leader's assignment is taken.
fn sync(pair: &mut Pair, group: &str, leader: &Member, all: &[&Member]) -> bool {
    let answer = pair.ask("SyncGroup", SYNC, |names| assignment(group, leader, all, names));
    answer.error_code.is_ok()
}

fn assignment(group: &str, member: &Member, all: &[&Member], names: &Names) -> SyncGroupRequest {
    let work = |one: &&Member| SyncGroupRequestAssignment {
        member_id: names.member_id(&one.id),
        assignment: one.id.clone().into(),
    };
    SyncGroupRequest {
        group_id: group.to_owned(),
        generation_id: member.generation,
        member_id: names.member_id(&member.id),
        group_instance_id: member.instance.clone(),
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some("range".to_owned()),
        assignments: all.iter().map(work).collect(),
    }
}

fn heartbeat(group: &str, member: &Member, names: &Names) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: group.to_owned(),
        generation_id: member.generation,
        member_id: names.member_id(&member.id),
        group_instance_id: member.instance.clone(),
    }
}

fn leave(pair: &mut Pair, group: &str, member: &Member) {
    pair.ask("LeaveGroup", LEAVE, |names| LeaveGroupRequest {
        group_id: group.to_owned(),
        members: vec![MemberIdentity {
            member_id: names.member_id(&member.id),
            group_instance_id: member.instance.clone(),
            reason: None,
        }],
        ..Default::default()
    });
}
