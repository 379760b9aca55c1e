//! The normal form of what transactional producers are answered.

use highwater_protocol::{
    AddOffsetsToTxnResponse, AddPartitionsToTxnResponse, DescribeProducersResponse,
    DescribeTransactionsResponse, EndTxnResponse, ListTransactionsResponse,
    TxnOffsetCommitResponse,
};

use crate::names::{Names, clock};
use crate::normal::{Normal, plain};

plain! { AddOffsetsToTxnResponse EndTxnResponse TxnOffsetCommitResponse }

impl Normal for AddPartitionsToTxnResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        let topics = &mut self.results_by_topic_v3_and_below;
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        for topic in topics {
            topic.results_by_partition.sort_by_key(|one| one.partition_index);
        }
    }
}

impl Normal for DescribeProducersResponse {
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        for partition in self.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            partition.error_message = None;
            for producer in &mut partition.active_producers {
                producer.producer_id = names.producer(producer.producer_id);
                producer.last_timestamp = clock(producer.last_timestamp);
            }
            partition.active_producers.sort_by_key(|producer| producer.producer_id);
        }
    }
}

impl Normal for DescribeTransactionsResponse {
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        for state in &mut self.transaction_states {
            state.producer_id = names.producer(state.producer_id);
            state.transaction_start_time_ms = clock(state.transaction_start_time_ms);
            state.topics.sort_by(|a, b| a.topic.cmp(&b.topic));
            state.topics.iter_mut().for_each(|topic| topic.partitions.sort_unstable());
        }
    }
}

impl Normal for ListTransactionsResponse {
    /// Transactions of other tests are none of ours.
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        self.transaction_states.retain(|one| one.transactional_id.starts_with("d-"));
        self.transaction_states.sort_by(|a, b| a.transactional_id.cmp(&b.transactional_id));
        for state in &mut self.transaction_states {
            state.producer_id = names.producer(state.producer_id);
        }
    }
}
