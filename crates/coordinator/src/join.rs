//! Members join, and a generation begins once all are there.

use highwater_protocol::{ErrorCode, JoinGroupRequest};

use crate::clock::Now;
use crate::group::{Effects, Group, GroupState, Purpose, Store};
use crate::group_settings::GroupSettings;
use crate::member::{Caller, Member, Ticket};

/// How long a new member may wait for its first generation: its client may be gone (KAFKA-7610).
const NEW_MEMBER_PATIENCE_MS: i64 = 300_000;

/// A request to join, with what its version can do.
#[derive(Debug)]
pub(crate) struct Join {
    pub(crate) request: JoinGroupRequest,
    pub(crate) caller: Caller,
    pub(crate) ticket: Ticket,
    /// The id for a member that has none yet.
    pub(crate) fresh_id: String,
    /// Whether a new member has to come again with the id it is given (KIP-394).
    pub(crate) returns_with_id: bool,
    /// Whether a leader can be told not to assign (KIP-814).
    pub(crate) skips_assignment: bool,
}

impl Group {
    pub(crate) fn join(
        &mut self,
        join: Join,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        let (request, ticket) = (&join.request, join.ticket);
        if self.state == GroupState::Dead {
            effects.refuse_join(ticket, ErrorCode::COORDINATOR_NOT_AVAILABLE, &request.member_id);
        } else if !self.has_room(&request.member_id, settings)
            || self.is_too_large_with(request, settings)
        {
            self.remove_refused(&join, settings, now, effects);
            effects.refuse_join(ticket, ErrorCode::GROUP_MAX_SIZE_REACHED, "");
        } else if !self.can_agree(request) {
            let error = ErrorCode::INCONSISTENT_GROUP_PROTOCOL;
            effects.refuse_join(ticket, error, &request.member_id);
        } else if request.member_id.is_empty() {
            self.join_new(join, settings, now, effects);
        } else {
            self.join_known(join, settings, now, effects);
        }
        self.end_join(settings, now, effects);
    }

    /// Those that wait for a rebalance count, not those that have yet to join again: so the last to do so
    /// are turned away where the limit was lowered.
    fn has_room(&self, member_id: &str, settings: &GroupSettings) -> bool {
        let member = self.members.get(member_id);
        match self.state {
            GroupState::Empty | GroupState::Dead => self.pending.len() < settings.max_size,
            GroupState::PreparingRebalance => {
                let waiting = self.members.values().filter(|member| member.joining.is_some());
                member.is_some_and(|member| member.joining.is_some())
                    || waiting.count() + self.fresh_pending(member_id) < settings.max_size
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                member.is_some()
                    || self.members.len() + self.fresh_pending(member_id) < settings.max_size
            }
        }
    }

    /// Ids given out count for who would be given another.
    fn fresh_pending(&self, member_id: &str) -> usize {
        if member_id.is_empty() { self.pending.len() } else { 0 }
    }

    fn remove_refused(
        &mut self,
        join: &Join,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        let member_id = &join.request.member_id;
        if self.check_member(member_id, join.request.group_instance_id.as_deref()).is_ok() {
            self.remove_member(member_id, effects);
            self.members_left(settings, now, effects);
        }
        self.pending.remove(member_id);
    }

    fn join_new(&mut self, join: Join, settings: &GroupSettings, now: Now, effects: &mut Effects) {
        if let Some(instance_id) = &join.request.group_instance_id {
            let former = self.static_member(instance_id).map(|member| member.id.clone());
            match former {
                Some(former) => self.replace_static(&former, join, settings, now, effects),
                None => self.add(join.fresh_id.clone(), join, settings, now, effects),
            }
        } else if join.returns_with_id {
            let until = now.tick_ms + i64::from(join.request.session_timeout_ms);
            self.pending.insert(join.fresh_id.clone(), until);
            effects.refuse_join(join.ticket, ErrorCode::MEMBER_ID_REQUIRED, &join.fresh_id);
        } else {
            self.add(join.fresh_id.clone(), join, settings, now, effects);
        }
    }

