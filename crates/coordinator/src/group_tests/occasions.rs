//! One occasion a test, as Apache Kafka's coordinator behaves.

use super::*;
use crate::group::GroupState;

/// A member joins with the id that it is given first.
fn join_twice(stage: &mut Stage, request: JoinGroupRequest) -> (String, Ticket) {
    let ticket = stage.join(request.clone());
    let refused = stage.answer(ticket).expect("an answer at once");
    assert_eq!(refused.error_code, ErrorCode::MEMBER_ID_REQUIRED);
    let ticket = stage.join(JoinGroupRequest { member_id: refused.member_id.clone(), ..request });
    (refused.member_id, ticket)
}

/// A stable group of two; the first leads. Answers their ids.
fn two(stage: &mut Stage) -> (String, String) {
    let (leader, ticket) = join_twice(stage, consumer("", &["range"]));
    assert_eq!(stage.answer(ticket).map(|joined| joined.generation_id), Some(1));
    let (follower, ticket) = join_twice(stage, consumer("", &["range"]));
    assert_eq!(stage.answer(ticket), None, "the leader has to join again first");
    let again = stage.join(consumer(&leader, &["range"]));
    let joined = stage.answer(again).expect("all are there");
    assert_eq!((joined.leader.as_str(), joined.members.len()), (leader.as_str(), 2));
    let joined = stage.answer(ticket).expect("all are there");
    assert_eq!((joined.leader.as_str(), joined.members.len()), (leader.as_str(), 0));
    stabilise(stage, &leader, &[&follower]);
    (leader, follower)
}

/// The leader assigns, all ask.
fn stabilise(stage: &mut Stage, leader: &str, followers: &[&str]) {
    let generation = stage.group.generation;
    let everybody: Vec<&str> = followers.iter().copied().chain([leader]).collect();
    let assigned: Vec<_> = everybody.iter().map(|id| (*id, *id)).collect();
    let waiting: Vec<_> =
        followers.iter().map(|id| (*id, stage.sync(sync(generation, id, &[])))).collect();
    let leading = stage.sync(sync(generation, leader, &assigned));
    assert_eq!(stage.assignment(leading), None, "not before it is safe");
    stage.write_all();
    for (id, ticket) in waiting.into_iter().chain([(leader, leading)]) {
        let synced = stage.assignment(ticket).expect("an assignment");
        assert_eq!((synced.error_code, &synced.assignment[..]), (ErrorCode::NONE, id.as_bytes()));
    }
    assert_eq!(stage.group.state, GroupState::Stable);
}

#[test]
fn two_share_a_group() {
    let mut stage = Stage::new();
    let (leader, follower) = two(&mut stage);
    assert_eq!(stage.heartbeat(2, &leader), ErrorCode::NONE);
    assert_eq!(stage.heartbeat(1, &follower), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(stage.heartbeat(2, "other"), ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(stage.group.is_subscribed("t") && !stage.group.is_subscribed("u"));
}

/// Before version 4 a new member is taken at once.
#[test]
fn an_old_client_gets_no_id_to_come_again_with() {
    let mut stage = Stage::new();
    let ticket = stage.join_at(3, consumer("", &["range"]));
    let joined = stage.answer(ticket).expect("alone");
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 1));
}

