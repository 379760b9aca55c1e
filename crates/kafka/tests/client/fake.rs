//! A scripted broker: a TCP listener that answers each request as a test says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use highwater_protocol::{
    ApiKey, ApiVersion, ApiVersionsResponse, FetchResponse, FetchableTopicResponse, Message,
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    PartitionData, Request, RequestHeader, frame,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came.
pub(crate) struct Asked {
    pub(crate) header: RequestHeader,
    pub(crate) body: Bytes,
    pub(crate) port: u16,
    /// Which connection it came on, from 0.
    pub(crate) connection: usize,
}

/// What the fake does with a request.
pub(crate) enum Reply {
    /// Sends these bytes.
    Send(BytesMut),
    /// Sends these bytes after a while.
    Late(Duration, BytesMut),
    /// Says nothing, for ever.
    Silence,
    /// Closes the connection.
    Close,
}

impl Asked {
    pub(crate) fn request<R: Request>(&self) -> R {
        R::decode_body(self.body.clone(), self.header.api_version).unwrap()
    }

    pub(crate) fn frame(&self, answer: &impl Message) -> BytesMut {
        let mut out = BytesMut::new();
        frame::encode_response(
            &mut out,
            self.header.api_version,
            self.header.correlation_id,
            answer,
        );
        out
    }

    pub(crate) fn answer(&self, answer: &impl Message) -> Reply {
        Reply::Send(self.frame(answer))
    }

    /// The answers that every test needs: our own versions, and a topic `trail` of two partitions
    /// led by the fake.
    pub(crate) fn basics(&self) -> Reply {
        match self.header.api_key {
            ApiKey::ApiVersions => self.answer(&versions(&[])),
            ApiKey::Metadata => self.answer(&metadata(self.port)),
            other => panic!("the test has no answer to {other:?}"),
        }
    }

    /// Answers a fetch with one partition.
    pub(crate) fn fetched(&self, data: PartitionData) -> Reply {
        let partitions = vec![data];
        let topic = FetchableTopicResponse { topic: "trail".to_owned(), partitions };
        self.answer(&FetchResponse { responses: vec![topic], ..Default::default() })
    }
}

/// All versions that we speak, with other highest versions for some.
pub(crate) fn versions(highest: &[(ApiKey, i16)]) -> ApiVersionsResponse {
    let api = |key: &ApiKey| {
        let lower = highest.iter().find(|(lower, _)| lower == key);
        ApiVersion {
            api_key: *key as i16,
            min_version: *key.versions().start(),
            max_version: lower.map_or(*key.versions().end(), |(_, version)| *version),
        }
    };
    ApiVersionsResponse { api_keys: ApiKey::ALL.iter().map(api).collect(), ..Default::default() }
}

pub(crate) fn metadata(port: u16) -> MetadataResponse {
    let partition = |partition_index| MetadataResponsePartition {
        partition_index,
        leader_id: 1,
        ..Default::default()
    };
    MetadataResponse {
        brokers: vec![MetadataResponseBroker {
            node_id: 1,
            host: "127.0.0.1".to_owned(),
            port: port.into(),
            rack: None,
        }],
        controller_id: 1,
        cluster_id: Some("fake".to_owned()),
        topics: vec![MetadataResponseTopic {
            name: Some("trail".to_owned()),
            partitions: vec![partition(0), partition(1)],
            ..Default::default()
        }],
        ..Default::default()
    }
}

pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    listening: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Fake {
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, connections) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&connections);
        let listening = tokio::spawn(async move {
            // Dropped with this task, so that dropping the fake closes its connections.
            let mut served = tokio::task::JoinSet::new();
            loop {
                let (io, _) = listener.accept().await.unwrap();
                let connection = counted.fetch_add(1, Ordering::SeqCst);
                served.spawn(serve(io, (address.port(), connection), Arc::clone(&answer)));
            }
        });
        Self { address, connections, listening }
    }

    pub(crate) fn bootstrap(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(
    mut io: TcpStream,
    (port, connection): (u16, usize),
    answer: Arc<impl Fn(&Asked) -> Reply>,
) {
    loop {
        let Ok(length) = io.read_u32().await else { return };
        let mut body = vec![0; length as usize];
        io.read_exact(&mut body).await.unwrap();
        let mut body = Bytes::from(body);
        let header = RequestHeader::decode(&mut body).unwrap();
        let sent = match answer(&Asked { header, body, port, connection }) {
            Reply::Send(bytes) => io.write_all(&bytes).await,
            Reply::Late(wait, bytes) => {
                tokio::time::sleep(wait).await;
                io.write_all(&bytes).await
            }
            Reply::Silence => Ok(()),
            Reply::Close => return,
        };
        if sent.is_err() {
            return;
        }
    }
}
