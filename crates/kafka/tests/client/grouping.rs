//! Consumers in groups, on our own broker and on Apache Kafka.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use highwater_kafka::{
    Admin, Commit, Consumer, ConsumerSettings, ErrorCode, GroupOffsets, OffsetReset, Polled,
    Subscription, TopicPartition, WriterSettings, at_least_once,
};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use crate::contract::record;
use crate::server::Server;

/// As short as both brokers allow.
const SESSION: Duration = Duration::from_secs(6);
const LONG: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(50);

fn topics(names: &[&str]) -> Subscription {
    Subscription::Topics(names.iter().map(|name| (*name).to_owned()).collect())
}

fn settings(group: &str, subscription: Subscription) -> ConsumerSettings {
    ConsumerSettings {
        reset: OffsetReset::Earliest,
        session_timeout: SESSION,
        heartbeat_interval: Duration::from_millis(200),
        metadata_max_age: Duration::from_millis(300),
        ..ConsumerSettings::new(group, subscription)
    }
}

/// A consumer and all that it was told.
struct Member {
    consumer: Consumer,
    held: BTreeSet<TopicPartition>,
    read: Vec<(TopicPartition, i64)>,
    revoked: usize,
    lost: usize,
}

impl Member {
    fn start(server: &Server, settings: ConsumerSettings) -> Self {
        let consumer = Consumer::start(&server.reader(), settings);
        let (held, read) = Default::default();
        Self { consumer, held, read, revoked: 0, lost: 0 }
    }

    fn of(server: &Server, group: &str, topic: &str) -> Self {
        Self::start(server, settings(group, topics(&[topic])))
    }

    async fn poll(&mut self) {
        match self.consumer.poll(TICK).await.unwrap() {
            Polled::Records(records) => {
                for (partition, record) in records {
                    assert!(self.held.contains(&partition), "{partition} is not held");
                    self.read.push((partition, record.offset));
                }
            }
            Polled::Assigned(offsets) => self.held = offsets.into_keys().collect(),
            Polled::Revoking(partitions) => {
                assert_eq!(self.held, partitions.into_iter().collect());
                self.held.clear();
                self.revoked += 1;
            }
            Polled::Lost(partitions, _) => {
                assert_eq!(self.held, partitions.into_iter().collect());
                self.held.clear();
                self.lost += 1;
            }
            moved @ Polled::Moved { .. } => panic!("{moved:?}"),
        }
    }

    async fn until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + LONG;
        while !done(self) {
            assert!(Instant::now() < deadline, "{what}: {:?} {:?}", self.held, self.read.len());
            self.poll().await;
        }
    }

    async fn holds(&mut self, count: usize) {
        self.until("holding", |member| member.held.len() == count).await;
    }

    async fn reads(&mut self, count: usize) {
        self.until("reading", |member| member.read.len() >= count).await;
        assert_eq!(self.read.len(), count);
    }

    async fn commit(&mut self) -> Commit {
        let position = |partition: &TopicPartition| {
            Some((partition.clone(), self.consumer.position(partition)?))
        };
        let offsets: GroupOffsets = self.held.iter().filter_map(position).collect();
        self.consumer.commit(&offsets).await.unwrap()
    }
}

/// Until both hold as many.
async fn share(one: &mut Member, other: &mut Member, counts: (usize, usize)) {
    let deadline = Instant::now() + LONG;
    while (one.held.len(), other.held.len()) != counts {
        assert!(Instant::now() < deadline, "{:?} {:?}", one.held, other.held);
        tokio::join!(one.poll(), other.poll());
    }
    assert!(one.held.is_disjoint(&other.held));
}

async fn write(server: &Server, topic: &str, partition: i32, count: u64) {
    let mut writer = at_least_once(&WriterSettings::new(server.bootstrap().as_str())).unwrap();
    for value in 1..=count {
        let partition = Some(partition);
        writer
            .send(highwater_kafka::OutgoingRecord { partition, ..record(topic, value) })
            .await
            .unwrap();
    }
    writer.commit().await.unwrap();
}

