//! Which request goes where. All APIs that we speak are offered; a request for another one closes the connection,
//! as Apache Kafka does: its answer could not be read by who sent it.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use highwater_coordinator::Caller;
use highwater_log::Slice;
use highwater_protocol::{ApiKey, DecodeError, Message, Reader, Request, RequestHeader, frame};

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
    #[error("the user who logged in has been removed")]
    Removed,
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
    match ApiKey::try_from(key).ok().filter(|api| api.advertised().contains(&version)) {
        Some(ApiKey::Produce) => limits.produce_bytes,
        Some(_) => limits.request_bytes,
        None => limits.unknown_frame_bytes,
    }
}

/// Begins a request: what changes the log has happened when this returns. A handler sees what the
/// session may do, and nothing else.
pub(crate) async fn begin(gate: &Gate, mut body: Bytes) -> Result<Reply, Refused> {
    let call = Call::read(&body)?;
    if !call.api.versions().contains(&call.version) {
        return call.at_foreign_version(body);
    }
    let header = RequestHeader::decode(&mut body)?;
    let (node, version, asked) = (&gate.node, call.version, Asked { gate, call, body });
    match call.api {
        ApiKey::Produce => match asked.authorize()? {
            Verdict::Go(request, refused) => produce::begin(node, call, request, refused).await,
            Verdict::No(answer) => call.ready(&answer),
        },
        ApiKey::Fetch => match asked.authorize()? {
            Verdict::Go(request, refused) => {
                Ok(fetch::begin(Arc::clone(node), call, request, refused))
            }
            Verdict::No(answer) => call.ready(&answer),
        },
        ApiKey::ListOffsets => asked.soon(|it| list_offsets::answer(node, version, it)).await,
        ApiKey::Metadata => asked.soon(|it| metadata::answer(node, version, it)).await,
        ApiKey::OffsetCommit => asked.later(|it| offset_commit::begin(node, version, it)),
        ApiKey::OffsetFetch => asked.ready(|it| offset_fetch::answer(node, version, it)),
        ApiKey::FindCoordinator => asked.ready(|it| find_coordinator::answer(node, version, it)),
        ApiKey::JoinGroup => {
            asked.later(|it| join_group::begin(node, caller(gate, header), version, it))
        }
        ApiKey::Heartbeat => asked.ready(|it| heartbeat::answer(node, &it)),
        ApiKey::LeaveGroup => asked.ready(|it| leave_group::answer(node, version, it)),
        ApiKey::SyncGroup => asked.later(|it| sync_group::begin(node, version, it)),
        ApiKey::DescribeGroups => asked.ready(|it| describe_groups::answer(node, version, it)),
        ApiKey::ListGroups => asked.ready(|it| list_groups::answer(node, &it)),
        ApiKey::SaslHandshake => call.ready(&sasl::handshake_out_of_place()),
        ApiKey::ApiVersions => asked.ready(|it| api_versions::answer(version, &it)),
        ApiKey::CreateTopics => asked.soon(|it| create_topics::answer(node, it)).await,
        ApiKey::DeleteTopics => asked.soon(|it| delete_topics::answer(node, it)).await,
        ApiKey::DeleteRecords => asked.soon(|it| delete_records::answer(node, it)).await,
        ApiKey::InitProducerId => {
            asked.soon(|it| init_producer_id::answer(node, version, it)).await
        }
        ApiKey::OffsetForLeaderEpoch => asked.soon(|it| epoch_end::answer(node, it)).await,
        ApiKey::AddPartitionsToTxn => {
            asked.soon(|it| add_partitions_to_txn::answer(node, version, it)).await
        }
        ApiKey::AddOffsetsToTxn => {
            asked.soon(|it| add_offsets_to_txn::answer(node, version, it)).await
        }
        ApiKey::EndTxn => asked.soon(|it| end_txn::answer(node, version, it)).await,
        ApiKey::WriteTxnMarkers => asked.soon(|it| write_txn_markers::answer(node, it)).await,
        ApiKey::TxnOffsetCommit => asked.later(|it| txn_offset_commit::begin(node, version, it)),
        ApiKey::DescribeConfigs => asked.ready(|it| describe_configs::answer(node, it)),
        ApiKey::AlterConfigs => asked.soon(|it| alter_configs::answer(node, it)).await,
        ApiKey::DescribeLogDirs => asked.soon(|it| describe_log_dirs::answer(node, it)).await,
        ApiKey::SaslAuthenticate => call.ready(&sasl::authenticate_out_of_place()),
        ApiKey::CreatePartitions => asked.soon(|it| create_partitions::answer(node, it)).await,
        ApiKey::DeleteGroups => asked.later(|it| delete_groups::begin(node, it)),
        ApiKey::IncrementalAlterConfigs => {
            asked.soon(|it| incremental_alter_configs::answer(node, it)).await
        }
        ApiKey::ListPartitionReassignments => {
            asked.ready(|it| list_partition_reassignments::answer(&it))
        }
        ApiKey::OffsetDelete => asked.later(|it| offset_delete::begin(node, it)),
        ApiKey::DescribeCluster => asked.ready(|it| describe_cluster::answer(node, it)),
        ApiKey::DescribeProducers => asked.soon(|it| describe_producers::answer(node, it)).await,
        ApiKey::DescribeTransactions => {
            asked.soon(|it| describe_transactions::answer(node, it)).await
        }
        ApiKey::ListTransactions => asked.soon(|it| list_transactions::answer(node, it)).await,
    }
}

