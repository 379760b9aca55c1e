//! Sends a writer's batches: finds leaders, keeps the window, takes the answers, tries again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use highwater_protocol::{
    ErrorCode, InitProducerIdRequest, PartitionProduceData, PartitionProduceResponse,
    ProduceRequest, ProduceResponse, TopicPartition, TopicProduceData,
};
use tokio::task::JoinSet;

use crate::KafkaError;
use crate::backoff::Backoff;
use crate::cluster::{Cluster, Failure, Leader, refused};
use crate::connection::{CallError, Connection};
use crate::delivery::{Deliveries, State};
use crate::queue::{Producer, Queue};
use crate::transaction_coordinator::{NotAdded, TransactionCoordinator};

/// How long a broker may wait for its replicas or its disk, in milliseconds; below the time that the
/// connection waits for the answer.
const BROKER_TIMEOUT_MS: i32 = 25_000;

/// A topic that the cluster does not know is waited for, since one just made is told to one broker
/// after the other; but not for long, or a deleted one would go unnoticed.
pub(crate) const PROPAGATION: Duration = Duration::from_secs(5);

/// How often what is overdue is looked for, when nothing else happens.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// acks=all.
const ALL: i16 = -1;

/// Where a queue's batches go.
#[derive(Debug)]
enum Route {
    Unknown,
    /// It proved wrong: once the fate of all in flight is known it is looked for anew.
    Wrong,
    /// It is looked for, or a pause is kept before it is.
    Sought,
    Known(Leader, Arc<Connection>),
}

/// What the sender waits for, with the index of its queue.
enum Event {
    Introduced(Result<Producer, Failure>),
    Enlisted(Vec<usize>, Result<(), NotAdded>),
    Rested(usize),
    Routed(usize, Result<(Leader, Arc<Connection>), Failure>),
    Answered { queue: usize, sequence: i32, answer: Result<ProduceResponse, CallError> },
}

/// What an answer means for its batch.
#[derive(PartialEq, Eq, Debug)]
enum Verdict {
    Stored(i64),
    Again(String),
    /// It has more bytes than the topic takes.
    TooLarge(ErrorCode, String),
    Broken(Option<ErrorCode>, String),
}

/// See the module's text.
pub(crate) struct Sender {
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) cluster: Arc<Cluster>,
    /// Whom a transactional producer asks; none without transactions.
    transactions: Option<Arc<TransactionCoordinator>>,
    pub(crate) linger: Duration,
    pub(crate) delivery_timeout: Duration,
    producer: Option<Producer>,
    routes: Vec<(Route, Backoff)>,
    introduction: Backoff,
    enlistment: Backoff,
    /// Queues are on their way into the transaction.
    enlisting: bool,
    /// Since when the partitions of queues are unknown to the cluster.
    unknown: HashMap<usize, Instant>,
    /// The first queue that found its connection full: it is served first when there is room.
    passed_over: Option<usize>,
    events: JoinSet<Event>,
}

impl Sender {
    pub(crate) fn new(
        deliveries: Arc<Deliveries>,
        cluster: Arc<Cluster>,
        transactions: Option<Arc<TransactionCoordinator>>,
        linger: Duration,
        delivery_timeout: Duration,
    ) -> Self {
        Self {
            deliveries,
            cluster,
            transactions,
            linger,
            delivery_timeout,
            producer: None,
            routes: Vec::new(),
            introduction: Backoff::default(),
            enlistment: Backoff::default(),
            enlisting: false,
            unknown: HashMap::new(),
            passed_over: None,
            events: JoinSet::new(),
        }
    }

    /// Sends until the writer breaks. What is in flight then is forgotten: nothing follows a record
    /// that failed.
    pub(crate) async fn run(mut self) {
        let deliveries = Arc::clone(&self.deliveries);
        self.introduce(Duration::ZERO);
        loop {
            let wake = self.send_what_is_due();
            let Some(wake) = wake else { break };
            tokio::select! {
                () = deliveries.work.notified() => {}
                Some(event) = self.events.join_next() => match event {
                    Ok(event) => self.take(event),
                    Err(error) => self.fail(None, None, &error.to_string()),
                },
                () = tokio::time::sleep_until(wake.into()) => {}
            }
        }
        deliveries.progress.notify_one();
    }