async fn two_members_share_and_one_takes_over_when_the_other_leaves(server: &mut Server) {
    server.create("shared", 3, &[]).await;
    let mut one = Member::of(server, "sharing", "shared");
    one.holds(3).await;
    let mut other = Member::of(server, "sharing", "shared");
    // Which of them comes first is by their ids.
    let deadline = Instant::now() + LONG;
    while one.held.len() + other.held.len() != 3 || other.held.is_empty() || one.held.is_empty() {
        assert!(Instant::now() < deadline);
        tokio::join!(one.poll(), other.poll());
    }
    assert!(one.held.is_disjoint(&other.held));
    assert_eq!((one.revoked, one.lost), (1, 0));
    for partition in 0..3 {
        write(server, "shared", partition, 10).await;
    }
    let deadline = Instant::now() + LONG;
    while one.read.len() + other.read.len() < 30 {
        assert!(Instant::now() < deadline);
        tokio::join!(one.poll(), other.poll());
    }
    assert_eq!((one.commit().await, other.commit().await), (Commit::Stored, Commit::Stored));
    other.consumer.leave().await;
    one.holds(3).await;
    assert_eq!(one.read.len() + other.read.len(), 30, "what is committed is not read again");
    one.consumer.leave().await;
}

async fn a_silent_member_is_replaced_after_its_session(server: &mut Server) {
    server.create("silent", 2, &[]).await;
    let mut one = Member::of(server, "silence", "silent");
    one.holds(2).await;
    let mut other = Member::of(server, "silence", "silent");
    share(&mut one, &mut other, (1, 1)).await;
    // As a crash: no word to the group.
    drop(other.consumer);
    let began = Instant::now();
    one.holds(2).await;
    assert!(began.elapsed() > SESSION / 2, "{:?}", began.elapsed());
    one.consumer.leave().await;
}

async fn committed_offsets_survive_a_restart_of_the_broker(server: &mut Server) {
    server.create("kept", 1, &[]).await;
    write(server, "kept", 0, 10).await;
    let mut one = Member::of(server, "keeping", "kept");
    one.reads(10).await;
    assert_eq!(one.commit().await, Commit::Stored);
    server.restart().await;
    write(server, "kept", 0, 5).await;
    one.reads(15).await;
    one.consumer.leave().await;
    let mut next = Member::of(server, "keeping", "kept");
    next.reads(5).await;
    assert_eq!(next.read[0].1, 10);
    next.consumer.leave().await;
}

async fn what_is_revoked_can_be_committed_and_what_is_lost_cannot(server: &mut Server) {
    server.create("handed", 1, &[]).await;
    write(server, "handed", 0, 10).await;
    let mut one = Member::of(server, "handing", "handed");
    one.reads(10).await;
    let partition = TopicPartition::new("handed", 0);
    let mut other = Member::of(server, "handing", "handed");
    let revoking = async {
        loop {
            if let Polled::Revoking(_) = one.consumer.poll(TICK).await.unwrap() {
                break;
            }
        }
        // Others wait for it meanwhile.
        tokio::time::sleep(Duration::from_secs(1)).await;
        one.consumer.commit(&[(partition.clone(), 7)].into()).await.unwrap()
    };
    let joining = async {
        loop {
            other.poll().await;
        }
    };
    let stored = tokio::select! { stored = revoking => stored, () = joining => unreachable!() };
    assert_eq!(stored, Commit::Stored);
    one.consumer.leave().await;
    other.reads(3).await;
    assert_eq!(other.read[0].1, 7);

    // The group takes it for dead while it can neither beat nor poll.

    server.proxy.set(crate::proxy::Line::Closed);
    tokio::time::sleep(SESSION + Duration::from_secs(2)).await;
    server.proxy.set(crate::proxy::Line::Open);
    assert_eq!(other.consumer.commit(&[(partition, 9)].into()).await.unwrap(), Commit::Lost);
    other.until("losing", |member| member.lost == 1).await;
    other.reads(6).await;
    assert_eq!(other.read[3].1, 7, "nothing was committed");
    other.consumer.leave().await;
}

