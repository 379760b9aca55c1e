//! All groups: the state machines with the waiters, the clock and the topic around them.
//!
//! What is asked is in `membership.rs`, `commits.rs` and `group_admin.rs`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use highwater_log::Log;
use highwater_protocol::{ErrorCode, JoinGroupResponse, SyncGroupResponse};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::clock::{Clock, Now};
use crate::counters;
use crate::group::{Effects, Group, GroupState, Purpose, Store};
use crate::group_record;
use crate::group_settings::GroupSettings;
use crate::journal::{Journal, NotWritten, Write, Writer, journal};
use crate::member::Ticket;
use crate::offsets::Offsets;
use crate::state_topic::StateTopic;

/// The topic in which groups and offsets stand.
pub const CONSUMER_OFFSETS: &str = "__consumer_offsets";

/// All groups of a log.
#[derive(Debug)]
pub struct Groups {
    pub(crate) log: Log,
    pub(crate) topic: StateTopic,
    pub(crate) settings: GroupSettings,
    pub(crate) clock: Clock,
    pub(crate) journal: Journal,
    pub(crate) state: Mutex<State>,
    /// Rung when something is due sooner than was known.
    pub(crate) alarm: Notify,
}

/// What changes.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    pub(crate) slots: BTreeMap<String, Slot>,
    /// Groups with offsets of a producer's open transaction.
    pub(crate) open: HashMap<i64, BTreeSet<String>>,
    /// What all slots come to.
    pub(crate) total: Extent,
    joins: HashMap<Ticket, oneshot::Sender<JoinGroupResponse>>,
    syncs: HashMap<Ticket, oneshot::Sender<SyncGroupResponse>>,
    next_ticket: Ticket,
    /// When to look at which group.
    due: BTreeSet<(i64, String)>,
}

/// Whether the state is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Loading,
    Ready,
    /// It could not be read; that is tried again.
    Unreadable,
}

/// How much there is of one group, or of all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// Memory, roughly.
    pub(crate) bytes: usize,
    pub(crate) members: usize,
    /// Committed offsets.
    pub(crate) offsets: usize,
}

impl Extent {
    /// In a total, one part changes.
    fn replace(&mut self, before: Self, after: Self) {
        self.bytes = self.bytes - before.bytes + after.bytes;
        self.members = self.members - before.members + after.members;
        self.offsets = self.offsets - before.offsets + after.offsets;
    }
}

/// A group with its offsets.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) group: Group,
    pub(crate) offsets: Offsets,
    /// Whether records of the group were written. It stays then, empty, until the next round of expiry: as in
    /// Apache Kafka, also where its last offset was deleted.
    pub(crate) is_stored: bool,
    /// What it counts for in the total.
    counted: Extent,
    due: Option<i64>,
}

impl Slot {
    pub(crate) fn new(group: Group) -> Self {
        Self {
            group,
            offsets: Offsets::default(),
            is_stored: false,
            counted: Extent::default(),
            due: None,
        }
    }

    fn extent(&self, group_id: &str) -> Extent {
        Extent {
            bytes: self.group.memory() + self.offsets.bytes() + group_id.len(),
            members: self.group.members.len(),
            offsets: self.offsets.len(),
        }
    }

    /// Whether nothing is lost when it is forgotten, without a word in the topic.
    fn is_unused(&self) -> bool {
        self.group.is_unused() && self.offsets.is_empty() && !self.is_stored
    }
}

impl State {
    pub(crate) fn check_ready(&self) -> Result<(), ErrorCode> {
        match self.phase {
            Phase::Ready => Ok(()),
            Phase::Loading => Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
            Phase::Unreadable => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        }
    }

    /// The group, made if need be.
    pub(crate) fn slot(&mut self, group_id: &str, now: Now) -> &mut Slot {
        if !self.slots.contains_key(group_id) {
            self.slots.insert(group_id.to_owned(), Slot::new(Group::new(now)));
        }
        #[expect(clippy::unwrap_used, reason = "it was put there above")]
        self.slots.get_mut(group_id).unwrap()
    }

    pub(crate) fn join_ticket(&mut self, sender: oneshot::Sender<JoinGroupResponse>) -> Ticket {
        self.next_ticket += 1;
        self.joins.insert(self.next_ticket, sender);
        self.next_ticket
    }

    pub(crate) fn sync_ticket(&mut self, sender: oneshot::Sender<SyncGroupResponse>) -> Ticket {
        self.next_ticket += 1;
        self.syncs.insert(self.next_ticket, sender);
        self.next_ticket
    }

    /// Takes stock of a group after it changed: its size, when it is due, and whether it is needed still.
    /// Answers the tick at which to look at it, if that is sooner than before.
    fn settle(&mut self, group_id: &str) -> Option<i64> {
        let slot = self.slots.get_mut(group_id)?;
        let extent = slot.extent(group_id);
        self.total.replace(slot.counted, extent);
        slot.counted = extent;
        if slot.is_unused() {
            self.forget(group_id);
            return None;
        }
        let next = slot.group.next_deadline();
        // A later time is found out at the earlier one.
        let sooner = next.filter(|next| slot.due.is_none_or(|due| *next < due))?;
        if let Some(due) = slot.due.replace(sooner) {
            self.due.remove(&(due, group_id.to_owned()));
        }
        self.due.insert((sooner, group_id.to_owned()));
        Some(sooner)
    }

