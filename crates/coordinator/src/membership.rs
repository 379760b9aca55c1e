//! What members ask: to join, for their assignment, to be taken for alive, to go.

use std::sync::Arc;

use highwater_protocol::{
    ErrorCode, HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse,
    LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse, SyncGroupRequest,
    SyncGroupResponse,
};
use uuid::Uuid;

use crate::groups::{Groups, State};
use crate::join::Join;
use crate::member::{Caller, protocols_size};
use crate::state_topic::is_storable;
use crate::waiting::Waiting;

/// The first version at which a new member is given an id to come again with (KIP-394).
const RETURNS_WITH_ID: i16 = 4;
/// The first version at which a leader can be told not to assign (KIP-814).
const SKIPS_ASSIGNMENT: i16 = 9;
/// The first version at which a member has to name type and name of the protocol (KIP-559).
const NAMES_PROTOCOL: i16 = 5;
/// Bytes of a name of which a member's id is made, which is 37 longer and has to be storable.
const LONGEST_NAME: usize = 32_000;
/// Protocols that a member may offer: a group compares those of all its members with one another.
const MOST_PROTOCOLS: usize = 100;

impl Groups {
    /// Joins a group. Answered once all of its members have joined.
    pub fn join(
        self: &Arc<Self>,
        caller: Caller,
        version: i16,
        request: JoinGroupRequest,
    ) -> Waiting<JoinGroupResponse> {
        let mut state = self.state.lock();
        if let Err(error_code) = self.check_join(&state, &request) {
            return Waiting::ready(JoinGroupResponse {
                error_code,
                member_id: request.member_id,
                protocol_name: None,
                ..Default::default()
            });
        }
        let group_id = request.group_id.clone();
        let named = request.group_instance_id.as_ref().unwrap_or(&caller.client_id);
        let named = &named[..named.floor_char_boundary(LONGEST_NAME)];
        let fresh_id = format!("{named}-{}", Uuid::new_v4());
        state.slot(&group_id, self.clock.now());
        let (sender, waiting) = Waiting::channel();
        let join = Join {
            fresh_id,
            ticket: state.join_ticket(sender),
            request,
            caller,
            returns_with_id: version >= RETURNS_WITH_ID,
            skips_assignment: version >= SKIPS_ASSIGNMENT,
        };
        self.step(&mut state, &group_id, |group, now, effects| {
            group.join(join, &self.settings, now, effects);
        });
        waiting
    }

    fn check_join(&self, state: &State, request: &JoinGroupRequest) -> Result<(), ErrorCode> {
        state.check_ready()?;
        let settings = &self.settings;
        let sessions = settings.min_session_timeout_ms..=settings.max_session_timeout_ms;
        if request.group_id.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        check_names(request)?;
        if !sessions.contains(&request.session_timeout_ms) {
            return Err(ErrorCode::INVALID_SESSION_TIMEOUT);
        }
        match state.slots.get(&request.group_id) {
            Some(_)
                if state.total.bytes + protocols_size(&request.protocols)
                    > settings.max_total_bytes =>
            {
                Err(ErrorCode::GROUP_MAX_SIZE_REACHED)
            }
            Some(_) => Ok(()),
            None if !request.member_id.is_empty() => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            None => self.check_new_group(state, &request.group_id),
        }
    }

