//! Answers in the form in which they are compared: exactly, but for what [`exceptions`](crate::exceptions)
//! names.

use highwater_protocol::records::batches;
use highwater_protocol::{
    AlterConfigsResponse, CreatePartitionsResponse, CreateTopicsResponse, DeleteRecordsResponse,
    DeleteTopicsResponse, DescribeClusterResponse, DescribeConfigsResponse, FetchResponse,
    FetchableTopicResponse, IncrementalAlterConfigsResponse, InitProducerIdResponse,
    ListOffsetsResponse, ListPartitionReassignmentsResponse, MetadataResponse,
    OffsetForLeaderEpochResponse, PartitionData, ProduceResponse, Records,
};

use crate::exceptions;
use crate::names::{Names, OF_THE_CLOCK, Stored, clock};
use crate::world::RECOMPRESSED;

/// An answer that can be brought into its normal form.
pub(crate) trait Normal {
    fn normalise(&mut self, names: &mut Names);
}

/// Nothing in it is another on either side.
macro_rules! plain {
    ($($response:ident)*) => { $(
        impl Normal for $response {
            fn normalise(&mut self, _names: &mut Names) {
                self.throttle_time_ms = 0;
            }
        }
    )* };
}
pub(crate) use plain;

/// Takes out what no client may lean on in an answer of this kind: the order, and words.
macro_rules! entries {
    ($($response:ident $entries:ident by $key:ident;)*) => { $(
        impl Normal for $response {
            fn normalise(&mut self, _names: &mut Names) {
                self.throttle_time_ms = 0;
                self.$entries.sort_by(|a, b| a.$key.cmp(&b.$key));
                self.$entries.iter_mut().for_each(|one| one.error_message = None);
            }
        }
    )* };
}

entries! {
    AlterConfigsResponse responses by resource_name;
    CreatePartitionsResponse results by name;
    IncrementalAlterConfigsResponse responses by resource_name;
}

/// Puts the partitions of one topic together, and all in order.
macro_rules! by_partition {
    ($topics:expr, $name:ident, $partitions:ident, $index:ident) => {
        $topics.sort_by(|a, b| a.$name.cmp(&b.$name));
        $topics.dedup_by(|later, earlier| {
            let same = later.$name == earlier.$name;
            if same {
                earlier.$partitions.append(&mut later.$partitions);
            }
            same
        });
        $topics.iter_mut().for_each(|topic| topic.$partitions.sort_by_key(|one| one.$index));
    };
}

impl Normal for DeleteRecordsResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        by_partition!(self.topics, name, partitions, partition_index);
    }
}

impl Normal for ListOffsetsResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        by_partition!(self.topics, name, partitions, partition_index);
        for partition in self.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            partition.timestamp = clock(partition.timestamp);
            if partition.timestamp == OF_THE_CLOCK {
                partition.offset = OF_THE_CLOCK;
            }
        }
    }
}

impl Normal for OffsetForLeaderEpochResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        by_partition!(self.topics, topic, partitions, partition);
    }
}

impl Normal for ProduceResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        by_partition!(self.responses, name, partition_responses, index);
        let partitions = self.responses.iter_mut().flat_map(|topic| &mut topic.partition_responses);
        for partition in partitions {
            partition.error_message = None;
            for record in &mut partition.record_errors {
                record.batch_index_error_message = None;
            }
            partition.log_append_time_ms = clock(partition.log_append_time_ms);
        }
    }
}

impl Normal for FetchResponse {
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        by_partition!(self.responses, topic, partitions, partition_index);
        self.responses.retain(|topic: &FetchableTopicResponse| !topic.partitions.is_empty());
        for topic in &mut self.responses {
            let stored = if topic.topic == RECOMPRESSED { Stored::Anew } else { Stored::AsSent };
            topic.partitions.iter_mut().for_each(|partition| fetched(partition, names, stored));
        }
    }
}

fn fetched(partition: &mut PartitionData, names: &Names, stored: Stored) {
    let found = names.records(&partition.records.take().unwrap_or_default().into_bytes(), stored);
    partition.records = Some(Records::Here(found.clone()));
    let aborted = partition.aborted_transactions.get_or_insert_default();
    let next =
        batches(found).filter_map(Result::ok).last().map_or(0, |batch| batch.header.next_offset());
    aborted.retain(|transaction| transaction.first_offset < next);
    for transaction in aborted.iter_mut() {
        transaction.producer_id = names.producer(transaction.producer_id);
    }
    aborted.sort_by_key(|transaction| (transaction.first_offset, transaction.producer_id));
}

impl Normal for CreateTopicsResponse {
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        self.topics.sort_by(|a, b| a.name.cmp(&b.name));
        for topic in &mut self.topics {
            topic.error_message = None;
            topic.topic_id = names.topic(topic.topic_id);
            let configs = topic.configs.get_or_insert_default();
            configs.retain(|setting| exceptions::is_compared(&setting.name));
            configs.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
}

impl Normal for DeleteTopicsResponse {
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        for topic in &mut self.responses {
            topic.error_message = None;
            topic.topic_id = names.topic(topic.topic_id);
        }
        self.responses.sort_by(|a, b| (&a.name, a.topic_id).cmp(&(&b.name, b.topic_id)));
    }
}

impl Normal for DescribeConfigsResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        self.results.sort_by(|a, b| a.resource_name.cmp(&b.resource_name));
        for resource in &mut self.results {
            resource.error_message = None;
            if resource.resource_type != 2 {
                resource.configs.clear();
            }
            resource.configs.retain(|setting| exceptions::is_compared(&setting.name));
            resource.configs.sort_by(|a, b| a.name.cmp(&b.name));
            for setting in &mut resource.configs {
                setting.documentation = None;
                setting.synonyms.retain(|synonym| synonym.source == exceptions::SET_FOR_TOPIC);
            }
        }
    }
}

impl Normal for MetadataResponse {
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        self.cluster_id = self.cluster_id.take().map(|_| "the cluster's".to_owned());
        for broker in &mut self.brokers {
            (broker.host, broker.port) = (String::new(), 0);
        }
        self.topics.sort_by(|a, b| (&a.name, a.topic_id).cmp(&(&b.name, b.topic_id)));
        for topic in &mut self.topics {
            topic.topic_id = names.topic(topic.topic_id);
            topic.partitions.sort_by_key(|partition| partition.partition_index);
        }
    }
}

impl Normal for DescribeClusterResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        self.error_message = None;
        self.cluster_id = String::new();
        for broker in &mut self.brokers {
            (broker.host, broker.port) = (String::new(), 0);
        }
    }
}

impl Normal for InitProducerIdResponse {
    fn normalise(&mut self, names: &mut Names) {
        self.throttle_time_ms = 0;
        self.producer_id = names.given(self.producer_id);
    }
}

impl Normal for ListPartitionReassignmentsResponse {
    fn normalise(&mut self, _names: &mut Names) {
        self.throttle_time_ms = 0;
        self.error_message = None;
    }
}