    fn join_known(
        &mut self,
        join: Join,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        let member_id = join.request.member_id.clone();
        if join.request.group_instance_id.is_none() && self.pending.contains_key(&member_id) {
            return self.add(member_id, join, settings, now, effects);
        }
        let instance_id = join.request.group_instance_id.as_deref();
        if let Err(error) = self.check_member(&member_id, instance_id) {
            return effects.refuse_join(join.ticket, error, &member_id);
        }
        let same = self.members.get(&member_id).map(|member| &member.protocols)
            == Some(&join.request.protocols);
        match self.state {
            // It may not have got the answer.
            GroupState::CompletingRebalance if same => {
                effects.joined.push((join.ticket, self.joined(&member_id)));
            }
            // A follower that changes nothing may ask for its assignment; a leader has seen something,
            // such as more partitions, and wants to assign.
            GroupState::Stable if same && !self.is_leader(&member_id) => {
                effects.joined.push((join.ticket, self.joined(&member_id)));
            }
            GroupState::PreparingRebalance
            | GroupState::CompletingRebalance
            | GroupState::Stable => {
                self.update(&member_id, &join, effects);
                self.rebalance_or_complete(settings, now, effects);
            }
            GroupState::Empty | GroupState::Dead => {
                effects.refuse_join(join.ticket, ErrorCode::UNKNOWN_MEMBER_ID, &member_id);
            }
        }
    }

    fn update(&mut self, member_id: &str, join: &Join, effects: &mut Effects) {
        let Some(member) = self.members.get_mut(member_id) else { return };
        member.update(&join.request);
        member.caller.clone_from(&join.caller);
        if let Some(before) = member.joining.replace(join.ticket) {
            effects.refuse_join(before, ErrorCode::REBALANCE_IN_PROGRESS, member_id);
        }
    }

    fn add(
        &mut self,
        id: String,
        join: Join,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        self.pending.remove(&id);
        let mut member = Member::new(id.clone(), join.caller, &join.request);
        member.joining = Some(join.ticket);
        member.expires_at = Some(now.tick_ms + NEW_MEMBER_PATIENCE_MS);
        if self.members.is_empty() {
            self.protocol_type = Some(join.request.protocol_type);
        }
        self.joined_meanwhile |= self.initial_delay_left_ms.is_some();
        self.members.insert(id, member);
        self.elect_any_leader();
        self.rebalance_or_complete(settings, now, effects);
    }

    /// A static member comes back without the id it had: it takes its place (KIP-345).
    fn replace_static(
        &mut self,
        former_id: &str,
        join: Join,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        let former_leader = self.leader.clone();
        let id = join.fresh_id.clone();
        self.rename(former_id, &id, effects);
        self.update(&id, &join, effects);
        self.renew(&id, now);
        match self.state {
            GroupState::Stable if self.protocol == self.choose_protocol() => {
                let (member_id, skips_assignment) = (id, join.skips_assignment);
                let purpose = Purpose::Replaced { member_id, former_leader, skips_assignment };
                self.subscribed = self.subscriptions();
                effects.stores.push(Store { value: self.to_stored(None), purpose });
            }
            GroupState::PreparingRebalance => self.complete_if_all_joined(now, effects),
            // In CompletingRebalance the leader may know the former id already, so its assignment would
            // not reach the member.
            _ => self.prepare_rebalance(settings, now, effects),
        }
    }

    /// Whoever still waits under the former id is fenced at once.
    fn rename(&mut self, former_id: &str, id: &str, effects: &mut Effects) {
        let Some(mut member) = self.members.remove(former_id) else { return };
        if let Some(ticket) = member.joining.take() {
            effects.refuse_join(ticket, ErrorCode::FENCED_INSTANCE_ID, former_id);
        }
        if let Some(ticket) = member.syncing.take() {
            effects.refuse_sync(ticket, ErrorCode::FENCED_INSTANCE_ID);
        }
        if self.is_leader(former_id) {
            self.leader = Some(id.to_owned());
        }
        if self.unsynced.remove(former_id) {
            self.unsynced.insert(id.to_owned());
        }
        id.clone_into(&mut member.id);
        self.members.insert(id.to_owned(), member);
    }

    pub(crate) fn rebalance_or_complete(
        &mut self,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        match self.state {
            GroupState::PreparingRebalance => self.complete_if_all_joined(now, effects),
            _ => self.prepare_rebalance(settings, now, effects),
        }
    }

