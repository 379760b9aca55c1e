//! A group of the classic protocol: its members, its generation, its state. Pure: time is passed in, what
//! is to be answered or stored comes out as [`Effects`].
//!
//! The rules are Apache Kafka's (KIP-62, KIP-345, KIP-394, KIP-429, KIP-559, KIP-814). `join.rs`, `sync.rs`,
//! `leave.rs` and `time_out.rs` hold what happens on each occasion.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use highwater_protocol::stored::{ConsumerSubscription, GroupMetadataValue};
use highwater_protocol::{
    ErrorCode, JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse,
};

use crate::clock::Now;
use crate::group_settings::GroupSettings;
use crate::member::{Member, Ticket, protocols_size};

/// What an id takes besides its text, roughly.
const PENDING_BYTES: usize = 64;

/// The kind of group that consumers form.
const CONSUMER: &str = "consumer";

/// Where a group stands. The names are Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// It has no members; it may have offsets.
    Empty,
    /// It waits for all members to join.
    PreparingRebalance,
    /// It waits for the leader's assignment.
    CompletingRebalance,
    /// Every member has its assignment.
    Stable,
    /// It is being deleted, or does not exist.
    Dead,
}

/// A group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) state: GroupState,
    /// Since when, in milliseconds since 1970; None for one that was stored without.
    pub(crate) since_ms: Option<i64>,
    pub(crate) generation: i32,
    /// None for a group that only has offsets.
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) leader: Option<String>,
    pub(crate) members: BTreeMap<String, Member>,
    /// Member ids that were given out and not used yet, and the tick until which that may happen.
    pub(crate) pending: BTreeMap<String, i64>,
    /// Members of the generation that have not asked for their assignment yet.
    pub(crate) unsynced: BTreeSet<String>,
    /// What consumers are subscribed to; None where that is not known.
    pub(crate) subscribed: Option<BTreeSet<String>>,
    /// The tick at which those that have not joined are left behind.
    pub(crate) join_deadline: Option<i64>,
    /// The tick at which those that have not asked for their assignment are removed.
    pub(crate) sync_deadline: Option<i64>,
    /// While the first members of an empty group wait for others: for how long more they may.
    pub(crate) initial_delay_left_ms: Option<i32>,
    /// Whether somebody joined during that wait.
    pub(crate) joined_meanwhile: bool,
}

/// What comes of a step.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) joined: Vec<(Ticket, JoinGroupResponse)>,
    pub(crate) synced: Vec<(Ticket, SyncGroupResponse)>,
    pub(crate) stores: Vec<Store>,
    /// How many generations began.
    pub(crate) generations: u64,
}

/// The group is to be stored; [`Group::stored`] is to hear how that went.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) value: GroupMetadataValue,
    pub(crate) purpose: Purpose,
}

/// Why a group is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The leader assigned; the assignments are handed out once they are safe.
    Assignment { generation: i32, assignments: BTreeMap<String, Bytes> },
    /// The last member went.
    Emptied,
    /// A static member came back under another id while nothing else changed.
    Replaced { member_id: String, former_leader: Option<String>, skips_assignment: bool },
}

impl GroupState {
    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

impl Group {
    pub(crate) fn new(now: Now) -> Self {
        Self {
            state: GroupState::Empty,
            since_ms: Some(now.wall_ms),
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            pending: BTreeMap::new(),
            unsynced: BTreeSet::new(),
            subscribed: None,
            join_deadline: None,
            sync_deadline: None,
            initial_delay_left_ms: None,
            joined_meanwhile: false,
        }
    }

    /// As it was stored; its members have their whole session before them.
    pub(crate) fn restored(stored: GroupMetadataValue, now: Now) -> Self {
        let mut group = Self::new(now);
        group.since_ms =
            (stored.current_state_timestamp >= 0).then_some(stored.current_state_timestamp);
        group.generation = stored.generation;
        group.protocol_type = Some(stored.protocol_type).filter(|kind| !kind.is_empty());
        group.protocol = stored.protocol;
        group.leader = stored.leader;
        let protocol = group.protocol.clone().unwrap_or_default();
        for member in stored.members {
            let mut member = Member::restored(member, &protocol);
            member.expires_at = Some(now.tick_ms + i64::from(member.session_timeout_ms));
            group.members.insert(member.id.clone(), member);
        }
        if !group.members.is_empty() {
            group.state = GroupState::Stable;
            group.elect_any_leader();
        }
        group.subscribed = group.subscriptions();
        group
    }

