//! Which request goes where.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use highwater_protocol::{ApiKey, DecodeError, Message, Reader, Request, RequestHeader, frame};

use crate::config::Limits;
use crate::counters;
use crate::node::Node;
use crate::outcome::Outcome;
use crate::reply::{Answer, Reply};
use crate::{
    alter_configs, api_versions, create_topics, delete_records, delete_topics, describe_cluster,
    describe_configs, epoch_end, fetch, list_offsets, metadata, old_produce, produce, producer_id,
};

/// The APIs that are offered. A request for another one closes the connection, as Apache Kafka
/// does: its answer could not be read by who sent it.
pub(crate) const OFFERED: [ApiKey; 13] = [
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::DescribeConfigs,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::DescribeCluster,
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

/// Begins a request: what changes the log has happened when this returns.
pub(crate) async fn begin(node: &Arc<Node>, mut body: Bytes) -> Result<Reply, Refused> {
    let call = Call::read(&body)?;
    if !call.api.versions().contains(&call.version) {
        return call.at_foreign_version(body);
    }
    RequestHeader::decode(&mut body)?;
    let version = call.version;
    match call.api {
        ApiKey::Produce => produce::begin(node, call, call.decode(body)?).await,
        ApiKey::Fetch => Ok(fetch::begin(Arc::clone(node), call, call.decode(body)?)),
        ApiKey::ApiVersions => call.ready(&api_versions::answer(version, &call.decode(body)?)),
        ApiKey::ListOffsets => {
            call.ready(&list_offsets::answer(node, version, call.decode(body)?).await)
        }
        ApiKey::Metadata => call.ready(&metadata::answer(node, version, call.decode(body)?).await),
        ApiKey::CreateTopics => call.ready(&create_topics::answer(node, call.decode(body)?).await),
        ApiKey::DeleteTopics => call.ready(&delete_topics::answer(node, call.decode(body)?).await),
        ApiKey::DeleteRecords => {
            call.ready(&delete_records::answer(node, call.decode(body)?).await)
        }
        ApiKey::InitProducerId => call.ready(&producer_id::answer(node, call.decode(body)?).await),
        ApiKey::OffsetForLeaderEpoch => {
            call.ready(&epoch_end::answer(node, call.decode(body)?).await)
        }
        ApiKey::DescribeConfigs => call.ready(&describe_configs::answer(node, call.decode(body)?)),
        ApiKey::IncrementalAlterConfigs => {
            call.ready(&alter_configs::answer(node, call.decode(body)?).await)
        }
        ApiKey::DescribeCluster => call.ready(&describe_cluster::answer(node, call.decode(body)?)),
        _ => Err(Refused::NotOffered(call.api as i16)),
    }
}

impl Call {
    /// Reads what every request begins with, whatever its version.
    fn read(frame: &[u8]) -> Result<Self, Refused> {
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
        let mut bytes = BytesMut::new();
        frame::encode_response(&mut bytes, self.version, self.correlation_id, response);
        self.count(response);
        bytes.freeze().into()
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
        ApiKey::ApiVersions => "ApiVersions",
        ApiKey::CreateTopics => "CreateTopics",
        ApiKey::DeleteTopics => "DeleteTopics",
        ApiKey::DeleteRecords => "DeleteRecords",
        ApiKey::InitProducerId => "InitProducerId",
        ApiKey::OffsetForLeaderEpoch => "OffsetForLeaderEpoch",
        ApiKey::DescribeConfigs => "DescribeConfigs",
        ApiKey::IncrementalAlterConfigs => "IncrementalAlterConfigs",
        ApiKey::DescribeCluster => "DescribeCluster",
        _ => "other",
    }
}
