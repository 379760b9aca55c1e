//! What is encoded is decoded, at every version.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::{Choices, Sample, Visitor, sampled};
use crate::api::every_message;
use crate::*;

struct RoundTrip<'a>(&'a [u8]);

impl Visitor for RoundTrip<'_> {
    fn visit<M: Message + Sample + std::fmt::Debug + PartialEq>(&mut self) {
        for version in M::VERSIONS {
            let (message, bytes) = sampled::<M>(self.0, version);
            let decoded = M::decode_body(bytes, version);
            assert_eq!(decoded, Ok(message), "{:?} {version}", M::KEY);
        }
    }
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..600)
}

proptest! {
    #[test]
    fn every_message_comes_back(choices in choices()) {
        every_message(&mut RoundTrip(&choices));
    }

    #[test]
    fn a_request_frame_comes_back(choices in choices(), client in any::<Option<String>>()) {
        for version in FetchRequest::VERSIONS {
            let request = FetchRequest::sample(&mut Choices::new(&choices, version));
            let mut out = BytesMut::new();
            frame::encode_request(&mut out, version, 42, client.as_deref(), &request);
            let mut body = frame::split(&mut out, 10_000).unwrap().unwrap();
            prop_assert!(out.is_empty());
            let header = RequestHeader::decode(&mut body).unwrap();
            prop_assert_eq!(header, RequestHeader {
                api_key: ApiKey::Fetch,
                api_version: version,
                correlation_id: 42,
                client_id: client.clone(),
            });
            prop_assert_eq!(FetchRequest::decode_body(body, version), Ok(request));
        }
    }

    #[test]
    fn a_response_frame_comes_back(choices in choices()) {
        for version in ApiVersionsResponse::VERSIONS {
            frame_of_response::<ApiVersionsResponse>(&choices, version);
        }
        for version in FetchResponse::VERSIONS {
            frame_of_response::<FetchResponse>(&choices, version);
        }
    }

    #[test]
    fn byte_fields_are_slices_of_the_frame(records in prop::collection::vec(any::<u8>(), 1..99)) {
        let partition = PartitionProduceData { index: 0, records: Some(records.into()) };
        let topic = TopicProduceData { name: String::new(), partition_data: vec![partition] };
        let request = ProduceRequest { topic_data: vec![topic], ..Default::default() };
        let mut out = BytesMut::new();
        request.encode(&mut out, 9);
        let body = out.freeze();
        let memory = body.as_ptr_range();
        let decoded = ProduceRequest::decode_body(body.clone(), 9).unwrap();
        let records = decoded.topic_data[0].partition_data[0].records.clone().unwrap();
        prop_assert!(memory.contains(&records.as_ptr()));
    }
}

fn frame_of_response<M: Message + Sample + std::fmt::Debug + PartialEq>(
    choices: &[u8],
    version: i16,
) {
    let response = M::sample(&mut Choices::new(choices, version));
    let mut out = BytesMut::new();
    frame::encode_response(&mut out, version, -7, &response);
    let mut body = frame::split(&mut out, 10_000).unwrap().unwrap();
    let header = ResponseHeader::decode(&mut body, M::KEY, version).unwrap();
    assert_eq!(header.correlation_id, -7);
    assert_eq!(M::decode_body(body, version), Ok(response));
}

#[test]
fn a_version_without_null_gets_empty() {
    let request = MetadataRequest { topics: None, ..Default::default() };
    let mut out = BytesMut::new();
    request.encode(&mut out, 0);
    assert_eq!(out.as_ref(), [0; 4]);
    let decoded = MetadataRequest::decode_body(out.freeze(), 0).unwrap();
    assert_eq!(decoded.topics, Some(Vec::new()));
}

#[test]
fn a_string_too_long_for_its_version_is_cut_between_characters() {
    let request =
        InitProducerIdRequest { transactional_id: Some("ß".repeat(20_000)), ..Default::default() };
    let mut out = BytesMut::new();
    request.encode(&mut out, 1);
    let decoded = InitProducerIdRequest::decode_body(out.freeze(), 1).unwrap();
    assert_eq!(decoded.transactional_id, Some("ß".repeat(16_383)));

    let mut out = BytesMut::new();
    request.encode(&mut out, 2);
    assert_eq!(InitProducerIdRequest::decode_body(out.freeze(), 2), Ok(request));
}

#[test]
fn a_frame_comes_in_pieces() {
    let mut received = BytesMut::new();
    let sent = [0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 9];
    let mut frames = Vec::new();
    for byte in sent {
        received.extend_from_slice(&[byte]);
        while let Some(frame) = frame::split(&mut received, 2).unwrap() {
            frames.push(frame);
        }
    }
    assert_eq!(frames, [Bytes::from_static(&[7, 8]), Bytes::new()]);
    assert_eq!(received.as_ref(), [9]);
}
