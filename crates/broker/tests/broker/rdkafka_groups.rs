//! Groups of librdkafka's consumers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use highwater_broker::{BrokerConfig, GroupSettings};
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};

use crate::client::SOON;
use crate::server::Server;

const PARTITIONS: i32 = 4;

/// What a consumer was told of its partitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Assigned(usize),
    Revoked(usize),
}

#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<Told>>>);

impl ClientContext for Diary {}

impl ConsumerContext for Diary {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let told = match rebalance {
            Rebalance::Assign(partitions) => Told::Assigned(partitions.count()),
            Rebalance::Revoke(partitions) => Told::Revoked(partitions.count()),
            Rebalance::Error(error) => panic!("{error}"),
        };
        self.0.lock().unwrap().push(told);
    }
}

/// A consumer with what it was told and what it read.
struct Reader {
    consumer: BaseConsumer<Diary>,
    diary: Diary,
    read: Vec<(i32, i64)>,
}

impl Reader {
    /// A member that is not given up before the test ends.
    fn start(server: &Server, strategy: &str, instance_id: Option<&str>) -> Self {
        Self::start_at(server.broker.local_addr(), strategy, instance_id, "60000")
    }

    fn start_at(
        address: SocketAddr,
        strategy: &str,
        instance_id: Option<&str>,
        session_ms: &str,
    ) -> Self {
        let diary = Diary::default();
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", address.to_string())
            .set("group.id", "g")
            .set("partition.assignment.strategy", strategy)
            .set("session.timeout.ms", session_ms)
            .set("heartbeat.interval.ms", "100")
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false");
        if let Some(instance_id) = instance_id {
            config.set("group.instance.id", instance_id);
        }
        let consumer: BaseConsumer<Diary> = config.create_with_context(diary.clone()).unwrap();
        consumer.subscribe(&["t"]).unwrap();
        Self { consumer, diary, read: Vec::new() }
    }

    /// That a broker is away is told here, too, and is no error of ours.
    fn poll(&mut self) {
        if let Some(Ok(record)) = self.consumer.poll(Duration::from_millis(20)) {
            self.read.push((record.partition(), record.offset()));
        }
    }

    fn held(&self) -> usize {
        self.partitions().len()
    }

    /// Plain numbers: a list of librdkafka's own keeps its consumer from being closed.
    fn partitions(&self) -> Vec<i32> {
        let assigned = self.consumer.assignment().unwrap();
        let mut partitions: Vec<i32> =
            assigned.elements().iter().map(|element| element.partition()).collect();
        partitions.sort_unstable();
        partitions
    }

    /// Whether it has read up to this offset of everything it holds.
    fn is_at(&self, offset: i64) -> bool {
        let position = self.consumer.position().unwrap();
        position.elements().iter().all(|element| element.offset() == Offset::Offset(offset))
    }

    fn told(&self) -> Vec<Told> {
        self.diary.0.lock().unwrap().clone()
    }

    /// Commits what was read, and waits until that is safe.
    fn commit(&self) {
        let position = self.consumer.position().unwrap();
        let mut offsets = TopicPartitionList::new();
        for element in position.elements() {
            if let Offset::Offset(_) = element.offset() {
                offsets.add_partition_offset("t", element.partition(), element.offset()).unwrap();
            }
        }
        self.consumer.commit(&offsets, CommitMode::Sync).unwrap();
    }
}

/// Polls all until it holds.
fn until(what: &str, readers: &mut [&mut Reader], holds: impl Fn(&[&mut Reader]) -> bool) {
    let end = Instant::now() + SOON * 6;
    while !holds(readers) {
        assert!(Instant::now() < end, "not in time: {what}");
        readers.iter_mut().for_each(|reader| reader.poll());
    }
}

async fn server() -> Server {
    let settings = GroupSettings { min_session_timeout_ms: 500, ..GroupSettings::default() };
    let server = Server::with_groups(settings).await;
    server.topic_with("t", PARTITIONS, &[]);
    server
}

