//! A client that speaks the protocol and hides nothing of it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use highwater_protocol::records::{Batch, BatchBuilder, Compression, DECOMPRESSED_MAX, batches};
use highwater_protocol::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, ListOffsetsPartition,
    ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic, Message, PartitionData,
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, Request, ResponseHeader,
    TopicProduceData, frame,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::Server;

/// Longer than anything here may take.
pub(crate) const SOON: Duration = Duration::from_secs(10);

pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    received: BytesMut,
    correlation_id: i32,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// Over a stream that is connected.
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, received: BytesMut::new(), correlation_id: 0 }
    }

    pub(crate) async fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let correlation_id = self.send(version, request).await;
        self.receive(version, correlation_id).await
    }

    /// Sends a request and says by which number its answer is known.
    pub(crate) async fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        self.correlation_id += 1;
        let mut out = BytesMut::new();
        frame::encode_request(&mut out, version, self.correlation_id, Some("test"), request);
        self.stream.write_all(&out).await.unwrap();
        self.correlation_id
    }

    /// As [`Self::send`], to a broker that may have ended the connection.
    pub(crate) async fn try_send<R: Request>(&mut self, version: i16, request: &R) {
        let mut out = BytesMut::new();
        frame::encode_request(&mut out, version, 1, Some("test"), request);
        let _ = self.stream.write_all(&out).await;
    }

    /// Waits until the broker has begun what was sent: requests are begun in order, so a record
    /// sent after them tells.
    pub(crate) async fn begun(&mut self, server: &Server) {
        let mut witness = server.topic("witness").watermarks();
        self.send(9, &produce("witness", 0, plain(&[1]))).await;
        timeout(SOON, witness.wait_for(|marks| marks.high_watermark > 0)).await.unwrap().unwrap();
    }

    pub(crate) async fn receive<M: Message>(&mut self, version: i16, correlation_id: i32) -> M {
        let mut body = self.frame().await.expect("an answer, not the end of the connection");
        let header = ResponseHeader::decode(&mut body, M::KEY, version).unwrap();
        assert_eq!(header.correlation_id, correlation_id);
        M::decode_body(body, version).unwrap()
    }

    /// The next frame; nothing when the broker ended the connection.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = frame::split(&mut self.received, frame::DEFAULT_MAX).unwrap() {
                return Some(frame);
            }
            match timeout(SOON, self.stream.read_buf(&mut self.received)).await.expect("soon") {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Produces to partition 0.
    pub(crate) async fn produce(
        &mut self,
        version: i16,
        topic: &str,
        records: Bytes,
    ) -> PartitionProduceResponse {
        let mut response = self.call(version, &produce(topic, -1, records)).await;
        response.responses.remove(0).partition_responses.remove(0)
    }

    /// Fetches from partition 0.
    pub(crate) async fn fetch(&mut self, version: i16, request: &FetchRequest) -> PartitionData {
        let mut response: FetchResponse = self.call(version, request).await;
        assert!(response.error_code.is_ok(), "{}", response.error_code);
        response.responses.remove(0).partitions.remove(0)
    }

    /// Asks for an offset of partition 0.
    pub(crate) async fn list_offset(
        &mut self,
        version: i16,
        topic: &str,
        timestamp: i64,
    ) -> ListOffsetsPartitionResponse {
        let mut response = self.call(version, &list_offsets(topic, timestamp)).await;
        response.topics.remove(0).partitions.remove(0)
    }

    /// The same, at the newest version; offset, timestamp and epoch of an answer without an error.
    pub(crate) async fn found(&mut self, topic: &str, timestamp: i64) -> (i64, i64, i32) {
        let found = self.list_offset(11, topic, timestamp).await;
        assert!(found.error_code.is_ok(), "{}", found.error_code);
        (found.offset, found.timestamp, found.leader_epoch)
    }
}

/// A batch of records with these timestamps, whose values are `value-0` and so on.
pub(crate) fn batch(compression: Compression, timestamps: &[i64]) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    for (index, timestamp) in timestamps.iter().enumerate() {
        builder.push(*timestamp, Some(b"key"), Some(format!("value-{index}").as_bytes()), &[]);
    }
    builder.build().unwrap()
}

/// A batch without compression.
pub(crate) fn plain(timestamps: &[i64]) -> Bytes {
    batch(Compression::None, timestamps)
}

/// A batch of one record whose value has this many bytes.
pub(crate) fn large(bytes: usize) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.push(1, None, Some(&vec![b'x'; bytes]), &[]);
    builder.build().unwrap()
}

pub(crate) fn produce(topic: &str, acks: i16, records: Bytes) -> ProduceRequest {
    ProduceRequest {
        acks,
        timeout_ms: 30_000,
        topic_data: vec![TopicProduceData {
            name: topic.to_owned(),
            partition_data: vec![PartitionProduceData { index: 0, records: Some(records) }],
        }],
        ..Default::default()
    }
}

/// A Fetch of partition 0 that does not wait.
pub(crate) fn fetch(topic: &str, offset: i64) -> FetchRequest {
    FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        topics: vec![FetchTopic {
            topic: topic.to_owned(),
            partitions: vec![FetchPartition {
                partition: 0,
                fetch_offset: offset,
                partition_max_bytes: 1 << 20,
                ..Default::default()
            }],
        }],
        ..Default::default()
    }
}

pub(crate) fn list_offsets(topic: &str, timestamp: i64) -> ListOffsetsRequest {
    ListOffsetsRequest {
        topics: vec![ListOffsetsTopic {
            name: topic.to_owned(),
            partitions: vec![ListOffsetsPartition { timestamp, ..Default::default() }],
        }],
        ..Default::default()
    }
}

/// The batches of an answer, their checksums checked.
pub(crate) fn found_batches(answer: &PartitionData) -> Vec<Batch> {
    let found: Vec<_> =
        batches(answer.records.clone().unwrap().into_bytes()).map(Result::unwrap).collect();
    found.iter().for_each(|batch| batch.verify_crc().unwrap());
    found
}

/// Offset, timestamp and value of every record of an answer.
pub(crate) fn records(answer: &PartitionData) -> Vec<(i64, i64, String)> {
    let records = found_batches(answer).into_iter();
    let records = records.flat_map(|batch| batch.records(DECOMPRESSED_MAX).unwrap());
    let text = |value: Option<Bytes>| String::from_utf8(value.unwrap().to_vec()).unwrap();
    records.map(Result::unwrap).map(|one| (one.offset, one.timestamp, text(one.value))).collect()
}