#[test]
fn who_is_silent_goes_and_the_others_share_anew() {
    let mut stage = Stage::new();
    let (leader, follower) = two(&mut stage);
    stage.pass(i64::from(SESSION_MS) - 1);
    assert_eq!(stage.heartbeat(2, &follower), ErrorCode::NONE);
    stage.pass(1);
    assert_eq!(stage.heartbeat(2, &leader), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(stage.heartbeat(2, &follower), ErrorCode::REBALANCE_IN_PROGRESS);
    let ticket = stage.join(consumer(&follower, &["range"]));
    let joined = stage.answer(ticket).expect("alone");
    assert_eq!((joined.generation_id, joined.leader.as_str()), (3, follower.as_str()));
}

#[test]
fn who_does_not_join_again_in_time_is_left_behind() {
    let mut stage = Stage::new();
    let (leader, follower) = two(&mut stage);
    let ticket = stage.join(consumer(&leader, &["range", "other"]));
    for _ in 0..20 {
        assert_eq!(stage.answer(ticket), None);
        stage.pass(3_000);
        // It lives, and does not come.
        stage.heartbeat(2, &follower);
    }
    let joined = stage.answer(ticket).expect("the rebalance time-out is over");
    assert_eq!((joined.generation_id, joined.members.len()), (3, 1));
    assert_eq!(stage.heartbeat(2, &follower), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn who_does_not_ask_for_its_assignment_in_time_is_removed() {
    let mut stage = Stage::new();
    let (leader, follower) = two(&mut stage);
    let one = stage.join(consumer(&leader, &["range"]));
    let other = stage.join(consumer(&follower, &["range"]));
    assert!(stage.answer(one).is_some() && stage.answer(other).is_some());
    let waiting = stage.sync(sync(3, &leader, &[(&leader, "all")]));
    stage.write_all();
    assert_eq!(stage.assignment(waiting).map(|synced| synced.assignment), Some("all".into()));
    for _ in 0..20 {
        stage.pass(3_000);
        stage.heartbeat(3, &leader);
        stage.heartbeat(3, &follower);
    }
    assert_eq!(stage.heartbeat(3, &follower), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(stage.heartbeat(3, &leader), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_leader_that_joins_again_makes_all_join_a_follower_does_not() {
    let mut stage = Stage::new();
    let (leader, follower) = two(&mut stage);
    let ticket = stage.join(consumer(&follower, &["range"]));
    let joined = stage.answer(ticket).expect("the generation there is");
    assert_eq!((joined.generation_id, joined.members.len()), (2, 0));
    assert_eq!(stage.group.state, GroupState::Stable);
    stage.join(consumer(&leader, &["range"]));
    assert_eq!(stage.group.state, GroupState::PreparingRebalance);
}

#[test]
fn the_protocol_is_one_that_all_know_and_most_prefer() {
    let mut stage = Stage::new();
    let (first, ticket) = join_twice(&mut stage, consumer("", &["a", "b", "c"]));
    assert_eq!(stage.answer(ticket).and_then(|joined| joined.protocol_name), Some("a".to_owned()));
    let (second, _) = join_twice(&mut stage, consumer("", &["c", "b"]));
    let (_, ticket) = join_twice(&mut stage, consumer("", &["c", "b", "d"]));
    stage.join(consumer(&first, &["a", "b", "c"]));
    assert_eq!(stage.answer(ticket).and_then(|joined| joined.protocol_name), Some("c".to_owned()));
    let stranger = stage.join(consumer("", &["d"]));
    let refused = stage.answer(stranger).expect("at once");
    assert_eq!(refused.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let other_kind =
        JoinGroupRequest { protocol_type: "connect".to_owned(), ..consumer("", &["b"]) };
    let refused = stage.join(other_kind);
    let refused = stage.answer(refused).expect("at once");
    assert_eq!(refused.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let wrong = stage
        .sync(SyncGroupRequest { protocol_name: Some("a".to_owned()), ..sync(2, &second, &[]) });
    let refused = stage.assignment(wrong).expect("at once");
    assert_eq!(refused.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn an_id_that_is_not_used_holds_a_rebalance_up_for_one_session_only() {
    let mut stage = Stage::new();
    let (leader, follower) = two(&mut stage);
    let ticket = stage.join(consumer("", &["range"]));
    assert_eq!(
        stage.answer(ticket).map(|refused| refused.error_code),
        Some(ErrorCode::MEMBER_ID_REQUIRED)
    );
    let one = stage.join(consumer(&leader, &["range"]));
    let other = stage.join(consumer(&follower, &["range"]));
    stage.pass(i64::from(SESSION_MS) - 1);
    assert_eq!((stage.answer(one), stage.answer(other)), (None, None));
    stage.pass(1);
    assert!(stage.answer(one).is_some() && stage.answer(other).is_some());
}

#[test]
fn the_last_one_that_leaves_empties_the_group() {
    let mut stage = Stage::new();
    let (leader, follower) = two(&mut stage);
    let left = stage.leave(&[(&leader, None), ("nobody", None)]);
    let codes: Vec<_> = left.iter().map(|member| member.error_code).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::UNKNOWN_MEMBER_ID]);
    assert_eq!(stage.heartbeat(2, &follower), ErrorCode::REBALANCE_IN_PROGRESS);
    stage.leave(&[(&follower, None)]);
    assert_eq!((stage.group.state, stage.group.generation), (GroupState::Empty, 3));
    stage.write_all();
    stage.restart();
    assert_eq!((stage.group.state, stage.group.generation), (GroupState::Empty, 3));
    let (_, ticket) = join_twice(&mut stage, consumer("", &["other"]));
    assert_eq!(stage.answer(ticket).map(|joined| joined.generation_id), Some(4));
}

#[test]
fn a_commit_needs_its_generation_or_an_empty_group() {
    let mut stage = Stage::new();
    let check = |stage: &Stage, generation, member_id: &str| {
        stage.group.check_commit(generation, member_id, None, false)
    };
    assert_eq!(check(&stage, -1, ""), Ok(()));
    let (leader, follower) = two(&mut stage);
    assert_eq!(check(&stage, 2, &leader), Ok(()));
    assert_eq!(check(&stage, 1, &leader), Err(ErrorCode::ILLEGAL_GENERATION));
    assert_eq!(check(&stage, -1, ""), Err(ErrorCode::UNKNOWN_MEMBER_ID));
    assert_eq!(stage.group.check_commit(-1, "", None, true), Ok(()), "in a transaction");
    stage.join(consumer(&leader, &["range"]));
    assert_eq!(check(&stage, 2, &follower), Ok(()), "before it joins again");
    stage.join(consumer(&follower, &["range"]));
    assert_eq!(check(&stage, 3, &follower), Err(ErrorCode::REBALANCE_IN_PROGRESS));
    assert_eq!(stage.group.check_commit(3, &follower, None, true), Ok(()));
}

/// KIP-345 and KIP-814.
#[test]
fn a_static_member_comes_back_without_a_rebalance() {
    let mut stage = Stage::new();
    let ticket = stage.join(static_consumer("", "one"));
    let leader = stage.answer(ticket).expect("alone").member_id;
    let second = stage.join(static_consumer("", "two"));
    let again = stage.join(static_consumer(&leader, "one"));
    let follower = stage.answer(second).expect("all are there").member_id;
    stage.answer(again);
    stabilise(&mut stage, &leader, &[&follower]);

    let back = stage.join(static_consumer("", "two"));
    assert_eq!(stage.answer(back), None, "not before its new id is safe");
    stage.write_all();
    let joined = stage.answer(back).expect("its generation");
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 2));
    assert_ne!(joined.member_id, follower);
    let synced = stage.sync(SyncGroupRequest {
        group_instance_id: Some("two".to_owned()),
        ..sync(2, &joined.member_id, &[])
    });
    let synced = stage.assignment(synced).expect("its assignment");
    assert_eq!(&synced.assignment[..], follower.as_bytes(), "the one it had");
    let fenced = stage.group.heartbeat(2, &follower, Some("two"), stage.now);
    assert_eq!(fenced, ErrorCode::FENCED_INSTANCE_ID);

    let back = stage.join(static_consumer("", "one"));
    stage.write_all();
    let joined = stage.answer(back).expect("its generation");
    assert!(
        joined.skip_assignment && joined.members.len() == 2 && joined.leader == joined.member_id
    );
    let old = stage.join_at(8, static_consumer("", "one"));
    stage.write_all();
    let old = stage.answer(old).expect("its generation");
    assert!(!old.skip_assignment && old.members.is_empty());
    assert_eq!(old.leader, joined.member_id, "not its own new id, or it would assign");
    assert_eq!((stage.group.state, stage.group.generation), (GroupState::Stable, 2));
}

#[test]
fn a_static_member_that_changes_the_protocol_makes_all_join() {
    let mut stage = Stage::new();
    let first =
        JoinGroupRequest { group_instance_id: Some("one".to_owned()), ..consumer("", &["a", "b"]) };
    let ticket = stage.join(first.clone());
    let id = stage.answer(ticket).expect("alone").member_id;
    stabilise(&mut stage, &id, &[]);
    let back = stage.join(JoinGroupRequest { protocols: consumer("", &["b"]).protocols, ..first });
    let joined = stage.answer(back).expect("alone");
    assert_eq!((joined.generation_id, joined.protocol_name), (2, Some("b".to_owned())));
}

/// A static member's second instance takes over; the first, waiting, is told so at once.
#[test]
fn of_two_static_members_of_one_name_the_later_one_stays() {
    let mut stage = Stage::new();
    let (other, ticket) = join_twice(&mut stage, consumer("", &["range"]));
    stage.answer(ticket);
    let first = stage.join(static_consumer("", "one"));
    let second = stage.join(static_consumer("", "one"));
    let fenced = stage.answer(first).expect("at once");
    assert_eq!(fenced.error_code, ErrorCode::FENCED_INSTANCE_ID);
    stage.join(consumer(&other, &["range"]));
    assert_eq!(stage.answer(second).map(|joined| joined.error_code), Some(ErrorCode::NONE));
    let id = stage.group.static_member("one").map(|member| member.id.clone()).expect("it is there");
    let left = stage.leave(&[("", Some("one"))]);
    assert_eq!(left[0].error_code, ErrorCode::NONE, "removed by its name (KIP-345)");
    assert!(!stage.group.members.contains_key(&id));
}

#[test]
fn a_store_that_fails_hands_nothing_out() {
    let mut stage = Stage::new();
    let (id, ticket) = join_twice(&mut stage, consumer("", &["range"]));
    stage.answer(ticket);
    let waiting = stage.sync(sync(1, &id, &[(&id, "all")]));
    stage.write(Err(ErrorCode::COORDINATOR_NOT_AVAILABLE));
    let refused = stage.assignment(waiting).expect("an answer");
    assert_eq!(refused.error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    assert_eq!(stage.group.state, GroupState::PreparingRebalance);
    let again = stage.join(consumer(&id, &["range"]));
    assert_eq!(stage.answer(again).map(|joined| joined.generation_id), Some(2));
}

#[test]
fn a_group_is_no_larger_than_it_may_be() {
    let mut stage = Stage::with(GroupSettings { max_size: 2, ..GroupSettings::default() });
    two(&mut stage);
    let third = stage.join(consumer("", &["range"]));
    let refused = stage.answer(third).expect("at once");
    assert_eq!(refused.error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    let mut stage = Stage::with(GroupSettings { max_group_bytes: 30, ..GroupSettings::default() });
    let (id, ticket) = join_twice(&mut stage, consumer("", &["range"]));
    assert_eq!(stage.answer(ticket).map(|joined| joined.error_code), Some(ErrorCode::NONE));
    let waiting = stage.sync(sync(1, &id, &[(&id, &"x".repeat(30))]));
    let refused = stage.assignment(waiting).expect("at once");
    assert_eq!(refused.error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
    assert!(stage.storing.is_empty());
}

#[test]
fn an_empty_group_may_wait_for_more_members() {
    let settings = GroupSettings { initial_rebalance_delay_ms: 3_000, ..GroupSettings::default() };
    let mut stage = Stage::with(settings);
    let (_, first) = join_twice(&mut stage, consumer("", &["range"]));
    stage.pass(2_000);
    let (_, second) = join_twice(&mut stage, consumer("", &["range"]));
    stage.pass(3_999);
    assert_eq!((stage.answer(first), stage.answer(second)), (None, None));
    stage.pass(1);
    let joined = stage.answer(first).expect("nobody came for a while");
    assert_eq!((joined.generation_id, joined.members.len()), (1, 2));
}

/// Ids that were given out take memory, as members do: both count for what all groups may take together.
#[test]
fn whoever_asks_for_an_id_counts() {
    let mut stage = Stage::new();
    assert_eq!(stage.group.memory(), 0);
    stage.join(consumer("", &["range"]));
    let pending = stage.group.memory();
    assert!(pending > 0, "an id was given out");
    let id = stage.group.pending.keys().next().unwrap().clone();
    stage.join(consumer(&id, &["range"]));
    assert!(stage.group.memory() > pending + id.len(), "{}", stage.group.memory());
}
