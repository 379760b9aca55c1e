//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use bytes::{Bytes, BytesMut};

use crate::records::{Compression, batches};
use crate::stored::{ConsumerAssignment, ConsumerSubscription};
use crate::{ApiKey, Message, RequestHeader, ResponseHeader, frame};

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("kafka-frames", frames),
    ("kafka-request", request),
    ("kafka-response", response),
    ("record-batches", record_batches),
    ("compression", compression),
    ("group-metadata", group_metadata),
];

/// What records may take decompressed here.
const LIMIT: usize = 1 << 16;
/// Where in a batch its CRC stands, and what it covers.
const CRC: std::ops::Range<usize> = 17..21;

fn frames(input: &[u8]) {
    let mut received = BytesMut::from(input);
    while let Ok(Some(body)) = frame::split(&mut received, 1 << 20) {
        request(&body);
    }
}

fn request(input: &[u8]) {
    let mut body = Bytes::copy_from_slice(input);
    let Ok(header) = RequestHeader::decode(&mut body) else { return };
    let mut written = BytesMut::new();
    header.encode(&mut written);
    assert_eq!(RequestHeader::decode(&mut written.freeze()), Ok(header.clone()));
    (crate::api::round_trips(header.api_key).0)(body, header.api_version);
}

/// Key and version, as in a request, then header and body of the response.
fn response(input: &[u8]) {
    let Some(([k0, k1, v0, v1], body)) = input.split_first_chunk() else { return };
    let Ok(api) = ApiKey::try_from(i16::from_be_bytes([*k0, *k1])) else { return };
    let version = i16::from_be_bytes([*v0, *v1]);
    let mut body = Bytes::copy_from_slice(body);
    if ResponseHeader::decode(&mut body, api, version).is_ok() {
        (crate::api::round_trips(api).1)(body, version);
    }
}

/// What a consumer tells its group, and what its leader tells it: newer versions lose what they add.
fn group_metadata(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    if let Ok(told) = ConsumerSubscription::from_metadata(bytes.clone()) {
        assert_eq!(ConsumerSubscription::from_metadata(told.to_metadata()), Ok(told));
    }
    if let Ok(told) = ConsumerAssignment::from_assignment(bytes) {
        assert_eq!(ConsumerAssignment::from_assignment(told.to_assignment()), Ok(told));
    }
}

/// What is decoded says the same once it was encoded.
pub(crate) fn round_trip<M: Message + PartialEq + std::fmt::Debug>(body: Bytes, version: i16) {
    let Ok(message) = M::decode_body(body, version) else { return };
    let mut written = BytesMut::new();
    message.encode(&mut written, version);
    assert_eq!(M::decode_body(written.freeze(), version).as_ref(), Ok(&message));
}

/// The batches as they are, and with the right checksums, which chance does not find.
fn record_batches(input: &[u8]) {
    walk(Bytes::copy_from_slice(input));
    walk(mended(input.to_vec()).into());
}

fn walk(bytes: Bytes) {
    for batch in batches(bytes).map_while(Result::ok) {
        let _ = batch.verify_crc();
        let read = batch.records(LIMIT).map(|records| records.collect::<Result<Vec<_>, _>>());
        let validated = batch.validate(LIMIT);
        if let Ok(validated) = validated {
            let Ok(Ok(records)) = read else { panic!("a valid batch cannot be read: {read:?}") };
            assert_eq!(usize::try_from(validated.count), Ok(records.len()));
            let greatest = records.iter().map(|record| record.timestamp).max();
            assert_eq!(greatest, Some(validated.max_timestamp));
        }
        let _ = batch.first_at_or_after(0, 0, LIMIT);
    }
}

/// Puts the right CRC into each batch.
fn mended(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while let Some(length) = bytes.get(at + 8..at + 12).and_then(|length| length.first_chunk()) {
        let size = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0) + 12;
        let Some(batch) = bytes.get_mut(at..at.saturating_add(size)) else { break };
        let Some(covered) = batch.get(CRC.end..) else { break };
        let crc = crc32c::crc32c(covered).to_be_bytes();
        batch[CRC].copy_from_slice(&crc);
        at += size;
    }
    bytes
}

/// The number of a codec, then what it is to decompress.
fn compression(input: &[u8]) {
    let Some((codec, packed)) = input.split_first() else { return };
    let Ok(codec) = Compression::from_id((codec % 5).into()) else { return };
    let Ok(plain) = codec.decompress(packed, LIMIT) else { return };
    assert!(plain.len() <= LIMIT, "{} bytes out of {}", plain.len(), packed.len());
    let again = codec.compress(&plain).map(|packed| codec.decompress(&packed, LIMIT));
    assert!(matches!(&again, Ok(Ok(same)) if *same == plain), "{codec:?}: {again:?}");
}