    /// Sends all that may be sent, and says when to look again; `None` once the writer is broken.
    fn send_what_is_due(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let deliveries = Arc::clone(&self.deliveries);
        let mut wake = now + Duration::from_secs(1);
        let queues = {
            let mut state = deliveries.state();
            state.expire(now, self.delivery_timeout);
            state.check().ok()?;
            state.queues.len()
        };
        self.enlist(Duration::ZERO);
        self.routes.resize_with(queues, || (Route::Unknown, Backoff::default()));
        let first = self.passed_over.take().unwrap_or(0);
        for queue in (first..queues).chain(0..first) {
            wake = wake.min(self.advance(queue, now).unwrap_or(wake));
        }
        deliveries.state().check().ok().map(|()| wake)
    }

    /// Moves one queue on; says when it wants to be looked at again.
    fn advance(&mut self, queue: usize, now: Instant) -> Option<Instant> {
        let deliveries = Arc::clone(&self.deliveries);
        let producer = self.producer?;
        loop {
            let connection = match self.routes.get(queue).map(|(route, _)| route) {
                Some(Route::Known(_, connection)) => Some(Arc::clone(connection)),
                Some(Route::Unknown) => None,
                _ => return Some(now + LOOK_AGAIN),
            };
            let mut state = deliveries.state();
            let its = state.queues.get_mut(queue).filter(|queue| queue.is_busy())?;
            let Some(connection) = connection else {
                let (topic, partition) = (Arc::clone(&its.topic), its.partition);
                drop(state);
                self.seek(queue, topic, partition);
                return Some(now + LOOK_AGAIN);
            };
            if producer.transactional && !its.enlisted {
                return Some(now + LOOK_AGAIN);
            }
            match its.next(producer, now, self.linger) {
                Ok(Some((sequence, batch))) => {
                    let (topic, partition) = (its.topic.to_string(), its.partition);
                    drop(state);
                    let id = self.transactions.as_ref().map(|transactions| transactions.id.clone());
                    let request = request(id, topic, partition, batch);
                    if !self.send(queue, &connection, sequence, &request) {
                        return Some(now + LOOK_AGAIN);
                    }
                }
                Ok(None) => {
                    let due = its.due(self.linger).filter(|due| *due > now);
                    return Some(due.unwrap_or(now + LOOK_AGAIN));
                }
                Err(error) => {
                    let topic = Arc::clone(&its.topic);
                    state.fail(&topic, None, error.to_string());
                    return None;
                }
            }
        }
    }

