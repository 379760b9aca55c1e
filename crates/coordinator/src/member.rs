//! A member of a group.

use bytes::Bytes;
use highwater_protocol::stored::MemberMetadata;
use highwater_protocol::{JoinGroupRequest, JoinGroupRequestProtocol};

/// Stands for a request that waits for its answer.
pub(crate) type Ticket = u64;

/// Who sent a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The client's name for itself.
    pub client_id: String,
    /// From where it is connected, in Java's form: `/127.0.0.1`.
    pub client_host: String,
}

/// A member of a group.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: String,
    /// The name of a static member (KIP-345).
    pub(crate) instance_id: Option<String>,
    pub(crate) caller: Caller,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) session_timeout_ms: i32,
    pub(crate) protocols: Vec<JoinGroupRequestProtocol>,
    pub(crate) assignment: Bytes,
    /// The JoinGroup that waits.
    pub(crate) joining: Option<Ticket>,
    /// The SyncGroup that waits.
    pub(crate) syncing: Option<Ticket>,
    /// True until the first generation that it is part of.
    pub(crate) is_new: bool,
    /// The tick at which it counts as dead; None where that came and a waiting request spoke for it.
    pub(crate) expires_at: Option<i64>,
}

impl Member {
    pub(crate) fn new(id: String, caller: Caller, request: &JoinGroupRequest) -> Self {
        let mut member = Self {
            id,
            instance_id: request.group_instance_id.clone(),
            caller,
            rebalance_timeout_ms: 0,
            session_timeout_ms: 0,
            protocols: Vec::new(),
            assignment: Bytes::new(),
            joining: None,
            syncing: None,
            is_new: true,
            expires_at: None,
        };
        member.update(request);
        member
    }

    /// Takes over what a request to join says.
    pub(crate) fn update(&mut self, request: &JoinGroupRequest) {
        self.session_timeout_ms = request.session_timeout_ms;
        // Version 0 has no time-out of its own for rebalances.
        self.rebalance_timeout_ms = match request.rebalance_timeout_ms {
            -1 => request.session_timeout_ms,
            given => given,
        };
        self.protocols.clone_from(&request.protocols);
    }

    /// As it was stored under the protocol that its group had chosen.
    pub(crate) fn restored(stored: MemberMetadata, protocol: &str) -> Self {
        let MemberMetadata { client_id, client_host, .. } = stored;
        Self {
            id: stored.member_id,
            instance_id: stored.group_instance_id,
            caller: Caller { client_id, client_host },
            rebalance_timeout_ms: match stored.rebalance_timeout {
                -1 => stored.session_timeout,
                given => given,
            },
            session_timeout_ms: stored.session_timeout,
            protocols: vec![JoinGroupRequestProtocol {
                name: protocol.to_owned(),
                metadata: stored.subscription,
            }],
            assignment: stored.assignment,
            joining: None,
            syncing: None,
            is_new: false,
            expires_at: None,
        }
    }

    pub(crate) fn to_stored(&self, protocol: &str, assignment: Bytes) -> MemberMetadata {
        MemberMetadata {
            member_id: self.id.clone(),
            group_instance_id: self.instance_id.clone(),
            client_id: self.caller.client_id.clone(),
            client_host: self.caller.client_host.clone(),
            rebalance_timeout: self.rebalance_timeout_ms,
            session_timeout: self.session_timeout_ms,
            subscription: self.metadata(protocol),
            assignment,
        }
    }

    pub(crate) fn supports(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|known| known.name == protocol)
    }

    /// Its metadata under a protocol; empty if it does not know it.
    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        let known = self.protocols.iter().find(|known| known.name == protocol);
        known.map_or_else(Bytes::new, |known| known.metadata.clone())
    }

    /// A waiting request is a sign of life, save that of a member that never was in a generation: its
    /// client may be gone, and nobody would know (KAFKA-7610).
    pub(crate) fn is_heard_of(&self) -> bool {
        !self.is_new && (self.joining.is_some() || self.syncing.is_some())
    }

    /// What it takes in memory, roughly: its id stands there twice, as a key too.
    pub(crate) fn memory(&self) -> usize {
        let Caller { client_id, client_host } = &self.caller;
        let names = 2 * self.id.len() + client_id.len() + client_host.len();
        let protocols = self.protocols.len() * size_of::<JoinGroupRequestProtocol>();
        let instance_id = self.instance_id.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.size() + names + protocols + instance_id
    }

    /// Bytes that it brings to its group.
    pub(crate) fn size(&self) -> usize {
        protocols_size(&self.protocols) + self.assignment.len()
    }
}

/// Bytes of protocols with their metadata.
pub(crate) fn protocols_size(protocols: &[JoinGroupRequestProtocol]) -> usize {
    protocols.iter().map(|protocol| protocol.name.len() + protocol.metadata.len()).sum()
}
