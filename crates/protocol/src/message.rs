//! What every message can do.

use std::ops::RangeInclusive;

use bytes::{Bytes, BytesMut};

use crate::apart::Gap;
use crate::reader::Reader;
use crate::{ApiKey, DecodeError};

/// The body of a request or a response.
pub trait Message: Sized {
    /// The API it belongs to.
    const KEY: ApiKey;
    /// The versions that can be decoded and encoded.
    const VERSIONS: RangeInclusive<i16>;
    /// The first version with compact lengths and tagged fields (KIP-482).
    const FLEXIBLE_FROM: i16;

    /// Reads the message from the bytes at the reader, and leaves the reader behind it.
    ///
    /// # Errors
    /// Any [`DecodeError`]: the bytes are not this message at this version.
    fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError>;

    /// Appends the message at a version. Fields that the version lacks are left out, null becomes
    /// empty where the version has no null, and a string too long for the version's length field
    /// (32,767 bytes before the flexible versions) is cut.
    fn encode(&self, out: &mut BytesMut, version: i16) {
        let gaps = self.encode_around(out, version);
        debug_assert!(gaps.is_empty(), "what lies apart is sent by who encodes around it");
    }

    /// As [`Message::encode`], leaving out what [lies apart](crate::Records::Apart): where it belongs,
    /// in rising order, counted from the front of `out`.
    fn encode_around(&self, out: &mut BytesMut, version: i16) -> Vec<Gap>;

    /// Reads a body that is nothing but this message.
    ///
    /// # Errors
    /// Any [`DecodeError`]; [`DecodeError::Trailing`] if bytes stand behind the message.
    fn decode_body(body: Bytes, version: i16) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let message = Self::decode(&mut reader, version)?;
        reader.finish()?;
        Ok(message)
    }
}

/// The body of a request.
pub trait Request: Message {
    /// The body that answers it.
    type Response: Message;
}