    /// Returns whether the connection had room: it has again when an answer has come.
    fn send(
        &mut self,
        queue: usize,
        connection: &Arc<Connection>,
        sequence: i32,
        request: &ProduceRequest,
    ) -> bool {
        match connection.begin(request) {
            Ok(Some(answer)) => {
                self.events.spawn(async move {
                    Event::Answered { queue, sequence, answer: answer.await }
                });
            }
            Ok(None) => {
                if let Some(its) = self.deliveries.state().queues.get_mut(queue) {
                    its.unsent(sequence);
                }
                self.passed_over.get_or_insert(queue);
                return false;
            }
            Err(error) => self.answered(queue, sequence, Err(error)),
        }
        true
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Introduced(Ok(producer)) => {
                self.producer = Some(producer);
                let mut state = self.deliveries.state();
                (state.producer, state.trouble) = (Some(producer), None);
                drop(state);
                self.deliveries.progress.notify_one();
            }
            Event::Introduced(Err(failure)) => {
                let pause = self.introduction.pause();
                if self.note(None, failure) {
                    self.introduce(pause);
                }
            }
            Event::Enlisted(queues, answer) => self.enlisted(&queues, answer),
            Event::Rested(queue) => self.set(queue, Route::Unknown),
            Event::Routed(queue, Ok((leader, connection))) => {
                self.unknown.remove(&queue);
                self.set(queue, Route::Known(leader, connection));
            }
            Event::Routed(queue, Err(failure)) => {
                if self.note(Some(queue), failure) {
                    self.rest(queue);
                }
            }
            Event::Answered { queue, sequence, answer } => self.answered(queue, sequence, answer),
        }
    }

    fn answered(
        &mut self,
        queue: usize,
        sequence: i32,
        answer: Result<ProduceResponse, CallError>,
    ) {
        let deliveries = Arc::clone(&self.deliveries);
        let mut state = deliveries.state();
        let Some(its) = state.queues.get_mut(queue) else { return };
        let topic = Arc::clone(&its.topic);
        match verdict(answer, &its.topic, its.partition, its.is_behind(sequence)) {
            Verdict::Stored(offset) => {
                let (runs, partition) = (its.stored(sequence, Instant::now()), its.partition);
                state.settle(&runs, partition, offset);
                if let Some((_, backoff)) = self.routes.get_mut(queue) {
                    backoff.reset();
                }
            }
            Verdict::Again(trouble) => {
                tracing::debug!(%topic, trouble, "a batch is sent again");
                its.failed(sequence);
                its.trouble = Some(trouble);
                self.forget(queue);
            }
            Verdict::TooLarge(code, detail) => match its.halve(sequence) {
                Ok(true) => tracing::debug!(%topic, detail, "a batch is sent again in halves"),
                Ok(false) => state.fail(&topic, Some(code.0), detail),
                Err(error) => state.fail(&topic, None, error.to_string()),
            },
            Verdict::Broken(code, detail) => {
                state.fail(&topic, code.map(|code| code.0), detail);
            }
        }
        let quiet = state.queues.get(queue).is_some_and(Queue::is_quiet);
        drop(state);
        if quiet && matches!(self.routes.get(queue), Some((Route::Wrong, _))) {
            self.rest(queue);
        }
        deliveries.progress.notify_one();
    }

    /// Asks who we are to the brokers, after a pause.
    fn introduce(&mut self, pause: Duration) {
        let (cluster, transactions) = (Arc::clone(&self.cluster), self.transactions.clone());
        self.events.spawn(async move {
            tokio::time::sleep(pause).await;
            Event::Introduced(match transactions {
                Some(transactions) => transactions.introduce().await,
                None => introduced(&cluster).await,
            })
        });
    }

    /// Makes the partitions of what waits to be sent part of the transaction, after a pause.
    fn enlist(&mut self, pause: Duration) {
        let (Some(transactions), Some(producer)) = (&self.transactions, self.producer) else {
            return;
        };
        let state = self.deliveries.state();
        let waits = state.queues.iter().any(|queue| queue.is_busy() && !queue.enlisted);
        if self.enlisting || !waits {
            return;
        }
        let joining = state.queues.iter().enumerate().filter(|(_, queue)| queue.is_to_enlist());
        let partition =
            |queue: &Queue| TopicPartition::new(Arc::clone(&queue.topic), queue.partition);
        let (queues, partitions): (Vec<usize>, Vec<TopicPartition>) =
            joining.map(|(at, queue)| (at, partition(queue))).unzip();
        drop(state);
        self.enlisting = true;
        let transactions = Arc::clone(transactions);
        self.events.spawn(async move {
            tokio::time::sleep(pause).await;
            Event::Enlisted(queues, transactions.add(producer, &partitions).await)
        });
    }

    fn enlisted(&mut self, queues: &[usize], answer: Result<(), NotAdded>) {
        self.enlisting = false;
        match answer {
            Ok(()) => {
                self.enlistment.reset();
                let mut state = self.deliveries.state();
                for at in queues {
                    if let Some(queue) = state.queues.get_mut(*at) {
                        queue.enlisted = true;
                    }
                    self.unknown.remove(at);
                }
            }
            Err((at, failure)) => {
                let queue = at.and_then(|at| queues.get(at)).copied();
                if self.note(queue, failure) {
                    let pause = self.enlistment.pause();
                    self.enlist(pause);
                }
            }
        }
    }

    /// Looks for the leader of a queue's partition.
    fn seek(&mut self, queue: usize, topic: Arc<str>, partition: i32) {
        self.set(queue, Route::Sought);
        let cluster = Arc::clone(&self.cluster);
        self.events.spawn(async move {
            let found = async {
                let leader = cluster.leader(&topic, partition).await?;
                let connection = cluster.connection(&leader).await?;
                Ok((leader, connection))
            };
            Event::Routed(queue, found.await)
        });
    }

    /// Keeps a pause before the leader is looked for again.
    fn rest(&mut self, queue: usize) {
        self.set(queue, Route::Sought);
        let pause = self.routes.get_mut(queue).map(|(_, backoff)| backoff.pause());
        self.events.spawn(async move {
            tokio::time::sleep(pause.unwrap_or_default()).await;
            Event::Rested(queue)
        });
    }

    /// The leader proved wrong, or its connection did.
    fn forget(&mut self, queue: usize) {
        if let Some((Route::Known(leader, _), _)) = self.routes.get(queue) {
            self.cluster.forget(leader);
        }
        self.set(queue, Route::Wrong);
    }

    fn set(&mut self, queue: usize, route: Route) {
        if let Some((place, _)) = self.routes.get_mut(queue) {
            *place = route;
        }
    }

    /// Notes why something did not work; says whether another attempt is worth its while.
    fn note(&mut self, queue: Option<usize>, failure: Failure) -> bool {
        let passes = match (&failure, queue) {
            (Failure::Transient(_), _) => true,
            (Failure::Final(KafkaError::UnknownPartition { .. }), Some(queue)) => {
                self.unknown.entry(queue).or_insert_with(Instant::now).elapsed() < PROPAGATION
            }
            (Failure::Final(_), _) => false,
        };
        let error = failure.into_error();
        if !passes {
            self.fail(queue, error.code(), &error.to_string());
            return false;
        }
        let mut state = self.deliveries.state();
        let its = queue.and_then(|queue| state.queues.get_mut(queue)).map(|its| &mut its.trouble);
        match its {
            Some(trouble) => *trouble = Some(error.to_string()),
            None => state.trouble = Some(error.to_string()),
        }
        true
    }

    fn fail(&self, queue: Option<usize>, code: Option<i16>, what: &str) {
        let mut state = self.deliveries.state();
        let topic = queue.and_then(|queue| topic_of(&state, queue));
        state.fail(topic.as_deref().unwrap_or("all topics"), code, what.to_owned());
    }
}