async fn produce(server: &Server, a_partition: i64) {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", server.broker.local_addr().to_string());
    let producer: FutureProducer = config.create().unwrap();
    for number in 0..a_partition {
        for partition in 0..PARTITIONS {
            let value = number.to_string();
            let record = FutureRecord::<str, str>::to("t").payload(&value).partition(partition);
            producer.send(record, SOON).await.unwrap();
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_share_one_dies_the_other_goes_on_where_it_was() {
    let server = server().await;
    produce(&server, 5).await;
    // Another way in, which can be cut.
    let other = server.another(BrokerConfig::local()).await.unwrap();
    let mut one = Reader::start(&server, "range", None);
    let mut two = Reader::start_at(other.local_addr(), "range", None, "2000");
    let (mut one, two) = blocking(move || {
        until("two each", &mut [&mut one, &mut two], |r| r[0].held() == 2 && r[1].held() == 2);
        until("all is read", &mut [&mut one, &mut two], |r| r[0].is_at(5) && r[1].is_at(5));
        one.commit();
        two.commit();
        (one, two)
    })
    .await;
    // From now on it is not heard of.
    other.shutdown().await;
    let mut one = blocking(move || {
        let all = usize::try_from(PARTITIONS).unwrap();
        until("all are held", &mut [&mut one], |r| r[0].held() == all);
        one.read.clear();
        one
    })
    .await;
    produce(&server, 1).await;
    blocking(move || {
        until("what is new is read", &mut [&mut one], |r| r[0].read.len() >= 4);
        one.read.sort_unstable();
        assert_eq!(
            one.read,
            [(0, 5), (1, 5), (2, 5), (3, 5)],
            "from where the other had committed"
        );
        // To close it would be to wait for an answer.
        std::mem::forget(two.consumer);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_static_member_restarts_and_nobody_is_disturbed() {
    let server = server().await;
    let mut one = Reader::start(&server, "range", Some("one"));
    let mut two = Reader::start(&server, "range", Some("two"));
    blocking(move || {
        until("two each", &mut [&mut one, &mut two], |r| r[0].held() == 2 && r[1].held() == 2);
        let told = one.told();
        let held = two.partitions();
        // A static member does not leave when it is closed (KIP-345).
        drop(two);
        let mut two = Reader::start(&server, "range", Some("two"));
        until("it is back", &mut [&mut one, &mut two], |r| r[1].held() == 2);
        assert_eq!(two.partitions(), held, "with what it had");
        for _ in 0..20 {
            one.poll();
            two.poll();
        }
        assert_eq!(one.told(), told, "the other heard nothing of it");
        let fenced = server.coordinator.groups().describe(5, "g".to_owned());
        assert_eq!((fenced.group_state.as_str(), fenced.members.len()), ("Stable", 2));
    })
    .await;
}

/// KIP-429: what a consumer keeps, it keeps reading.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cooperative_group_moves_only_what_moves() {
    let server = server().await;
    let mut one = Reader::start(&server, "cooperative-sticky", None);
    blocking(move || {
        until("all are held", &mut [&mut one], |r| r[0].held() == 4);
        let mut two = Reader::start(&server, "cooperative-sticky", None);
        until("two each", &mut [&mut one, &mut two], |r| r[0].held() == 2 && r[1].held() == 2);
        let told = one.told();
        let revoked: Vec<_> = told.iter().filter(|told| matches!(told, Told::Revoked(_))).collect();
        assert_eq!(revoked, [&Told::Revoked(2)], "{told:?}");
        drop(server);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_goes_on_across_a_restart_of_the_server() {
    let server = server().await;
    produce(&server, 3).await;
    let address = server.broker.local_addr();
    let mut one = Reader::start(&server, "range", None);
    one = blocking(move || {
        until("all is read", &mut [&mut one], |r| r[0].read.len() == 12);
        one.commit();
        one
    })
    .await;
    let Server { broker, log, coordinator, dir } = server;
    broker.shutdown().await;
    coordinator.shutdown().await;
    drop((coordinator, broker_log(log)));
    let server = again(dir, address).await;
    produce(&server, 1).await;
    blocking(move || {
        until("what is new is read", &mut [&mut one], |r| r[0].read.len() == 16);
        let mut new: Vec<_> = one.read.split_off(12);
        new.sort_unstable();
        assert_eq!(new, [(0, 3), (1, 3), (2, 3), (3, 3)], "nothing twice");
        drop(server);
    })
    .await;
}

fn broker_log(log: highwater_log::Log) {
    log.close().unwrap();
}

async fn again(dir: tempfile::TempDir, address: std::net::SocketAddr) -> Server {
    use highwater_broker::{Broker, Coordinator, CoordinatorConfig};
    let fs = Arc::new(highwater_log::RealFileSystem);
    let log = highwater_log::Log::open(fs, dir.path(), Default::default()).unwrap();
    let groups = GroupSettings { min_session_timeout_ms: 500, ..GroupSettings::default() };
    let config = CoordinatorConfig { groups, ..Default::default() };
    let coordinator = Coordinator::start(&log, config);
    let broker = Broker::start(BrokerConfig::new(address), log.clone(), coordinator.clone());
    Server { broker: broker.await.unwrap(), log, coordinator, dir }
}
