//! Watching partitions: one long poll a broker for all watchers of its partitions.
//!
//! A broker works on one request of a connection at a time, so a long poll has a connection of its
//! own, and one request asks for every watched partition. A partition added meanwhile ends the
//! connection and begins a new one with the partition in it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use highwater_protocol::{
    ErrorCode, FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

use crate::KafkaError;
use crate::backoff::Backoff;
use crate::cluster::{Cluster, Failure};
use crate::connection::{CallError, Connection};
use crate::fetch;
use crate::offsets;
use crate::reader::{OffsetSpec, Watermarks};

/// How long a broker holds a poll that has nothing to tell. An edge that moves without new
/// records, such as the log start, is seen within this time.
const HOLD: Duration = Duration::from_millis(500);

/// The least time between two answers: many appends in a millisecond are one piece of news.
const GATHER: Duration = Duration::from_millis(1);

type Partition = (String, i32);

/// The partitions that are watched.
#[derive(Debug)]
pub(crate) struct Watches {
    cluster: Arc<Cluster>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    watched: HashMap<Partition, Watched>,
    /// The poll of each broker, by address; notified when a partition is added to it.
    polls: HashMap<String, Arc<Notify>>,
}

#[derive(Debug)]
struct Watched {
    edges: watch::Sender<Watermarks>,
    /// The broker that polls for it.
    address: String,
}

impl Watches {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, state: Mutex::default() }
    }

    /// A receiver of a partition's edges.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        topic: &str,
        partition: i32,
    ) -> Result<watch::Receiver<Watermarks>, KafkaError> {
        let key = (topic.to_owned(), partition);
        if let Some(watched) = self.state.lock().watched.get(&key) {
            return Ok(watched.edges.subscribe());
        }
        let cluster = &*self.cluster;
        let edges = cluster.persist(|| edges(cluster, topic, partition)).await?;
        let leader = cluster.persist(|| cluster.leader(topic, partition)).await?;
        Ok(self.add(key, edges, leader.address))
    }

    /// Adds a partition, unless another watcher was quicker.
    fn add(
        self: &Arc<Self>,
        key: Partition,
        edges: Watermarks,
        address: String,
    ) -> watch::Receiver<Watermarks> {
        let mut state = self.state.lock();
        match state.watched.entry(key) {
            Entry::Occupied(watched) => watched.get().edges.subscribe(),
            Entry::Vacant(place) => {
                let (edges, receiver) = watch::channel(edges);
                place.insert(Watched { edges, address: address.clone() });
                self.poll_too(&mut state, address);
                receiver
            }
        }
    }

    /// Has a broker's poll take in a partition, beginning it if need be.
    fn poll_too(self: &Arc<Self>, state: &mut State, address: String) {
        match state.polls.entry(address) {
            Entry::Occupied(poll) => poll.get().notify_one(),
            Entry::Vacant(place) => {
                let poll = Poll::new(Arc::clone(self), place.key().clone());
                place.insert(Arc::clone(&poll.added));
                tokio::spawn(poll.run());
            }
        }
    }

    /// The partitions that a broker polls for, without those that nobody watches any longer.
    /// When none is left the poll is struck off, and must end.
    fn polled_by(&self, address: &str) -> Vec<(Partition, i64)> {
        let mut state = self.state.lock();
        state.watched.retain(|_, watched| watched.edges.receiver_count() > 0);
        let polled = state.watched.iter().filter(|(_, watched)| watched.address == address);
        let partitions: Vec<_> = polled
            .map(|(key, watched)| (key.clone(), watched.edges.borrow().last_stable))
            .collect();
        if partitions.is_empty() {
            state.polls.remove(address);
        }
        partitions
    }

    /// Tells the watchers of a partition, and whether that was news.
    fn tell(&self, key: &Partition, edges: Watermarks) -> bool {
        let state = self.state.lock();
        let Some(watched) = state.watched.get(key) else { return false };
        watched.edges.send_if_modified(|known| std::mem::replace(known, edges) != edges)
    }

    /// Looks for the leader and the edges of a partition whose poll failed.
    async fn find_again(self: &Arc<Self>, key: &Partition) -> Result<(), Failure> {
        let (topic, partition) = key;
        let edges = edges(&self.cluster, topic, *partition).await?;
        let leader = self.cluster.leader(topic, *partition).await?;
        self.tell(key, edges);
        self.assign(key, leader.address);
        Ok(())
    }

    /// Ends the watch of a partition that is gone: its receivers see the channel closed.
    fn give_up(&self, key: &Partition, error: &KafkaError) {
        tracing::warn!(topic = key.0, partition = key.1, %error, "a watch ends");
        self.state.lock().watched.remove(key);
    }

    fn assign(self: &Arc<Self>, key: &Partition, address: String) {
        let mut state = self.state.lock();
        let Some(watched) = state.watched.get_mut(key) else { return };
        if watched.address != address {
            watched.address.clone_from(&address);
            self.poll_too(&mut state, address);
        }
    }
}

