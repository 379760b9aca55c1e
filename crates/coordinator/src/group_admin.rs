//! What administrators ask: which groups there are, what they are, and that they or their offsets go.

use std::collections::HashSet;
use std::sync::Arc;

use highwater_protocol::{
    DescribedGroup, DescribedGroupMember, ErrorCode, ListGroupsRequest, ListedGroup,
    OffsetDeleteRequest, OffsetDeleteRequestTopic, OffsetDeleteResponse,
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use parking_lot::Mutex;

use crate::clock::Now;
use crate::expiry;
use crate::group::{Group, GroupState};
use crate::group_record;
use crate::groups::{Groups, Slot};
use crate::journal::{NotWritten, Write};
use crate::member::Member;
use crate::waiting::Waiting;

/// The one type of groups here, by Kafka's name.
const CLASSIC: &str = "classic";
/// The first version that is told that a group does not exist (KIP-1043).
const KNOWS_MISSING_GROUPS: i16 = 6;

/// What is to go.
#[derive(Debug, Default)]
struct Forget {
    /// The group itself, which has no members.
    group: bool,
    offsets: Vec<(String, i32)>,
}

/// Names that are asked for, in whatever case; none stands for all.
struct Filter(HashSet<String>);

impl Filter {
    fn of(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    fn wants(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.contains(&name.to_ascii_lowercase())
    }
}

impl Groups {
    /// What a group is.
    pub fn describe(&self, version: i16, group_id: String) -> DescribedGroup {
        let state = self.state.lock();
        if let Err(error_code) = state.check_ready() {
            return DescribedGroup { error_code, group_id, ..Default::default() };
        }
        match state.slots.get(&group_id) {
            Some(slot) => described(group_id, &slot.group),
            None => missing(version, group_id),
        }
    }

    /// Which groups there are.
    ///
    /// # Errors
    /// While the state is being read back.
    pub fn list(&self, request: &ListGroupsRequest) -> Result<Vec<ListedGroup>, ErrorCode> {
        let state = self.state.lock();
        state.check_ready()?;
        let (types, states) =
            (Filter::of(&request.types_filter), Filter::of(&request.states_filter));
        if !types.wants(CLASSIC) {
            return Ok(Vec::new());
        }
        let groups = state.slots.iter();
        let groups = groups.filter(|(_, slot)| states.wants(slot.group.state.name()));
        Ok(groups.map(|(group_id, slot)| listed(group_id, &slot.group)).collect())
    }

    /// Deletes a group with its offsets. Answered once that is safe.
    pub fn delete(self: &Arc<Self>, group_id: String) -> Waiting<ErrorCode> {
        let (sender, waiting) = Waiting::channel();
        let all = |slot: &Slot| match slot.group.state {
            GroupState::Empty => {
                Ok((Forget { group: true, offsets: slot.offsets.keys() }, ErrorCode::NONE))
            }
            GroupState::Dead => Err(ErrorCode::GROUP_ID_NOT_FOUND),
            _ => Err(ErrorCode::NON_EMPTY_GROUP),
        };
        self.forget(group_id, all, |deleted| {
            let _ = sender.send(deleted.unwrap_or_else(|error| error));
        });
        waiting
    }

    /// Deletes offsets of topics to which no member is subscribed. Answered once that is safe.
    pub fn delete_offsets(
        self: &Arc<Self>,
        request: OffsetDeleteRequest,
    ) -> Waiting<OffsetDeleteResponse> {
        let (sender, waiting) = Waiting::channel();
        let OffsetDeleteRequest { group_id, topics } = request;
        if group_id.is_empty() {
            let error_code = ErrorCode::INVALID_GROUP_ID;
            return Waiting::ready(OffsetDeleteResponse { error_code, ..Default::default() });
        }
        let log = self.log.clone();
        let exists = move |topic: &str, partition| log.partition(topic, partition).is_some();
        let choose = move |slot: &Slot| choose_offsets(slot, topics, exists);
        if group_id.is_empty() {
            // It may have offsets, and Kafka deletes none of them one by one.
            let error_code = ErrorCode::INVALID_GROUP_ID;
            let _ = sender.send(OffsetDeleteResponse { error_code, ..Default::default() });
            return waiting;
        }
        self.forget(group_id, choose, |deleted| {
            let response = deleted.unwrap_or_else(|error_code| OffsetDeleteResponse {
                error_code,
                ..Default::default()
            });
            let _ = sender.send(response);
        });
        waiting
    }

    /// A topic was deleted: its offsets mean nothing any more. Done once that is safe.
    pub async fn topic_deleted(self: &Arc<Self>, topic: &str) {
        self.settled().await;
        let mut going = Vec::new();
        for group_id in self.having(|slot| slot.offsets.has_topic(topic)) {
            let (sender, waiting) = Waiting::channel();
            let deleted = topic.to_owned();
            let choose = move |slot: &Slot| {
                let mut offsets = slot.offsets.keys();
                offsets.retain(|(topic, _)| *topic == deleted);
                Ok((Forget { group: false, offsets }, ()))
            };
            self.forget(group_id, choose, |gone| {
                let _ = sender.send(gone);
            });
            going.push(waiting);
        }
        for waiting in going {
            if let Some(Err(error)) = waiting.answer().await {
                tracing::warn!(topic, %error, "offsets of a deleted topic stay until they expire");
            }
        }
    }

    /// Waits until everything handed in so far has taken effect.
    async fn settled(&self) {
        let (sender, waiting) = Waiting::channel();
        let done = Box::new(|_| {
            let _ = sender.send(());
        });
        self.journal.submit(Write::Late(Box::new(Vec::new)), done);
        waiting.answer().await;
    }

    fn having(&self, wanted: impl Fn(&Slot) -> bool) -> Vec<String> {
        let state = self.state.lock();
        let groups = state.slots.iter().filter(|(_, slot)| wanted(slot));
        groups.map(|(group_id, _)| group_id.clone()).collect()
    }

    /// Forgets what is over its time, in all groups.
    pub(crate) fn expire(self: &Arc<Self>) {
        let (retention_ms, clock) = (self.settings.offsets_retention_ms, self.clock);
        for group_id in self.having(|slot| slot.has_expired(retention_ms, clock.now())) {
            let choose = move |slot: &Slot| Ok((slot.expired(retention_ms, clock.now()), ()));
            // What cannot be written now is over its time at the next round, too.
            self.forget(group_id, choose, |_| {});
        }
    }

    /// Forgets what is over its time, again and again.
    pub(crate) async fn keep_expiring(self: Arc<Self>) {
        let every = u64::try_from(self.settings.retention_check_interval_ms).unwrap_or(1).max(1);
        let mut rounds = tokio::time::interval(std::time::Duration::from_millis(every));
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        rounds.tick().await;
        loop {
            rounds.tick().await;
            self.expire();
        }
    }

    /// Writes the tombstones of what `choose` wants to go, once everything before has taken effect, and
    /// lets it go once they are safe. A group that goes is dead meanwhile: who joins comes again.
    fn forget<T: Send + 'static>(
        self: &Arc<Self>,
        group_id: String,
        choose: impl FnOnce(&Slot) -> Result<(Forget, T), ErrorCode> + Send + 'static,
        done: impl FnOnce(Result<T, ErrorCode>) + Send + 'static,
    ) {
        if let Err(error) = self.state.lock().check_ready() {
            return done(Err(error));
        }
        let chosen = Arc::new(Mutex::new(None));
        let choosing = {
            let (groups, group_id, chosen) =
                (Arc::clone(self), group_id.clone(), Arc::clone(&chosen));
            move || {
                let choice = groups.choose(&group_id, choose);
                let records = choice
                    .as_ref()
                    .map_or_else(|_| Vec::new(), |(forget, _)| forget.tombstones(&group_id));
                *chosen.lock() = Some(choice);
                records
            }
        };
        let groups = Arc::clone(self);
        let written = move |written: Result<i64, NotWritten>| {
            let choice = chosen.lock().take();
            let answer = match choice.unwrap_or(Err(ErrorCode::COORDINATOR_NOT_AVAILABLE)) {
                Err(error) => Err(error),
                Ok((forget, answer)) => {
                    let written = written.map(|_| ()).map_err(|error| error.kafka_code());
                    groups.forgotten(&group_id, &forget, written).map(|()| answer)
                }
            };
            done(answer);
        };
        self.journal.submit(Write::Late(Box::new(choosing)), Box::new(written));
    }

    fn choose<T>(
        &self,
        group_id: &str,
        choose: impl FnOnce(&Slot) -> Result<(Forget, T), ErrorCode>,
    ) -> Result<(Forget, T), ErrorCode> {
        let mut state = self.state.lock();
        let slot = state.slots.get_mut(group_id).ok_or(ErrorCode::GROUP_ID_NOT_FOUND)?;
        let (forget, answer) = choose(slot)?;
        if forget.group {
            slot.group.state = GroupState::Dead;
        }
        Ok((forget, answer))
    }

    fn forgotten(
        self: &Arc<Self>,
        group_id: &str,
        forget: &Forget,
        written: Result<(), ErrorCode>,
    ) -> Result<(), ErrorCode> {
        let mut state = self.state.lock();
        let slot = state.slots.get_mut(group_id).ok_or(ErrorCode::GROUP_ID_NOT_FOUND)?;
        if let Err(error) = written {
            if forget.group {
                slot.group.state = GroupState::Empty;
            }
            return Err(error);
        }
        for (topic, partition) in &forget.offsets {
            slot.offsets.remove(topic, *partition);
        }
        if forget.group {
            state.forget(group_id);
        } else {
            self.settle(&mut state, group_id);
        }
        Ok(())
    }
}

impl Slot {
    fn has_expired(&self, retention_ms: i64, now: Now) -> bool {
        let expired = self.expired(retention_ms, now);
        expired.group || !expired.offsets.is_empty()
    }

    /// Offsets over their time, and the group itself once it has neither members nor offsets.
    fn expired(&self, retention_ms: i64, now: Now) -> Forget {
        let offsets = expiry::expired(&self.group, &self.offsets, retention_ms, now);
        let group = self.group.is_unused()
            && offsets.len() == self.offsets.len()
            && !self.offsets.has_open_transactions();
        Forget { group, offsets }
    }
}

impl Forget {
    fn tombstones(&self, group_id: &str) -> Vec<crate::StateRecord> {
        let offsets = self.offsets.iter();
        let offsets = offsets
            .map(|(topic, partition)| group_record::of_offset(group_id, topic, *partition, None));
        let group = self.group.then(|| group_record::of_group(group_id, None));
        offsets.chain(group).collect()
    }
}

fn choose_offsets(
    slot: &Slot,
    topics: Vec<OffsetDeleteRequestTopic>,
    exists: impl Fn(&str, i32) -> bool,
) -> Result<(Forget, OffsetDeleteResponse), ErrorCode> {
    match slot.group.state {
        GroupState::Dead => return Err(ErrorCode::GROUP_ID_NOT_FOUND),
        GroupState::Empty => {}
        // What other members than consumers read is not known.
        _ if !slot.group.uses_consumer_protocol() => return Err(ErrorCode::NON_EMPTY_GROUP),
        _ => {}
    }
    let mut forget = Forget::default();
    let mut response = OffsetDeleteResponse::default();
    for OffsetDeleteRequestTopic { name, partitions } in topics {
        let is_subscribed = slot.group.is_subscribed(&name);
        let mut answers = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let partition_index = partition.partition_index;
            let error_code = if !exists(&name, partition_index) {
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            } else if is_subscribed {
                ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC
            } else {
                ErrorCode::NONE
            };
            let is_there = slot.offsets.get(&name, partition_index).is_some()
                || slot.offsets.has_pending(&name, partition_index);
            if error_code.is_ok() && is_there {
                forget.offsets.push((name.clone(), partition_index));
            }
            answers.push(OffsetDeleteResponsePartition { partition_index, error_code });
        }
        response.topics.push(OffsetDeleteResponseTopic { name, partitions: answers });
    }
    Ok((forget, response))
}

