//! Frames: a message with its length, in four bytes, in front.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::{Gap, Message, Request, RequestHeader, ResponseHeader};

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
    let gaps = enclose(out, |out| {
        header.encode(out);
        request.encode_around(out, version)
    });
    debug_assert!(gaps.is_empty(), "no request lies apart");
}

/// Appends a response as one frame; `version` is that of the request it answers.
pub fn encode_response<M: Message>(
    out: &mut BytesMut,
    version: i16,
    correlation_id: i32,
    response: &M,
) {
    let gaps = encode_around(out, version, correlation_id, response);
    debug_assert!(gaps.is_empty(), "what lies apart is sent by who encodes around it");
}

/// As [`encode_response`], leaving out what [lies apart](crate::Records::Apart): where it belongs, in
/// rising order, counted from the front of `out`. The frame's length counts it.
pub fn encode_around<M: Message>(
    out: &mut BytesMut,
    version: i16,
    correlation_id: i32,
    response: &M,
) -> Vec<Gap> {
    enclose(out, |out| {
        ResponseHeader { correlation_id }.encode(out, M::KEY, version);
        response.encode_around(out, version)
    })
}

/// Appends what `write` writes, with its length in front.
fn enclose(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut) -> Vec<Gap>) -> Vec<Gap> {
    let start = out.len();
    out.put_i32(0);
    let gaps = write(out);
    let apart: usize = gaps.iter().map(|gap| gap.len).sum();
    let length = i32::try_from(out.len() - start - PREFIX + apart).unwrap_or(i32::MAX);
    if let Some(prefix) = out.get_mut(start..start + PREFIX) {
        prefix.copy_from_slice(&length.to_be_bytes());
    }
    gaps
}
