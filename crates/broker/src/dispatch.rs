//! Which request goes where.

use std::future::ready;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use highwater_coordinator::Caller;
use highwater_log::Slice;
use highwater_protocol::{
    ApiKey, DecodeError, FetchRequest, Message, ProduceRequest, Reader, Request, RequestHeader,
    frame,
};

use crate::authorized::{Authorized, Verdict};
use crate::config::Limits;
use crate::counters;
use crate::gate::Gate;
use crate::outcome::Outcome;
use crate::reply::{Answer, Reply};
use crate::{
    add_offsets_to_txn, add_partitions_to_txn, alter_configs, api_versions, create_partitions,
    create_topics, delete_groups, delete_records, delete_topics, describe_cluster,
    describe_configs, describe_groups, describe_log_dirs, describe_producers,
    describe_transactions, end_txn, epoch_end, fetch, find_coordinator, heartbeat,
    incremental_alter_configs, init_producer_id, join_group, leave_group, list_groups,
    list_offsets, list_partition_reassignments, list_transactions, metadata, offset_commit,
    offset_delete, offset_fetch, old_produce, produce, sasl, sync_group, txn_offset_commit,
    write_txn_markers,
};

/// The APIs that are offered. A request for another one closes the connection, as Apache Kafka
/// does: its answer could not be read by who sent it.
pub(crate) const OFFERED: [ApiKey; 38] = [
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::SaslHandshake,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::EndTxn,
    ApiKey::WriteTxnMarkers,
    ApiKey::TxnOffsetCommit,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::DescribeLogDirs,
    ApiKey::SaslAuthenticate,
    ApiKey::CreatePartitions,
    ApiKey::DeleteGroups,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::ListPartitionReassignments,
    ApiKey::OffsetDelete,
    ApiKey::DescribeCluster,
    ApiKey::DescribeProducers,
    ApiKey::DescribeTransactions,
    ApiKey::ListTransactions,
];

/// A request that gets no answer; its connection is closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("API key {0} is not offered")]
    NotOffered(i16),
    #[error("{api:?} is not offered at version {version}")]
    Version { api: ApiKey, version: i16 },
    #[error("a request cannot be read: {0}")]
    Malformed(#[from] DecodeError),
    #[error("{0:?} is asked before the login is done")]
    BeforeLogin(ApiKey),
    #[error("the login has run out, and another request than a login came")]
    LoginOver,
    #[error("a request with acks=0 failed, and closing is how its sender learns of it")]
    Unanswered,
}

/// What an answer needs to know of its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) api: ApiKey,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    began: Instant,
}

/// Bytes that a frame may have whose header begins with this key and version.
pub(crate) fn frame_limit(key: i16, version: i16, limits: &Limits) -> usize {
    match offered(key).filter(|api| api.advertised().contains(&version)) {
        Some(ApiKey::Produce) => limits.produce_bytes,
        Some(_) => limits.request_bytes,
        None => limits.unknown_frame_bytes,
    }
}

fn offered(key: i16) -> Option<ApiKey> {
    OFFERED.into_iter().find(|api| *api as i16 == key)
}

