//! DescribeLogDirs.

use highwater_protocol::{DescribableLogDirTopic, DescribeLogDirsRequest};

use crate::client::plain;
use crate::server::Server;

#[tokio::test]
async fn every_version_tells_the_bytes_of_each_partition() {
    let server = Server::start().await;
    let partition = server.topic_with("t", 2, &[]);
    server.topic("empty");
    let mut client = server.client().await;
    client.produce(9, "t", plain(&[7, 8])).await;
    let bytes = i64::try_from(partition.size()).unwrap();
    assert!(bytes > 0);
    for version in 1..=4 {
        let answer = client.call(version, &DescribeLogDirsRequest { topics: None }).await;
        let [folder] = answer.results.as_slice() else { panic!("{answer:?}") };
        assert!(answer.error_code.is_ok() && folder.error_code.is_ok());
        assert_eq!(folder.log_dir, server.dir.path().to_string_lossy());
        let sizes: Vec<_> = folder
            .topics
            .iter()
            .flat_map(|topic| {
                let of = |one: &highwater_protocol::DescribeLogDirsPartition| {
                    (topic.name.clone(), one.partition_index, one.partition_size, one.offset_lag)
                };
                topic.partitions.iter().map(of).collect::<Vec<_>>()
            })
            .collect();
        let expected = [("empty", 0, 0, 0), ("t", 0, bytes, 0), ("t", 1, 0, 0)];
        assert_eq!(
            sizes,
            expected.map(|(name, index, size, lag)| (name.to_owned(), index, size, lag))
        );
        let volume = (folder.total_bytes > folder.usable_bytes, folder.usable_bytes > 0);
        assert_eq!(volume, (version >= 4, version >= 4), "{folder:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_left_out() {
    let server = Server::start().await;
    server.topic("t");
    let mut client = server.client().await;
    let topics = ["t", "no-such"].map(|topic| DescribableLogDirTopic {
        topic: topic.to_owned(),
        partitions: vec![0, 0, 9, -1],
    });
    let request = DescribeLogDirsRequest { topics: Some(topics.to_vec()) };
    let folder = client.call(4, &request).await.results.remove(0);
    assert_eq!(folder.topics.len(), 1);
    assert_eq!(folder.topics[0].partitions.len(), 1);
    let none = DescribeLogDirsRequest { topics: Some(Vec::new()) };
    assert!(client.call(4, &none).await.results[0].topics.is_empty());
}