    /// What is to be stored of it, with these assignments.
    pub(crate) fn to_stored(
        &self,
        assignments: Option<&BTreeMap<String, Bytes>>,
    ) -> GroupMetadataValue {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let assignment = |member: &Member| match assignments {
            Some(assignments) => assignments.get(&member.id).cloned().unwrap_or_default(),
            None => member.assignment.clone(),
        };
        GroupMetadataValue {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            current_state_timestamp: self.since_ms.unwrap_or(-1),
            members: self
                .members
                .values()
                .map(|member| member.to_stored(protocol, assignment(member)))
                .collect(),
        }
    }

    /// Whether nothing would be lost if it were forgotten, as far as its members go.
    pub(crate) fn is_unused(&self) -> bool {
        self.state == GroupState::Empty && self.members.is_empty() && self.pending.is_empty()
    }

    pub(crate) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    pub(crate) fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// Whether consumers of the group are subscribed to a topic, as far as is known.
    pub(crate) fn is_subscribed(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }

    pub(crate) fn static_member(&self, instance_id: &str) -> Option<&Member> {
        let named = |member: &&Member| member.instance_id.as_deref() == Some(instance_id);
        self.members.values().find(named)
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        self.members.values().map(Member::size).sum()
    }

    /// What the group takes in memory, roughly: the ids given out and not used yet, too.
    pub(crate) fn memory(&self) -> usize {
        let pending = self.pending.keys().map(|id| PENDING_BYTES + id.len());
        let members = self.members.values().map(Member::memory);
        pending.chain(members).sum()
    }

