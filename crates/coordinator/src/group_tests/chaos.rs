//! Any order of joins, leaves, silence, failed writes, lost clients and kills: what holds all the same, and
//! that the group finds together once it is left in peace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;

use super::*;
use crate::group::GroupState;

const CLIENTS: usize = 5;

/// A client as it sees itself.
#[derive(Default)]
struct Client {
    instance_id: Option<String>,
    member_id: String,
    generation: i32,
    joining: Option<Ticket>,
    syncing: Option<Ticket>,
    /// What it has to assign, if it leads.
    led: Vec<String>,
    assigned: bool,
    /// Changes what it knows, so that the group has to rebalance.
    flavour: bool,
}

struct World {
    stage: Stage,
    clients: Vec<Client>,
    /// Kills so far: what is not stored may come again after one.
    life: u32,
    leaders: HashMap<(u32, i32), String>,
    protocols: HashMap<(u32, i32), Option<String>>,
    /// All that was ever written, by generation and content.
    durable: BTreeSet<(i32, Vec<u8>)>,
    /// Ids whose static member came back under another.
    fenced: BTreeMap<String, String>,
    waiting: BTreeSet<Ticket>,
}

/// What may happen.
#[derive(Clone, Debug)]
enum Event {
    Join(usize),
    Sync(usize),
    Heartbeat(usize),
    Leave(usize),
    /// The client dies and comes back without a memory.
    Forget(usize),
    Change(usize),
    Write,
    FailWrite,
    Pass(i64),
    Kill,
}

fn event() -> impl Strategy<Value = Event> {
    let client = 0..CLIENTS;
    prop_oneof![
        8 => client.clone().prop_map(Event::Join),
        8 => client.clone().prop_map(Event::Sync),
        4 => client.clone().prop_map(Event::Heartbeat),
        1 => client.clone().prop_map(Event::Leave),
        1 => client.clone().prop_map(Event::Forget),
        1 => client.prop_map(Event::Change),
        6 => Just(Event::Write),
        1 => Just(Event::FailWrite),
        2 => (1..20_000_i64).prop_map(Event::Pass),
        1 => Just(Event::Kill),
    ]
}

impl World {
    fn new() -> Self {
        let client = |index| Client {
            instance_id: (index % 2 == 0).then(|| format!("instance-{index}")),
            ..Client::default()
        };
        Self {
            stage: Stage::new(),
            clients: (0..CLIENTS).map(client).collect(),
            life: 0,
            leaders: HashMap::new(),
            protocols: HashMap::new(),
            durable: BTreeSet::new(),
            fenced: BTreeMap::new(),
            waiting: BTreeSet::new(),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Join(client) => self.join(client),
            Event::Sync(client) => self.sync(client),
            Event::Heartbeat(client) => self.heartbeat(client),
            Event::Leave(client) => self.leave(client),
            Event::Forget(client) => {
                let Client { instance_id, flavour, .. } = std::mem::take(&mut self.clients[client]);
                self.clients[client] = Client { instance_id, flavour, ..Client::default() };
            }
            Event::Change(client) => self.clients[client].flavour ^= true,
            Event::Write => self.write(Ok(())),
            Event::FailWrite => self.write(Err(ErrorCode::COORDINATOR_NOT_AVAILABLE)),
            Event::Pass(ms) => self.stage.pass(ms),
            Event::Kill => self.kill(),
        }
        self.hear();
        self.check();
    }

    fn join(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let assignors = if client.flavour { ["b", "a"] } else { ["a", "b"] };
        let request = JoinGroupRequest {
            group_instance_id: client.instance_id.clone(),
            ..consumer(&client.member_id, &assignors)
        };
        let before = client.instance_id.as_ref().and_then(|id| self.stage.group.static_member(id));
        let before = before.map(|member| member.id.clone());
        let ticket = self.stage.join(request);
        client.joining = Some(ticket);
        client.assigned = false;
        self.waiting.insert(ticket);
        let now = client.instance_id.as_ref().and_then(|id| self.stage.group.static_member(id));
        if let (Some(before), Some(now), Some(instance_id)) = (before, now, &client.instance_id)
            && before != now.id
        {
            self.fenced.insert(before, instance_id.clone());
        }
    }