/// Begins a request: what changes the log has happened when this returns. A handler sees what the
/// session may do, and nothing else.
pub(crate) async fn begin(gate: &Gate, mut body: Bytes) -> Result<Reply, Refused> {
    let call = Call::read(&body)?;
    if !call.api.versions().contains(&call.version) {
        return call.at_foreign_version(body);
    }
    let header = RequestHeader::decode(&mut body)?;
    let (node, version) = (&gate.node, call.version);
    match call.api {
        ApiKey::Produce => match call.decode::<ProduceRequest>(body)?.authorize(gate) {
            Verdict::Go(request, refused) => produce::begin(node, call, request, refused).await,
            Verdict::No(answer) => call.ready(&answer),
        },
        ApiKey::Fetch => match call.decode::<FetchRequest>(body)?.authorize(gate) {
            Verdict::Go(request, refused) => {
                Ok(fetch::begin(Arc::clone(node), call, request, refused))
            }
            Verdict::No(answer) => call.ready(&answer),
        },
        ApiKey::ListOffsets => {
            call.serve(gate, body, |request| list_offsets::answer(node, version, request)).await
        }
        ApiKey::Metadata => {
            call.serve(gate, body, |request| metadata::answer(node, version, request)).await
        }
        ApiKey::SaslHandshake => call.ready(&sasl::handshake_out_of_place()),
        ApiKey::ApiVersions => {
            call.serve(gate, body, |request| ready(api_versions::answer(version, &request))).await
        }
        ApiKey::CreateTopics => {
            call.serve(gate, body, |request| create_topics::answer(node, request)).await
        }
        ApiKey::DeleteTopics => {
            call.serve(gate, body, |request| delete_topics::answer(node, request)).await
        }
        ApiKey::DeleteRecords => {
            call.serve(gate, body, |request| delete_records::answer(node, request)).await
        }
        ApiKey::OffsetForLeaderEpoch => {
            call.serve(gate, body, |request| epoch_end::answer(node, request)).await
        }
        ApiKey::DescribeConfigs => {
            call.serve(gate, body, |request| ready(describe_configs::answer(node, request))).await
        }
        ApiKey::DescribeLogDirs => {
            call.serve(gate, body, |request| describe_log_dirs::answer(node, request)).await
        }
        ApiKey::SaslAuthenticate => call.ready(&sasl::authenticate_out_of_place()),
        ApiKey::AlterConfigs => {
            call.serve(gate, body, |request| alter_configs::answer(node, request)).await
        }
        ApiKey::CreatePartitions => {
            call.serve(gate, body, |request| create_partitions::answer(node, request)).await
        }
        ApiKey::IncrementalAlterConfigs => {
            call.serve(gate, body, |request| incremental_alter_configs::answer(node, request)).await
        }
        ApiKey::ListPartitionReassignments => {
            let answer = list_partition_reassignments::answer;
            call.serve(gate, body, |request| ready(answer(&request))).await
        }
        ApiKey::DescribeCluster => {
            call.serve(gate, body, |request| ready(describe_cluster::answer(node, request))).await
        }
        _ => coordinated(gate, call, header, body).await,
    }
}

/// Begins a request that is about groups or transactions.
async fn coordinated(
    gate: &Gate,
    call: Call,
    header: RequestHeader,
    body: Bytes,
) -> Result<Reply, Refused> {
    let (node, version) = (&gate.node, call.version);
    match call.api {
        ApiKey::OffsetCommit => {
            call.serve_later(gate, body, |request| offset_commit::begin(node, version, request))
        }
        ApiKey::OffsetFetch => {
            let answer = |request| ready(offset_fetch::answer(node, version, request));
            call.serve(gate, body, answer).await
        }
        ApiKey::FindCoordinator => {
            let answer = |request| ready(find_coordinator::answer(node, version, request));
            call.serve(gate, body, answer).await
        }
        ApiKey::JoinGroup => {
            let caller = caller(gate, header);
            let begin = |request| join_group::begin(node, caller, version, request);
            call.serve_later(gate, body, begin)
        }
        ApiKey::Heartbeat => {
            call.serve(gate, body, |request| ready(heartbeat::answer(node, &request))).await
        }
        ApiKey::LeaveGroup => {
            let answer = |request| ready(leave_group::answer(node, version, request));
            call.serve(gate, body, answer).await
        }
        ApiKey::SyncGroup => {
            call.serve_later(gate, body, |request| sync_group::begin(node, request))
        }
        ApiKey::DescribeGroups => {
            let answer = |request| ready(describe_groups::answer(node, version, request));
            call.serve(gate, body, answer).await
        }
        ApiKey::ListGroups => {
            call.serve(gate, body, |request| ready(list_groups::answer(node, &request))).await
        }
        ApiKey::InitProducerId => {
            call.serve(gate, body, |request| init_producer_id::answer(node, version, request)).await
        }
        ApiKey::AddPartitionsToTxn => {
            let answer = |request| add_partitions_to_txn::answer(node, version, request);
            call.serve(gate, body, answer).await
        }
        ApiKey::AddOffsetsToTxn => {
            let answer = |request| add_offsets_to_txn::answer(node, version, request);
            call.serve(gate, body, answer).await
        }
        ApiKey::EndTxn => {
            call.serve(gate, body, |request| end_txn::answer(node, version, request)).await
        }
        ApiKey::WriteTxnMarkers => {
            call.serve(gate, body, |request| write_txn_markers::answer(node, request)).await
        }
        ApiKey::TxnOffsetCommit => {
            let begin = |request| txn_offset_commit::begin(node, version, request);
            call.serve_later(gate, body, begin)
        }
        ApiKey::DeleteGroups => {
            call.serve_later(gate, body, |request| delete_groups::begin(node, request))
        }
        ApiKey::OffsetDelete => {
            call.serve_later(gate, body, |request| offset_delete::begin(node, request))
        }
        ApiKey::DescribeProducers => {
            call.serve(gate, body, |request| describe_producers::answer(node, request)).await
        }
        ApiKey::DescribeTransactions => {
            call.serve(gate, body, |request| describe_transactions::answer(node, request)).await
        }
        ApiKey::ListTransactions => {
            call.serve(gate, body, |request| list_transactions::answer(node, request)).await
        }
        _ => Err(Refused::NotOffered(call.api as i16)),
    }
}

