//! Many partitions of one broker, written at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use highwater_kafka::{OutgoingRecord, Writer, WriterSettings, at_least_once};
use highwater_protocol::{
    ApiKey, InitProducerIdResponse, MetadataResponse, MetadataResponsePartition,
    PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse,
};
use tokio::time::timeout;

use crate::contract::{SOON, record};
use crate::fake::{Asked, Fake, metadata};

/// More than the requests that may wait on one connection.
const PARTITIONS: i32 = 200;

fn topic(port: u16) -> MetadataResponse {
    let mut answer = metadata(port);
    let partition = |partition_index| MetadataResponsePartition {
        partition_index,
        leader_id: 1,
        ..Default::default()
    };
    answer.topics[0].partitions = (0..PARTITIONS).map(partition).collect();
    answer
}

fn stored(asked: &Asked) -> ProduceResponse {
    let partition = asked.request::<ProduceRequest>().topic_data[0].partition_data[0].index;
    let told = PartitionProduceResponse { index: partition, base_offset: 7, ..Default::default() };
    let topic = TopicProduceResponse { name: "trail".into(), partition_responses: vec![told] };
    ProduceResponse { responses: vec![topic], ..Default::default() }
}

async fn burst(writer: &mut dyn Writer) {
    for partition in 0..PARTITIONS {
        let record = OutgoingRecord { partition: Some(partition), ..record("trail", 1) };
        writer.send(record).await.unwrap();
    }
    timeout(SOON, writer.commit()).await.unwrap().unwrap();
}

/// On one thread the connection takes nothing while the batches are handed to it.
#[tokio::test]
async fn a_burst_of_many_partitions_is_not_taken_for_a_lost_connection() {
    let asked_metadata = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked_metadata);
    let fake = Fake::start(move |asked| match asked.header.api_key {
        ApiKey::InitProducerId => asked.answer(&InitProducerIdResponse::default()),
        ApiKey::Produce => asked.answer(&stored(asked)),
        ApiKey::Metadata => {
            counted.fetch_add(1, Ordering::SeqCst);
            asked.answer(&topic(asked.port))
        }
        _ => asked.basics(),
    })
    .await;
    let settings = WriterSettings::new(&fake.bootstrap());
    let mut writer =
        at_least_once(&WriterSettings { linger: Duration::from_millis(200), ..settings }).unwrap();
    for _ in 0..4 {
        burst(&mut *writer).await;
    }
    assert_eq!(writer.acknowledged().unwrap().len(), 4 * PARTITIONS as usize);
    assert_eq!(asked_metadata.load(Ordering::SeqCst), 1, "a leader was forgotten");
}