    /// Whether there is room for one more group, of this id.
    pub(crate) fn check_new_group(&self, state: &State, group_id: &str) -> Result<(), ErrorCode> {
        let settings = &self.settings;
        if !is_storable(group_id) {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        if state.slots.len() >= settings.max_groups || state.total.bytes > settings.max_total_bytes
        {
            return Err(ErrorCode::POLICY_VIOLATION);
        }
        Ok(())
    }

    /// Asks for a member's assignment. Answered once the leader's is safe.
    pub fn sync(
        self: &Arc<Self>,
        version: i16,
        request: SyncGroupRequest,
    ) -> Waiting<SyncGroupResponse> {
        let nameless = request.protocol_type.is_none() || request.protocol_name.is_none();
        if version >= NAMES_PROTOCOL && nameless {
            let error_code = ErrorCode::INCONSISTENT_GROUP_PROTOCOL;
            return Waiting::ready(SyncGroupResponse { error_code, ..Default::default() });
        }
        let mut state = self.state.lock();
        let known = state.check_ready().and_then(|()| match &request.group_id {
            id if id.is_empty() => Err(ErrorCode::INVALID_GROUP_ID),
            id if state.slots.contains_key(id) => Ok(()),
            _ => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        });
        if let Err(error_code) = known {
            return Waiting::ready(SyncGroupResponse { error_code, ..Default::default() });
        }
        let (sender, waiting) = Waiting::channel();
        let ticket = state.sync_ticket(sender);
        let group_id = request.group_id.clone();
        self.step(&mut state, &group_id, |group, now, effects| {
            group.sync(request, ticket, &self.settings, now, effects);
        });
        waiting
    }

    /// Takes a sign of life.
    pub fn heartbeat(self: &Arc<Self>, request: &HeartbeatRequest) -> HeartbeatResponse {
        let mut state = self.state.lock();
        let error_code = match state.check_ready() {
            Err(error) => error,
            Ok(()) if request.group_id.is_empty() => ErrorCode::INVALID_GROUP_ID,
            Ok(()) => state.slots.get_mut(&request.group_id).map_or(
                ErrorCode::UNKNOWN_MEMBER_ID,
                |slot| {
                    let (generation, member_id) = (request.generation_id, &request.member_id);
                    let instance_id = request.group_instance_id.as_deref();
                    // It only moves a deadline away, which is found out when the former one comes.
                    slot.group.heartbeat(generation, member_id, instance_id, self.clock.now())
                },
            ),
        };
        drop(state);
        HeartbeatResponse { error_code, ..Default::default() }
    }

    /// Takes members out of a group.
    pub fn leave(self: &Arc<Self>, request: LeaveGroupRequest) -> LeaveGroupResponse {
        let mut state = self.state.lock();
        let named = if request.group_id.is_empty() {
            Err(ErrorCode::INVALID_GROUP_ID)
        } else {
            state.check_ready()
        };
        // A member is found among all: more than there can be are not looked for.
        let many = request.members.len() > self.settings.max_size;
        let named = named.and(if many { Err(ErrorCode::INVALID_REQUEST) } else { Ok(()) });
        if let Err(error_code) = named {
            return LeaveGroupResponse { error_code, ..Default::default() };
        }
        if !state.slots.contains_key(&request.group_id) {
            let members = request.members.into_iter().map(unknown).collect();
            return LeaveGroupResponse { members, ..Default::default() };
        }
        let left = self.step(&mut state, &request.group_id, |group, now, effects| {
            group.leave(request.members, &self.settings, now, effects)
        });
        match left.unwrap_or_else(|| Ok(Vec::new())) {
            Ok(members) => LeaveGroupResponse { members, ..Default::default() },
            Err(error_code) => LeaveGroupResponse { error_code, ..Default::default() },
        }
    }
}

/// What a member calls itself and its protocols has to fit the record of its group.
fn check_names(request: &JoinGroupRequest) -> Result<(), ErrorCode> {
    let protocols = &request.protocols;
    let instance_id = request.group_instance_id.as_ref();
    let fit = instance_id.is_none_or(|name| name.len() <= LONGEST_NAME)
        && is_storable(&request.protocol_type)
        && protocols.len() <= MOST_PROTOCOLS
        && protocols.iter().all(|protocol| is_storable(&protocol.name));
    if fit { Ok(()) } else { Err(ErrorCode::INVALID_REQUEST) }
}

fn unknown(member: MemberIdentity) -> MemberResponse {
    let MemberIdentity { member_id, group_instance_id, .. } = member;
    MemberResponse { member_id, group_instance_id, error_code: ErrorCode::UNKNOWN_MEMBER_ID }
}
