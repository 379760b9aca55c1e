//! Produce: appends at once, answers when the sender wants it (rule L1).

use std::sync::Arc;
use std::time::Duration;

use highwater_coordinator::blocking;
use highwater_log::{Appended, LogError, Partition};
use highwater_protocol::records::BatchHeader;
use highwater_protocol::{
    BatchIndexAndErrorMessage, ErrorCode, PartitionProduceData, PartitionProduceResponse,
    ProduceRequest, ProduceResponse, TopicProduceData, TopicProduceResponse,
};
use tokio::time::{Instant, timeout_at};

use crate::dispatch::{Call, Refused};
use crate::fault::Fault;
use crate::internal_topic::check_not_internal;
use crate::node::Node;
use crate::outcome::Outcome;
use crate::produced;
use crate::reply::Reply;
use crate::verification::{self, Claim};

/// When the sender wants an answer.
#[derive(Clone, Copy)]
enum Acks {
    Never,
    /// Once written.
    Written,
    /// Once safe on disk.
    Durable,
}

/// What a request says that holds for all its partitions.
#[derive(Clone, Copy)]
struct Sender<'a> {
    version: i16,
    acks_are_valid: bool,
    transactional_id: Option<&'a str>,
}

/// What became of the data for a partition.
struct Entry {
    index: i32,
    outcome: Result<(Arc<Partition>, Appended), Fault>,
}

/// All of a request's partitions, by topic.
type Entries = Vec<(String, Vec<Entry>)>;

pub(crate) async fn begin(
    node: &Arc<Node>,
    call: Call,
    request: ProduceRequest,
    refused: crate::authorized::Refused<ProduceResponse>,
) -> Result<Reply, Refused> {
    let acks = acks(request.acks);
    let deadline = Instant::now() + patience(request.timeout_ms);
    let node = Arc::clone(node);
    let version = call.version;
    let mut entries = blocking(move || append(&node, version, acks.is_some(), request)).await;
    let response = |entries| {
        let mut response = response(entries);
        refused.add_to(&mut response);
        response
    };
    match acks {
        Some(Acks::Never) => unanswered(call, &response(entries)),
        Some(Acks::Durable) => Ok(Reply::Later(Box::pin(async move {
            settle(&mut entries, deadline).await;
            call.answer(&response(entries))
        }))),
        Some(Acks::Written) | None => Ok(Reply::Ready(call.answer(&response(entries)))),
    }
}

fn acks(wire: i16) -> Option<Acks> {
    match wire {
        -1 => Some(Acks::Durable),
        0 => Some(Acks::Never),
        1 => Some(Acks::Written),
        _ => None,
    }
}

fn patience(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0))
}

/// Appends what every partition was sent. Blocks on the disk.
fn append(node: &Node, version: i16, acks_are_valid: bool, request: ProduceRequest) -> Entries {
    let refusal = refusal(&request);
    let id = request.transactional_id;
    let sender = Sender { version, acks_are_valid, transactional_id: id.as_deref() };
    let of_partition = |topic: &str, data: PartitionProduceData| Entry {
        index: data.index,
        outcome: match &refusal {
            Some(fault) => Err(fault.clone()),
            None => append_one(node, sender, topic, data),
        },
    };
    let of_topic = |topic: TopicProduceData| {
        let entries =
            topic.partition_data.into_iter().map(|data| of_partition(&topic.name, data)).collect();
        (topic.name, entries)
    };
    request.topic_data.into_iter().map(of_topic).collect()
}

/// What is wrong with a request as a whole.
fn refusal(request: &ProduceRequest) -> Option<Fault> {
    let mut data = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
    if request.transactional_id.is_none() && data.any(is_transactional) {
        let text = "a transactional batch in a request without a transactional id";
        return Some(Fault::new(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED, text));
    }
    None
}

fn is_transactional(data: &PartitionProduceData) -> bool {
    let batches = data.records.as_ref();
    let header = batches.and_then(|batches| BatchHeader::parse(batches).ok());
    header.is_some_and(|header| header.is_transactional())
}

fn append_one(
    node: &Node,
    sender: Sender<'_>,
    topic: &str,
    data: PartitionProduceData,
) -> Result<(Arc<Partition>, Appended), Fault> {
    check_not_internal(topic)?;
    let partition = node.partition(topic, data.index)?;
    let batches = data.records.unwrap_or_default();
    produced::check(sender.version, &batches)?;
    if !sender.acks_are_valid {
        let text = "acks is none of -1, 0 and 1";
        return Err(Fault::new(ErrorCode::INVALID_REQUIRED_ACKS, text));
    }
    let Sender { version, transactional_id, .. } = sender;
    let claim = Claim { version, transactional_id, topic, index: data.index };
    let options = verification::options(node, claim, &partition, &batches)?;
    let appended = partition.append(batches, options);
    let appended = appended.map_err(|error| refused(&partition, error))?;
    Ok((partition, appended))
}

fn refused(partition: &Partition, error: LogError) -> Fault {
    let tells = produced::tells_log_start(&error);
    let log_start_offset = if tells { partition.watermarks_now().log_start } else { -1 };
    let records = error.records().to_vec();
    Fault { log_start_offset, records, ..error.into() }
}

/// Waits until every append is safe, or is known to be lost, or time is up.
async fn settle(entries: &mut Entries, deadline: Instant) {
    for entry in entries.iter_mut().flat_map(|(_, entries)| entries) {
        let Ok((partition, appended)) = &entry.outcome else { continue };
        let fault = match timeout_at(deadline, partition.durable(appended)).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => Fault::from(error),
            Err(_) => Fault::new(
                ErrorCode::REQUEST_TIMED_OUT,
                "the records are written, but were not safe on disk in time",
            ),
        };
        entry.outcome = Err(fault);
    }
}

/// Nobody reads an answer; its sender learns of an error by the end of the connection.
fn unanswered(call: Call, response: &ProduceResponse) -> Result<Reply, Refused> {
    call.count(response);
    let mut failed = false;
    response.each_error(&mut |error| failed |= !error.is_ok());
    if failed { Err(Refused::Unanswered) } else { Ok(Reply::Silent) }
}

fn response(entries: Entries) -> ProduceResponse {
    let of_topic = |(name, entries): (String, Vec<Entry>)| TopicProduceResponse {
        name,
        partition_responses: entries.into_iter().map(partition_response).collect(),
    };
    let responses = entries.into_iter().map(of_topic).collect();
    ProduceResponse { responses, ..Default::default() }
}

fn blamed(batch_index: i32) -> BatchIndexAndErrorMessage {
    BatchIndexAndErrorMessage { batch_index, batch_index_error_message: None }
}

fn partition_response(entry: Entry) -> PartitionProduceResponse {
    match entry.outcome {
        Ok((_, appended)) => PartitionProduceResponse {
            index: entry.index,
            base_offset: appended.base_offset,
            log_append_time_ms: appended.log_append_time_ms.unwrap_or(-1),
            log_start_offset: appended.log_start_offset,
            ..Default::default()
        },
        Err(fault) => PartitionProduceResponse {
            index: entry.index,
            error_code: fault.code,
            base_offset: -1,
            log_start_offset: fault.log_start_offset,
            record_errors: fault.records.into_iter().map(blamed).collect(),
            error_message: Some(fault.text),
            ..Default::default()
        },
    }
}
