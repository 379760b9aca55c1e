//! Known answers: bytes written down by hand, from Kafka's schemas.

use bytes::BytesMut;

use crate::*;

fn bytes(message: &impl Message, version: i16) -> Vec<u8> {
    let mut out = BytesMut::new();
    message.encode(&mut out, version);
    out.to_vec()
}

fn max_timestamp_of(topic: &str) -> ListOffsetsRequest {
    let partition =
        ListOffsetsPartition { partition_index: 2, timestamp: -3, ..Default::default() };
    let topic = ListOffsetsTopic { name: topic.to_owned(), partitions: vec![partition] };
    ListOffsetsRequest { topics: vec![topic], timeout_ms: 258, ..Default::default() }
}

#[test]
fn list_offsets_by_version() {
    let request = max_timestamp_of("ab");
    let timestamp = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd];
    let epoch = [0xff; 4];
    let old =
        [[0xff; 4].as_slice(), &[0, 0, 0, 1, 0, 2, b'a', b'b', 0, 0, 0, 1, 0, 0, 0, 2], &timestamp];
    assert_eq!(bytes(&request, 1), old.concat());

    let compact =
        [[0xff; 4].as_slice(), &[0, 2, 3, b'a', b'b', 2, 0, 0, 0, 2], &epoch, &timestamp, &[0, 0]];
    assert_eq!(bytes(&request, 6), [&compact.concat(), &[0][..]].concat());
    assert_eq!(bytes(&request, 10), [&compact.concat(), &[0, 0, 1, 2, 0][..]].concat());
}

/// Version 11 allows one more special timestamp and changes no field.
#[test]
fn list_offsets_11_has_the_fields_of_10() {
    let request = max_timestamp_of("orders");
    assert_eq!(bytes(&request, 11), bytes(&request, 10));
    assert_eq!(ListOffsetsRequest::decode_body(bytes(&request, 11).into(), 11), Ok(request));

    let found = ListOffsetsPartitionResponse { offset: 1, timestamp: 999, ..Default::default() };
    let topic = ListOffsetsTopicResponse { name: "orders".to_owned(), partitions: vec![found] };
    let response = ListOffsetsResponse { topics: vec![topic], ..Default::default() };
    assert_eq!(bytes(&response, 11), bytes(&response, 10));
    assert_eq!(ListOffsetsResponse::decode_body(bytes(&response, 11).into(), 11), Ok(response));
}

/// What the spare tags of an ApiVersions answer cost: nothing, when they say nothing.
#[test]
fn tagged_fields_are_left_out_when_they_are_the_default() {
    let mut response = ApiVersionsResponse::default();
    assert_eq!(bytes(&response, 3), [0, 0, 1, 0, 0, 0, 0, 0]);
    response.zk_migration_ready = true;
    assert_eq!(bytes(&response, 3), [0, 0, 1, 0, 0, 0, 0, 1, 3, 1, 1]);
}

#[test]
fn a_request_frame_of_each_header() {
    let mut out = BytesMut::new();
    frame::encode_request(&mut out, 0, 5, Some("me"), &ApiVersionsRequest::default());
    assert_eq!(out.as_ref(), [0, 0, 0, 12, 0, 18, 0, 0, 0, 0, 0, 5, 0, 2, b'm', b'e']);
    out.clear();
    frame::encode_request(&mut out, 3, 5, None, &ApiVersionsRequest::default());
    assert_eq!(out.as_ref(), [0, 0, 0, 14, 0, 18, 0, 3, 0, 0, 0, 5, 0xff, 0xff, 0, 1, 1, 0]);
}

/// The answer to ApiVersions has the old header even where its body is flexible.
#[test]
fn a_response_frame_of_each_header() {
    let mut out = BytesMut::new();
    frame::encode_response(&mut out, 3, 5, &ApiVersionsResponse::default());
    assert_eq!(out.as_ref(), [0, 0, 0, 12, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0]);
    out.clear();
    frame::encode_response(&mut out, 2, 5, &DeleteRecordsResponse::default());
    assert_eq!(out.as_ref(), [0, 0, 0, 11, 0, 0, 0, 5, 0, 0, 0, 0, 0, 1, 0]);
}

#[test]
fn produce_is_advertised_from_0() {
    assert_eq!(ApiKey::Produce.advertised(), 0..=11);
    assert_eq!(ApiKey::Fetch.advertised(), 4..=12);
}

#[test]
fn error_codes_have_their_names() {
    assert_eq!(ErrorCode(35), ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(ErrorCode::NONE.to_string(), "NONE (0)");
    assert_eq!(ErrorCode(999).to_string(), "error code 999");
    assert!(ErrorCode::KAFKA_STORAGE_ERROR.is_retriable());
    assert!(!ErrorCode::INVALID_RECORD.is_retriable());
    assert!(!ErrorCode::NONE.is_retriable());
}

/// A topic without a name is null from version 12 of the answer on; before, its name is empty.
#[test]
fn null_stands_only_in_its_versions() {
    let topic = MetadataResponseTopic { name: None, ..Default::default() };
    let response = MetadataResponse { topics: vec![topic], ..Default::default() };
    let name = |version| {
        let bytes = bytes(&response, version);
        MetadataResponse::decode_body(bytes.into(), version).map(|read| read.topics[0].name.clone())
    };
    assert_eq!(name(8), Ok(Some(String::new())));
    assert_eq!(name(11), Ok(Some(String::new())));
    assert_eq!(name(12), Ok(None));
    assert_eq!(
        MetadataResponse::decode_body(bytes(&response, 12).into(), 11).err(),
        Some(DecodeError::Null)
    );
}
