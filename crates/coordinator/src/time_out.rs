//! What happens when time is up.

use crate::clock::Now;
use crate::group::{Effects, Group, GroupState};
use crate::group_settings::GroupSettings;
use crate::member::Member;

impl Group {
    /// Does everything that is due.
    pub(crate) fn pass(&mut self, settings: &GroupSettings, now: Now, effects: &mut Effects) {
        self.end_pending(now, effects);
        self.end_sessions(settings, now, effects);
        self.end_join(settings, now, effects);
        self.end_sync(settings, now, effects);
    }

    /// Ids that were given out and not used in time.
    fn end_pending(&mut self, now: Now, effects: &mut Effects) {
        let before = self.pending.len();
        self.pending.retain(|_, until| *until > now.tick_ms);
        if self.pending.len() < before {
            self.complete_if_all_joined(now, effects);
        }
    }

    /// Members that were silent for too long.
    fn end_sessions(&mut self, settings: &GroupSettings, now: Now, effects: &mut Effects) {
        let over = |member: &&mut Member| {
            member.expires_at.is_some_and(|expires_at| expires_at <= now.tick_ms)
        };
        let mut dead = Vec::new();
        for member in self.members.values_mut().filter(over) {
            if member.is_heard_of() {
                // The session begins anew with the answer.
                member.expires_at = None;
            } else {
                dead.push(member.id.clone());
            }
        }
        for member_id in &dead {
            self.remove_member(member_id, effects);
        }
        if !dead.is_empty() {
            self.members_left(settings, now, effects);
        }
    }

    /// Members have had their time to join.
    pub(crate) fn end_join(&mut self, settings: &GroupSettings, now: Now, effects: &mut Effects) {
        if self.join_deadline.is_none_or(|deadline| deadline > now.tick_ms) {
            return;
        }
        match self.initial_delay_left_ms {
            Some(left) if left > 0 && self.joined_meanwhile => {
                let delay = left.min(settings.initial_rebalance_delay_ms);
                self.joined_meanwhile = false;
                self.initial_delay_left_ms = Some(left - delay);
                self.join_deadline = Some(now.tick_ms + i64::from(delay));
            }
            _ => self.complete_join(now, effects),
        }
    }

    /// Members have had their time to ask for their assignment.
    fn end_sync(&mut self, settings: &GroupSettings, now: Now, effects: &mut Effects) {
        if self.sync_deadline.is_none_or(|deadline| deadline > now.tick_ms) {
            return;
        }
        self.sync_deadline = None;
        let in_generation =
            matches!(self.state, GroupState::CompletingRebalance | GroupState::Stable);
        let late = std::mem::take(&mut self.unsynced);
        if in_generation && !late.is_empty() {
            for member_id in &late {
                self.remove_member(member_id, effects);
            }
            self.prepare_rebalance(settings, now, effects);
        }
    }
}
