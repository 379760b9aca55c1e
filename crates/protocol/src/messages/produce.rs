//! Appending records.

use bytes::Bytes;

use crate::ErrorCode;

schema! {
    /// Appends record batches.
    struct ProduceRequest {
        /// The transactional id, or null.
        transactional_id: Option<String>, 3.., null 3..;
        /// When to answer: -1 when the records are safe, 1 when they are written, 0 never.
        acks: i16, 3..;
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32, 3..;
        /// The topics.
        topic_data: Vec<TopicProduceData>, 3..;
    }

    /// A topic in a [`ProduceRequest`].
    struct TopicProduceData {
        /// Its name.
        name: String, 3..;
        /// Its partitions.
        partition_data: Vec<PartitionProduceData>, 3..;
    }

    /// A partition in a [`ProduceRequest`].
    struct PartitionProduceData {
        /// Its index.
        index: i32, 3..;
        /// The record batches, a slice of the frame.
        records: Option<Bytes>, 3.., null 3..;
    }

    /// Answers a [`ProduceRequest`].
    struct ProduceResponse {
        /// The topics.
        responses: Vec<TopicProduceResponse>, 3..;
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 3..;
        /// Where the leaders named in the answer are reached.
        node_endpoints: Vec<NodeEndpoint>, 10.., tag 0;
    }

    /// A topic in a [`ProduceResponse`].
    struct TopicProduceResponse {
        /// Its name.
        name: String, 3..;
        /// Its partitions.
        partition_responses: Vec<PartitionProduceResponse>, 3..;
    }

    /// A partition in a [`ProduceResponse`].
    struct PartitionProduceResponse {
        /// Its index.
        index: i32, 3..;
        /// What went wrong.
        error_code: ErrorCode, 3..;
        /// The offset of the first record.
        base_offset: i64, 3..;
        /// The time of append, in milliseconds since 1970, if the topic stamps it; else -1.
        log_append_time_ms: i64 = -1, 3..;
        /// The log's start.
        log_start_offset: i64 = -1, 5..;
        /// The records to blame.
        record_errors: Vec<BatchIndexAndErrorMessage>, 8..;
        /// What went wrong, in words.
        error_message: Option<String>, 8.., null 8..;
        /// Who leads the partition, if the answer is that another does.
        current_leader: LeaderIdAndEpoch, 10.., tag 0;
    }

    /// A record to blame.
    struct BatchIndexAndErrorMessage {
        /// Which record of the batch.
        batch_index: i32, 8..;
        /// What is wrong with it.
        batch_index_error_message: Option<String>, 8.., null 8..;
    }

    /// The leader of a partition; all -1 says nothing. In a [`ProduceResponse`] and a
    /// [`FetchResponse`](crate::FetchResponse).
    struct LeaderIdAndEpoch {
        /// The broker's id, or -1.
        leader_id: i32 = -1, 10..;
        /// Its epoch, or -1.
        leader_epoch: i32 = -1, 10..;
    }

    /// Where a broker is reached.
    struct NodeEndpoint {
        /// The broker's id.
        node_id: i32, 10..;
        /// Its host name or address.
        host: String, 10..;
        /// Its port.
        port: i32, 10..;
        /// Its rack.
        rack: Option<String>, 10.., null 10..;
    }
}
