//! A coordinator of groups that answers as a test says, in front of a broker that answers all else.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use highwater_protocol::{
    ApiKey, ErrorCode, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse,
    JoinGroupResponseMember, LeaveGroupResponse, Message, RequestHeader, SyncGroupRequest,
    SyncGroupResponse, frame,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::bench::PATIENCE;

/// The one member that there is, whatever the others are said to be.
const MEMBER: &str = "member";

pub(crate) struct Group {
    pub(crate) address: SocketAddr,
    joins: Mutex<mpsc::UnboundedReceiver<Join>>,
    said: Arc<Said>,
    listening: JoinHandle<()>,
}

/// What is answered.
struct Said {
    broker: watch::Sender<Option<SocketAddr>>,
    joins: mpsc::UnboundedSender<Join>,
    /// To heartbeats.
    beat: watch::Sender<ErrorCode>,
    beats: watch::Sender<usize>,
    /// What a member gets that does not lead.
    share: watch::Sender<Bytes>,
    generation: watch::Sender<i32>,
}

/// A worker that wants to join, and waits to be answered.
pub(crate) struct Join {
    /// What it says that it has.
    pub(crate) has: Value,
    metadata: Bytes,
    said: Arc<Said>,
    answer: oneshot::Sender<JoinGroupResponse>,
}

impl Drop for Group {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Group {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (joins, asked) = mpsc::unbounded_channel();
        let said = Arc::new(Said {
            broker: watch::Sender::default(),
            joins,
            beat: watch::Sender::new(ErrorCode::NONE),
            beats: watch::Sender::default(),
            share: watch::Sender::default(),
            generation: watch::Sender::default(),
        });
        let shared = Arc::clone(&said);
        let listening = tokio::spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                lines.spawn(serve(client, Arc::clone(&shared)));
            }
        });
        Self { address, joins: Mutex::new(asked), said, listening }
    }

    pub(crate) fn stand_before(&self, broker: SocketAddr) {
        self.said.broker.send_replace(Some(broker));
    }

    /// The next join.
    pub(crate) async fn join(&self) -> Join {
        let mut joins = self.joins.lock().await;
        timeout(PATIENCE, joins.recv()).await.unwrap().unwrap()
    }

    /// That nobody has joined whom no test has seen.
    pub(crate) async fn assert_quiet(&self) {
        let join = self.joins.lock().await.try_recv();
        assert!(join.is_err(), "it joins again, with {}", join.unwrap().has);
    }

    /// Answers heartbeats so from now on.
    pub(crate) fn say(&self, code: ErrorCode) {
        self.said.beat.send_replace(code);
    }

    /// Waits until so many more heartbeats were answered. The first may have been on its way, and what
    /// the second was told has been heard when the third comes.
    pub(crate) async fn beats(&self, count: usize) {
        let mut beats = self.said.beats.subscribe();
        let goal = *beats.borrow() + count;
        let beaten = beats.wait_for(|beats| *beats >= goal);
        timeout(PATIENCE, beaten).await.unwrap().unwrap();
    }

    /// Has the members join anew, as when one has come, and waits for ours.
    pub(crate) async fn rebalance(&self) -> Join {
        self.say(ErrorCode::REBALANCE_IN_PROGRESS);
        let join = self.join().await;
        self.say(ErrorCode::NONE);
        join
    }
}

impl Join {
    /// Lets it in as one of several, whose leader has given it this.
    pub(crate) fn give(self, has: &Value) {
        // Nobody listens there.
        let leader = json!({ "id": "leader", "url": "http://127.0.0.1:1" });
        let share = json!({ "leader": leader, "has": has }).to_string();
        self.said.share.send_replace(share.into());
        self.let_in("other", Vec::new());
    }

    /// Lets it in as the leader of nobody but itself.
    pub(crate) fn lead(self) {
        let own = JoinGroupResponseMember {
            member_id: MEMBER.to_owned(),
            metadata: self.metadata.clone(),
            ..Default::default()
        };
        self.let_in(MEMBER, vec![own]);
    }

