//! The APIs we speak: their keys, versions, and which bodies belong to them.

use std::ops::RangeInclusive;

use bytes::BytesMut;

use crate::DecodeError;
use crate::apart::Gap;
use crate::message::{Message, Request};
use crate::messages::*;
use crate::reader::Reader;
use crate::wire::Wire;
use crate::writer::Writer;

/// Decodes a body at a version, and encodes it again.
type RoundTrip = fn(bytes::Bytes, i16);

macro_rules! apis {
    ($( $name:ident = $key:literal, $versions:expr, flexible $flexible:literal, $request:ident => $response:ident; )*) => {
        /// An API that we speak, by its key in the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ApiKey {
            $( #[doc = concat!("See [`", stringify!($request), "`].")] $name = $key, )*
        }

        impl ApiKey {
            /// All of them, by rising key.
            pub const ALL: &[Self] = &[$( Self::$name, )*];

            /// Kafka's name of it.
            pub fn name(self) -> &'static str {
                match self {
                    $( Self::$name => stringify!($name), )*
                }
            }

            /// The versions that can be decoded and encoded.
            pub fn versions(self) -> RangeInclusive<i16> {
                match self {
                    $( Self::$name => $versions, )*
                }
            }

            /// The first version with compact lengths and tagged fields.
            pub fn flexible_from(self) -> i16 {
                match self {
                    $( Self::$name => $flexible, )*
                }
            }
        }

        impl TryFrom<i16> for ApiKey {
            type Error = DecodeError;

            fn try_from(key: i16) -> Result<Self, DecodeError> {
                match key {
                    $( $key => Ok(Self::$name), )*
                    _ => Err(DecodeError::UnknownApi { key }),
                }
            }
        }

        $(
            apis!(@message $name, $versions, $flexible, $request);
            apis!(@message $name, $versions, $flexible, $response);

            impl Request for $request {
                type Response = $response;
            }
        )*

        /// For the fuzz entries: the round trips of an API's request and response.
        pub(crate) fn round_trips(api: ApiKey) -> (RoundTrip, RoundTrip) {
            use crate::fuzz::round_trip;
            match api {
                $( ApiKey::$name => (round_trip::<$request>, round_trip::<$response>), )*
            }
        }

        /// Shows the visitor every message.
        #[cfg(test)]
        pub(crate) fn every_message(visitor: &mut impl crate::tests::Visitor) {
            $(
                visitor.visit::<$request>();
                visitor.visit::<$response>();
            )*
        }
    };
    (@message $name:ident, $versions:expr, $flexible:literal, $message:ident) => {
        impl Message for $message {
            const KEY: ApiKey = ApiKey::$name;
            const VERSIONS: RangeInclusive<i16> = $versions;
            const FLEXIBLE_FROM: i16 = $flexible;

            fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {
                read(Self::KEY, reader, version)
            }

            fn encode_around(&self, out: &mut BytesMut, version: i16) -> Vec<Gap> {
                write(Self::KEY, self, out, version)
            }
        }
    };
}

