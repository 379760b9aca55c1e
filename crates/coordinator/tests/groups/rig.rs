//! A coordinator of groups over a log in a folder of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use highwater_coordinator::{Caller, GroupCoordinator, GroupSettings, Groups};
use highwater_log::{Log, LogConfig, LogError, RealFileSystem, TopicConfig};
use highwater_protocol::stored::ConsumerSubscription;
use highwater_protocol::{
    ErrorCode, HeartbeatRequest, JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
    LeaveGroupRequest, ListGroupsRequest, MemberIdentity, OffsetCommitRequest,
    OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetFetchRequestGroup,
    OffsetFetchRequestTopic, OffsetFetchResponsePartition, SyncGroupRequest,
    SyncGroupRequestAssignment, SyncGroupResponse,
};
use tempfile::TempDir;
use tokio::time::timeout;

/// Longer than anything here may take.
const SOON: Duration = Duration::from_secs(10);

pub(crate) struct Rig {
    dir: TempDir,
    pub(crate) log: Log,
    pub(crate) coordinator: GroupCoordinator,
    settings: GroupSettings,
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::start_with(GroupSettings::default()).await
    }

    /// With a topic `t`.
    pub(crate) async fn start_with(settings: GroupSettings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = open(dir.path()).await;
        log.create_topic("t", 3, TopicConfig::default()).unwrap();
        let coordinator = GroupCoordinator::start(log.clone(), settings.clone());
        Self { dir, log, coordinator, settings }
    }

    /// As after a kill: nothing is closed, nobody is told.
    pub(crate) async fn kill(self) -> Self {
        let Self { dir, log, coordinator, settings } = self;
        coordinator.shutdown().await;
        drop((coordinator, log));
        let log = open(dir.path()).await;
        let coordinator = GroupCoordinator::start(log.clone(), settings.clone());
        let rig = Self { dir, log, coordinator, settings };
        rig.ready().await;
        rig
    }

    /// Waits until everything is read back.
    async fn ready(&self) {
        let all = ListGroupsRequest::default();
        let ready = async {
            while self.groups().list(&all) == Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS) {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, ready).await.expect("groups are read back");
    }

    pub(crate) fn groups(&self) -> &Arc<Groups> {
        self.coordinator.groups()
    }

    /// Names and states.
    pub(crate) fn list(&self) -> Vec<(String, String)> {
        let groups = self.groups().list(&ListGroupsRequest::default()).unwrap();
        groups.into_iter().map(|group| (group.group_id, group.group_state)).collect()
    }

    pub(crate) async fn commit(&self, request: OffsetCommitRequest) -> ErrorCode {
        let waiting = self.groups().commit(9, request);
        let answer = timeout(SOON, waiting.answer()).await.expect("soon").expect("an answer");
        answer.topics[0].partitions[0].error_code
    }

    /// Commits as one who is no member.
    pub(crate) async fn put(&self, group: &str, partition: i32, offset: i64) -> ErrorCode {
        self.commit(commit(group, partition, offset)).await
    }

    pub(crate) fn offset(&self, group: &str, partition: i32) -> OffsetFetchResponsePartition {
        self.fetch(group, partition, false)
    }

    pub(crate) fn fetch(
        &self,
        group: &str,
        partition: i32,
        stable: bool,
    ) -> OffsetFetchResponsePartition {
        let topic =
            OffsetFetchRequestTopic { name: "t".to_owned(), partition_indexes: vec![partition] };
        let asked = OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics: Some(vec![topic]),
            ..Default::default()
        };
        let mut found = self.groups().fetch(asked, stable);
        assert_eq!(found.error_code, ErrorCode::NONE);
        found.topics.remove(0).partitions.remove(0)
    }

    pub(crate) async fn join(&self, version: i16, request: JoinGroupRequest) -> JoinGroupResponse {
        let caller = Caller { client_id: "test".to_owned(), client_host: "/127.0.0.1".to_owned() };
        let waiting = self.groups().join(caller, version, request);
        timeout(SOON, waiting.answer()).await.expect("soon").expect("an answer")
    }

    /// Joins alone and takes everything; answers member id and generation.
    pub(crate) async fn alone(&self, request: JoinGroupRequest) -> (String, i32) {
        let joined = self.join(3, request.clone()).await;
        assert_eq!(joined.error_code, ErrorCode::NONE);
        let synced = self.sync(&request, &joined, "all").await;
        assert_eq!((synced.error_code, &synced.assignment[..]), (ErrorCode::NONE, &b"all"[..]));
        (joined.member_id, joined.generation_id)
    }

    pub(crate) async fn sync(
        &self,
        request: &JoinGroupRequest,
        joined: &JoinGroupResponse,
        assignment: &'static str,
    ) -> SyncGroupResponse {
        let assignments = vec![SyncGroupRequestAssignment {
            member_id: joined.member_id.clone(),
            assignment: Bytes::from_static(assignment.as_bytes()),
        }];
        let waiting = self.groups().sync(
            4,
            SyncGroupRequest {
                group_id: request.group_id.clone(),
                generation_id: joined.generation_id,
                member_id: joined.member_id.clone(),
                group_instance_id: request.group_instance_id.clone(),
                assignments,
                ..Default::default()
            },
        );
        timeout(SOON, waiting.answer()).await.expect("soon").expect("an answer")
    }

    pub(crate) fn heartbeat(&self, group: &str, generation: i32, member_id: &str) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: group.to_owned(),
            generation_id: generation,
            member_id: member_id.to_owned(),
            ..Default::default()
        };
        self.groups().heartbeat(&request).error_code
    }

    pub(crate) fn leave(&self, group: &str, member_id: &str) -> ErrorCode {
        let members =
            vec![MemberIdentity { member_id: member_id.to_owned(), ..Default::default() }];
        let request =
            LeaveGroupRequest { group_id: group.to_owned(), members, ..Default::default() };
        self.groups().leave(request).members[0].error_code
    }
}

/// The last tasks of a coordinator may hold the log for a moment after it was stopped.
async fn open(dir: &std::path::Path) -> Log {
    for _ in 0..500 {
        match Log::open(Arc::new(RealFileSystem), dir, LogConfig::default()) {
            Err(LogError::Locked { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            opened => return opened.unwrap(),
        }
    }
    panic!("the log is still held after 5 s");
}

pub(crate) fn commit(group: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.to_owned(),
        topics: vec![of_partition(partition, offset)],
        ..Default::default()
    }
}

pub(crate) fn of_partition(partition: i32, offset: i64) -> OffsetCommitRequestTopic {
    let partition = OffsetCommitRequestPartition {
        partition_index: partition,
        committed_offset: offset,
        committed_leader_epoch: 4,
        committed_metadata: Some("note".to_owned()),
    };
    OffsetCommitRequestTopic { name: "t".to_owned(), partitions: vec![partition] }
}

/// A consumer of topics wants to join.
pub(crate) fn consumer(group: &str, topics: &[&str]) -> JoinGroupRequest {
    let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
    let metadata = ConsumerSubscription { topics, user_data: None }.to_metadata();
    JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![JoinGroupRequestProtocol { name: "range".to_owned(), metadata }],
        ..Default::default()
    }
}