async fn without_an_offset_reading_begins_as_set(server: &mut Server) {
    server.create("begun", 1, &[]).await;
    write(server, "begun", 0, 10).await;
    let with =
        |group: &str, reset| ConsumerSettings { reset, ..settings(group, topics(&["begun"])) };
    let mut earliest = Member::start(server, with("begin-1", OffsetReset::Earliest));
    let mut latest = Member::start(server, with("begin-2", OffsetReset::Latest));
    earliest.reads(10).await;
    latest.holds(1).await;
    write(server, "begun", 0, 1).await;
    latest.reads(1).await;
    assert_eq!(latest.read[0].1, 10);
    let mut none = Consumer::start(&server.reader(), with("begin-3", OffsetReset::None));
    let error = loop {
        if let Err(error) = none.poll(TICK).await {
            break error;
        }
    };
    assert!(error.is(ErrorCode::OFFSET_OUT_OF_RANGE), "{error}");
    tokio::join!(earliest.consumer.leave(), latest.consumer.leave(), none.leave());
}

async fn a_pattern_finds_topics_that_are_made_later(server: &mut Server) {
    server.create("found-1", 1, &[]).await;
    let pattern = Subscription::pattern("found-[0-9]", "").unwrap();
    let mut one = Member::start(server, settings("finding", pattern));
    one.holds(1).await;
    server.create("found-2", 2, &[]).await;
    server.create("not-found-3", 1, &[]).await;
    one.holds(3).await;
    write(server, "found-2", 1, 4).await;
    one.reads(4).await;
    one.consumer.leave().await;
}

async fn a_static_member_finds_its_share_again(server: &mut Server) {
    server.create("static", 2, &[]).await;
    let named = |name: &str| ConsumerSettings {
        instance_id: Some(name.to_owned()),
        ..settings("statics", topics(&["static"]))
    };
    let mut one = Member::start(server, named("a"));
    one.holds(2).await;
    let mut other = Member::start(server, named("b"));
    share(&mut one, &mut other, (1, 1)).await;
    let (held, revoked) = (other.held.clone(), one.revoked);
    other.consumer.leave().await;
    let mut again = Member::start(server, named("b"));
    share(&mut one, &mut again, (1, 1)).await;
    assert_eq!((&again.held, one.revoked), (&held, revoked), "nobody else was asked");
    // A second of the same name puts the first one out.
    let mut twin = Member::start(server, named("b"));
    twin.holds(1).await;
    let error = loop {
        if let Err(error) = again.consumer.poll(TICK).await {
            break error;
        }
    };
    assert!(error.is(ErrorCode::FENCED_INSTANCE_ID), "{error}");
}

async fn librdkafka_shares_a_group_with_it(server: &mut Server) {
    server.create("mixed", 4, &[]).await;
    let mut one = Member::of(server, "mixing", "mixed");
    one.holds(4).await;
    let other: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", server.bootstrap())
        .set("group.id", "mixing")
        .set("partition.assignment.strategy", "range")
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "200")
        .create()
        .unwrap();
    other.subscribe(&["mixed"]).unwrap();
    let theirs = |other: &BaseConsumer| -> BTreeSet<i32> {
        let held = other.assignment().unwrap();
        held.elements()
            .iter()
            .map(rdkafka::topic_partition_list::TopicPartitionListElem::partition)
            .collect()
    };
    let deadline = Instant::now() + LONG;
    while one.held.len() != 2 || theirs(&other).len() != 2 {
        assert!(Instant::now() < deadline, "{:?} {:?}", one.held, theirs(&other));
        one.poll().await;
        let _ = tokio::task::block_in_place(|| other.poll(TICK));
    }
    let ours: BTreeSet<i32> = one.held.iter().map(|held| held.partition).collect();
    assert!(ours.is_disjoint(&theirs(&other)));
    one.consumer.leave().await;
    let deadline = Instant::now() + LONG;
    while theirs(&other).len() != 4 {
        assert!(Instant::now() < deadline);
        let _ = tokio::task::block_in_place(|| other.poll(TICK));
    }
}

