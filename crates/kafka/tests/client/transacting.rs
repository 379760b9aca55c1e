//! The transactional writer keeps the contract of writers, and that of transactions, on our own
//! broker and on Apache Kafka.

use std::time::{Duration, Instant};

use highwater_kafka::{
    Admin, KafkaError, ReadRecord, TransactionSettings, Writer, WriterSettings, writer,
};
use tokio::time::timeout;

use crate::contract::{self, SOON, record};
use crate::proxy::Line;
use crate::server::Server;

const ID: &str = "highwater-shop-0";

/// Settings of a writer in transactions of at most so many milliseconds.
fn lasting(settings: &WriterSettings, ms: u64) -> WriterSettings {
    let timeout = Duration::from_millis(ms);
    let transactions = Some(TransactionSettings { id: ID.to_owned(), timeout });
    WriterSettings { transactions, ..settings.clone() }
}

fn transactional(settings: &WriterSettings) -> Result<Box<dyn Writer>, KafkaError> {
    writer(&lasting(settings, 60_000))
}

async fn begun(server: &Server) -> Box<dyn Writer> {
    let mut writer = transactional(&WriterSettings::new(&server.bootstrap())).unwrap();
    timeout(SOON, writer.begin()).await.unwrap().unwrap();
    writer
}

/// Sends a record and waits until the log has it.
async fn write(writer: &mut dyn Writer, value: u64) -> Result<(), KafkaError> {
    writer.send(record("trail", value)).await?;
    timeout(SOON, async {
        while writer.acknowledged()?.is_empty() {
            writer.ready().await?;
        }
        Ok(())
    })
    .await
    .unwrap()
}

/// The values that a reader of committed records sees.
async fn seen(server: &Server) -> Vec<u64> {
    let value = |record: &ReadRecord| {
        std::str::from_utf8(record.value.as_ref().unwrap()).unwrap().parse().unwrap()
    };
    let mut values = Vec::new();
    let reader = server.reader();
    reader.read_all("trail", 0, &mut |record| values.push(value(&record))).await.unwrap();
    values
}

/// The values that are seen once no transaction is open or ending.
async fn settled(server: &Server) -> Vec<u64> {
    contract::settled(&server.reader(), "trail").await;
    seen(server).await
}

async fn a_transaction_is_seen_whole_or_not_at_all(server: &mut Server) {
    server.create_trail().await;
    server.create("offsets", 1, &[("cleanup.policy", "compact")]).await;
    let mut writer = begun(server).await;
    for round in 0..3 {
        write(&mut *writer, 10 * round + 1).await.unwrap();
        write(&mut *writer, 10 * round + 2).await.unwrap();
        let mut offset = record("offsets", round);
        offset.key = Some("key".into());
        writer.offsets(vec![offset]).await.unwrap();
        let before = if round == 0 { vec![] } else { vec![1, 2] };
        assert_eq!(seen(server).await, before, "what is not committed is not seen");
        if round == 1 {
            timeout(SOON, writer.abort()).await.unwrap().unwrap();
        } else {
            timeout(SOON, writer.commit()).await.unwrap().unwrap();
        }
        if round == 0 {
            assert_eq!(settled(server).await, [1, 2]);
            writer.commit().await.unwrap();
        }
        if round == 1 {
            assert_eq!(settled(server).await, [1, 2]);
        }
    }
    assert_eq!(settled(server).await, [1, 2, 21, 22]);
}

async fn the_older_of_two_writers_is_fenced_and_nothing_of_it_is_seen(server: &mut Server) {
    server.create_trail().await;
    let mut older = begun(server).await;
    write(&mut *older, 1).await.unwrap();
    older.commit().await.unwrap();
    write(&mut *older, 2).await.unwrap();
    let mut newer = begun(server).await;
    write(&mut *newer, 3).await.unwrap();
    newer.commit().await.unwrap();
    let fenced = timeout(SOON, older.commit()).await.unwrap().unwrap_err();
    assert!(
        matches!(&fenced, KafkaError::Fenced { transactional_id, .. } if transactional_id == ID)
    );
    let mut also = begun(server).await;
    let fenced = write(&mut *newer, 4).await.unwrap_err();
    assert!(matches!(&fenced, KafkaError::Fenced { .. }), "{fenced}");
    write(&mut *also, 5).await.unwrap();
    also.commit().await.unwrap();
    assert_eq!(settled(server).await, [1, 3, 5]);
}

async fn what_a_killed_writer_left_open_is_never_seen(server: &mut Server) {
    server.create_trail().await;
    let mut killed = begun(server).await;
    write(&mut *killed, 1).await.unwrap();
    drop(killed);
    let mut next = begun(server).await;
    assert_eq!(seen(server).await, [0; 0]);
    write(&mut *next, 2).await.unwrap();
    next.commit().await.unwrap();
    assert_eq!(settled(server).await, [2]);
}

