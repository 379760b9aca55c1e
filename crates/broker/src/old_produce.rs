//! Produce 0 to 2: advertised, so that librdkafka compresses, and refused (KAFKA-18659).

use bytes::{BufMut, Bytes, BytesMut};
use highwater_protocol::{ErrorCode, Message, ProduceRequest, Reader, RequestHeader};

use crate::dispatch::{Call, Refused};
use crate::reply::Reply;

/// The version that differs from these only by a transactional id in front.
const READ_AS: i16 = 3;
/// A transactional id that is null.
const NO_TRANSACTION: &[u8] = &[0xff, 0xff];

/// Says UNSUPPORTED_VERSION of every partition, in the form that the version has.
pub(crate) fn refuse(call: Call, mut frame: Bytes) -> Result<Reply, Refused> {
    RequestHeader::decode(&mut frame)?;
    let body = Bytes::from([NO_TRANSACTION, &frame].concat());
    let request = ProduceRequest::decode(&mut Reader::new(body), READ_AS)?;
    if request.acks == 0 {
        return Err(Refused::Unanswered);
    }
    Ok(Reply::Ready(enclosed(&refusal(call, &request)).into()))
}

fn refusal(call: Call, request: &ProduceRequest) -> BytesMut {
    let mut out = BytesMut::new();
    out.put_i32(call.correlation_id);
    put_count(&mut out, request.topic_data.len());
    for topic in &request.topic_data {
        // It came with a length of 16 bits, so it fits one.
        out.put_u16(u16::try_from(topic.name.len()).unwrap_or(0));
        out.put_slice(topic.name.as_bytes());
        put_count(&mut out, topic.partition_data.len());
        for partition in &topic.partition_data {
            out.put_i32(partition.index);
            out.put_i16(ErrorCode::UNSUPPORTED_VERSION.0);
            out.put_i64(-1); // base offset
            if call.version >= 2 {
                out.put_i64(-1); // log append time
            }
        }
    }
    if call.version >= 1 {
        out.put_i32(0); // throttle time
    }
    out
}

fn put_count(out: &mut BytesMut, count: usize) {
    out.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
}

fn enclosed(body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(4 + body.len());
    put_count(&mut out, body.len());
    out.put_slice(body);
    out.freeze()
}
