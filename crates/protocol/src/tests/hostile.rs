//! Bytes that are no message are an error: never a panic, never memory beyond the frame.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::{Sample, Visitor, sampled};
use crate::api::every_message;
use crate::*;

/// Decodes the same bytes as every message.
struct Decode<'a>(&'a Bytes);

impl Visitor for Decode<'_> {
    fn visit<M: Message + Sample + std::fmt::Debug + PartialEq>(&mut self) {
        for version in M::VERSIONS {
            let _ = M::decode_body(self.0.clone(), version);
        }
    }
}

/// Cuts every message at every byte, and lengthens it by one.
struct Cut<'a>(&'a [u8]);

impl Visitor for Cut<'_> {
    fn visit<M: Message + Sample + std::fmt::Debug + PartialEq>(&mut self) {
        for version in M::VERSIONS {
            let (_, bytes) = sampled::<M>(self.0, version);
            for end in 0..bytes.len() {
                let cut = M::decode_body(bytes.slice(..end), version);
                assert!(cut.is_err(), "{:?} {version} cut at {end}: {cut:?}", M::KEY);
            }
            let longer = [bytes.as_ref(), &[0]].concat().into();
            let left = 1;
            assert_eq!(M::decode_body(longer, version), Err(DecodeError::Trailing { left }));
        }
    }
}

/// Flips one bit of every message.
struct Flip<'a>(&'a [u8], usize);

impl Visitor for Flip<'_> {
    fn visit<M: Message + Sample + std::fmt::Debug + PartialEq>(&mut self) {
        for version in M::VERSIONS {
            let (_, bytes) = sampled::<M>(self.0, version);
            let mut bytes = bytes.to_vec();
            let bit = self.1 % (bytes.len() * 8).max(1);
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
            let _ = M::decode_body(bytes.into(), version);
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = Bytes::from(bytes);
        every_message(&mut Decode(&bytes));
        for api in ApiKey::ALL {
            for version in api.versions() {
                let _ = ResponseHeader::decode(&mut bytes.clone(), *api, version);
            }
        }
        let _ = RequestHeader::decode(&mut bytes);
    }

    #[test]
    fn small_numbers_never_panic(bytes in prop::collection::vec(0_u8..4, 0..200)) {
        every_message(&mut Decode(&Bytes::from(bytes)));
    }

    #[test]
    fn flipped_bits_never_panic(
        choices in prop::collection::vec(any::<u8>(), 0..300),
        bit in any::<usize>(),
    ) {
        every_message(&mut Flip(&choices, bit));
    }

    #[test]
    fn random_frames_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        let _ = frame::split(&mut BytesMut::from(&bytes[..]), 8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_cut_message_is_an_error(choices in prop::collection::vec(any::<u8>(), 0..300)) {
        every_message(&mut Cut(&choices));
    }
}

/// The body on which other codecs make room for 2^31 - 2 topics.
#[test]
fn a_huge_array_in_a_small_body_is_an_error() {
    let length = 0x7fff_fffe;
    let body = Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xfe]);
    let error = DecodeError::Length { length, left: 0 };
    assert_eq!(ListOffsetsRequest::decode_body(body, 1), Err(error));

    // The same in compact form: replica -1, isolation 0, 2^31 - 2 topics.
    let body = [0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, 7].as_slice().into();
    let error = DecodeError::Length { length, left: 0 };
    assert_eq!(ListOffsetsRequest::decode_body(body, 6), Err(error));
}

/// Two bytes on the wire must not become gigabytes in memory, whatever the frame's size.
#[test]
fn arrays_have_a_ceiling() {
    let count = 3_000_000_u32;
    let mut body = BytesMut::new();
    body.extend_from_slice(&count.to_be_bytes());
    body.resize(4 + 2 * 3_000_000 + 1, 0);
    let limit = 64 << 20;
    assert_eq!(MetadataRequest::decode_body(body.freeze(), 4), Err(DecodeError::Arrays { limit }));
}