    /// Takes a group out.
    pub(crate) fn forget(&mut self, group_id: &str) {
        let Some(slot) = self.slots.remove(group_id) else { return };
        self.total.replace(slot.counted, Extent::default());
        if let Some(due) = slot.due {
            self.due.remove(&(due, group_id.to_owned()));
        }
    }

    /// A group that is to be looked at.
    fn take_due(&mut self, now: Now) -> Option<String> {
        let (tick, _) = self.due.first()?;
        if *tick > now.tick_ms {
            return None;
        }
        let (_, group_id) = self.due.pop_first()?;
        if let Some(slot) = self.slots.get_mut(&group_id) {
            slot.due = None;
        }
        Some(group_id)
    }
}

impl Groups {
    /// The groups of a log, still to be read back, and the writer to be run.
    pub(crate) fn new(log: Log, settings: GroupSettings, clock: Clock) -> (Arc<Self>, Writer) {
        let topic = StateTopic::new(log.clone(), CONSUMER_OFFSETS);
        let (journal, writer) = journal(topic.clone(), clock);
        let groups = Self {
            log,
            topic,
            settings,
            clock,
            journal,
            state: Mutex::default(),
            alarm: Notify::new(),
        };
        (Arc::new(groups), writer)
    }

    /// The settings of all groups.
    pub fn settings(&self) -> &GroupSettings {
        &self.settings
    }

    /// The partition in which the offsets of a group stand; the topic is made if need be. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// Of the log.
    pub fn offsets_partition(&self) -> Result<(&'static str, i32), crate::CoordinatorError> {
        self.topic.partition().map(|_| (CONSUMER_OFFSETS, 0))
    }

    /// Lets something happen to a group that is there, and carries out what comes of it.
    pub(crate) fn step<T>(
        self: &Arc<Self>,
        state: &mut State,
        group_id: &str,
        step: impl FnOnce(&mut Group, Now, &mut Effects) -> T,
    ) -> Option<T> {
        let mut effects = Effects::default();
        let slot = state.slots.get_mut(group_id)?;
        let answer = step(&mut slot.group, self.clock.now(), &mut effects);
        slot.is_stored |= !effects.stores.is_empty();
        self.carry_out(state, group_id, effects);
        Some(answer)
    }

    fn carry_out(self: &Arc<Self>, state: &mut State, group_id: &str, effects: Effects) {
        for (ticket, answer) in effects.joined {
            if let Some(waiting) = state.joins.remove(&ticket) {
                // Who waits no more has closed its connection.
                let _ = waiting.send(answer);
            }
        }
        for (ticket, answer) in effects.synced {
            if let Some(waiting) = state.syncs.remove(&ticket) {
                let _ = waiting.send(answer);
            }
        }
        for store in effects.stores {
            self.store(group_id, store);
        }
        counters::rebalances(effects.generations);
        self.settle(state, group_id);
    }

    pub(crate) fn settle(&self, state: &mut State, group_id: &str) {
        if state.settle(group_id).is_some() {
            self.alarm.notify_one();
        }
        counters::groups(state);
    }

    fn store(self: &Arc<Self>, group_id: &str, store: Store) {
        let Store { value, purpose } = store;
        let record = group_record::of_group(group_id, Some(&value));
        let (groups, group_id) = (Arc::clone(self), group_id.to_owned());
        let done =
            move |written: Result<i64, NotWritten>| groups.stored(&group_id, purpose, written);
        self.journal.submit(Write::Records(vec![record]), Box::new(done));
    }

    fn stored(
        self: &Arc<Self>,
        group_id: &str,
        purpose: Purpose,
        written: Result<i64, NotWritten>,
    ) {
        let stored = written.map(|_| ()).map_err(|error| error.kafka_code());
        let mut state = self.state.lock();
        self.step(&mut state, group_id, |group, now, effects| {
            if group.state != GroupState::Dead {
                group.stored(purpose, stored, &self.settings, now, effects);
            }
        });
    }

    /// Waits for what is due, and does it, for ever.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        loop {
            let next = self.pass();
            let rung = self.alarm.notified();
            match next {
                Some(tick) => tokio::select! {
                    () = tokio::time::sleep_until(self.clock.instant(tick)) => {}
                    () = rung => {}
                },
                None => rung.await,
            }
        }
    }

    /// Does what is due; answers when something is due next.
    fn pass(self: &Arc<Self>) -> Option<i64> {
        let mut state = self.state.lock();
        if state.phase != Phase::Ready {
            return None;
        }
        while let Some(group_id) = state.take_due(self.clock.now()) {
            self.step(&mut state, &group_id, |group, now, effects| {
                group.pass(&self.settings, now, effects);
            });
        }
        state.due.first().map(|(tick, _)| *tick)
    }
}