    fn sync(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.generation == 0 {
            return;
        }
        let generation = client.generation;
        let assigned: Vec<(String, String)> =
            client.led.iter().map(|id| (id.clone(), format!("{generation}:{id}"))).collect();
        let assigned: Vec<_> =
            assigned.iter().map(|(id, what)| (id.as_str(), what.as_str())).collect();
        let request = SyncGroupRequest {
            group_instance_id: client.instance_id.clone(),
            ..sync(generation, &client.member_id, &assigned)
        };
        let ticket = self.stage.sync(request);
        client.syncing = Some(ticket);
        self.waiting.insert(ticket);
    }

    fn heartbeat(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let (generation, now) = (client.generation, self.stage.now);
        let instance_id = client.instance_id.as_deref();
        match self.stage.group.heartbeat(generation, &client.member_id, instance_id, now) {
            ErrorCode::NONE => {}
            ErrorCode::REBALANCE_IN_PROGRESS => client.assigned = false,
            ErrorCode::ILLEGAL_GENERATION => (client.generation, client.assigned) = (0, false),
            _ => client.forget_id(),
        }
    }

    fn leave(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let member_id = std::mem::take(&mut client.member_id);
        if !member_id.is_empty() {
            let instance_id = client.instance_id.clone();
            client.forget_id();
            self.stage.leave(&[(&member_id, instance_id.as_deref())]);
        }
    }

    fn write(&mut self, outcome: Result<(), ErrorCode>) {
        if outcome.is_ok()
            && let Some((value, _)) = self.stage.storing.first()
        {
            for member in &value.members {
                self.durable.insert((value.generation, member.assignment.to_vec()));
            }
        }
        self.stage.write(outcome);
    }

    fn kill(&mut self) {
        self.stage.restart();
        self.life += 1;
        self.waiting.clear();
        self.stage.joined.clear();
        self.stage.synced.clear();
        self.fenced.clear();
        for client in &mut self.clients {
            (client.joining, client.syncing) = (None, None);
        }
    }

    /// Every answer is heard, by who waits for it still.
    fn hear(&mut self) {
        for (ticket, joined) in std::mem::take(&mut self.stage.joined) {
            assert!(self.waiting.remove(&ticket), "{ticket} is answered twice");
            self.hear_joined(ticket, joined);
        }
        for (ticket, synced) in std::mem::take(&mut self.stage.synced) {
            assert!(self.waiting.remove(&ticket), "{ticket} is answered twice");
            self.hear_synced(ticket, &synced);
        }
    }

    fn hear_joined(&mut self, ticket: Ticket, joined: JoinGroupResponse) {
        let generation = (self.life, joined.generation_id);
        if joined.error_code.is_ok() {
            assert!(joined.generation_id > 0 && joined.protocol_name.is_some());
            let protocol = self.protocols.entry(generation).or_insert(joined.protocol_name.clone());
            assert_eq!(*protocol, joined.protocol_name, "one protocol a generation");
            if !joined.members.is_empty() && !joined.skip_assignment {
                let leader = self.leaders.entry(generation).or_insert(joined.member_id.clone());
                assert_eq!(*leader, joined.member_id, "two leaders of {generation:?}");
            }
        }
        let Some(client) = self.clients.iter_mut().find(|client| client.joining == Some(ticket))
        else {
            return;
        };
        client.joining = None;
        match joined.error_code {
            ErrorCode::NONE => {
                client.member_id = joined.member_id;
                client.generation = joined.generation_id;
                let leads = !joined.skip_assignment;
                let members = joined.members.into_iter().filter(|_| leads);
                client.led = members.map(|member| member.member_id).collect();
            }
            ErrorCode::MEMBER_ID_REQUIRED => client.member_id = joined.member_id,
            ErrorCode::REBALANCE_IN_PROGRESS | ErrorCode::COORDINATOR_NOT_AVAILABLE => {}
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_INSTANCE_ID => client.forget_id(),
            other => panic!("{other}"),
        }
    }