    /// Every member has to join again.
    pub(crate) fn prepare_rebalance(
        &mut self,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        if self.state == GroupState::CompletingRebalance {
            self.hand_out_error(ErrorCode::REBALANCE_IN_PROGRESS, now, effects);
        }
        self.unsynced.clear();
        self.sync_deadline = None;
        let is_initial = self.state == GroupState::Empty;
        self.move_to(GroupState::PreparingRebalance, now);
        if is_initial {
            let delay = settings.initial_rebalance_delay_ms;
            let most = i32::try_from(self.patience_ms()).unwrap_or(i32::MAX);
            self.initial_delay_left_ms = Some(most.saturating_sub(delay).max(0));
            self.joined_meanwhile = false;
            self.join_deadline = Some(now.tick_ms + i64::from(delay));
        } else {
            self.join_deadline = Some(now.tick_ms + self.patience_ms());
            self.complete_if_all_joined(now, effects);
        }
    }

    pub(crate) fn complete_if_all_joined(&mut self, now: Now, effects: &mut Effects) {
        let all =
            self.pending.is_empty() && self.members.values().all(|member| member.joining.is_some());
        if self.state == GroupState::PreparingRebalance
            && self.initial_delay_left_ms.is_none()
            && all
        {
            self.complete_join(now, effects);
        }
    }

    /// Time is up, or all are there: the generation begins. Dynamic members that did not join are gone;
    /// static ones may still come back.
    pub(crate) fn complete_join(&mut self, now: Now, effects: &mut Effects) {
        self.join_deadline = None;
        self.initial_delay_left_ms = None;
        let left_behind =
            |member: &&Member| member.joining.is_none() && member.instance_id.is_none();
        let gone: Vec<_> =
            self.members.values().filter(left_behind).map(|member| member.id.clone()).collect();
        gone.iter().for_each(|member_id| self.remove(member_id));
        if self.members.is_empty() {
            return self.become_empty(now, effects);
        }
        if !self.elect_joined_leader() {
            // Only static members are left and none is back: their sessions decide.
            self.join_deadline = Some(now.tick_ms + self.patience_ms().max(1));
            return;
        }
        self.begin_generation(now, effects);
    }

    fn begin_generation(&mut self, now: Now, effects: &mut Effects) {
        self.generation = next_generation(self.generation);
        self.protocol = self.choose_protocol();
        self.subscribed = self.subscriptions();
        self.move_to(GroupState::CompletingRebalance, now);
        effects.generations += 1;
        self.unsynced = self.members.keys().cloned().collect();
        self.sync_deadline = Some(now.tick_ms + self.patience_ms());
        let waiting: Vec<_> = self
            .members
            .values_mut()
            .filter_map(|member| {
                member.is_new = false;
                member.expires_at = Some(now.tick_ms + i64::from(member.session_timeout_ms));
                Some((member.joining.take()?, member.id.clone()))
            })
            .collect();
        for (ticket, member_id) in waiting {
            effects.joined.push((ticket, self.joined(&member_id)));
        }
    }

    fn become_empty(&mut self, now: Now, effects: &mut Effects) {
        self.generation = next_generation(self.generation);
        self.protocol = None;
        self.leader = None;
        self.subscribed = self.subscriptions();
        self.move_to(GroupState::Empty, now);
        effects.stores.push(Store { value: self.to_stored(None), purpose: Purpose::Emptied });
    }

    /// The leader is one that joined.
    fn elect_joined_leader(&mut self) -> bool {
        let has_joined = |member: &Member| member.joining.is_some();
        let leader = self.leader.as_ref().and_then(|leader| self.members.get(leader));
        if leader.is_some_and(has_joined) {
            return true;
        }
        let Some(joined) = self.members.values().find(|member| has_joined(member)) else {
            return false;
        };
        self.leader = Some(joined.id.clone());
        true
    }

    /// Whoever waits for a member that goes is told so.
    pub(crate) fn remove_member(&mut self, member_id: &str, effects: &mut Effects) {
        if let Some(member) = self.members.get_mut(member_id) {
            if let Some(ticket) = member.joining.take() {
                effects.refuse_join(ticket, ErrorCode::UNKNOWN_MEMBER_ID, "");
            }
            if let Some(ticket) = member.syncing.take() {
                effects.refuse_sync(ticket, ErrorCode::UNKNOWN_MEMBER_ID);
            }
        }
        self.remove(member_id);
    }
}

/// Generations stay positive: after the greatest comes the first again.
fn next_generation(generation: i32) -> i32 {
    generation.checked_add(1).unwrap_or(1)
}
