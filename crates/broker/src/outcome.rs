//! Which errors a response holds, to be counted.

use highwater_protocol::{
    AddOffsetsToTxnResponse, AddPartitionsToTxnResponse, AlterConfigsResponse, ApiVersionsResponse,
    CreatePartitionsResponse, CreateTopicsResponse, DeleteGroupsResponse, DeleteRecordsResponse,
    DeleteTopicsResponse, DescribeClusterResponse, DescribeConfigsResponse, DescribeGroupsResponse,
    DescribeLogDirsResponse, DescribeProducersResponse, DescribeTransactionsResponse,
    EndTxnResponse, ErrorCode, FetchResponse, FindCoordinatorResponse, HeartbeatResponse,
    IncrementalAlterConfigsResponse, InitProducerIdResponse, JoinGroupResponse, LeaveGroupResponse,
    ListGroupsResponse, ListOffsetsResponse, ListPartitionReassignmentsResponse,
    ListTransactionsResponse, MetadataResponse, OffsetCommitResponse, OffsetDeleteResponse,
    OffsetFetchResponse, OffsetForLeaderEpochResponse, ProduceResponse, SaslAuthenticateResponse,
    SaslHandshakeResponse, SyncGroupResponse, TxnOffsetCommitResponse, WriteTxnMarkersResponse,
};

/// A response, as far as its errors go.
pub(crate) trait Outcome {
    /// Shows every error code that the response holds.
    fn each_error(&self, see: &mut dyn FnMut(ErrorCode));
}

/// One code for the whole response.
macro_rules! whole {
    ($($response:ident)*) => { $(
        impl Outcome for $response {
            fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
                see(self.error_code);
            }
        }
    )* };
}

/// One code an entry.
macro_rules! entries {
    ($($response:ident $entries:ident;)*) => { $(
        impl Outcome for $response {
            fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
                self.$entries.iter().for_each(|entry| see(entry.error_code));
            }
        }
    )* };
}

/// One code a partition of each topic.
macro_rules! partitions {
    ($($response:ident $topics:ident $partitions:ident;)*) => { $(
        impl Outcome for $response {
            fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
                let partitions = self.$topics.iter().flat_map(|topic| &topic.$partitions);
                partitions.for_each(|partition| see(partition.error_code));
            }
        }
    )* };
}

whole! {
    AddOffsetsToTxnResponse
    ApiVersionsResponse
    DescribeClusterResponse
    EndTxnResponse
    HeartbeatResponse
    InitProducerIdResponse
    JoinGroupResponse
    ListGroupsResponse
    ListPartitionReassignmentsResponse
    ListTransactionsResponse
    SaslAuthenticateResponse
    SaslHandshakeResponse
    SyncGroupResponse
}

entries! {
    AlterConfigsResponse responses;
    CreatePartitionsResponse results;
    CreateTopicsResponse topics;
    DeleteGroupsResponse results;
    DeleteTopicsResponse responses;
    DescribeConfigsResponse results;
    DescribeGroupsResponse groups;
    DescribeTransactionsResponse transaction_states;
    IncrementalAlterConfigsResponse responses;
    MetadataResponse topics;
}

partitions! {
    DeleteRecordsResponse topics partitions;
    DescribeProducersResponse topics partitions;
    ListOffsetsResponse topics partitions;
    OffsetCommitResponse topics partitions;
    OffsetForLeaderEpochResponse topics partitions;
    ProduceResponse responses partition_responses;
    TxnOffsetCommitResponse topics partitions;
}

impl Outcome for DescribeLogDirsResponse {
    fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
        see(self.error_code);
        self.results.iter().for_each(|folder| see(folder.error_code));
    }
}

impl Outcome for FetchResponse {
    fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
        see(self.error_code);
        let partitions = self.responses.iter().flat_map(|topic| &topic.partitions);
        partitions.for_each(|partition| see(partition.error_code));
    }
}

impl Outcome for AddPartitionsToTxnResponse {
    fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
        let topics = self.results_by_topic_v3_and_below.iter();
        let partitions = topics.flat_map(|topic| &topic.results_by_partition);
        partitions.for_each(|partition| see(partition.partition_error_code));
    }
}

impl Outcome for WriteTxnMarkersResponse {
    fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
        let topics = self.markers.iter().flat_map(|marker| &marker.topics);
        let partitions = topics.flat_map(|topic| &topic.partitions);
        partitions.for_each(|partition| see(partition.error_code));
    }
}

impl Outcome for FindCoordinatorResponse {
    fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
        see(self.error_code);
        self.coordinators.iter().for_each(|coordinator| see(coordinator.error_code));
    }
}

impl Outcome for LeaveGroupResponse {
    fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
        see(self.error_code);
        self.members.iter().for_each(|member| see(member.error_code));
    }
}

impl Outcome for OffsetDeleteResponse {
    fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
        see(self.error_code);
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.for_each(|partition| see(partition.error_code));
    }
}

impl Outcome for OffsetFetchResponse {
    fn each_error(&self, see: &mut dyn FnMut(ErrorCode)) {
        see(self.error_code);
        self.groups.iter().for_each(|group| see(group.error_code));
        let topics = self.topics.iter().chain(self.groups.iter().flat_map(|group| &group.topics));
        topics.flat_map(|topic| &topic.partitions).for_each(|partition| see(partition.error_code));
    }
}
