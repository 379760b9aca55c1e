//! Moving a stored offset (rule P8).

use highwater_connector::OffsetVerdict;
use highwater_postgres::Lsn;

use crate::rig::Rig;

fn accepted(verdict: OffsetVerdict) -> highwater_connector::SourceOffset {
    match verdict {
        OffsetVerdict::Accepted(Some(offset)) => offset,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_offset_is_moved_forward_over_transactions_that_are_then_never_delivered() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    rig.task.take().unwrap().stop().await;
    rig.sql("insert into t values(2)").await;
    let here: Lsn =
        rig.ask("select pg_current_wal_insert_lsn()::text").await.unwrap().parse().unwrap();
    let wanted = format!(r#"{{"lsn":"{here}"}}"#);
    let refused = rig.edit(&wanted, false).await;
    assert!(matches!(refused, OffsetVerdict::Refused { .. }), "{refused:?}");
    let confirmed = rig.confirmed().await;
    let offset = accepted(rig.edit(&wanted, true).await);
    assert_eq!(rig.confirmed().await, confirmed, "asking changes nothing at the server");
    rig.stored.put(offset);
    assert_eq!(rig.stream("insert into t values(3)").await, [r#"c +{"id":3}"#]);
    // The slot follows.
    rig.told(here).await;
}

#[tokio::test]
async fn an_offset_is_moved_back_as_far_as_the_slot_allows() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    rig.acknowledge = false;
    rig.stream("insert into t values(2)").await;
    rig.task.take().unwrap().stop().await;
    let low = rig.stored.last().unwrap();
    let high = rig.trail.last().unwrap().offset.clone();
    rig.stored.put(high);
    let wanted = format!(r#"{{"lsn":"{}"}}"#, low.text("lsn").unwrap());
    rig.stored.put(accepted(rig.edit(&wanted, false).await));
    let again = rig.stream("insert into t values(3)").await;
    assert_eq!(again, [r#"c +{"id":2}"#, r#"c +{"id":3}"#]);
}

#[tokio::test]
async fn what_the_server_cannot_give_is_refused() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    for wanted in [r#"{"lsn":"0/1"}"#, r#"{"lsn":"FFFF/0"}"#, r#"{"lsn":"x"}"#] {
        let verdict = rig.edit(wanted, true).await;
        assert!(matches!(verdict, OffsetVerdict::Refused { .. }), "{wanted}: {verdict:?}");
    }
}