fn topic_of(state: &State, queue: usize) -> Option<Arc<str>> {
    state.queues.get(queue).map(|queue| Arc::clone(&queue.topic))
}

async fn introduced(cluster: &Cluster) -> Result<Producer, Failure> {
    let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
    let answer = cluster.ask_any(&request).await?;
    let code = answer.error_code;
    if code.is_ok() {
        let (id, epoch) = (answer.producer_id, answer.producer_epoch);
        return Ok(Producer { id, epoch, transactional: false });
    }
    let error = refused("get a producer id".to_owned(), code, None);
    Err(if code.is_retriable() { Failure::Transient(error) } else { Failure::Final(error) })
}

fn request(
    transactional_id: Option<String>,
    topic: String,
    partition: i32,
    batch: Bytes,
) -> ProduceRequest {
    let data = PartitionProduceData { index: partition, records: Some(batch) };
    ProduceRequest {
        transactional_id,
        acks: ALL,
        timeout_ms: BROKER_TIMEOUT_MS,
        topic_data: vec![TopicProduceData { name: topic, partition_data: vec![data] }],
    }
}

/// What an answer means for a batch, which may stand behind another that is not stored.
fn verdict(
    answer: Result<ProduceResponse, CallError>,
    topic: &str,
    partition: i32,
    is_behind: bool,
) -> Verdict {
    let answer = match answer {
        Ok(answer) => answer,
        Err(CallError::Unsupported(what)) => return Verdict::Broken(None, what),
        Err(CallError::Denied(what)) => {
            return Verdict::Broken(Some(ErrorCode::SASL_AUTHENTICATION_FAILED), what);
        }
        Err(passing) => return Verdict::Again(passing.to_string()),
    };
    let Some(told) = told(answer, topic, partition) else {
        return Verdict::Again("the broker answered for another partition".to_owned());
    };
    match told.error_code {
        // An offset record must name the tail (rule P2), so the offset has to be known.
        ErrorCode::NONE if told.base_offset >= 0 => Verdict::Stored(told.base_offset),
        ErrorCode::NONE | ErrorCode::DUPLICATE_SEQUENCE_NUMBER => {
            Verdict::Broken(None, "stored, but the broker did not say at which offset".to_owned())
        }
        // It follows a batch that failed in a way that passes.
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER if is_behind => Verdict::Again(said(&told)),
        code if code.is_retriable() => Verdict::Again(said(&told)),
        code @ (ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::RECORD_LIST_TOO_LARGE) => {
            Verdict::TooLarge(code, said(&told))
        }
        code => Verdict::Broken(Some(code), said(&told)),
    }
}