    /// Refuses who is no member, or no more.
    pub(crate) fn check_member(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
    ) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.static_member(instance_id) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(member) if member.id != member_id => {
                    return Err(ErrorCode::FENCED_INSTANCE_ID);
                }
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) {
            Ok(())
        } else {
            Err(ErrorCode::UNKNOWN_MEMBER_ID)
        }
    }

    /// As [`Group::check_member`], for requests that name a generation.
    pub(crate) fn check_generation(
        &self,
        generation: i32,
        member_id: &str,
        instance_id: Option<&str>,
    ) -> Result<(), ErrorCode> {
        self.check_member(member_id, instance_id)?;
        if generation == self.generation { Ok(()) } else { Err(ErrorCode::ILLEGAL_GENERATION) }
    }

    /// The member lives: its session begins anew.
    pub(crate) fn renew(&mut self, member_id: &str, now: Now) {
        if let Some(member) = self.members.get_mut(member_id) {
            member.expires_at = Some(now.tick_ms + i64::from(member.session_timeout_ms));
        }
    }

    /// A sign of life.
    pub(crate) fn heartbeat(
        &mut self,
        generation: i32,
        member_id: &str,
        instance_id: Option<&str>,
        now: Now,
    ) -> ErrorCode {
        if self.state == GroupState::Dead {
            return ErrorCode::COORDINATOR_NOT_AVAILABLE;
        }
        if let Err(error) = self.check_generation(generation, member_id, instance_id) {
            return error;
        }
        self.renew(member_id, now);
        match self.state {
            GroupState::PreparingRebalance => ErrorCode::REBALANCE_IN_PROGRESS,
            _ => ErrorCode::NONE,
        }
    }

    /// Whether a member, or somebody without a generation, may commit offsets now. In a transaction what
    /// was read decides, not the state of the group.
    pub(crate) fn check_commit(
        &self,
        generation: i32,
        member_id: &str,
        instance_id: Option<&str>,
        in_transaction: bool,
    ) -> Result<(), ErrorCode> {
        if self.state == GroupState::Dead {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        if generation < 0 && self.state == GroupState::Empty {
            return Ok(());
        }
        if generation >= 0 || !member_id.is_empty() || instance_id.is_some() {
            self.check_generation(generation, member_id, instance_id)?;
        } else if !in_transaction && self.state != GroupState::Empty {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        if !in_transaction && self.state == GroupState::CompletingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(())
    }

    pub(crate) fn move_to(&mut self, state: GroupState, now: Now) {
        self.state = state;
        self.since_ms = Some(now.wall_ms);
    }

    /// Takes a member out, whatever becomes of the group then.
    pub(crate) fn remove(&mut self, member_id: &str) {
        self.members.remove(member_id);
        self.pending.remove(member_id);
        self.unsynced.remove(member_id);
        if self.is_leader(member_id) {
            self.leader = None;
            self.elect_any_leader();
        }
    }

    pub(crate) fn elect_any_leader(&mut self) {
        let known = self.leader.as_ref().is_some_and(|leader| self.members.contains_key(leader));
        if !known {
            self.leader = self.members.keys().next().cloned();
        }
    }

    /// What consumers are subscribed to, from their metadata.
    pub(crate) fn subscriptions(&self) -> Option<BTreeSet<String>> {
        if !self.uses_consumer_protocol() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol.as_deref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            topics.extend(
                ConsumerSubscription::from_metadata(member.metadata(protocol)).ok()?.topics,
            );
        }
        Some(topics)
    }

    /// How long a rebalance waits: as long as the most patient member asks.
    pub(crate) fn patience_ms(&self) -> i64 {
        self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0).into()
    }

    /// The members as their leader sees them.
    pub(crate) fn for_leader(&self) -> Vec<JoinGroupResponseMember> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let shown = |member: &Member| JoinGroupResponseMember {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol),
        };
        self.members.values().map(shown).collect()
    }

    /// The answer to a member that is part of the generation.
    pub(crate) fn joined(&self, member_id: &str) -> JoinGroupResponse {
        JoinGroupResponse {
            generation_id: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            member_id: member_id.to_owned(),
            members: if self.is_leader(member_id) { self.for_leader() } else { Vec::new() },
            ..Default::default()
        }
    }

    /// Whether a group with these members besides can agree on a protocol.
    pub(crate) fn can_agree(&self, request: &highwater_protocol::JoinGroupRequest) -> bool {
        if request.protocol_type.is_empty() || request.protocols.is_empty() {
            return false;
        }
        // The first member of an empty group decides what kind it is.
        if self.state == GroupState::Empty {
            return true;
        }
        self.protocol_type.as_deref() == Some(&request.protocol_type)
            && request.protocols.iter().any(|protocol| self.all_support(&protocol.name))
    }

    fn all_support(&self, protocol: &str) -> bool {
        self.members.values().all(|member| member.supports(protocol))
    }

    /// The protocol that all know and most prefer; among equals the first by name.
    pub(crate) fn choose_protocol(&self) -> Option<String> {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let mut known = member.protocols.iter().map(|protocol| protocol.name.as_str());
            let vote = known.find(|name| self.all_support(name))?;
            *votes.entry(vote).or_default() += 1;
        }
        let most = votes.values().max()?;
        votes.iter().find(|(_, count)| *count == most).map(|(name, _)| (*name).to_owned())
    }

    /// Whether a member with these protocols, in place of the one of this id, would be too much.
    pub(crate) fn is_too_large_with(
        &self,
        request: &highwater_protocol::JoinGroupRequest,
        settings: &GroupSettings,
    ) -> bool {
        let before = self.members.get(&request.member_id).map_or(0, Member::size);
        let after = self.size_in_bytes() - before + protocols_size(&request.protocols);
        after > settings.max_group_bytes
    }

    /// A lower bound of the tick at which something is due.
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        let sessions = self.members.values().filter_map(|member| member.expires_at);
        let pending = self.pending.values().copied();
        sessions.chain(pending).chain(self.join_deadline).chain(self.sync_deadline).min()
    }
}

impl Effects {
    /// Answers a request to join with an error.
    pub(crate) fn refuse_join(&mut self, ticket: Ticket, error_code: ErrorCode, member_id: &str) {
        let member_id = member_id.to_owned();
        let protocol_name = None;
        let refusal =
            JoinGroupResponse { error_code, member_id, protocol_name, ..Default::default() };
        self.joined.push((ticket, refusal));
    }

    /// Answers a request for an assignment with an error.
    pub(crate) fn refuse_sync(&mut self, ticket: Ticket, error_code: ErrorCode) {
        self.synced.push((ticket, SyncGroupResponse { error_code, ..Default::default() }));
    }
}
