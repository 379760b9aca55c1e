//! What stands in front of a body.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::reader::Reader;
use crate::wire::{Counted, Wire, read_nullable};
use crate::writer::Writer;
use crate::{ApiKey, DecodeError};

/// The header of a request: version 1, or 2 (with tagged fields) before a flexible body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// What is asked.
    pub api_key: ApiKey,
    /// At which version the body is written. It may be one that we do not speak.
    pub api_version: i16,
    /// Chosen by the client; the response bears it.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<String>,
}

impl RequestHeader {
    /// Reads the header and leaves the body in `frame`.
    ///
    /// # Errors
    /// Any [`DecodeError`]; [`DecodeError::UnknownApi`] for a key that we do not speak, whose
    /// header cannot be read to its end.
    pub fn decode(frame: &mut Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame.clone());
        let api_key = ApiKey::try_from(reader.i16()?)?;
        let api_version = reader.i16()?;
        let correlation_id = reader.i32()?;
        // The client id has the old length in every version, so that an old broker can read it.
        let client_id = read_nullable(&mut reader, true)?;
        reader.set_version(api_version, api_key.is_flexible(api_version));
        reader.tagged(|_, _| Ok(false))?;
        frame.advance(frame.len() - reader.left());
        Ok(Self { api_key, api_version, correlation_id, client_id })
    }

    /// Appends the header.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_i16(self.api_key as i16);
        out.put_i16(self.api_version);
        out.put_i32(self.correlation_id);
        let mut writer = Writer::new(out, self.api_version, false);
        String::write_counted(self.client_id.as_ref(), &mut writer);
        writer.flexible = self.api_key.is_flexible(self.api_version);
        writer.tagged([]);
    }
}

/// The header of a response: version 0, or 1 (with tagged fields) before a flexible body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHeader {
    /// The one of the request that is answered.
    pub correlation_id: i32,
}

impl ResponseHeader {
    /// Reads the header and leaves the body in `frame`. `api` and `version` are those of the
    /// request that `frame` answers.
    ///
    /// # Errors
    /// Any [`DecodeError`].
    pub fn decode(frame: &mut Bytes, api: ApiKey, version: i16) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame.clone());
        let correlation_id = i32::read(&mut reader)?;
        reader.set_version(version, Self::is_flexible(api, version));
        reader.tagged(|_, _| Ok(false))?;
        frame.advance(frame.len() - reader.left());
        Ok(Self { correlation_id })
    }

    /// Appends the header.
    pub fn encode(self, out: &mut BytesMut, api: ApiKey, version: i16) {
        out.put_i32(self.correlation_id);
        Writer::new(out, version, Self::is_flexible(api, version)).tagged([]);
    }

    /// The answer to ApiVersions keeps the old header: a client sends that request before it knows
    /// the broker, which may answer in version 0 (KIP-511).
    fn is_flexible(api: ApiKey, version: i16) -> bool {
        api != ApiKey::ApiVersions && api.is_flexible(version)
    }
}
