//! The state machine of a group: what Kafka does on each occasion, and what holds whatever happens.

mod chaos;
mod occasions;

use bytes::Bytes;
use highwater_protocol::stored::{ConsumerSubscription, GroupMetadataValue};
use highwater_protocol::{
    ErrorCode, JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse, MemberIdentity,
    MemberResponse, SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};

use crate::clock::Now;
use crate::group::{Effects, Group, Purpose};
use crate::group_settings::GroupSettings;
use crate::join::Join;
use crate::member::{Caller, Ticket};

pub(crate) const SESSION_MS: i32 = 10_000;
pub(crate) const REBALANCE_MS: i32 = 60_000;

/// A group with a clock, whose stores wait for the test.
pub(crate) struct Stage {
    pub(crate) group: Group,
    pub(crate) settings: GroupSettings,
    pub(crate) now: Now,
    pub(crate) joined: Vec<(Ticket, JoinGroupResponse)>,
    pub(crate) synced: Vec<(Ticket, SyncGroupResponse)>,
    /// Handed in and not yet written, oldest first.
    pub(crate) storing: Vec<(GroupMetadataValue, Purpose)>,
    /// The last one written.
    pub(crate) stored: Option<GroupMetadataValue>,
    pub(crate) tickets: Ticket,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(GroupSettings::default())
    }

    pub(crate) fn with(settings: GroupSettings) -> Self {
        let now = Now { tick_ms: 0, wall_ms: 1_700_000_000_000 };
        Self {
            group: Group::new(now),
            settings,
            now,
            joined: Vec::new(),
            synced: Vec::new(),
            storing: Vec::new(),
            stored: None,
            tickets: 0,
        }
    }

    fn take(&mut self, effects: Effects) {
        self.joined.extend(effects.joined);
        self.synced.extend(effects.synced);
        self.storing.extend(effects.stores.into_iter().map(|store| (store.value, store.purpose)));
    }

    fn step<T>(
        &mut self,
        step: impl FnOnce(&mut Group, &GroupSettings, Now, &mut Effects) -> T,
    ) -> T {
        let mut effects = Effects::default();
        let answer = step(&mut self.group, &self.settings, self.now, &mut effects);
        self.take(effects);
        answer
    }

    pub(crate) fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        self.tickets
    }

    /// Begins to join at a version.
    pub(crate) fn join_at(&mut self, version: i16, request: JoinGroupRequest) -> Ticket {
        let ticket = self.ticket();
        let join = Join {
            fresh_id: format!("fresh-{ticket}"),
            request,
            caller: Caller::default(),
            ticket,
            returns_with_id: version >= 4,
            skips_assignment: version >= 9,
        };
        self.step(|group, settings, now, effects| group.join(join, settings, now, effects));
        ticket
    }

    pub(crate) fn join(&mut self, request: JoinGroupRequest) -> Ticket {
        self.join_at(9, request)
    }

    pub(crate) fn sync(&mut self, request: SyncGroupRequest) -> Ticket {
        let ticket = self.ticket();
        self.step(|group, settings, now, effects| {
            group.sync(request, ticket, settings, now, effects);
        });
        ticket
    }

    pub(crate) fn heartbeat(&mut self, generation: i32, member_id: &str) -> ErrorCode {
        self.group.heartbeat(generation, member_id, None, self.now)
    }

    pub(crate) fn leave(&mut self, members: &[(&str, Option<&str>)]) -> Vec<MemberResponse> {
        let members = members.iter().map(|(member_id, instance_id)| MemberIdentity {
            member_id: (*member_id).to_owned(),
            group_instance_id: instance_id.map(str::to_owned),
            reason: None,
        });
        let members = members.collect();
        self.step(|group, settings, now, effects| group.leave(members, settings, now, effects))
            .unwrap_or_default()
    }

    /// The next store is written, or fails.
    pub(crate) fn write(&mut self, outcome: Result<(), ErrorCode>) {
        if self.storing.is_empty() {
            return;
        }
        let (value, purpose) = self.storing.remove(0);
        if outcome.is_ok() {
            self.stored = Some(value);
        }
        self.step(|group, settings, now, effects| {
            group.stored(purpose, outcome, settings, now, effects);
        });
    }

    pub(crate) fn write_all(&mut self) {
        while !self.storing.is_empty() {
            self.write(Ok(()));
        }
    }

    /// Lets time pass, and what is due in it happen when it is due.
    pub(crate) fn pass(&mut self, ms: i64) {
        let until = self.now.tick_ms + ms;
        while let Some(due) = self.group.next_deadline().filter(|due| *due <= until) {
            self.go_to(due.max(self.now.tick_ms));
            self.step(|group, settings, now, effects| group.pass(settings, now, effects));
        }
        self.go_to(until);
    }

    fn go_to(&mut self, tick_ms: i64) {
        self.now.wall_ms += tick_ms - self.now.tick_ms;
        self.now.tick_ms = tick_ms;
    }

    /// As after a kill: what was written last is there, and nobody waits.
    pub(crate) fn restart(&mut self) {
        self.storing.clear();
        self.group = match self.stored.clone() {
            Some(stored) => Group::restored(stored, self.now),
            None => Group::new(self.now),
        };
    }

    /// The answer to a request to join, once.
    pub(crate) fn answer(&mut self, ticket: Ticket) -> Option<JoinGroupResponse> {
        let at = self.joined.iter().position(|(answered, _)| *answered == ticket)?;
        Some(self.joined.remove(at).1)
    }

    /// The answer to a request for an assignment, once.
    pub(crate) fn assignment(&mut self, ticket: Ticket) -> Option<SyncGroupResponse> {
        let at = self.synced.iter().position(|(answered, _)| *answered == ticket)?;
        Some(self.synced.remove(at).1)
    }
}

/// A consumer's metadata.
pub(crate) fn subscription(topics: &[&str]) -> Bytes {
    let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
    ConsumerSubscription { topics, user_data: None }.to_metadata()
}

/// A consumer wants to join, with the assignors that it knows.
pub(crate) fn consumer(member_id: &str, assignors: &[&str]) -> JoinGroupRequest {
    let protocol = |name: &&str| JoinGroupRequestProtocol {
        name: (*name).to_owned(),
        metadata: subscription(&["t"]),
    };
    JoinGroupRequest {
        group_id: "g".to_owned(),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        member_id: member_id.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: assignors.iter().map(protocol).collect(),
        ..Default::default()
    }
}

/// The same, of a static member.
pub(crate) fn static_consumer(member_id: &str, instance_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_instance_id: Some(instance_id.to_owned()),
        ..consumer(member_id, &["range"])
    }
}

/// A member asks for its assignment; a leader says what everybody gets.
pub(crate) fn sync(
    generation: i32,
    member_id: &str,
    assigned: &[(&str, &str)],
) -> SyncGroupRequest {
    let given = |(member_id, assignment): &(&str, &str)| SyncGroupRequestAssignment {
        member_id: (*member_id).to_owned(),
        assignment: Bytes::copy_from_slice(assignment.as_bytes()),
    };
    SyncGroupRequest {
        group_id: "g".to_owned(),
        generation_id: generation,
        member_id: member_id.to_owned(),
        assignments: assigned.iter().map(given).collect(),
        ..Default::default()
    }
}
