//! How a watch polls a broker: one poll for all, never in a spin.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::fake::{Asked, Fake, Reply};
use bytes::BytesMut;
use highwater_kafka::{Reader, Watermarks};
use highwater_protocol::{
    ApiKey, ErrorCode, FetchRequest, ListOffsetsPartitionResponse, ListOffsetsRequest,
    ListOffsetsResponse, ListOffsetsTopicResponse, PartitionData,
};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

fn edge(at: i64) -> PartitionData {
    PartitionData { high_watermark: at, last_stable_offset: at, ..Default::default() }
}

fn listed(asked: &Asked, offset: i64) -> Reply {
    let request = asked.request::<ListOffsetsRequest>();
    let partition_index = request.topics[0].partitions[0].partition_index;
    let found = ListOffsetsPartitionResponse { partition_index, offset, ..Default::default() };
    let topic = ListOffsetsTopicResponse { name: "trail".to_owned(), partitions: vec![found] };
    asked.answer(&ListOffsetsResponse { topics: vec![topic], ..Default::default() })
}

fn is_poll(asked: &Asked) -> bool {
    asked.header.api_key == ApiKey::Fetch && asked.request::<FetchRequest>().max_wait_ms > 0
}

/// A fake whose log ends at `end`, and whose polls are answered as given.
async fn watched(
    end: Arc<AtomicI64>,
    poll: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> Fake {
    Fake::start(move |asked| match asked.header.api_key {
        ApiKey::ListOffsets => listed(asked, end.load(Ordering::SeqCst)),
        ApiKey::Fetch if is_poll(asked) => poll(asked),
        ApiKey::Fetch => {
            let partition_index = asked.request::<FetchRequest>().topics[0].partitions[0].partition;
            let edge = edge(end.load(Ordering::SeqCst));
            asked.fetched(PartitionData { partition_index, ..edge })
        }
        _ => asked.basics(),
    })
    .await
}

fn held(asked: &Asked, hold: Duration, data: PartitionData) -> Reply {
    match asked.fetched(data) {
        Reply::Send(frame) => Reply::Late(hold, frame),
        other => other,
    }
}

#[tokio::test]
async fn all_watchers_of_a_partition_share_one_poll() {
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let fake = watched(Arc::new(AtomicI64::new(5)), move |asked| {
        counted.fetch_add(1, Ordering::SeqCst);
        held(asked, Duration::from_millis(400), edge(5))
    })
    .await;
    let reader = Reader::new(&fake.bootstrap());
    let mut watchers = Vec::new();
    for _ in 0..100 {
        watchers.push(reader.watch("trail", 0).await.unwrap());
    }
    assert_eq!(
        *watchers[99].borrow(),
        Watermarks { high_watermark: 5, last_stable: 5, log_start: 0 }
    );
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let polls = polls.load(Ordering::SeqCst);
    assert!((2..=4).contains(&polls), "{polls} polls in a second, each held for 400 ms");
    assert!(fake.connections() <= 3, "two shared connections and the poll's own");
}

#[tokio::test]
async fn news_reaches_every_watcher() {
    let fake = watched(Arc::new(AtomicI64::new(5)), |asked| {
        match asked.request::<FetchRequest>().topics[0].partitions[0].fetch_offset {
            5 => held(asked, Duration::from_millis(50), edge(8)),
            at => held(asked, Duration::from_millis(500), edge(at)),
        }
    })
    .await;
    let reader = Reader::new(&fake.bootstrap());
    let mut one = reader.watch("trail", 0).await.unwrap();
    let mut two = reader.clone().watch("trail", 0).await.unwrap();
    for watcher in [&mut one, &mut two] {
        let seen = timeout(SOON, watcher.wait_for(|edges| edges.last_stable == 8)).await;
        assert_eq!(seen.unwrap().unwrap().high_watermark, 8);
    }
}

#[tokio::test]
async fn a_partition_added_does_not_wait_for_the_poll_under_way() {
    let fake = watched(Arc::new(AtomicI64::new(5)), |asked| {
        match asked.request::<FetchRequest>().topics[0].partitions.len() {
            1 => Reply::Silence,
            _ => asked.fetched(PartitionData { partition_index: 1, ..edge(8) }),
        }
    })
    .await;
    let reader = Reader::new(&fake.bootstrap());
    let _first = reader.watch("trail", 0).await.unwrap();
    let mut second = reader.watch("trail", 1).await.unwrap();
    timeout(SOON, second.wait_for(|edges| edges.last_stable == 8)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_broker_that_answers_at_once_is_not_asked_in_a_spin() {
    for answer in [ErrorCode::NONE, ErrorCode::NOT_LEADER_OR_FOLLOWER] {
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let fake = watched(Arc::new(AtomicI64::new(5)), move |asked| {
            counted.fetch_add(1, Ordering::SeqCst);
            asked.fetched(PartitionData { error_code: answer, ..edge(5) })
        })
        .await;
        let _watcher = Reader::new(&fake.bootstrap()).watch("trail", 0).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let polls = polls.load(Ordering::SeqCst);
        assert!((2..20).contains(&polls), "{polls} polls after {answer}");
    }
}

#[tokio::test]
async fn a_log_that_was_cut_is_told_with_its_new_end() {
    let end = Arc::new(AtomicI64::new(9));
    let cut = Arc::clone(&end);
    let fake = watched(Arc::clone(&end), move |asked| {
        let at = asked.request::<FetchRequest>().topics[0].partitions[0].fetch_offset;
        cut.store(4, Ordering::SeqCst);
        match at {
            9 => asked.fetched(PartitionData {
                error_code: ErrorCode::OFFSET_OUT_OF_RANGE,
                high_watermark: -1,
                ..Default::default()
            }),
            _ => held(asked, Duration::from_millis(400), edge(at)),
        }
    })
    .await;
    let mut watcher = Reader::new(&fake.bootstrap()).watch("trail", 0).await.unwrap();
    let seen = timeout(SOON, watcher.wait_for(|edges| edges.last_stable == 4)).await;
    assert_eq!(seen.unwrap().unwrap().high_watermark, 4);
}

#[tokio::test]
async fn the_poll_ends_with_its_last_watcher_and_begins_anew() {
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let fake = watched(Arc::new(AtomicI64::new(5)), move |asked| {
        counted.fetch_add(1, Ordering::SeqCst);
        held(asked, Duration::from_millis(100), edge(5))
    })
    .await;
    let reader = Reader::new(&fake.bootstrap());
    drop(reader.watch("trail", 0).await.unwrap());
    // The poll under way is the last; then the count stands still.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let ended = polls.load(Ordering::SeqCst);
    assert!(ended <= 1, "{ended} polls for nobody");
    let _again = reader.watch("trail", 0).await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(polls.load(Ordering::SeqCst) > ended);
}

#[tokio::test]
async fn a_poll_survives_a_lost_connection() {
    let polls = AtomicUsize::new(0);
    let fake = watched(Arc::new(AtomicI64::new(5)), move |asked| {
        match polls.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::Close,
            1 => Reply::Send(BytesMut::from(&b"\xff\xff\xff\xff"[..])),
            _ => held(asked, Duration::from_millis(20), edge(6)),
        }
    })
    .await;
    let mut watcher = Reader::new(&fake.bootstrap()).watch("trail", 0).await.unwrap();
    timeout(SOON, watcher.wait_for(|edges| edges.last_stable == 6)).await.unwrap().unwrap();
}
