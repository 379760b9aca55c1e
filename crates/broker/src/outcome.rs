//! Which errors a response holds, to be counted.

use highwater_protocol::{
    AddOffsetsToTxnResponse, AddPartitionsToTxnResponse, ApiVersionsResponse, CreateTopicsResponse,
    DeleteRecordsResponse, DeleteTopicsResponse, DescribeClusterResponse, DescribeConfigsResponse,
    DescribeLogDirsResponse, DescribeProducersResponse, DescribeTransactionsResponse,
    EndTxnResponse, ErrorCode, FetchResponse, FindCoordinatorResponse,
    IncrementalAlterConfigsResponse, InitProducerIdResponse, ListOffsetsResponse,
    ListTransactionsResponse, MetadataResponse, OffsetForLeaderEpochResponse, ProduceResponse,
    SaslAuthenticateResponse, SaslHandshakeResponse, WriteTxnMarkersResponse,
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
    InitProducerIdResponse
    ListTransactionsResponse
    SaslAuthenticateResponse
    SaslHandshakeResponse
}

entries! {
    CreateTopicsResponse topics;
    DeleteTopicsResponse responses;
    DescribeConfigsResponse results;
    DescribeTransactionsResponse transaction_states;
    IncrementalAlterConfigsResponse responses;
    MetadataResponse topics;
}

partitions! {
    DeleteRecordsResponse topics partitions;
    DescribeProducersResponse topics partitions;
    ListOffsetsResponse topics partitions;
    OffsetForLeaderEpochResponse topics partitions;
    ProduceResponse responses partition_responses;
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
