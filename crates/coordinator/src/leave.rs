//! Members go.

use highwater_protocol::{ErrorCode, MemberIdentity, MemberResponse};

use crate::clock::Now;
use crate::group::{Effects, Group, GroupState};
use crate::group_settings::GroupSettings;

impl Group {
    /// Each of the members leaves, or is told why not.
    pub(crate) fn leave(
        &mut self,
        members: Vec<MemberIdentity>,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) -> Result<Vec<MemberResponse>, ErrorCode> {
        if self.state == GroupState::Dead {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        let mut left = false;
        let mut answers = Vec::with_capacity(members.len());
        for member in members {
            let error_code = self.leave_one(&member, effects);
            left |= error_code.is_ok();
            let MemberIdentity { member_id, group_instance_id, .. } = member;
            answers.push(MemberResponse { member_id, group_instance_id, error_code });
        }
        if left {
            self.members_left(settings, now, effects);
        }
        Ok(answers)
    }

    fn leave_one(&mut self, member: &MemberIdentity, effects: &mut Effects) -> ErrorCode {
        let instance_id = member.group_instance_id.as_deref();
        if member.member_id.is_empty() {
            // An administrator removes a static member by its name.
            let named = instance_id.and_then(|instance_id| self.static_member(instance_id));
            let Some(member_id) = named.map(|member| member.id.clone()) else {
                return ErrorCode::UNKNOWN_MEMBER_ID;
            };
            self.remove_member(&member_id, effects);
        } else if self.pending.remove(&member.member_id).is_none() {
            if let Err(error) = self.check_member(&member.member_id, instance_id) {
                return error;
            }
            self.remove_member(&member.member_id, effects);
        }
        ErrorCode::NONE
    }

    /// What the group does once members are gone.
    pub(crate) fn members_left(
        &mut self,
        settings: &GroupSettings,
        now: Now,
        effects: &mut Effects,
    ) {
        match self.state {
            GroupState::Stable | GroupState::CompletingRebalance => {
                self.prepare_rebalance(settings, now, effects);
            }
            GroupState::PreparingRebalance => self.complete_if_all_joined(now, effects),
            GroupState::Empty | GroupState::Dead => {}
        }
    }
}