fn described(group_id: String, group: &Group) -> DescribedGroup {
    // Only then is it sure what is in force.
    let protocol = group.protocol.as_deref().filter(|_| group.state == GroupState::Stable);
    DescribedGroup {
        group_id,
        group_state: group.state.name().to_owned(),
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        protocol_data: protocol.unwrap_or_default().to_owned(),
        members: group.members.values().map(|member| described_member(member, protocol)).collect(),
        ..Default::default()
    }
}

fn described_member(member: &Member, protocol: Option<&str>) -> DescribedGroupMember {
    DescribedGroupMember {
        member_id: member.id.clone(),
        group_instance_id: member.instance_id.clone(),
        client_id: member.caller.client_id.clone(),
        client_host: member.caller.client_host.clone(),
        member_metadata: protocol.map(|protocol| member.metadata(protocol)).unwrap_or_default(),
        member_assignment: member.assignment.clone(),
    }
}

/// Before version 6 a group that does not exist is a dead one.
fn missing(version: i16, group_id: String) -> DescribedGroup {
    let group_state = GroupState::Dead.name().to_owned();
    if version < KNOWS_MISSING_GROUPS {
        return DescribedGroup { group_id, group_state, ..Default::default() };
    }
    DescribedGroup {
        error_code: ErrorCode::GROUP_ID_NOT_FOUND,
        error_message: Some(format!("Group {group_id} not found.")),
        group_id,
        group_state,
        ..Default::default()
    }
}

fn listed(group_id: &str, group: &Group) -> ListedGroup {
    ListedGroup {
        group_id: group_id.to_owned(),
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        group_state: group.state.name().to_owned(),
        group_type: CLASSIC.to_owned(),
    }
}
