//! Fetch: reads, and waits for more when there is too little.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use highwater_log::Visible;
use highwater_protocol::{ErrorCode, FetchRequest, FetchResponse, FetchableTopicResponse};
use tokio::time::{Instant, sleep_until};

use crate::authorized::Refused;
use crate::blocking::blocking;
use crate::budget::Share;
use crate::connection::stopped;
use crate::dispatch::Call;
use crate::node::Node;
use crate::reading::{Reading, Terms};
use crate::reply::{Answer, Reply};

pub(crate) fn begin(
    node: Arc<Node>,
    call: Call,
    request: FetchRequest,
    refused: Refused<FetchResponse>,
) -> Reply {
    Reply::Later(Box::pin(async move {
        let (mut response, share) = answer(&node, request).await;
        refused.add_to(&mut response);
        Answer { share, ..call.answer(&response) }
    }))
}

async fn answer(node: &Arc<Node>, request: FetchRequest) -> (FetchResponse, Share) {
    // We give every session the id 0, which is none (KIP-227): there is none to go on with. A request
    // that begins one (epoch 0) or wants none (-1) names all its partitions.
    if !matches!(request.session_epoch, 0 | -1) {
        let error_code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
        return (FetchResponse { error_code, ..Default::default() }, Share::default());
    }
    let deadline = Instant::now() + patience(node, request.max_wait_ms);
    let least = usize::try_from(request.min_bytes).unwrap_or(0);
    let mut query = Query::begin(node, &request);
    let mut share = Share::default();
    let mut stopping = node.stopping.clone();
    loop {
        let before = query.bytes();
        query = query.advance(node, &mut share).await;
        if query.is_answered(least) {
            break;
        }
        if query.bytes() > before && query.is_behind() {
            // The log reads to the end of a segment at most.
            continue;
        }
        tokio::select! {
            () = stopped(&mut stopping) => break,
            () = sleep_until(deadline) => break,
            () = query.moved() => {}
        }
    }
    (query.into_response(), share)
}

fn patience(node: &Node, max_wait_ms: i32) -> Duration {
    let asked = Duration::from_millis(u64::try_from(max_wait_ms).unwrap_or(0));
    asked.min(node.config.limits.fetch_wait)
}

/// A Fetch on its way.
struct Query {
    visible: Visible,
    /// Bytes that all partitions together may take.
    most: usize,
    topics: Vec<(String, Vec<Reading>)>,
}

impl Query {
    fn begin(node: &Node, request: &FetchRequest) -> Self {
        let of_topic = |topic: &highwater_protocol::FetchTopic| {
            let begin = |partition| Reading::begin(node, &topic.topic, partition);
            (topic.topic.clone(), topic.partitions.iter().map(begin).collect())
        };
        Self {
            visible: match request.isolation_level {
                1 => Visible::LastStable,
                _ => Visible::HighWatermark,
            },
            most: usize::try_from(request.max_bytes)
                .unwrap_or(0)
                .min(node.config.limits.fetch_bytes),
            topics: request.topics.iter().map(of_topic).collect(),
        }
    }

    fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.topics.iter().flat_map(|(_, readings)| readings)
    }

    fn bytes(&self) -> usize {
        self.readings().map(Reading::bytes).sum()
    }

    fn is_behind(&self) -> bool {
        self.readings().any(|reading| reading.is_behind(self.visible))
    }

    /// Reads on, within the memory that is left.
    async fn advance(mut self, node: &Node, share: &mut Share) -> Self {
        if !self.is_behind() {
            self.read(0);
            return self;
        }
        node.memory.extend(share, self.most);
        let most = self.most.min(share.bytes());
        self = blocking(move || {
            self.read(most);
            self
        })
        .await;
        share.shrink_to(self.bytes());
        self
    }

    fn read(&mut self, most: usize) {
        let mut taken = self.bytes();
        let visible = self.visible;
        for reading in self.topics.iter_mut().flat_map(|(_, readings)| readings) {
            let terms = Terms { visible, room: most.saturating_sub(taken), first: taken == 0 };
            taken += reading.advance(terms);
        }
    }

    /// Whether waiting would be of no use.
    fn is_answered(&self, least: usize) -> bool {
        let bytes = self.bytes();
        bytes >= least.min(self.most)
            || self.readings().next().is_none()
            || self.readings().any(Reading::has_failed)
    }

    /// Waits until any partition has moved.
    async fn moved(&mut self) {
        let readings = self.topics.iter_mut().flat_map(|(_, readings)| readings);
        select_all(readings.map(|reading| Box::pin(reading.moved()))).await;
    }

    fn into_response(self) -> FetchResponse {
        let visible = self.visible;
        let of_topic = |(topic, readings): (String, Vec<Reading>)| FetchableTopicResponse {
            topic,
            partitions: readings.into_iter().map(|one| one.into_response(visible)).collect(),
        };
        let responses = self.topics.into_iter().map(of_topic).collect();
        FetchResponse { responses, ..Default::default() }
    }
}