fn told(answer: ProduceResponse, topic: &str, partition: i32) -> Option<PartitionProduceResponse> {
    let topics = answer.responses.into_iter().filter(|told| told.name == topic);
    topics.flat_map(|told| told.partition_responses).find(|told| told.index == partition)
}

fn said(told: &PartitionProduceResponse) -> String {
    let code = told.error_code;
    let message = told.error_message.as_deref().map(crate::error::told);
    message.map_or_else(|| code.to_string(), |text| format!("{code}: {text}"))
}

#[cfg(test)]
mod tests {
    use highwater_protocol::TopicProduceResponse;

    use super::*;

    fn answer(error_code: ErrorCode, base_offset: i64) -> Result<ProduceResponse, CallError> {
        let told =
            PartitionProduceResponse { index: 3, error_code, base_offset, ..Default::default() };
        let topic = TopicProduceResponse { name: "trail".into(), partition_responses: vec![told] };
        Ok(ProduceResponse { responses: vec![topic], ..Default::default() })
    }

    fn judged(code: ErrorCode, offset: i64, is_behind: bool) -> Verdict {
        verdict(answer(code, offset), "trail", 3, is_behind)
    }

    #[test]
    fn a_batch_is_stored_only_at_an_offset_that_is_known() {
        assert_eq!(judged(ErrorCode::NONE, 7, false), Verdict::Stored(7));
        assert!(matches!(judged(ErrorCode::NONE, -1, false), Verdict::Broken(None, _)));
        let duplicate = judged(ErrorCode::DUPLICATE_SEQUENCE_NUMBER, -1, false);
        assert!(matches!(duplicate, Verdict::Broken(..)));
    }

    #[test]
    fn a_missing_predecessor_passes_only_while_one_is_on_its_way() {
        let code = ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER;
        assert!(matches!(judged(code, -1, true), Verdict::Again(_)));
        assert!(matches!(judged(code, -1, false), Verdict::Broken(Some(_), _)));
    }

    #[test]
    fn what_kafkas_client_tries_again_is_tried_again_and_nothing_else() {
        for code in [ErrorCode::NOT_LEADER_OR_FOLLOWER, ErrorCode::REQUEST_TIMED_OUT] {
            assert!(matches!(judged(code, -1, false), Verdict::Again(_)), "{code}");
        }
        for code in [ErrorCode::INVALID_RECORD, ErrorCode::INVALID_PRODUCER_EPOCH] {
            let broken = judged(code, -1, true);
            assert!(matches!(broken, Verdict::Broken(Some(why), _) if why == code), "{code}");
        }
        let large = judged(ErrorCode::MESSAGE_TOO_LARGE, -1, false);
        assert!(matches!(large, Verdict::TooLarge(ErrorCode::MESSAGE_TOO_LARGE, _)));
        let lost = verdict(Err(CallError::Lost("cut".to_owned())), "trail", 3, false);
        assert!(matches!(lost, Verdict::Again(_)));
        let unsupported = CallError::Unsupported("Produce".to_owned());
        assert!(matches!(verdict(Err(unsupported), "trail", 3, false), Verdict::Broken(..)));
        let other = verdict(answer(ErrorCode::NONE, 7), "trail", 4, false);
        assert!(matches!(other, Verdict::Again(_)));
    }
}