/// Who asks, as others in a group are shown it.
fn caller(gate: &Gate, header: RequestHeader) -> Caller {
    let client_id = header.client_id.unwrap_or_default();
    Caller { client_id, client_host: format!("/{}", gate.session.peer.ip()) }
}

/// A request whose header was read. A handler is shown what of it the session may do; the rest is answered
/// for beside it.
struct Asked<'a> {
    gate: &'a Gate,
    call: Call,
    body: Bytes,
}

impl Asked<'_> {
    fn authorize<R: Authorized>(self) -> Result<Verdict<R>, DecodeError> {
        Ok(self.call.decode::<R>(self.body)?.authorize(self.gate))
    }

    /// By a handler that knows the answer.
    fn ready<R>(self, handler: impl FnOnce(R) -> R::Response) -> Result<Reply, Refused>
    where
        R: Authorized,
        R::Response: Outcome,
    {
        let call = self.call;
        match self.authorize()? {
            Verdict::Go(request, refused) => {
                let mut answer = handler(request);
                refused.add_to(&mut answer);
                call.ready(&answer)
            }
            Verdict::No(answer) => call.ready(&answer),
        }
    }

    /// By a handler that works for it; the next request waits meanwhile.
    async fn soon<R, F>(self, handler: impl FnOnce(R) -> F) -> Result<Reply, Refused>
    where
        R: Authorized,
        R::Response: Outcome,
        F: Future<Output = R::Response>,
    {
        let call = self.call;
        match self.authorize()? {
            Verdict::Go(request, refused) => {
                let mut answer = handler(request).await;
                refused.add_to(&mut answer);
                call.ready(&answer)
            }
            Verdict::No(answer) => call.ready(&answer),
        }
    }

    /// By a handler whose answer may take a while: what was asked has begun when this returns.
    fn later<R, F>(self, handler: impl FnOnce(R) -> F) -> Result<Reply, Refused>
    where
        R: Authorized,
        R::Response: Outcome + Send + 'static,
        F: Future<Output = R::Response> + Send + 'static,
    {
        let call = self.call;
        match self.authorize()? {
            Verdict::Go(request, refused) => {
                let answering = handler(request);
                Ok(Reply::Later(Box::pin(async move {
                    let mut answer = answering.await;
                    refused.add_to(&mut answer);
                    call.answer(&answer)
                })))
            }
            Verdict::No(answer) => call.ready(&answer),
        }
    }
}

impl Call {
    /// Reads what every request begins with, whatever its version.
    pub(crate) fn read(frame: &[u8]) -> Result<Self, Refused> {
        let [k0, k1, v0, v1, c0, c1, c2, c3, ..] = *frame else {
            return Err(DecodeError::Truncated { needed: 8, left: frame.len() }.into());
        };
        let key = i16::from_be_bytes([k0, k1]);
        Ok(Self {
            api: ApiKey::try_from(key).map_err(|_| Refused::NotOffered(key))?,
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
        let api = self.api.name();
        counters::answered(api, self.began);
        response.each_error(&mut |error| {
            if !error.is_ok() {
                counters::failed(api, error.name().unwrap_or("OTHER"));
            }
        });
    }
}