/// A partition's edges, asked for on a shared connection.
async fn edges(cluster: &Cluster, topic: &str, partition: i32) -> Result<Watermarks, Failure> {
    let latest = offsets::list(cluster, topic, partition, OffsetSpec::Latest).await?;
    let offset = latest.map_or(0, |latest| latest.offset);
    Ok(fetch::fetch(cluster, topic, partition, offset, 1).await?.watermarks)
}

/// The poll of one broker. Ends when nothing of the broker's is watched any longer.
struct Poll {
    watches: Arc<Watches>,
    address: String,
    added: Arc<Notify>,
    connection: Option<Connection>,
    backoff: Backoff,
}

impl Poll {
    fn new(watches: Arc<Watches>, address: String) -> Self {
        let (added, backoff) = (Arc::new(Notify::new()), Backoff::default());
        Self { watches, address, added, connection: None, backoff }
    }

    async fn run(mut self) {
        loop {
            let partitions = self.watches.polled_by(&self.address);
            if partitions.is_empty() {
                return;
            }
            let pause = self.round(&partitions).await;
            sleep(pause).await;
        }
    }

    /// Polls once, and says how long to wait before the next time. It never asks again at once
    /// after an answer that came early and told nothing.
    async fn round(&mut self, partitions: &[(Partition, i64)]) -> Duration {
        let began = Instant::now();
        let added = Arc::clone(&self.added);
        let answer = tokio::select! {
            answer = self.ask(partitions) => answer,
            () = added.notified() => {
                self.connection = None;
                return Duration::ZERO;
            }
        };
        match answer {
            Ok(answer) => match self.take(partitions, answer).await {
                News::Some => {
                    self.backoff.reset();
                    GATHER
                }
                News::None if began.elapsed() >= HOLD / 2 => {
                    self.backoff.reset();
                    Duration::ZERO
                }
                News::None | News::Failed => self.backoff.pause(),
            },
            Err(error) => {
                tracing::debug!(address = self.address, %error, "a watch lost its broker");
                self.connection = None;
                self.find_again(partitions.iter().map(|(key, _)| key)).await;
                self.backoff.pause()
            }
        }
    }

    async fn ask(&mut self, partitions: &[(Partition, i64)]) -> Result<FetchResponse, CallError> {
        let cluster = &self.watches.cluster;
        let (limits, security) = (&cluster.limits, &cluster.bootstrap().security);
        let connection = match self.connection.take().filter(|open| !open.is_closed()) {
            Some(connection) => connection,
            None => Connection::open(&self.address, limits, security).await?,
        };
        let connection = self.connection.insert(connection);
        connection.call_within(&request(partitions), HOLD + limits.request).await
    }

    /// Tells what an answer says.
    async fn take(&self, partitions: &[(Partition, i64)], answer: FetchResponse) -> News {
        let mut failed = Vec::new();
        let mut news = false;
        for topic in answer.responses {
            for data in topic.partitions {
                let key = (topic.topic.clone(), data.partition_index);
                match data.error_code {
                    ErrorCode::NONE => news |= self.tell(&key, &data),
                    _ => failed.push(key),
                }
            }
        }
        if !answer.error_code.is_ok() {
            failed = partitions.iter().map(|(key, _)| key.clone()).collect();
        }
        self.find_again(failed.iter()).await;
        if news {
            News::Some
        } else if failed.is_empty() {
            News::None
        } else {
            News::Failed
        }
    }

    fn tell(&self, key: &Partition, data: &PartitionData) -> bool {
        self.watches.tell(key, fetch::watermarks(data))
    }

    /// The leader may have moved, or the log may have been cut below where we asked.
    async fn find_again(&self, failed: impl Iterator<Item = &Partition>) {
        for key in failed {
            match self.watches.find_again(key).await {
                Ok(()) => {}
                Err(Failure::Final(error)) => self.watches.give_up(key, &error),
                // The rest would fail alike; the next round comes to it.
                Err(Failure::Transient(error)) => {
                    tracing::debug!(topic = key.0, partition = key.1, %error, "a watch waits");
                    return;
                }
            }
        }
    }
}

/// What a poll brought.
enum News {
    Some,
    None,
    Failed,
}

/// Asks for anything behind what may be read now. One byte a partition is wanted: the first
/// batch comes whole in any case (KIP-74), and is the cost of a piece of news.
fn request(partitions: &[(Partition, i64)]) -> FetchRequest {
    let mut topics: HashMap<&str, Vec<FetchPartition>> = HashMap::new();
    for ((topic, partition), fetch_offset) in partitions {
        topics.entry(topic).or_default().push(FetchPartition {
            partition: *partition,
            fetch_offset: *fetch_offset,
            partition_max_bytes: 1,
            ..Default::default()
        });
    }
    let topics = topics
        .into_iter()
        .map(|(topic, partitions)| FetchTopic { topic: topic.to_owned(), partitions })
        .collect();
    FetchRequest {
        max_wait_ms: i32::try_from(HOLD.as_millis()).unwrap_or(i32::MAX),
        min_bytes: 1,
        ..fetch::request(topics, 1)
    }
}
