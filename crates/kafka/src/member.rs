//! A member of a group: joins it, lives in it, leaves it, in a task of its own, so that it beats
//! whatever its owner does. Knows nothing of what the group shares out.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use highwater_protocol::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
    JoinGroupResponseMember, LeaveGroupRequest, MemberIdentity, SyncGroupRequest,
    SyncGroupRequestAssignment,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::KafkaError;
use crate::backoff::Backoff;
use crate::cluster::Failure;
use crate::coordinator::{Coordinator, KeyType, is_elsewhere};
use crate::membership::{Identity, Next};
use crate::{Lease, Reader};

/// How much longer than the rebalance time-out a coordinator may take to answer.
const GRACE: Duration = Duration::from_secs(5);

/// How long leaving may take; who does not get through is missed after its session time-out.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Events that may wait: no more come before the owner has answered the last.
const EVENTS: usize = 4;

/// How often it is looked for what is missing, as Java's consumer looks for a topic that it was told.
const MISSING_INTERVAL: Duration = Duration::from_secs(1);

/// Pause between two joins that both were answered.
const JOIN_PAUSE: Duration = Duration::from_millis(100);

/// Bounds of a member.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// Its group.
    pub group: String,
    /// The name of a static member (KIP-345).
    pub instance_id: Option<String>,
    /// After how long a silence the coordinator gives what it held to others.
    pub session_timeout: Duration,
    /// How often it is heard of.
    pub heartbeat_interval: Duration,
    /// How long the others wait for it to let go, and how long its owner may not be heard of.
    pub rebalance_timeout: Duration,
    /// How often it is looked whether what was shared out is out of date.
    pub refresh_interval: Duration,
    /// How long joining goes on while nobody answers.
    pub join_timeout: Duration,
}

/// Another member, as its leader sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMember {
    /// Its id in this generation.
    pub member_id: String,
    /// Its name, if it is a static member.
    pub instance_id: Option<String>,
    /// What it tells of itself.
    pub metadata: Bytes,
}

/// What a group shares out, and how.
#[async_trait]
pub trait GroupProtocol: Send + Sync + 'static {
    /// What kind of group it is, such as `consumer`.
    fn kind(&self) -> &'static str;

    /// The protocols that the member knows, the preferred one first, each with what the leader is
    /// to know of the member.
    async fn protocols(&mut self) -> Result<Vec<(String, Bytes)>, KafkaError>;

    /// As the leader: what each member gets.
    async fn assign(
        &mut self,
        protocol: &str,
        members: Vec<GroupMember>,
    ) -> Result<Vec<(String, Bytes)>, KafkaError>;

    /// Whether something that is to be shared out is not there yet, so that it is looked for soon.
    fn waits(&self) -> bool {
        false
    }

    /// Whether the group must share out anew. `leads` says whether the member assigned last.
    async fn is_stale(&mut self, leads: bool) -> Result<bool, KafkaError>;
}

/// What a member was assigned.
#[derive(Clone, Debug)]
pub struct Assigned {
    /// Who the member is in this generation.
    pub identity: Identity,
    /// Whether it is the leader that shared out.
    pub leads: bool,
    /// What the leader said.
    pub assignment: Bytes,
    /// How long that holds without another word of the group. It is the same one until what was
    /// held is lost.
    pub lease: Lease,
}

/// What happens to a member. After each but `Assigned` it waits for [`Member::join`].
#[derive(Debug)]
pub enum GroupEvent {
    /// It has its share.
    Assigned(Assigned),
    /// The group shares out anew once the member joins: what it holds is its own until then.
    Revoking,
    /// What it held may be somebody else's, for this reason.
    Lost(String),
    /// It is out of the group, for good.
    Failed(KafkaError),
}

enum Order {
    Join,
    Leave(oneshot::Sender<()>),
}

/// The owner's hold on a member. Dropping it ends the member without a word to the group, which then
/// waits for its session time-out.
#[derive(Debug)]
pub struct Member {
    events: mpsc::Receiver<GroupEvent>,
    orders: mpsc::Sender<Order>,
    heard: Arc<Mutex<Instant>>,
    life: AbortHandle,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.life.abort();
    }
}

impl Member {
    /// Joins a group on the cluster of `reader`. Inside a Tokio runtime: it lives in a task.
    pub fn join_group(
        reader: &Reader,
        settings: MemberSettings,
        protocol: impl GroupProtocol,
    ) -> Self {
        let cluster = Arc::clone(reader.shared_cluster());
        let coordinator = Coordinator::new(cluster, KeyType::Group, &settings.group);
        Self::start(Arc::new(coordinator), settings, protocol)
    }

