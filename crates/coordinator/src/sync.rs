//! Members get their assignments, once the leader's are safe.

use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_protocol::{ErrorCode, SyncGroupRequest, SyncGroupResponse};

use crate::clock::Now;
use crate::group::{Effects, Group, GroupState, Purpose, Store};
use crate::group_settings::GroupSettings;
use crate::member::{Ticket, protocols_size};

impl Group {
    pub(crate) fn sync(
        &mut self,
        request: SyncGroupRequest,
        ticket: Ticket,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        if let Err(error) = self.check_sync(&request) {
            return effects.refuse_sync(ticket, error);
        }
        let member_id = request.member_id.as_str();
        match self.state {
            GroupState::CompletingRebalance => {
                self.wait_for_assignment(member_id, ticket, effects);
                if self.is_leader(member_id) {
                    self.assign(request, settings, now, effects);
                }
            }
            GroupState::Stable => {
                self.has_synced(member_id);
                effects.synced.push((ticket, self.assigned(member_id)));
            }
            GroupState::PreparingRebalance | GroupState::Empty | GroupState::Dead => {
                effects.refuse_sync(ticket, ErrorCode::REBALANCE_IN_PROGRESS);
            }
        }
    }

    fn check_sync(&self, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
        if self.state == GroupState::Dead {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        let instance_id = request.group_instance_id.as_deref();
        self.check_generation(request.generation_id, &request.member_id, instance_id)?;
        let differ = |asked: &Option<String>, ours: &Option<String>| {
            asked.is_some() && ours.is_some() && asked != ours
        };
        if differ(&request.protocol_type, &self.protocol_type)
            || differ(&request.protocol_name, &self.protocol)
        {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        Ok(())
    }

    fn wait_for_assignment(&mut self, member_id: &str, ticket: Ticket, effects: &mut Effects) {
        if let Some(member) = self.members.get_mut(member_id)
            && let Some(before) = member.syncing.replace(ticket)
        {
            effects.refuse_sync(before, ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.has_synced(member_id);
    }

    fn has_synced(&mut self, member_id: &str) {
        self.unsynced.remove(member_id);
        if self.unsynced.is_empty() {
            self.sync_deadline = None;
        }
    }

    fn assign(
        &mut self,
        request: SyncGroupRequest,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        let given = request.assignments.into_iter();
        let assignments: BTreeMap<String, Bytes> = given
            .filter(|given| self.members.contains_key(&given.member_id))
            .map(|given| (given.member_id, given.assignment))
            .collect();
        let assigned: usize = assignments.values().map(Bytes::len).sum();
        let metadata: usize =
            self.members.values().map(|member| protocols_size(&member.protocols)).sum();
        if assigned + metadata > settings.max_group_bytes {
            // What cannot be stored is not handed out.
            self.hand_out_error(ErrorCode::UNKNOWN_SERVER_ERROR, now, effects);
            return self.prepare_rebalance(settings, now, effects);
        }
        let value = self.to_stored(Some(&assignments));
        let purpose = Purpose::Assignment { generation: self.generation, assignments };
        effects.stores.push(Store { value, purpose });
    }

    fn assigned(&self, member_id: &str) -> SyncGroupResponse {
        let member = self.members.get(member_id);
        SyncGroupResponse {
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            assignment: member.map_or_else(Bytes::new, |member| member.assignment.clone()),
            ..Default::default()
        }
    }

    /// A [`Store`] was made safe, or not. The group may have moved on meanwhile.
    pub(crate) fn stored(
        &mut self,
        purpose: Purpose,
        stored: Result<(), ErrorCode>,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        match purpose {
            Purpose::Assignment { generation, assignments } => {
                let is_current = generation == self.generation;
                if self.state != GroupState::CompletingRebalance || !is_current {
                    return;
                }
                match stored {
                    Ok(()) => self.hand_out(assignments, now, effects),
                    Err(error) => {
                        self.hand_out_error(error, now, effects);
                        self.prepare_rebalance(settings, now, effects);
                    }
                }
            }
            Purpose::Replaced { member_id, former_leader, skips_assignment } => {
                self.answer_replaced(&member_id, former_leader, skips_assignment, stored, effects);
            }
            // Without members nobody waits. A restart finds the generation before, whose members are
            // then missed.
            Purpose::Emptied => {}
        }
    }

    fn hand_out(
        &mut self,
        mut assignments: BTreeMap<String, Bytes>,
        now: Now,
        effects: &mut Effects,
    ) {
        for member in self.members.values_mut() {
            member.assignment = assignments.remove(&member.id).unwrap_or_default();
        }
        for (member_id, ticket) in self.take_syncing() {
            effects.synced.push((ticket, self.assigned(&member_id)));
            self.renew(&member_id, now);
        }
        self.move_to(GroupState::Stable, now);
    }

    pub(crate) fn hand_out_error(&mut self, error: ErrorCode, now: Now, effects: &mut Effects) {
        for member in self.members.values_mut() {
            member.assignment = Bytes::new();
        }
        for (member_id, ticket) in self.take_syncing() {
            effects.refuse_sync(ticket, error);
            self.renew(&member_id, now);
        }
    }

    fn take_syncing(&mut self) -> Vec<(String, Ticket)> {
        let members = self.members.values_mut();
        members.filter_map(|member| Some((member.id.clone(), member.syncing.take()?))).collect()
    }

    /// A static member that came back gets the generation it was in, if nothing happened meanwhile.
    fn answer_replaced(
        &mut self,
        member_id: &str,
        former_leader: Option<String>,
        skips_assignment: bool,
        stored: Result<(), ErrorCode>,
        effects: &mut Effects,
    ) {
        if self.state != GroupState::Stable {
            return;
        }
        let Some(ticket) = self.members.get_mut(member_id).and_then(|member| member.joining.take())
        else {
            return;
        };
        if let Err(error) = stored {
            // The member asks again, without an id, and is replaced once more.
            return effects.refuse_join(ticket, error, "");
        }
        let mut answer = self.joined(member_id);
        if skips_assignment {
            answer.skip_assignment = self.is_leader(member_id);
        } else {
            // Under its new id it would take itself for the leader and assign: under the former one it
            // does not (KIP-345).
            answer.leader = former_leader.unwrap_or_default();
            answer.members = Vec::new();
        }
        effects.joined.push((ticket, answer));
    }
}