async fn seeking_and_pausing_are_obeyed(server: &mut Server) {
    server.create("sought", 1, &[]).await;
    write(server, "sought", 0, 10).await;
    let mut one = Member::of(server, "seeking", "sought");
    one.reads(10).await;
    one.consumer.pause();
    assert!(one.consumer.seek(&TopicPartition::new("sought", 0), 4));
    for _ in 0..5 {
        one.poll().await;
    }
    assert_eq!(one.read.len(), 10);
    one.consumer.resume();
    one.reads(16).await;
    assert_eq!(one.read[10].1, 4);
    one.consumer.leave().await;
}

async fn an_offset_that_the_log_lacks_is_told(server: &mut Server) {
    server.create("short", 1, &[]).await;
    write(server, "short", 0, 3).await;
    let mut one = Member::of(server, "shortage", "short");
    one.reads(3).await;
    one.consumer.seek(&TopicPartition::new("short", 0), 100);
    write(server, "short", 0, 1).await;
    let moved = loop {
        match one.consumer.poll(TICK).await.unwrap() {
            Polled::Moved { from, to, .. } => break (from, to),
            Polled::Records(records) => assert!(records.is_empty()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(moved, (100, 0));
    one.reads(7).await;
    one.consumer.leave().await;
}

async fn groups_are_described_moved_and_deleted(server: &mut Server) {
    server.create("looked", 2, &[]).await;
    let admin = Admin::new(server.reader());
    assert_eq!(admin.describe_group("looking").await.unwrap(), None);
    assert!(!admin.delete_group("looking").await.unwrap());
    let mut one = Member::of(server, "looking", "looked");
    one.holds(2).await;
    let group = admin.describe_group("looking").await.unwrap().unwrap();
    assert_eq!((group.state.as_str(), group.protocol_type.as_str()), ("Stable", "consumer"));
    assert_eq!(group.members[0].partitions, one.held);
    let [first, second] = [0, 1].map(|partition| TopicPartition::new("looked", partition));
    let wanted = GroupOffsets::from([(first.clone(), 3), (second.clone(), 4)]);
    let error = admin.alter_group_offsets("looking", &wanted).await.unwrap_err();
    assert!(error.is(ErrorCode::NON_EMPTY_GROUP), "{error}");
    let error = admin.delete_group("looking").await.unwrap_err();
    assert!(error.is(ErrorCode::NON_EMPTY_GROUP), "{error}");
    one.consumer.leave().await;

    admin.alter_group_offsets("looking", &wanted).await.unwrap();
    assert_eq!(admin.group_offsets("looking").await.unwrap(), wanted);
    admin.delete_group_offsets("looking", &[first].into()).await.unwrap();
    assert_eq!(admin.group_offsets("looking").await.unwrap(), [(second, 4)].into());
    let empty = admin.describe_group("looking").await.unwrap().unwrap();
    assert_eq!((empty.state.as_str(), empty.members.len()), ("Empty", 0));
    assert!(admin.delete_group("looking").await.unwrap());
    assert!(admin.group_offsets("looking").await.unwrap().is_empty());
}

macro_rules! in_groups {
    ($($check:ident)*) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $check() {
                    super::$check(&mut super::Server::start().await).await;
                }
            )*
        }

        /// One node for all, since each takes seconds to start.
        #[tokio::test(flavor = "multi_thread")]
        async fn all_of_it_on_apache_kafka() {
            let mut server = Server::apache().await;
            $(
                println!("{}", stringify!($check));
                $check(&mut server).await;
            )*
        }
    };
}

in_groups! {
    two_members_share_and_one_takes_over_when_the_other_leaves
    a_silent_member_is_replaced_after_its_session
    committed_offsets_survive_a_restart_of_the_broker
    what_is_revoked_can_be_committed_and_what_is_lost_cannot
    without_an_offset_reading_begins_as_set
    a_pattern_finds_topics_that_are_made_later
    a_static_member_finds_its_share_again
    librdkafka_shares_a_group_with_it
    seeking_and_pausing_are_obeyed
    an_offset_that_the_log_lacks_is_told
    groups_are_described_moved_and_deleted
}