    /// Joins a group.
    pub(crate) fn start(
        coordinator: Arc<Coordinator>,
        settings: MemberSettings,
        protocol: impl GroupProtocol,
    ) -> Self {
        let (told, events) = mpsc::channel(EVENTS);
        let (orders, given) = mpsc::channel(EVENTS);
        let heard = Arc::new(Mutex::new(Instant::now()));
        let lease = Lease::from(Instant::now(), lease_span(&settings));
        let beats = Arc::new(coordinator.apart());
        let life = Life {
            identity: Identity::new(settings.instance_id.clone()),
            coordinator,
            settings,
            protocol,
            leads: false,
            beats,
            lease,
            owner: Arc::clone(&heard),
            events: told,
        };
        let life = tokio::spawn(life.run(given)).abort_handle();
        Self { events, orders, heard, life }
    }

    /// What happened, waiting for it. Nothing comes after `Failed`.
    pub async fn event(&mut self) -> GroupEvent {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// What happened already.
    pub(crate) fn try_event(&mut self) -> Option<GroupEvent> {
        self.events.try_recv().ok()
    }

    /// Says that the owner lives.
    pub fn hear(&self) {
        *self.heard.lock() = Instant::now();
    }

    /// Lets go of everything that was assigned and joins anew.
    pub async fn join(&self) {
        // A member that has ended says so by an event.
        let _ = self.orders.send(Order::Join).await;
    }

    /// Leaves the group. A static member does not say so, to find its share again when it is back
    /// within its session time-out.
    pub async fn leave(self) {
        let (left, has_left) = oneshot::channel();
        if self.orders.send(Order::Leave(left)).await.is_ok() {
            let _ = has_left.await;
        }
    }
}

struct Life<P> {
    coordinator: Arc<Coordinator>,
    settings: MemberSettings,
    protocol: P,
    identity: Identity,
    /// Whether it assigned last.
    leads: bool,
    /// The coordinator on another connection: it takes nothing on one on which it holds back a join.
    beats: Arc<Coordinator>,
    lease: Lease,
    /// When the owner was heard of last.
    owner: Arc<Mutex<Instant>>,
    events: mpsc::Sender<GroupEvent>,
}

impl<P: GroupProtocol> Life<P> {
    async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        loop {
            let joined = tokio::select! {
                joined = self.join() => joined,
                order = next_leave(&mut orders) => {
                    // The broker takes nothing on a connection on which it holds back a join.
                    self.coordinator.forget().await;
                    return self.leave(order).await;
                }
            };
            match joined {
                Ok(assigned) => self.tell(GroupEvent::Assigned(assigned)),
                Err(error) => return self.fail(error, &mut orders).await,
            }
            if let Some(order) = self.hold(&mut orders).await {
                return self.leave(order).await;
            }
        }
    }

