//! Groups after a kill.

use highwater_protocol::{ErrorCode, JoinGroupRequest};

use crate::rig::{Rig, consumer};

#[tokio::test]
async fn a_stable_group_goes_on_after_a_kill() {
    let rig = Rig::start().await;
    let (member_id, generation) = rig.alone(consumer("g", &["t"])).await;
    let rig = rig.kill().await;
    assert_eq!(rig.heartbeat("g", generation, &member_id), ErrorCode::NONE);
    let described = rig.groups().describe(5, "g".to_owned());
    assert_eq!(
        (described.group_state.as_str(), described.protocol_data.as_str()),
        ("Stable", "range")
    );
    let member = &described.members[0];
    assert_eq!((member.client_id.as_str(), member.client_host.as_str()), ("test", "/127.0.0.1"));
    assert_eq!((&member.member_assignment[..], member.member_id == member_id), (&b"all"[..], true));
    assert!(!member.member_metadata.is_empty());
}

#[tokio::test]
async fn a_member_that_does_not_come_back_goes_after_its_session() {
    let rig = Rig::start().await;
    rig.alone(consumer("g", &["t"])).await;
    let rig = rig.kill().await;
    assert_eq!(rig.list(), [("g".to_owned(), "Stable".to_owned())]);
    tokio::time::pause();
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert_eq!(rig.list(), [("g".to_owned(), "Empty".to_owned())]);
}

#[tokio::test]
async fn a_static_member_comes_back_after_a_kill_without_a_rebalance() {
    let rig = Rig::start().await;
    let one =
        JoinGroupRequest { group_instance_id: Some("one".to_owned()), ..consumer("g", &["t"]) };
    let (before, generation) = rig.alone(one.clone()).await;
    let rig = rig.kill().await;
    let joined = rig.join(9, one.clone()).await;
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, generation));
    assert!(joined.member_id != before && joined.skip_assignment);
    let rig = rig.kill().await;
    assert_eq!(
        rig.heartbeat("g", generation, &joined.member_id),
        ErrorCode::NONE,
        "its new id is safe"
    );
    assert_eq!(rig.heartbeat("g", generation, &before), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[tokio::test]
async fn an_empty_group_keeps_its_generation() {
    let rig = Rig::start().await;
    let (member_id, _) = rig.alone(consumer("g", &["t"])).await;
    rig.put_as(&member_id, 1).await;
    assert_eq!(rig.leave("g", &member_id), ErrorCode::NONE);
    // The group's record and this one share the order in which they are written.
    assert_eq!(rig.put("g", 1, 5).await, ErrorCode::NONE);
    let rig = rig.kill().await;
    assert_eq!(rig.list(), [("g".to_owned(), "Empty".to_owned())]);
    assert_eq!(rig.offset("g", 0).committed_offset, 1);
    let joined = rig.join(3, consumer("g", &["t"])).await;
    assert_eq!(joined.generation_id, 3);
}

#[tokio::test]
async fn a_group_that_was_deleted_stays_deleted() {
    let rig = Rig::start().await;
    let (member_id, _) = rig.alone(consumer("g", &["t"])).await;
    rig.put_as(&member_id, 1).await;
    let delete = |rig: &Rig| rig.groups().delete("g".to_owned());
    assert_eq!(delete(&rig).answer().await, Some(ErrorCode::NON_EMPTY_GROUP));
    rig.leave("g", &member_id);
    assert_eq!(delete(&rig).answer().await, Some(ErrorCode::NONE));
    assert_eq!(delete(&rig).answer().await, Some(ErrorCode::GROUP_ID_NOT_FOUND));
    let rig = rig.kill().await;
    assert_eq!((rig.list(), rig.offset("g", 0).committed_offset), (vec![], -1));
    let described = rig.groups().describe(6, "g".to_owned());
    assert_eq!(
        (described.error_code, described.group_state.as_str()),
        (ErrorCode::GROUP_ID_NOT_FOUND, "Dead")
    );
    let described = rig.groups().describe(5, "g".to_owned());
    assert_eq!((described.error_code, described.group_state.as_str()), (ErrorCode::NONE, "Dead"));
}

impl Rig {
    /// Commits for partition 0 as the member of generation 1 of group `g`.
    async fn put_as(&self, member_id: &str, offset: i64) {
        let mut request = crate::rig::commit("g", 0, offset);
        request.member_id = member_id.to_owned();
        request.generation_id_or_member_epoch = 1;
        assert_eq!(self.commit(request).await, ErrorCode::NONE);
    }
}