#[test]
fn a_null_where_none_may_stand_is_an_error() {
    let body = Bytes::from_static(&[0xff, 0xff, 0xff, 0xff]);
    assert_eq!(MetadataRequest::decode_body(body, 0), Err(DecodeError::Null));
    let body = Bytes::from_static(&[0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(CreateTopicsRequest::decode_body(body, 2), Err(DecodeError::Null));
}

#[test]
fn a_negative_length_is_an_error() {
    let body = Bytes::from_static(&[0xff, 0xff, 0xff, 0xfe]);
    let error = DecodeError::Length { length: -2, left: 0 };
    assert_eq!(MetadataRequest::decode_body(body, 1), Err(error));
}

#[test]
fn a_string_is_utf_8() {
    let body = Bytes::from_static(&[0, 1, 0xff, 0]);
    assert_eq!(FindCoordinatorRequest::decode_body(body, 1), Err(DecodeError::Utf8));
}

#[test]
fn a_varint_ends() {
    for bytes in [&[0xff, 0xff, 0xff, 0xff, 0xff, 1], &[0xff, 0xff, 0xff, 0xff, 0x1f, 1]] {
        let body = Bytes::from_static(bytes);
        assert_eq!(ApiVersionsRequest::decode_body(body, 3), Err(DecodeError::Varint));
    }
}

#[test]
fn unknown_versions_and_keys_are_errors() {
    let api = ApiKey::Produce;
    for version in [-1, 0, 2, 12] {
        let error = DecodeError::UnsupportedVersion { api, version };
        assert_eq!(ProduceRequest::decode_body(Bytes::new(), version), Err(error));
    }
    let mut frame = Bytes::from_static(&[0, 71, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(RequestHeader::decode(&mut frame), Err(DecodeError::UnknownApi { key: 71 }));
}

/// A header of a version from the future is read to its end, so that it can be answered.
#[test]
fn a_header_of_an_unknown_version_is_read() {
    let mut frame = Bytes::from_static(&[0, 18, 0, 99, 0, 0, 0, 5, 0xff, 0xff, 1, 9, 2, 7, 7, 1]);
    let header = RequestHeader::decode(&mut frame).unwrap();
    assert_eq!((header.api_version, header.correlation_id), (99, 5));
    assert_eq!(frame.as_ref(), [1]);
}

#[test]
fn frames_have_a_bound() {
    let split = |bytes: &[u8]| frame::split(&mut BytesMut::from(bytes), 100);
    assert_eq!(split(&[0, 0, 0]), Ok(None));
    assert_eq!(split(&[0, 0, 0, 100]), Ok(None));
    let error = |length| Err(frame::FrameError { length, max: 100 });
    assert_eq!(split(&[0, 0, 0, 101]), error(101));
    assert_eq!(split(&[0xff, 0xff, 0xff, 0xff]), error(-1));
    // "GET " of a web browser.
    assert_eq!(split(b"GET / HTTP/1.1"), error(0x4745_5420));
}

/// Tagged fields: unknown ones are skipped, known ones must fill their size, tags must rise.
#[test]
fn tagged_fields_are_bounded() {
    let decode = |tags: &[u8]| {
        // An ApiVersionsResponse 3 without APIs and with a throttle time of 0.
        let body = [&[0, 0, 1, 0, 0, 0, 0], tags].concat();
        ApiVersionsResponse::decode_body(body.into(), 3)
    };
    assert_eq!(decode(&[0]), Ok(ApiVersionsResponse::default()));
    assert_eq!(decode(&[1, 9, 3, 1, 2, 3]), Ok(ApiVersionsResponse::default()));
    let ready = ApiVersionsResponse { zk_migration_ready: true, ..Default::default() };
    assert_eq!(decode(&[2, 3, 1, 1, 9, 1, 0]), Ok(ready));
    assert_eq!(decode(&[1, 3, 2, 1, 1]), Err(DecodeError::Tag { tag: 3 }));
    assert_eq!(decode(&[1, 3, 0]), Err(DecodeError::Truncated { needed: 1, left: 0 }));
    assert_eq!(decode(&[2, 9, 1, 0, 3, 1, 1]), Err(DecodeError::Tag { tag: 3 }));
    assert_eq!(decode(&[2, 9, 0, 9, 0]), Err(DecodeError::Tag { tag: 9 }));
    assert_eq!(decode(&[1, 9, 3, 1, 2]), Err(DecodeError::Length { length: 3, left: 2 }));
    assert_eq!(
        decode(&[0xff, 0xff, 0xff, 0xff, 0x0f]),
        Err(DecodeError::Truncated { needed: 1, left: 0 })
    );
}
