//! Offsets that are committed with a producer's transaction.

use highwater_coordinator::{StillOpen, Transaction, TransactionalCommit};
use highwater_log::{EndMarker, MarkerKind};
use highwater_protocol::ErrorCode;

use crate::rig::{Rig, of_partition};

const PRODUCER: i64 = 7;

fn pending(partition: i32, offset: i64) -> TransactionalCommit {
    TransactionalCommit {
        group_id: "g".to_owned(),
        generation: -1,
        member_id: String::new(),
        group_instance_id: None,
        transaction: Transaction { producer_id: PRODUCER, producer_epoch: 0 },
        topics: vec![of_partition(partition, offset)],
    }
}

fn marker(kind: MarkerKind) -> EndMarker {
    EndMarker { producer_id: PRODUCER, producer_epoch: 0, kind, coordinator_epoch: 0 }
}

async fn send(rig: &Rig, commit: TransactionalCommit, still_open: StillOpen) -> ErrorCode {
    let answer = rig.groups().commit_in_transaction(commit, still_open).answer().await.unwrap();
    answer[0].partitions[0].error_code
}

async fn put(rig: &Rig, partition: i32, offset: i64) {
    let sent = send(rig, pending(partition, offset), Box::new(|| Ok(()))).await;
    assert_eq!(sent, ErrorCode::NONE);
}

/// The offset, and whether it is withheld from who wants a stable one.
fn seen(rig: &Rig, partition: i32) -> (i64, bool) {
    let offset = rig.offset("g", partition).committed_offset;
    let stable = rig.fetch("g", partition, true).error_code;
    (offset, stable == ErrorCode::UNSTABLE_OFFSET_COMMIT)
}

#[tokio::test]
async fn they_count_once_the_transaction_is_committed() {
    let rig = Rig::start().await;
    rig.put("g", 0, 1).await;
    put(&rig, 0, 2).await;
    assert_eq!(seen(&rig, 0), (1, true));
    let rig = rig.kill().await;
    assert_eq!(seen(&rig, 0), (1, true), "what is open is open still");
    rig.groups().end_transaction(marker(MarkerKind::Commit)).await.unwrap();
    assert_eq!(seen(&rig, 0), (2, false));
    rig.groups().end_transaction(marker(MarkerKind::Commit)).await.unwrap();
    let rig = rig.kill().await;
    assert_eq!(seen(&rig, 0), (2, false));
}

#[tokio::test]
async fn they_are_gone_once_it_is_aborted() {
    let rig = Rig::start().await;
    put(&rig, 0, 2).await;
    rig.groups().end_transaction(marker(MarkerKind::Abort)).await.unwrap();
    assert_eq!(seen(&rig, 0), (-1, false));
    put(&rig, 1, 3).await;
    let rig = rig.kill().await;
    assert_eq!((seen(&rig, 0), seen(&rig, 1)), ((-1, false), (-1, true)));
}

#[tokio::test]
async fn a_commit_written_after_them_outlives_their_marker() {
    let rig = Rig::start().await;
    put(&rig, 0, 2).await;
    rig.put("g", 0, 3).await;
    rig.groups().end_transaction(marker(MarkerKind::Commit)).await.unwrap();
    assert_eq!(seen(&rig, 0), (3, false));
    let rig = rig.kill().await;
    assert_eq!(seen(&rig, 0), (3, false));
}

#[tokio::test]
async fn a_transaction_that_has_ended_takes_no_more() {
    let rig = Rig::start().await;
    let ended: StillOpen = Box::new(|| Err(ErrorCode::INVALID_TXN_STATE));
    assert_eq!(send(&rig, pending(0, 2), ended).await, ErrorCode::INVALID_TXN_STATE);
    assert_eq!(seen(&rig, 0), (-1, false));
    let mut member = pending(0, 2);
    member.generation = 3;
    let sent = send(&rig, member, Box::new(|| Ok(()))).await;
    assert_eq!(sent, ErrorCode::ILLEGAL_GENERATION);
}