    /// Joins, however often that takes.
    async fn join(&mut self) -> Result<Assigned, KafkaError> {
        let (mut backoff, mut silent_since) = (Backoff::default(), Instant::now());
        loop {
            let pause = match self.try_join().await {
                Ok(Some(assigned)) => return Ok(assigned),
                Ok(None) => {
                    silent_since = Instant::now();
                    JOIN_PAUSE
                }
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Transient(error)) => {
                    if silent_since.elapsed() >= self.settings.join_timeout {
                        return Err(error);
                    }
                    tracing::debug!(group = self.settings.group, %error, "joining goes on");
                    backoff.pause()
                }
            };
            sleep(pause).await;
        }
    }

    /// Joins once; `None` when that has to be done again.
    async fn try_join(&mut self) -> Result<Option<Assigned>, Failure> {
        let protocols = self.protocol.protocols().await.map_err(Failure::Final)?;
        let was_known = !self.identity.member_id.is_empty();
        let mut answer = self.beating(self.ask_to_join(&protocols)).await?;
        let mut next = self.identity.joined(&answer);
        if was_known && self.identity.member_id.is_empty() {
            // The group has given to others what it held.
            self.lease.end();
        }
        if next == Next::Rejoin && !self.identity.member_id.is_empty() {
            // Only its id was missing.
            answer = self.beating(self.ask_to_join(&protocols)).await?;
            next = self.identity.joined(&answer);
        }
        match next {
            Next::Go => self.sync(answer).await,
            Next::Rejoin | Next::Lost => Ok(None),
            Next::Again | Next::Stop => {
                self.checked(answer.error_code, "join").await?;
                Ok(None)
            }
        }
    }

    async fn ask_to_join(
        &self,
        protocols: &[(String, Bytes)],
    ) -> Result<JoinGroupResponse, Failure> {
        let protocol = |(name, metadata): &(String, Bytes)| JoinGroupRequestProtocol {
            name: name.clone(),
            metadata: metadata.clone(),
        };
        let request = JoinGroupRequest {
            group_id: self.settings.group.clone(),
            session_timeout_ms: millis(self.settings.session_timeout),
            rebalance_timeout_ms: millis(self.settings.rebalance_timeout),
            member_id: self.identity.member_id.clone(),
            group_instance_id: self.identity.instance_id.clone(),
            protocol_type: self.protocol.kind().to_owned(),
            protocols: protocols.iter().map(protocol).collect(),
            reason: None,
        };
        self.coordinator.ask_within(&request, self.settings.rebalance_timeout + GRACE).await
    }

    async fn sync(&mut self, joined: JoinGroupResponse) -> Result<Option<Assigned>, Failure> {
        let protocol_name = joined.protocol_name.unwrap_or_default();
        self.leads = joined.leader == self.identity.member_id;
        let assignments = if self.leads && !joined.skip_assignment {
            let members = joined.members.into_iter().map(group_member).collect();
            self.assign(&protocol_name, members).await.map_err(Failure::Final)?
        } else {
            Vec::new()
        };
        let share = |(member_id, assignment)| SyncGroupRequestAssignment { member_id, assignment };
        let request = SyncGroupRequest {
            group_id: self.settings.group.clone(),
            generation_id: self.identity.generation,
            member_id: self.identity.member_id.clone(),
            group_instance_id: self.identity.instance_id.clone(),
            protocol_type: Some(self.protocol.kind().to_owned()),
            protocol_name: Some(protocol_name),
            assignments: assignments.into_iter().map(share).collect(),
        };
        let patience = self.settings.rebalance_timeout + GRACE;
        let asked = Instant::now();
        let answer = self.beating(self.coordinator.ask_within(&request, patience)).await?;
        match self.identity.synced(answer.error_code) {
            Next::Go => {
                if !self.lease.renew(asked) {
                    self.lease = Lease::from(asked, lease_span(&self.settings));
                }
                let (identity, leads) = (self.identity.clone(), self.leads);
                let lease = self.lease.clone();
                Ok(Some(Assigned { identity, leads, assignment: answer.assignment, lease }))
            }
            Next::Stop => {
                self.checked(answer.error_code, "be assigned its share").await.map(|()| None)
            }
            _ => {
                self.look_again(answer.error_code).await;
                Ok(None)
            }
        }
    }

    /// Waits for an answer that may be held back until others have come, and beats meanwhile: what
    /// it holds stays its own.
    async fn beating<T>(&self, asking: impl Future<Output = T>) -> T {
        tokio::select! {
            answer = asking => answer,
            never = beat_on(&self.beats, &self.settings, &self.identity, &self.lease) => match never {},
        }
    }

    /// As the leader: what each member gets. It beats meanwhile.
    async fn assign(
        &mut self,
        protocol: &str,
        members: Vec<GroupMember>,
    ) -> Result<Vec<(String, Bytes)>, KafkaError> {
        let beating = beat_on(&self.beats, &self.settings, &self.identity, &self.lease);
        tokio::select! {
            shares = self.protocol.assign(protocol, members) => shares,
            never = beating => match never {},
        }
    }

    /// Lives with its share until it has let go of it (`None`), or shall leave.
    async fn hold(&mut self, orders: &mut mpsc::Receiver<Order>) -> Option<Option<Order>> {
        let Self { coordinator, settings, protocol, identity, lease, owner, .. } = self;
        let (leads, longest) = (self.leads, settings.rebalance_timeout);
        let event = tokio::select! {
            event = beat(coordinator, settings, identity, lease, Holding::On) => event,
            () = stale(protocol, settings, leads) => GroupEvent::Revoking,
            silence = owner_silent(owner, longest) => {
                // Others can have what nobody works on.
                lease.end();
                self.tell(GroupEvent::Lost(silence));
                self.say_goodbye().await;
                return after(orders.recv().await);
            }
            order = orders.recv() => return after(order),
        };
        let revoking = matches!(event, GroupEvent::Revoking);
        self.tell(event);
        if revoking { self.let_go(orders).await } else { after(orders.recv().await) }
    }

    /// Beats on while the owner flushes what it holds.
    async fn let_go(&mut self, orders: &mut mpsc::Receiver<Order>) -> Option<Option<Order>> {
        let Self { coordinator, settings, identity, lease, .. } = self;
        let holding = Holding::LettingGo(Instant::now() + time_to_let_go(settings));
        let event = tokio::select! {
            event = beat(coordinator, settings, identity, lease, holding) => event,
            order = orders.recv() => return after(order),
        };
        self.tell(event);
        after(orders.recv().await)
    }

    async fn fail(&mut self, error: KafkaError, orders: &mut mpsc::Receiver<Order>) {
        self.tell(GroupEvent::Failed(error));
        if let Some(Order::Leave(left)) = next_leave(orders).await {
            let _ = left.send(());
        }
    }

    async fn leave(&mut self, order: Option<Order>) {
        if let Some(Order::Leave(left)) = order {
            self.say_goodbye().await;
            let _ = left.send(());
        }
    }

    async fn say_goodbye(&mut self) {
        if self.identity.instance_id.is_some() || self.identity.member_id.is_empty() {
            return;
        }
        let member_id = std::mem::take(&mut self.identity.member_id);
        self.identity.generation = -1;
        let member = MemberIdentity { member_id: member_id.clone(), ..Default::default() };
        let group_id = self.settings.group.clone();
        let request = LeaveGroupRequest { group_id, member_id, members: vec![member] };
        if !matches!(timeout(LEAVE_TIMEOUT, self.coordinator.ask(&request)).await, Ok(Ok(_))) {
            tracing::debug!(group = self.settings.group, "the group was left without a word");
        }
    }

    /// What the coordinator's error means, having looked for another where it says so.
    async fn checked(
        &self,
        code: highwater_protocol::ErrorCode,
        what: &str,
    ) -> Result<(), Failure> {
        self.coordinator.check(code, || format!("{what} group {}", self.settings.group)).await
    }

    async fn look_again(&self, code: highwater_protocol::ErrorCode) {
        if is_elsewhere(code) {
            self.coordinator.forget().await;
        }
    }

    fn tell(&self, event: GroupEvent) {
        // There is room for it, unless the owner is gone.
        let _ = self.events.try_send(event);
    }
}