async fn a_transaction_outlives_a_restart_of_the_broker(server: &mut Server) {
    server.create_trail().await;
    let mut writer = begun(server).await;
    write(&mut *writer, 1).await.unwrap();
    server.restart().await;
    write(&mut *writer, 2).await.unwrap();
    assert_eq!(seen(server).await, [0; 0]);
    server.proxy.cut();
    writer.commit().await.unwrap();
    assert_eq!(settled(server).await, [1, 2]);
}

async fn a_commit_that_nobody_answers_has_an_unknown_outcome(server: &mut Server) {
    server.create_trail().await;
    let mut hasty = WriterSettings::new(&server.bootstrap());
    hasty.delivery_timeout = Duration::from_secs(2);
    let mut writer = transactional(&hasty).unwrap();
    writer.begin().await.unwrap();
    write(&mut *writer, 1).await.unwrap();
    server.proxy.set(Line::Stalled);
    let unknown = timeout(SOON, writer.commit()).await.unwrap().unwrap_err();
    assert!(matches!(&unknown, KafkaError::CommitUnknown { .. }), "{unknown}");
    server.proxy.set(Line::Open);
    let still = writer.send(record("trail", 2)).await.unwrap_err();
    assert!(matches!(&still, KafkaError::CommitUnknown { .. }), "{still}");
    drop(writer);
    begun(server).await;
    assert!([vec![], vec![1]].contains(&settled(server).await));
}

async fn a_commit_that_is_not_waited_for_has_an_unknown_outcome(server: &mut Server) {
    server.create_trail().await;
    let mut writer = begun(server).await;
    write(&mut *writer, 1).await.unwrap();
    server.proxy.set(Line::Stalled);
    assert!(timeout(Duration::from_millis(300), writer.commit()).await.is_err());
    server.proxy.set(Line::Open);
    for error in [writer.commit().await.unwrap_err(), writer.begin().await.unwrap_err()] {
        assert!(matches!(&error, KafkaError::CommitUnknown { .. }), "{error}");
    }
}

async fn a_transaction_that_is_open_too_long_is_aborted_and_says_so(server: &mut Server) {
    server.create_trail().await;
    let settings = WriterSettings::new(&server.bootstrap());
    let mut slow = writer(&lasting(&settings, 1000)).unwrap();
    slow.begin().await.unwrap();
    let began = Instant::now();
    // Apache Kafka looks every ten seconds.
    let error = loop {
        assert!(began.elapsed() < Duration::from_secs(40), "it stays open");
        match write(&mut *slow, 1).await {
            Ok(()) => tokio::time::sleep(Duration::from_millis(300)).await,
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, KafkaError::TransactionTimedOut { .. }), "{error}");
    assert_eq!(seen(server).await, [0; 0]);
}

async fn an_admin_fences_who_has_a_transactional_id(server: &mut Server) {
    server.create_trail().await;
    let mut writer = begun(server).await;
    write(&mut *writer, 1).await.unwrap();
    let admin = Admin::new(server.reader());
    let nobody = "highwater-shop-1".to_owned();
    timeout(SOON, admin.fence_producers(&[ID.to_owned(), nobody])).await.unwrap().unwrap();
    assert_eq!(seen(server).await, [0; 0]);
    let fenced = writer.commit().await.unwrap_err();
    assert!(matches!(&fenced, KafkaError::Fenced { .. }), "{fenced}");
}

macro_rules! keeps {
    ($($contract:ident)*; $($check:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $contract() {
                contract::$contract(transactional, &mut Server::start().await).await;
            }
        )*

        mod transactions {
            use crate::server::Server;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $check() {
                    super::$check(&mut Server::start().await).await;
                }
            )*
        }

        /// One node for all, since each takes seconds to start.
        #[tokio::test(flavor = "multi_thread")]
        async fn all_of_it_on_apache_kafka() {
            let mut server = Server::apache().await;
            $(
                println!("{}", stringify!($contract));
                contract::$contract(transactional, &mut server).await;
                server.clear().await;
            )*
            $(
                println!("{}", stringify!($check));
                $check(&mut server).await;
                server.clear().await;
            )*
        }
    };
}

keeps! {
    acknowledges_in_order_what_is_there
    offsets_are_stored_and_not_counted
    survives_a_broker_that_comes_and_goes
    survives_a_cut_at_any_byte
    keeps_its_bounds_while_the_broker_stalls
    small_records_reach_a_topic_of_small_batches
    breaks_when_its_topic_is_deleted
    refuses_a_record_above_its_own_limit
    ;
    a_transaction_is_seen_whole_or_not_at_all
    the_older_of_two_writers_is_fenced_and_nothing_of_it_is_seen
    what_a_killed_writer_left_open_is_never_seen
    a_transaction_outlives_a_restart_of_the_broker
    a_commit_that_nobody_answers_has_an_unknown_outcome
    a_commit_that_is_not_waited_for_has_an_unknown_outcome
    a_transaction_that_is_open_too_long_is_aborted_and_says_so
    an_admin_fences_who_has_a_transactional_id
}
