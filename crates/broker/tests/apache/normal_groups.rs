//! The normal form of what groups are answered.

use highwater_protocol::{
    DeleteGroupsResponse, DescribeGroupsResponse, FindCoordinatorResponse, HeartbeatResponse,
    JoinGroupResponse, LeaveGroupResponse, ListGroupsResponse, OffsetCommitResponse,
    OffsetDeleteResponse, OffsetFetchResponse, SyncGroupResponse,
};

use crate::names::Names;
use crate::normal::{Normal, plain};

plain! { HeartbeatResponse SyncGroupResponse OffsetCommitResponse OffsetDeleteResponse }

impl Normal for FindCoordinatorResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        self.error_message = None;
        if self.port > 0 {
            (self.host, self.port) = (String::new(), 1);
        }
        for one in &mut self.coordinators {
            one.error_message = None;
            if one.port > 0 {
                (one.host, one.port) = (String::new(), 1);
            }
        }
    }
}

impl Normal for JoinGroupResponse {
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        self.member_id = names.member(&self.member_id);
        self.leader = names.member(&self.leader);
        self.protocol_name.get_or_insert_default();
        self.members.iter_mut().for_each(|one| one.member_id = names.member(&one.member_id));
        self.members.sort_by(|a, b| a.member_id.cmp(&b.member_id));
    }
}

impl Normal for LeaveGroupResponse {
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        self.members.iter_mut().for_each(|one| one.member_id = names.member(&one.member_id));
    }
}

impl Normal for OffsetFetchResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        let topics =
            self.groups.iter_mut().flat_map(|group| &mut group.topics).chain(&mut self.topics);
        topics.for_each(|topic| topic.partitions.sort_by_key(|one| one.partition_index));
    }
}

impl Normal for DescribeGroupsResponse {
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        for group in &mut self.groups {
            group.error_message = None;
            group.members.iter_mut().for_each(|one| one.member_id = names.member(&one.member_id));
            group.members.sort_by(|a, b| a.member_id.cmp(&b.member_id));
        }
    }
}

impl Normal for ListGroupsResponse {
    /// Groups of other tests are none of ours.
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        self.groups.retain(|group| {
            group.group_id.starts_with("d-") && group.group_id != crate::transactions::GROUP
        });
        self.groups.sort_by(|a, b| a.group_id.cmp(&b.group_id));
    }
}

impl Normal for DeleteGroupsResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
    }
}
