//! Fetch: finds what is asked for, and waits for more when there is too little. The records are not read
//! here: they go from the files to the socket.

use std::io;
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
use crate::outlet::Outlet;
use crate::reading::{Reading, Terms};
use crate::reply::{Answer, Reply};

/// A Fetch whose turn to be answered comes.
pub(crate) struct Fetching {
    node: Arc<Node>,
    call: Call,
    request: FetchRequest,
    refused: Refused<FetchResponse>,
}

pub(crate) fn begin(
    node: Arc<Node>,
    call: Call,
    request: FetchRequest,
    refused: Refused<FetchResponse>,
) -> Reply {
    Reply::Fetch(Box::new(Fetching { node, call, request, refused }))
}

impl Fetching {
    /// The answer, as far as it was not sent yet: the thread that looks for records on the disk sends through
    /// `outlet` what it has found.
    ///
    /// # Errors
    /// Of sending.
    pub(crate) async fn answer(self, outlet: Option<Outlet>) -> io::Result<Answer> {
        let Self { node, call, request, refused } = self;
        // We give every session the id 0, which is none (KIP-227): there is none to go on with. A request
        // that begins one (epoch 0) or wants none (-1) names all its partitions.
        if !matches!(request.session_epoch, 0 | -1) {
            let error_code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
            let mut response = FetchResponse { error_code, ..Default::default() };
            refused.add_to(&mut response);
            return Ok(call.answer(&response));
        }
        let deadline = Instant::now() + patience(&node, request.max_wait_ms);
        let mut stopping = node.stopping.clone();
        let mut query = Query::begin(&node, &request, (call, refused));
        loop {
            query = match query.advance(outlet.clone()).await? {
                Advanced::Answered(answer) => return Ok(answer),
                Advanced::TooLittle(query) => query,
            };
            tokio::select! {
                () = stopped(&mut stopping) => break,
                () = sleep_until(deadline) => break,
                () = query.moved() => {}
            }
        }
        Ok(query.into_answer())
    }
}

fn patience(node: &Node, max_wait_ms: i32) -> Duration {
    let asked = Duration::from_millis(u64::try_from(max_wait_ms).unwrap_or(0));
    asked.min(node.config.limits.fetch_wait)
}

/// A Fetch on its way.
struct Query {
    visible: Visible,
    /// Bytes that are waited for.
    least: usize,
    /// Bytes that all partitions together may take.
    most: usize,
    topics: Vec<(String, Vec<Reading>)>,
    /// What was asked, and what of it is refused.
    asked: (Call, Refused<FetchResponse>),
}

/// How far a Fetch has come.
enum Advanced {
    Answered(Answer),
    TooLittle(Query),
}

impl Query {
    fn begin(node: &Node, request: &FetchRequest, asked: (Call, Refused<FetchResponse>)) -> Self {
        let of_topic = |topic: &highwater_protocol::FetchTopic| {
            let begin = |partition| Reading::begin(node, &topic.topic, partition);
            (topic.topic.clone(), topic.partitions.iter().map(begin).collect())
        };
        Self {
            visible: match request.isolation_level {
                1 => Visible::LastStable,
                _ => Visible::HighWatermark,
            },
            least: usize::try_from(request.min_bytes).unwrap_or(0),
            most: usize::try_from(request.max_bytes)
                .unwrap_or(0)
                .min(node.config.limits.fetch_bytes),
            topics: request.topics.iter().map(of_topic).collect(),
            asked,
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

    async fn advance(self, outlet: Option<Outlet>) -> io::Result<Advanced> {
        if !self.is_behind() {
            return self.find_and_send(None);
        }
        blocking(move || self.find_and_send(outlet)).await
    }

    /// Sends the answer as far as the outlet takes it, once there is enough. Blocks on the disk if it [is
    /// behind](Self::is_behind).
    fn find_and_send(mut self, outlet: Option<Outlet>) -> io::Result<Advanced> {
        // A slice ends at the end of a segment.
        while self.find() > 0 && !self.is_answered() && self.is_behind() {}
        if !self.is_answered() {
            return Ok(Advanced::TooLittle(self));
        }
        let mut answer = self.into_answer();
        if let Some(outlet) = outlet {
            outlet.send(&mut answer)?;
        }
        Ok(Advanced::Answered(answer))
    }

    /// How many bytes more were found.
    fn find(&mut self) -> usize {
        let before = self.bytes();
        let mut taken = before;
        let (visible, most) = (self.visible, self.most);
        for reading in self.topics.iter_mut().flat_map(|(_, readings)| readings) {
            let terms = Terms { visible, room: most.saturating_sub(taken), first: taken == 0 };
            taken += reading.advance(terms);
        }
        taken - before
    }

    /// Whether waiting would be of no use.
    fn is_answered(&self) -> bool {
        let bytes = self.bytes();
        bytes >= self.least.min(self.most)
            || self.readings().next().is_none()
            || self.readings().any(Reading::has_failed)
    }

    /// Waits until any partition has moved.
    async fn moved(&mut self) {
        let readings = self.topics.iter_mut().flat_map(|(_, readings)| readings);
        select_all(readings.map(|reading| Box::pin(reading.moved()))).await;
    }

    fn into_answer(self) -> Answer {
        let mut slices = Vec::new();
        let mut of_partition = |reading: Reading| {
            let (data, found) = reading.into_response(self.visible);
            slices.extend(Some(found).filter(|found: &Vec<Slice>| !found.is_empty()));
            data
        };
        let of_topic = |(topic, readings): (String, Vec<Reading>)| FetchableTopicResponse {
            topic,
            partitions: readings.into_iter().map(&mut of_partition).collect(),
        };
        let responses = self.topics.into_iter().map(of_topic).collect();
        let mut response = FetchResponse { responses, ..Default::default() };
        let (call, refused) = self.asked;
        refused.add_to(&mut response);
        call.answer_around(&response, slices)
    }
}
