//! Whether a batch belongs to an open transaction of its producer (KIP-890, part 1).
//!
//! It is asked of every transactional batch before it is appended. That the transaction does not end between
//! question and append, the log sees to: it refuses the batch if a marker came in between.

use bytes::Bytes;
use highwater_coordinator::Producer;
use highwater_log::{AppendOptions, Partition, now_ms};
use highwater_protocol::ErrorCode;
use highwater_protocol::records::BatchHeader;

use crate::fault::Fault;
use crate::node::Node;

/// The first version whose clients know TRANSACTION_ABORTABLE.
const ABORTABLE_SINCE: i16 = 11;

/// Where a batch is to go, and in whose name it came.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) version: i16,
    pub(crate) transactional_id: Option<&'a str>,
    pub(crate) topic: &'a str,
    pub(crate) index: i32,
}

/// How the batches are to be appended.
pub(crate) fn options(
    node: &Node,
    claim: Claim<'_>,
    partition: &Partition,
    batches: &Bytes,
) -> Result<AppendOptions, Fault> {
    // What is no batch, the log refuses.
    let header = BatchHeader::parse(batches).ok().filter(BatchHeader::is_transactional);
    let Some(header) = header else { return Ok(AppendOptions::client(now_ms())) };
    // Before the question: a marker behind it came after the answer.
    let origin = partition.begin_verification(&header, now_ms())?;
    let producer = Producer { id: header.producer_id, epoch: header.producer_epoch };
    let id = claim.transactional_id.unwrap_or_default();
    let verified = node.coordinator.transactions().verify(id, producer, claim.topic, claim.index);
    verified.map_err(|error| refusal(claim.version, error))?;
    Ok(AppendOptions { now_ms: now_ms(), origin })
}

/// In codes that producers know how to go on from, as Apache Kafka chooses them.
fn refusal(version: i16, error: ErrorCode) -> Fault {
    match error {
        ErrorCode::TRANSACTION_ABORTABLE => {
            let code = if version < ABORTABLE_SINCE { ErrorCode::INVALID_TXN_STATE } else { error };
            Fault::new(code, "the partition was not added to the transaction")
        }
        ErrorCode::PRODUCER_FENCED => {
            let text = "a newer producer has the transactional id";
            Fault::new(ErrorCode::INVALID_PRODUCER_EPOCH, text)
        }
        // Old clients give up on these; this one they try again after, and ask nobody for metadata.
        ErrorCode::CONCURRENT_TRANSACTIONS
        | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
        | ErrorCode::COORDINATOR_NOT_AVAILABLE => {
            let text = format!("whether the transaction is open cannot be said now: {error}");
            Fault::new(ErrorCode::NOT_ENOUGH_REPLICAS, text)
        }
        other => Fault::new(other, "the transactional id is not this producer's"),
    }
}
