//! Against the codec of the `kafka-protocol` crate, for every version that both know.
//!
//! Skipped: ListOffsets 11, which that crate does not know ([`known`](super::known) holds it
//! against version 10, whose fields it has).

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable};
use proptest::prelude::*;

use super::{Sample, sampled};
use crate::*;

/// The versions that both codecs know.
fn shared<M: Message, T: kafka_protocol::protocol::Message>() -> impl Iterator<Item = i16> {
    M::VERSIONS.filter(|version| (T::VERSIONS.min..=T::VERSIONS.max).contains(version))
}

/// Our bytes, read by them, say the same field by field; their bytes for it are our bytes.
fn agree<M, T>(choices: &[u8])
where
    M: Message + Sample + Debug + PartialEq,
    T: kafka_protocol::protocol::Message + Encodable + Decodable + Debug,
{
    for version in shared::<M, T>() {
        let (message, mut bytes) = sampled::<M>(choices, version);
        let ours = bytes.clone();
        let theirs = T::decode(&mut bytes, version).unwrap();
        assert!(bytes.is_empty(), "{:?} {version}: they leave {bytes:?}", M::KEY);
        assert_same_fields(&message, &theirs);

        let mut again = BytesMut::new();
        theirs.encode(&mut again, version).unwrap();
        assert_eq!(again, ours, "{:?} {version}", M::KEY);
        assert_eq!(M::decode_body(again.freeze(), version), Ok(message));
    }
}

/// Names and values of our fields stand in theirs, in order. They have fields more: those of
/// versions that we do not speak.
fn assert_same_fields(ours: &impl Debug, theirs: &impl Debug) {
    let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
    let mut rest = words(&theirs);
    for word in words(&ours) {
        assert!(rest.any(|their| their == word), "{word} of {ours} is not in {theirs}");
    }
}

/// The words of a `Debug` text without brackets and the names of types, and without null and empty
/// strings: where a version lacks a nullable field the codecs choose differently between the two.
/// What is on the wire is compared by its bytes.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(['{', '}', '(', ')', '[', ']', ',', ' '])
        .filter(|word| !word.is_empty() && *word != "\"\"")
        .filter(|word| !word.starts_with(char::is_uppercase))
}

macro_rules! same_names {
    ($($message:ident)*) => {
        fn every_message_agrees(choices: &[u8]) {
            $( agree::<$message, theirs::$message>(choices); )*
        }
    };
}

same_names! {
    ProduceRequest ProduceResponse
    FetchRequest FetchResponse
    ListOffsetsRequest ListOffsetsResponse
    MetadataRequest MetadataResponse
    OffsetCommitRequest OffsetCommitResponse
    OffsetFetchRequest OffsetFetchResponse
    FindCoordinatorRequest FindCoordinatorResponse
    JoinGroupRequest JoinGroupResponse
    HeartbeatRequest HeartbeatResponse
    LeaveGroupRequest LeaveGroupResponse
    SyncGroupRequest SyncGroupResponse
    DescribeGroupsRequest DescribeGroupsResponse
    ListGroupsRequest ListGroupsResponse
    SaslHandshakeRequest SaslHandshakeResponse
    ApiVersionsRequest ApiVersionsResponse
    CreateTopicsRequest CreateTopicsResponse
    DeleteTopicsRequest DeleteTopicsResponse
    DeleteRecordsRequest DeleteRecordsResponse
    InitProducerIdRequest InitProducerIdResponse
    OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse
    AddPartitionsToTxnRequest AddPartitionsToTxnResponse
    AddOffsetsToTxnRequest AddOffsetsToTxnResponse
    EndTxnRequest EndTxnResponse
    WriteTxnMarkersRequest WriteTxnMarkersResponse
    TxnOffsetCommitRequest TxnOffsetCommitResponse
    DescribeConfigsRequest DescribeConfigsResponse
    AlterConfigsRequest AlterConfigsResponse
    DescribeLogDirsRequest DescribeLogDirsResponse
    SaslAuthenticateRequest SaslAuthenticateResponse
    CreatePartitionsRequest CreatePartitionsResponse
    DeleteGroupsRequest DeleteGroupsResponse
    IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse
    ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse
    OffsetDeleteRequest OffsetDeleteResponse
    DescribeClusterRequest DescribeClusterResponse
    DescribeProducersRequest DescribeProducersResponse
    DescribeTransactionsRequest DescribeTransactionsResponse
    ListTransactionsRequest ListTransactionsResponse
}

proptest! {
    #[test]
    fn both_codecs_agree(choices in prop::collection::vec(any::<u8>(), 0..600)) {
        every_message_agrees(&choices);
    }

    #[test]
    fn both_codecs_agree_on_the_request_header(
        client in any::<Option<String>>(),
        correlation_id in any::<i32>(),
    ) {
        for api_key in ApiKey::ALL.iter().copied() {
            for api_version in api_key.versions() {
                let header =
                    RequestHeader { api_key, api_version, correlation_id, client_id: client.clone() };
                let mut out = BytesMut::new();
                header.encode(&mut out);
                let version = theirs::ApiKey::try_from(api_key as i16)
                    .unwrap()
                    .request_header_version(api_version);
                let their = theirs::RequestHeader::decode(&mut out.clone().freeze(), version).unwrap();
                prop_assert_eq!(their.correlation_id, correlation_id);
                prop_assert_eq!(their.client_id.as_deref(), client.as_deref());
                let mut again = BytesMut::new();
                their.encode(&mut again, version).unwrap();
                prop_assert_eq!(&again, &out);
                prop_assert_eq!(RequestHeader::decode(&mut again.freeze()), Ok(header));
            }
        }
    }

    #[test]
    fn both_codecs_agree_on_the_response_header(correlation_id in any::<i32>()) {
        for api in ApiKey::ALL.iter().copied() {
            for version in api.versions() {
                let mut out = BytesMut::new();
                ResponseHeader { correlation_id }.encode(&mut out, api, version);
                let header_version = theirs::ApiKey::try_from(api as i16)
                    .unwrap()
                    .response_header_version(version);
                let mut bytes = Bytes::from(out);
                let their = theirs::ResponseHeader::decode(&mut bytes, header_version).unwrap();
                prop_assert_eq!(their.correlation_id, correlation_id);
                prop_assert!(bytes.is_empty());
            }
        }
    }
}

/// So that a version does not fall out of the comparison unseen.
#[test]
fn only_list_offsets_11_is_not_compared() {
    for api in ApiKey::ALL.iter().copied() {
        let theirs = theirs::ApiKey::try_from(api as i16).unwrap().valid_versions();
        let skipped: Vec<i16> =
            api.versions().filter(|version| !(theirs.min..=theirs.max).contains(version)).collect();
        let expected = if api == ApiKey::ListOffsets { vec![11] } else { vec![] };
        assert_eq!(skipped, expected, "{api:?}");
    }
}