    /// Lets it in as the leader of itself and of one that has nothing yet.
    pub(crate) fn lead_beside_another(self) {
        let peer = json!({ "id": "other", "url": "http://127.0.0.1:1" });
        let claim = json!({ "worker": peer, "has": {} }).to_string();
        let member = |member_id: &str, metadata| JoinGroupResponseMember {
            member_id: member_id.to_owned(),
            metadata,
            ..Default::default()
        };
        let members = vec![member(MEMBER, self.metadata.clone()), member("other", claim.into())];
        self.let_in(MEMBER, members);
    }

    pub(crate) fn refuse(self, error_code: ErrorCode) {
        drop(self.answer.send(JoinGroupResponse { error_code, ..Default::default() }));
    }

    fn let_in(self, leader: &str, members: Vec<JoinGroupResponseMember>) {
        self.said.generation.send_modify(|generation| *generation += 1);
        let answer = JoinGroupResponse {
            generation_id: *self.said.generation.borrow(),
            protocol_type: Some("highwater".to_owned()),
            protocol_name: Some("highwater-1".to_owned()),
            leader: leader.to_owned(),
            member_id: MEMBER.to_owned(),
            members,
            ..Default::default()
        };
        assert!(self.answer.send(answer).is_ok(), "it does not wait any more");
    }
}

/// Answers the requests of a connection one by one.
async fn serve(mut client: TcpStream, said: Arc<Said>) {
    let broker = said.broker.borrow().unwrap();
    let mut broker = TcpStream::connect(broker).await.unwrap();
    while let Some(request) = read(&mut client).await {
        let answer = match answered(&said, request.clone()).await {
            Some(answer) => answer,
            None => {
                broker.write_u32(u32::try_from(request.len()).unwrap()).await.unwrap();
                broker.write_all(&request).await.unwrap();
                let Some(answer) = read(&mut broker).await else { return };
                let mut whole =
                    BytesMut::from(&u32::try_from(answer.len()).unwrap().to_be_bytes()[..]);
                whole.extend_from_slice(&answer);
                whole
            }
        };
        if client.write_all(&answer).await.is_err() {
            return;
        }
    }
}

async fn read(io: &mut TcpStream) -> Option<Bytes> {
    let length = io.read_u32().await.ok()?;
    let mut body = vec![0; length as usize];
    io.read_exact(&mut body).await.ok()?;
    Some(body.into())
}

/// `None` where the broker has to answer.
async fn answered(said: &Arc<Said>, mut request: Bytes) -> Option<BytesMut> {
    let header = RequestHeader::decode(&mut request).unwrap();
    let version = header.api_version;
    match header.api_key {
        ApiKey::JoinGroup => {
            let request = JoinGroupRequest::decode_body(request, version).unwrap();
            Some(encoded(&header, &asked_to_join(said, &request).await))
        }
        ApiKey::SyncGroup => {
            let request = SyncGroupRequest::decode_body(request, version).unwrap();
            let own = request.assignments.into_iter().find(|own| own.member_id == MEMBER);
            let assignment = own.map_or_else(|| said.share.borrow().clone(), |own| own.assignment);
            let answer = SyncGroupResponse {
                assignment,
                protocol_type: request.protocol_type,
                protocol_name: request.protocol_name,
                ..Default::default()
            };
            Some(encoded(&header, &answer))
        }
        ApiKey::Heartbeat => {
            let error_code = *said.beat.borrow();
            said.beats.send_modify(|beats| *beats += 1);
            Some(encoded(&header, &HeartbeatResponse { error_code, ..Default::default() }))
        }
        ApiKey::LeaveGroup => Some(encoded(&header, &LeaveGroupResponse::default())),
        _ => None,
    }
}

async fn asked_to_join(said: &Arc<Said>, request: &JoinGroupRequest) -> JoinGroupResponse {
    let metadata = request.protocols[0].metadata.clone();
    let claim: Value = serde_json::from_slice(&metadata).unwrap();
    let (answer, answered) = oneshot::channel();
    let join = Join { has: claim["has"].clone(), metadata, said: Arc::clone(said), answer };
    // A test that has ended wants no more of them.
    drop(said.joins.send(join));
    match answered.await {
        Ok(answer) => answer,
        Err(_) => std::future::pending().await,
    }
}

fn encoded(header: &RequestHeader, answer: &impl Message) -> BytesMut {
    let mut out = BytesMut::new();
    frame::encode_response(&mut out, header.api_version, header.correlation_id, answer);
    out
}