/// What an order means to one who holds something: `None` to join anew.
fn after(order: Option<Order>) -> Option<Option<Order>> {
    match order {
        Some(Order::Join) => None,
        other => Some(other),
    }
}

/// Waits until it shall leave; `None` when the owner is gone.
async fn next_leave(orders: &mut mpsc::Receiver<Order>) -> Option<Order> {
    loop {
        match orders.recv().await {
            Some(Order::Join) => {}
            other => return other,
        }
    }
}

/// Whether what is held is still used, or flushed to be given away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holding {
    On,
    /// Until then: whoever has not joined anew by the rebalance time-out is put out of the group,
    /// however often it beats.
    LettingGo(Instant),
}

impl Holding {
    /// From when on an answer to what is asked now lengthens a lease of `span`.
    fn counted(self, asked: Instant, span: Duration) -> Instant {
        match self {
            Self::On => asked,
            Self::LettingGo(until) => until.checked_sub(span).map_or(asked, |last| last.min(asked)),
        }
    }
}

/// The group began to share out anew within a session time-out before that was heard.
fn time_to_let_go(settings: &MemberSettings) -> Duration {
    let rebalance = settings.rebalance_timeout;
    rebalance.saturating_sub(settings.session_timeout).max(rebalance / 2)
}

/// Time is left to stop before the coordinator gives what is held to others.
fn lease_span(settings: &MemberSettings) -> Duration {
    settings.session_timeout * 2 / 3
}

/// Beats, and does not mind what that says.
async fn beat_on(
    coordinator: &Coordinator,
    settings: &MemberSettings,
    identity: &Identity,
    lease: &Lease,
) -> Infallible {
    loop {
        sleep(settings.heartbeat_interval).await;
        if identity.member_id.is_empty() {
            continue;
        }
        let (asked, mut identity) = (Instant::now(), identity.clone());
        let beat = beat_once(coordinator, settings, &mut identity).await;
        if matches!(beat, Ok(Next::Go | Next::Rejoin)) {
            lease.renew(asked);
        }
    }
}

