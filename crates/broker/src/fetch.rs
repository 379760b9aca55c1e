//! Fetch: finds what is asked for, and waits for more when there is too little. The records are not read
//! here: they go from the files to the socket.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use highwater_coordinator::blocking;
use highwater_log::{Slice, Visible};
use highwater_protocol::{ErrorCode, FetchRequest, FetchResponse, FetchableTopicResponse};
use tokio::time::{Instant, sleep_until};

use crate::authorized::Refused;
use crate::connection::stopped;
use crate::dispatch::Call;
use crate::node::Node;
use crate::reading::{Reading, Terms};
use crate::reply::Reply;

pub(crate) fn begin(
    node: Arc<Node>,
    call: Call,
    request: FetchRequest,
    refused: Refused<FetchResponse>,
) -> Reply {
    Reply::Later(Box::pin(async move {
        let (mut response, slices) = answer(&node, request).await;
        refused.add_to(&mut response);
        call.answer_around(&response, slices)
    }))
}

async fn answer(node: &Arc<Node>, request: FetchRequest) -> (FetchResponse, Vec<Vec<Slice>>) {
    // We give every session the id 0, which is none (KIP-227): there is none to go on with. A request
    // that begins one (epoch 0) or wants none (-1) names all its partitions.
    if !matches!(request.session_epoch, 0 | -1) {
        let error_code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
        return (FetchResponse { error_code, ..Default::default() }, Vec::new());
    }
    let deadline = Instant::now() + patience(node, request.max_wait_ms);
    let least = usize::try_from(request.min_bytes).unwrap_or(0);
    let mut query = Query::begin(node, &request);
    let mut stopping = node.stopping.clone();
    loop {
        let before = query.bytes();
        query = query.advance().await;
        if query.is_answered(least) {
            break;
        }
        if query.bytes() > before && query.is_behind() {
            // A slice ends at the end of a segment.
            continue;
        }
        tokio::select! {
            () = stopped(&mut stopping) => break,
            () = sleep_until(deadline) => break,
            () = query.moved() => {}
        }
    }
    query.into_response()
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

    async fn advance(mut self) -> Self {
        if !self.is_behind() {
            self.find();
            return self;
        }
        blocking(move || {
            self.find();
            self
        })
        .await
    }

    /// Blocks on the disk if it [is behind](Self::is_behind).
    fn find(&mut self) {
        let mut taken = self.bytes();
        let (visible, most) = (self.visible, self.most);
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

    /// The answer, and the slices of each partition that has some.
    fn into_response(self) -> (FetchResponse, Vec<Vec<Slice>>) {
        let mut slices = Vec::new();
        let mut of_partition = |reading: Reading| {
            let (data, found) = reading.into_response(self.visible);
            slices.extend(Some(found).filter(|found| !found.is_empty()));
            data
        };
        let of_topic = |(topic, readings): (String, Vec<Reading>)| FetchableTopicResponse {
            topic,
            partitions: readings.into_iter().map(&mut of_partition).collect(),
        };
        let responses = self.topics.into_iter().map(of_topic).collect();
        (FetchResponse { responses, ..Default::default() }, slices)
    }
}