apis! {
    Produce = 0, 3..=11, flexible 9, ProduceRequest => ProduceResponse;
    Fetch = 1, 4..=12, flexible 12, FetchRequest => FetchResponse;
    ListOffsets = 2, 1..=11, flexible 6, ListOffsetsRequest => ListOffsetsResponse;
    Metadata = 3, 0..=12, flexible 9, MetadataRequest => MetadataResponse;
    OffsetCommit = 8, 2..=9, flexible 8, OffsetCommitRequest => OffsetCommitResponse;
    OffsetFetch = 9, 1..=9, flexible 6, OffsetFetchRequest => OffsetFetchResponse;
    FindCoordinator = 10, 0..=4, flexible 3, FindCoordinatorRequest => FindCoordinatorResponse;
    JoinGroup = 11, 0..=9, flexible 6, JoinGroupRequest => JoinGroupResponse;
    Heartbeat = 12, 0..=4, flexible 4, HeartbeatRequest => HeartbeatResponse;
    LeaveGroup = 13, 0..=5, flexible 4, LeaveGroupRequest => LeaveGroupResponse;
    SyncGroup = 14, 0..=5, flexible 4, SyncGroupRequest => SyncGroupResponse;
    DescribeGroups = 15, 0..=6, flexible 5, DescribeGroupsRequest => DescribeGroupsResponse;
    ListGroups = 16, 0..=5, flexible 3, ListGroupsRequest => ListGroupsResponse;
    // Never flexible.
    SaslHandshake = 17, 0..=1, flexible 2, SaslHandshakeRequest => SaslHandshakeResponse;
    ApiVersions = 18, 0..=4, flexible 3, ApiVersionsRequest => ApiVersionsResponse;
    CreateTopics = 19, 2..=7, flexible 5, CreateTopicsRequest => CreateTopicsResponse;
    DeleteTopics = 20, 1..=6, flexible 4, DeleteTopicsRequest => DeleteTopicsResponse;
    DeleteRecords = 21, 0..=2, flexible 2, DeleteRecordsRequest => DeleteRecordsResponse;
    InitProducerId = 22, 0..=4, flexible 2, InitProducerIdRequest => InitProducerIdResponse;
    OffsetForLeaderEpoch = 23, 2..=4, flexible 4,
        OffsetForLeaderEpochRequest => OffsetForLeaderEpochResponse;
    AddPartitionsToTxn = 24, 0..=3, flexible 3,
        AddPartitionsToTxnRequest => AddPartitionsToTxnResponse;
    AddOffsetsToTxn = 25, 0..=3, flexible 3, AddOffsetsToTxnRequest => AddOffsetsToTxnResponse;
    EndTxn = 26, 0..=4, flexible 3, EndTxnRequest => EndTxnResponse;
    WriteTxnMarkers = 27, 1..=1, flexible 1, WriteTxnMarkersRequest => WriteTxnMarkersResponse;
    TxnOffsetCommit = 28, 0..=4, flexible 3, TxnOffsetCommitRequest => TxnOffsetCommitResponse;
    DescribeConfigs = 32, 1..=4, flexible 4, DescribeConfigsRequest => DescribeConfigsResponse;
    AlterConfigs = 33, 0..=2, flexible 2, AlterConfigsRequest => AlterConfigsResponse;
    DescribeLogDirs = 35, 1..=4, flexible 2, DescribeLogDirsRequest => DescribeLogDirsResponse;
    SaslAuthenticate = 36, 0..=2, flexible 2, SaslAuthenticateRequest => SaslAuthenticateResponse;
    CreatePartitions = 37, 0..=3, flexible 2, CreatePartitionsRequest => CreatePartitionsResponse;
    DeleteGroups = 42, 0..=2, flexible 2, DeleteGroupsRequest => DeleteGroupsResponse;
    IncrementalAlterConfigs = 44, 0..=1, flexible 1,
        IncrementalAlterConfigsRequest => IncrementalAlterConfigsResponse;
    ListPartitionReassignments = 46, 0..=0, flexible 0,
        ListPartitionReassignmentsRequest => ListPartitionReassignmentsResponse;
    OffsetDelete = 47, 0..=0, flexible 1, OffsetDeleteRequest => OffsetDeleteResponse;
    DescribeCluster = 60, 0..=1, flexible 0, DescribeClusterRequest => DescribeClusterResponse;
    DescribeProducers = 61, 0..=0, flexible 0,
        DescribeProducersRequest => DescribeProducersResponse;
    DescribeTransactions = 65, 0..=0, flexible 0,
        DescribeTransactionsRequest => DescribeTransactionsResponse;
    ListTransactions = 66, 0..=1, flexible 0,
        ListTransactionsRequest => ListTransactionsResponse;
}

impl ApiKey {
    /// The versions to advertise. Produce says 0 though 0 to 2 are then refused: with a higher
    /// minimum librdkafka 2.0 sends gzip, snappy and lz4 batches uncompressed (KAFKA-18659).
    pub fn advertised(self) -> RangeInclusive<i16> {
        match self {
            Self::Produce => 0..=*self.versions().end(),
            _ => self.versions(),
        }
    }

    /// Whether a version has compact lengths and tagged fields.
    pub fn is_flexible(self, version: i16) -> bool {
        version >= self.flexible_from()
    }
}

fn read<T: Wire>(key: ApiKey, reader: &mut Reader, version: i16) -> Result<T, DecodeError> {
    if !key.versions().contains(&version) {
        return Err(DecodeError::UnsupportedVersion { api: key, version });
    }
    reader.set_version(version, key.is_flexible(version));
    T::read(reader)
}

fn write<T: Wire>(key: ApiKey, message: &T, out: &mut BytesMut, version: i16) -> Vec<Gap> {
    let mut writer = Writer::new(out, version, key.is_flexible(version));
    message.write(&mut writer);
    writer.gaps
}