/// Beats until that says something new.
async fn beat(
    coordinator: &Coordinator,
    settings: &MemberSettings,
    identity: &mut Identity,
    lease: &Lease,
    holding: Holding,
) -> GroupEvent {
    loop {
        sleep(settings.heartbeat_interval).await;
        let asked = holding.counted(Instant::now(), lease_span(settings));
        let failure = match timeout(lease.left(), beat_once(coordinator, settings, identity)).await
        {
            Ok(Ok(Next::Lost)) => {
                lease.end();
                return GroupEvent::Lost("the group knows it no longer".to_owned());
            }
            Ok(Ok(next)) if lease.renew(asked) => {
                if next == Next::Rejoin && holding == Holding::On {
                    return GroupEvent::Revoking;
                }
                continue;
            }
            Ok(Ok(_)) => "its answer came too late".to_owned(),
            Ok(Err(Failure::Final(error))) => return GroupEvent::Failed(error),
            Ok(Err(Failure::Transient(error))) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if !lease.holds() {
            return GroupEvent::Lost(match holding {
                Holding::LettingGo(until) if Instant::now() >= until => {
                    "it has not let go of its share in time".to_owned()
                }
                _ => {
                    let span = lease_span(settings).as_millis();
                    format!("its coordinator was silent for {span} ms: {failure}")
                }
            });
        }
    }
}

async fn beat_once(
    coordinator: &Coordinator,
    settings: &MemberSettings,
    identity: &mut Identity,
) -> Result<Next, Failure> {
    let request = HeartbeatRequest {
        group_id: settings.group.clone(),
        generation_id: identity.generation,
        member_id: identity.member_id.clone(),
        group_instance_id: identity.instance_id.clone(),
    };
    // A connection that hangs leaves time for a second attempt.
    let patience = settings.session_timeout / 3;
    let code = coordinator.ask_within(&request, patience).await?.error_code;
    match identity.held(code) {
        next @ (Next::Go | Next::Rejoin | Next::Lost) => Ok(next),
        Next::Again | Next::Stop => {
            let what = || format!("stay in group {}", settings.group);
            coordinator.check(code, what).await.map(|()| Next::Go)
        }
    }
}

/// Ends when the group must share out anew.
async fn stale(protocol: &mut impl GroupProtocol, settings: &MemberSettings, leads: bool) {
    loop {
        let wait = if protocol.waits() { MISSING_INTERVAL } else { settings.refresh_interval };
        sleep(wait.min(settings.refresh_interval)).await;
        match protocol.is_stale(leads).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(group = settings.group, %error, "it is not known whether the group is out of date")
            }
        }
    }
}

/// Ends when the owner has not been heard of for too long.
async fn owner_silent(owner: &Mutex<Instant>, longest: Duration) -> String {
    loop {
        let due = *owner.lock() + longest;
        if due <= Instant::now() {
            let longest = longest.as_millis();
            return format!("nothing was asked of it for {longest} ms");
        }
        sleep_until(due).await;
    }
}

fn group_member(member: JoinGroupResponseMember) -> GroupMember {
    let JoinGroupResponseMember { member_id, group_instance_id: instance_id, metadata } = member;
    GroupMember { member_id, instance_id, metadata }
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(session: u64, rebalance: u64) -> MemberSettings {
        MemberSettings {
            group: "g".to_owned(),
            instance_id: None,
            session_timeout: Duration::from_secs(session),
            heartbeat_interval: Duration::from_secs(1),
            rebalance_timeout: Duration::from_secs(rebalance),
            refresh_interval: Duration::from_secs(1),
            join_timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_share_is_let_go_before_the_group_gives_up_waiting() {
        assert_eq!(time_to_let_go(&settings(10, 60)), Duration::from_secs(50));
        assert_eq!(time_to_let_go(&settings(45, 30)), Duration::from_secs(15));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_lets_go_beats_in_vain_once_its_time_is_over() {
        let (span, begun) = (Duration::from_secs(6), Instant::now());
        let holding = Holding::LettingGo(begun + Duration::from_secs(50));
        let lease = Lease::from(begun, span);
        for _ in 0..49 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(lease.renew(holding.counted(Instant::now(), span)));
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!lease.renew(holding.counted(Instant::now(), span)));
        assert_eq!(Holding::On.counted(begun, span), begun);
    }
}