/// Who asks, as others in a group are shown it.
fn caller(gate: &Gate, header: RequestHeader) -> Caller {
    let client_id = header.client_id.unwrap_or_default();
    Caller { client_id, client_host: format!("/{}", gate.session.peer.ip()) }
}

impl Call {
    /// Reads what every request begins with, whatever its version.
    pub(crate) fn read(frame: &[u8]) -> Result<Self, Refused> {
        let [k0, k1, v0, v1, c0, c1, c2, c3, ..] = *frame else {
            return Err(DecodeError::Truncated { needed: 8, left: frame.len() }.into());
        };
        let key = i16::from_be_bytes([k0, k1]);
        Ok(Self {
            api: offered(key).ok_or(Refused::NotOffered(key))?,
            version: i16::from_be_bytes([v0, v1]),
            correlation_id: i32::from_be_bytes([c0, c1, c2, c3]),
            began: Instant::now(),
        })
    }

    /// Answers the two requests that have an answer at versions that we do not speak.
    fn at_foreign_version(self, frame: Bytes) -> Result<Reply, Refused> {
        match self.api {
            // Who asks at a version of its own time reads the answer of version 0 (KIP-511).
            ApiKey::ApiVersions => Self { version: 0, ..self }.ready(&api_versions::unsupported()),
            ApiKey::Produce if self.api.advertised().contains(&self.version) => {
                old_produce::refuse(self, frame)
            }
            api => Err(Refused::Version { api, version: self.version }),
        }
    }

    /// The body of a frame, which was not begun otherwise.
    pub(crate) fn request<R: Request>(self, mut frame: Bytes) -> Result<R, Refused> {
        if !R::VERSIONS.contains(&self.version) {
            return Err(Refused::Version { api: self.api, version: self.version });
        }
        RequestHeader::decode(&mut frame)?;
        Ok(self.decode(frame)?)
    }

    /// Has a handler answer what of a request the session may do, and answers for the rest.
    async fn serve<R, F>(
        self,
        gate: &Gate,
        body: Bytes,
        handler: impl FnOnce(R) -> F,
    ) -> Result<Reply, Refused>
    where
        R: Authorized,
        R::Response: Outcome,
        F: Future<Output = R::Response>,
    {
        match self.decode::<R>(body)?.authorize(gate) {
            Verdict::Go(request, refused) => {
                let mut answer = handler(request).await;
                refused.add_to(&mut answer);
                self.ready(&answer)
            }
            Verdict::No(answer) => self.ready(&answer),
        }
    }

    /// As [`Call::serve`], where the answer may take a while: what was asked has begun when this
    /// returns.
    fn serve_later<R, F>(
        self,
        gate: &Gate,
        body: Bytes,
        handler: impl FnOnce(R) -> F,
    ) -> Result<Reply, Refused>
    where
        R: Authorized,
        R::Response: Outcome + Send + 'static,
        F: Future<Output = R::Response> + Send + 'static,
    {
        match self.decode::<R>(body)?.authorize(gate) {
            Verdict::Go(request, refused) => {
                let answering = handler(request);
                Ok(Reply::Later(Box::pin(async move {
                    let mut answer = answering.await;
                    refused.add_to(&mut answer);
                    self.answer(&answer)
                })))
            }
            Verdict::No(answer) => self.ready(&answer),
        }
    }

