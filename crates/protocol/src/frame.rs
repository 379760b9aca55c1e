//! Frames: a message with its length, in four bytes, in front.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::{Message, Request, RequestHeader, ResponseHeader};

/// Bytes of the length in front.
pub const PREFIX: usize = 4;

/// The largest frame that Kafka takes by default (`socket.request.max.bytes`), in bytes.
pub const DEFAULT_MAX: usize = 100 << 20;

/// A length that no frame may have. The connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a frame of {length} bytes is outside of 0 to {max}; is the peer speaking Kafka, in the clear?"
)]
pub struct FrameError {
    /// The length as sent.
    pub length: i32,
    /// The bound it broke.
    pub max: usize,
}

/// The length of the frame behind `prefix`, in bytes.
///
/// # Errors
/// [`FrameError`] if it is negative or above `max`.
pub fn length(prefix: [u8; PREFIX], max: usize) -> Result<usize, FrameError> {
    let length = i32::from_be_bytes(prefix);
    usize::try_from(length).ok().filter(|length| *length <= max).ok_or(FrameError { length, max })
}

/// Takes one frame, without its length, off the front of what was received. `None` means that more
/// has to be received first.
///
/// # Errors
/// [`FrameError`] if its length is negative or above `max`.
pub fn split(received: &mut BytesMut, max: usize) -> Result<Option<Bytes>, FrameError> {
    let Some(prefix) = received.first_chunk::<PREFIX>() else { return Ok(None) };
    let length = length(*prefix, max)?;
    if received.len() - PREFIX < length {
        return Ok(None);
    }
    received.advance(PREFIX);
    Ok(Some(received.split_to(length).freeze()))
}

/// Appends a request as one frame.
pub fn encode_request<R: Request>(
    out: &mut BytesMut,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    request: &R,
) {
    let client_id = client_id.map(str::to_owned);
    let header = RequestHeader { api_key: R::KEY, api_version: version, correlation_id, client_id };
    enclose(out, |out| {
        header.encode(out);
        request.encode(out, version);
    });
}

/// Appends a response as one frame; `version` is that of the request it answers.
pub fn encode_response<M: Message>(
    out: &mut BytesMut,
    version: i16,
    correlation_id: i32,
    response: &M,
) {
    enclose(out, |out| {
        ResponseHeader { correlation_id }.encode(out, M::KEY, version);
        response.encode(out, version);
    });
}

/// Appends what `write` writes, with its length in front.
fn enclose(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_i32(0);
    write(out);
    let length = i32::try_from(out.len() - start - PREFIX).unwrap_or(i32::MAX);
    if let Some(prefix) = out.get_mut(start..start + PREFIX) {
        prefix.copy_from_slice(&length.to_be_bytes());
    }
}