    fn hear_synced(&mut self, ticket: Ticket, synced: &SyncGroupResponse) {
        let client = self.clients.iter_mut().find(|client| client.syncing == Some(ticket));
        let Some(client) = client else { return };
        client.syncing = None;
        match synced.error_code {
            ErrorCode::NONE => {
                let assigned = (client.generation, synced.assignment.to_vec());
                assert!(
                    !synced.assignment.is_empty(),
                    "a member of the generation without assignment"
                );
                assert!(
                    self.durable.contains(&assigned),
                    "{assigned:?} was handed out and is not safe"
                );
                if client.instance_id.is_none() {
                    let own = format!("{}:{}", client.generation, client.member_id);
                    assert_eq!(assigned.1, own.as_bytes(), "the assignment of another");
                }
                client.assigned = true;
            }
            ErrorCode::REBALANCE_IN_PROGRESS | ErrorCode::COORDINATOR_NOT_AVAILABLE => {}
            ErrorCode::ILLEGAL_GENERATION => client.generation = 0,
            _ => client.forget_id(),
        }
    }

    fn check(&self) {
        let group = &self.stage.group;
        let tickets = group.members.values().flat_map(|member| [member.joining, member.syncing]);
        let held: BTreeSet<Ticket> = tickets.flatten().collect();
        assert_eq!(held, self.waiting, "whoever waits is known to the group, and nobody else is");
        for (member_id, instance_id) in &self.fenced {
            let commit = group.check_commit(group.generation, member_id, Some(instance_id), false);
            let is_away = group.static_member(instance_id).is_none();
            let refused = commit == Err(ErrorCode::FENCED_INSTANCE_ID)
                || (is_away && commit == Err(ErrorCode::UNKNOWN_MEMBER_ID));
            assert!(refused, "{member_id} was replaced and commits: {commit:?}");
        }
        let leads = group.leader.as_ref().is_none_or(|leader| group.members.contains_key(leader));
        assert!(leads, "the leader is a member");
        assert!(
            group.state != GroupState::PreparingRebalance || group.join_deadline.is_some(),
            "a rebalance has an end"
        );
        assert!(
            group.state == GroupState::Empty
                || !group.members.is_empty()
                || !group.pending.is_empty()
        );
    }

    /// Clients as they should be, and a disk that works.
    fn live_in_peace(&mut self) {
        for _ in 0..700 {
            for index in 0..CLIENTS {
                let client = &self.clients[index];
                if client.joining.is_none() && client.syncing.is_none() {
                    match (client.assigned, client.generation) {
                        (true, _) => self.happen(Event::Heartbeat(index)),
                        (false, generation) if generation == self.stage.group.generation => {
                            match self.stage.group.state {
                                GroupState::CompletingRebalance | GroupState::Stable => {
                                    self.happen(Event::Sync(index));
                                }
                                _ => self.happen(Event::Join(index)),
                            }
                        }
                        _ => self.happen(Event::Join(index)),
                    }
                }
                self.happen(Event::Write);
            }
            self.happen(Event::Pass(1_000));
        }
    }
}

impl Client {
    fn forget_id(&mut self) {
        self.member_id.clear();
        (self.generation, self.assigned) = (0, false);
        self.led.clear();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::cases(300)))]

    #[test]
    fn whatever_happens(events in prop::collection::vec(event(), 0..120)) {
        let mut world = World::new();
        for event in events {
            world.happen(event);
        }
        world.live_in_peace();
        let group = &world.stage.group;
        prop_assert_eq!(group.state, GroupState::Stable);
        prop_assert_eq!(group.members.len(), CLIENTS, "all live, and nobody else does");
        for client in &world.clients {
            prop_assert!(client.assigned && client.generation == group.generation);
            prop_assert!(group.members.contains_key(&client.member_id));
        }
    }
}