    /// Bytes behind the request are let pass, as Apache Kafka does: librdkafka 2.16 leaves three
    /// behind a Metadata request for all topics.
    fn decode<R: Request>(self, body: Bytes) -> Result<R, DecodeError> {
        R::decode(&mut Reader::new(body), self.version)
    }

    fn ready<M: Message + Outcome>(self, response: &M) -> Result<Reply, Refused> {
        Ok(Reply::Ready(self.answer(response)))
    }

    /// Encodes and counts an answer.
    pub(crate) fn answer<M: Message + Outcome>(self, response: &M) -> Answer {
        self.answer_around(response, Vec::new())
    }

    /// As [`Call::answer`], where the slices belong to what lies apart in the answer, in order.
    pub(crate) fn answer_around<M: Message + Outcome>(
        self,
        response: &M,
        slices: Vec<Vec<Slice>>,
    ) -> Answer {
        let mut bytes = BytesMut::new();
        let gaps = frame::encode_around(&mut bytes, self.version, self.correlation_id, response);
        self.count(response);
        Answer::around(bytes.freeze(), &gaps, slices)
    }

    /// Counts an answer, also one that is not sent.
    pub(crate) fn count(self, response: &impl Outcome) {
        let api = name(self.api);
        counters::answered(api, self.began);
        response.each_error(&mut |error| {
            if !error.is_ok() {
                counters::failed(api, error.name().unwrap_or("OTHER"));
            }
        });
    }
}

/// Kafka's name of an API.
fn name(api: ApiKey) -> &'static str {
    match api {
        ApiKey::Produce => "Produce",
        ApiKey::Fetch => "Fetch",
        ApiKey::ListOffsets => "ListOffsets",
        ApiKey::Metadata => "Metadata",
        ApiKey::OffsetCommit => "OffsetCommit",
        ApiKey::OffsetFetch => "OffsetFetch",
        ApiKey::FindCoordinator => "FindCoordinator",
        ApiKey::JoinGroup => "JoinGroup",
        ApiKey::Heartbeat => "Heartbeat",
        ApiKey::LeaveGroup => "LeaveGroup",
        ApiKey::SyncGroup => "SyncGroup",
        ApiKey::DescribeGroups => "DescribeGroups",
        ApiKey::ListGroups => "ListGroups",
        ApiKey::SaslHandshake => "SaslHandshake",
        ApiKey::ApiVersions => "ApiVersions",
        ApiKey::CreateTopics => "CreateTopics",
        ApiKey::DeleteTopics => "DeleteTopics",
        ApiKey::DeleteRecords => "DeleteRecords",
        ApiKey::InitProducerId => "InitProducerId",
        ApiKey::OffsetForLeaderEpoch => "OffsetForLeaderEpoch",
        ApiKey::AddPartitionsToTxn => "AddPartitionsToTxn",
        ApiKey::AddOffsetsToTxn => "AddOffsetsToTxn",
        ApiKey::EndTxn => "EndTxn",
        ApiKey::WriteTxnMarkers => "WriteTxnMarkers",
        ApiKey::TxnOffsetCommit => "TxnOffsetCommit",
        ApiKey::DescribeConfigs => "DescribeConfigs",
        ApiKey::DescribeLogDirs => "DescribeLogDirs",
        ApiKey::SaslAuthenticate => "SaslAuthenticate",
        ApiKey::DeleteGroups => "DeleteGroups",
        ApiKey::AlterConfigs => "AlterConfigs",
        ApiKey::CreatePartitions => "CreatePartitions",
        ApiKey::IncrementalAlterConfigs => "IncrementalAlterConfigs",
        ApiKey::ListPartitionReassignments => "ListPartitionReassignments",
        ApiKey::OffsetDelete => "OffsetDelete",
        ApiKey::DescribeCluster => "DescribeCluster",
        ApiKey::DescribeProducers => "DescribeProducers",
        ApiKey::DescribeTransactions => "DescribeTransactions",
        ApiKey::ListTransactions => "ListTransactions",
        #[allow(unreachable_patterns, reason = "an API may be spoken that is not offered")]
        _ => "other",
    }
}
