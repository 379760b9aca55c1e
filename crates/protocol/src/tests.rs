//! Every message at every version: there and back, against another codec, and under attack.

mod corpus;
mod hostile;
mod known;
mod oracle;
mod round_trip;
mod sample;

use std::fmt::Debug;

pub(crate) use sample::{Choices, Sample};

use crate::Message;

/// Something to do with each message; see [`every_message`](crate::api::every_message).
pub(crate) trait Visitor {
    fn visit<M: Message + Sample + Debug + PartialEq>(&mut self);
}

/// A message at one version, as `choices` would have it, and its bytes.
fn sampled<M: Message + Sample>(choices: &[u8], version: i16) -> (M, bytes::Bytes) {
    let message = M::sample(&mut Choices::new(choices, version));
    let mut out = bytes::BytesMut::new();
    message.encode(&mut out, version);
    (message, out.freeze())
}
