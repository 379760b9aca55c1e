//! OffsetForLeaderEpoch.

use highwater_protocol::{
    EpochEndOffset, ErrorCode, OffsetForLeaderEpochRequest, OffsetForLeaderPartition,
    OffsetForLeaderTopic,
};

use crate::client::{Client, plain};
use crate::server::Server;

async fn epoch_end(
    client: &mut Client,
    version: i16,
    current_leader_epoch: i32,
    leader_epoch: i32,
) -> EpochEndOffset {
    let request = OffsetForLeaderEpochRequest {
        replica_id: -1,
        topics: vec![OffsetForLeaderTopic {
            topic: "t".to_owned(),
            partitions: vec![OffsetForLeaderPartition {
                partition: 0,
                current_leader_epoch,
                leader_epoch,
            }],
        }],
    };
    client.call(version, &request).await.topics.remove(0).partitions.remove(0)
}

#[tokio::test]
async fn an_epoch_ends_where_the_next_begins() {
    let server = Server::start().await;
    let partition = server.topic("t");
    let mut client = server.client().await;
    client.produce(9, "t", plain(&[1, 2, 3])).await;
    partition.truncate(2).unwrap();
    client.produce(9, "t", plain(&[4, 5])).await;
    for version in 2..=4 {
        let old = epoch_end(&mut client, version, -1, 0).await;
        // The batch of three is cut as a whole.
        assert_eq!((old.error_code, old.leader_epoch, old.end_offset), (ErrorCode::NONE, 0, 0));
        let new = epoch_end(&mut client, version, 1, 1).await;
        assert_eq!((new.leader_epoch, new.end_offset), (1, 2));
        let stale = epoch_end(&mut client, version, 0, 0).await;
        assert_eq!(stale.error_code, ErrorCode::FENCED_LEADER_EPOCH);
        assert_eq!((stale.leader_epoch, stale.end_offset), (-1, -1));
        let early = epoch_end(&mut client, version, 2, 0).await;
        assert_eq!(early.error_code, ErrorCode::UNKNOWN_LEADER_EPOCH);
    }
}
