//! Shares the work with the other workers of a group (ADR 9).
//!
//! All of them follow the same topics of state. The leader of their group says who runs what; what
//! changes hands is ended by who has it, and given to the next in the round after.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use highwater_kafka::{
    Assigned, GroupEvent, GroupMember, GroupProtocol, KafkaError, Member, MemberSettings,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::assignment::{self, Shares, Work};
use crate::group_texts::{self, Claim, KIND, PROTOCOL, Peer, Share};
use crate::herder::Herder;
use crate::settings::Sharing;
use crate::standing::{Membership, Standing};

/// How often the member hears that its worker lives, while that works on something.
const HEAR: Duration = Duration::from_secs(1);

/// Pause before a group is joined anew that did not let the worker in.
const REJOIN_PAUSE: Duration = Duration::from_secs(5);

/// Pause before configurations are read again that could not be read to their end.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// How long the others, who have joined, wait for what the leader has read to be done.
const SETTLE: Duration = Duration::from_secs(2);

/// How long a join goes on while no broker answers, before it is said and begun anew.
const JOIN_TIMEOUT: Duration = Duration::from_secs(60);

/// The group as its leader saw it when it shared out last; nothing on other workers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Round {
    /// What the workers had when they joined.
    claimed: BTreeSet<Work>,
    /// Who has what since.
    given: BTreeMap<Work, Peer>,
}

impl Round {
    /// Who has a part.
    pub(crate) fn owner(&self, work: &Work) -> Option<&Peer> {
        self.given.get(work)
    }

    /// Whether anybody may run a task of a connector.
    pub(crate) fn has_tasks_of(&self, name: &str) -> bool {
        let is_task = |work: &&Work| matches!(work, Work::Task(of, _) if of == name);
        self.claimed.iter().chain(self.given.keys()).any(|work| is_task(&work))
    }
}

/// The worker's life in its group.
pub(crate) struct Joined {
    leave_off: oneshot::Sender<()>,
    life: JoinHandle<Option<Member>>,
}

/// What became of the first attempt to join.
type First = oneshot::Sender<KafkaError>;

impl Herder {
    /// Joins the group. Returns once this worker has its share, or the start time-out is over: it then
    /// goes on by itself.
    ///
    /// # Errors
    /// When the group does not let it in.
    pub(crate) async fn join(self: &Arc<Self>, sharing: Sharing) -> Result<(), KafkaError> {
        let (failed, failure) = oneshot::channel();
        let (leave_off, asked) = oneshot::channel();
        let life = tokio::spawn(live(Arc::clone(self), sharing, failed, asked));
        *self.joined.lock().await = Some(Joined { leave_off, life });
        let mut standing = self.shared.standing.subscribe();
        let joined = standing.wait_for(|standing| matches!(standing, Standing::In(_)));
        let first = async {
            tokio::select! {
                Ok(error) = failure => Err(error),
                _ = joined => Ok(()),
            }
        };
        match timeout(self.config.start_timeout, first).await {
            Ok(joined) => joined,
            Err(_) => {
                tracing::warn!(group = self.config.group_id, "no share of the group yet");
                Ok(())
            }
        }
    }

    /// Takes no more part in sharing out. The member that is returned still beats.
    pub(crate) async fn leave_off(&self) -> Option<Member> {
        let Joined { leave_off, life } = self.joined.lock().await.take()?;
        // It may have ended by itself.
        let _ = leave_off.send(());
        life.await.ok().flatten()
    }

    fn peer(&self, sharing: &Sharing) -> Peer {
        Peer { id: self.config.worker_id.clone(), url: sharing.url.clone() }
    }

    /// Takes what the group has given; whether something was ended, which others wait for.
    async fn take(&self, assigned: Assigned) -> bool {
        let Assigned { identity, leads, assignment, lease } = assigned;
        let (leader, workers, has) = match group_texts::decode::<Share>(&assignment) {
            Ok(Share { leader, workers, has }) => (Some(leader), workers, has),
            Err(error) => {
                // What it had may be given to others.
                tracing::error!(%error, "the leader's word is not understood: nothing is run");
                (None, Vec::new(), BTreeSet::new())
            }
        };
        let had = self.standing().works();
        let kept: BTreeSet<Work> = had.intersection(&has).cloned().collect();
        let membership = |works| {
            Standing::In(Membership {
                generation: identity.generation,
                leader: leader.clone(),
                leads,
                workers: workers.clone(),
                works,
            })
        };
        let ends = kept != had;
        if ends {
            self.narrow(membership(kept)).await;
        }
        if self.shared.cluster.write_under(lease.clone()) {
            self.close_journals().await;
        }
        // What is new is nobody's until it is known how it is configured: others may have begun with
        // what this worker has not read.
        while let Err(error) = self.read_configs().await {
            tracing::warn!(%error, "the configurations could not be read to their end");
            sleep(READ_PAUSE).await;
            if !lease.holds() {
                return ends;
            }
        }
        self.runners.stand(membership(has));
        // At once: one whose check hangs takes its time-out, and no more for all of them.
        join_all(self.names().iter().map(|name| self.replan(name))).await;
        self.update_wanted();
        self.tell_all();
        ends
    }

    /// Ends what is not this worker's any more, and waits until it has ended.
    async fn narrow(&self, standing: Standing) {
        self.runners.stand(standing);
        let ending = self.runners.portions();
        ending.iter().for_each(|(name, ..)| self.tell(name));
        for (_, mut here, portion) in ending {
            // A runner that leaves drops its end.
            let ended = here.wait_for(|here| !portion.is_empty() && here.is_within(&portion));
            drop(ended.await);
        }
        self.runners.have_left().await;
    }

    /// What it had may be somebody else's.
    async fn lose(&self, reason: &str) {
        tracing::warn!(group = self.config.group_id, reason, "its share of the group is lost");
        self.runners.stand(Standing::Out);
        self.round.send_replace(Round::default());
        self.runners.end_all().await;
        self.close_journals().await;
    }

    /// Their writers are under a lease that has ended.
    async fn close_journals(&self) {
        self.shared.journal.close().await;
        self.shared.active_topics.close().await;
    }
}

/// Lives in the group until it shall leave off, or the group does not let it in at first.
async fn live(
    herder: Arc<Herder>,
    sharing: Sharing,
    failed: First,
    mut asked: oneshot::Receiver<()>,
) -> Option<Member> {
    let (mut was_in, mut failed) = (false, Some(failed));
    loop {
        let mut member = enter(&herder, &sharing);
        let error = tokio::select! {
            error = follow(&herder, &mut member, &mut was_in) => error,
            _ = &mut asked => return Some(member),
        };
        drop(member);
        herder.lose(&error.to_string()).await;
        // Whoever still waits for the start is told; all others come back when they can.
        if !was_in && failed.take().is_some_and(|failed| failed.send(error).is_ok()) {
            return None;
        }
        tokio::select! {
            () = sleep(REJOIN_PAUSE) => {}
            _ = &mut asked => return None,
        }
    }
}

fn enter(herder: &Arc<Herder>, sharing: &Sharing) -> Member {
    let settings = MemberSettings {
        group: herder.config.group_id.clone(),
        instance_id: None,
        session_timeout: sharing.session_timeout,
        heartbeat_interval: sharing.heartbeat_interval,
        rebalance_timeout: sharing.rebalance_timeout,
        // The protocol itself waits for news.
        refresh_interval: Duration::ZERO,
        join_timeout: JOIN_TIMEOUT,
    };
    let protocol = SharingOut {
        herder: Arc::downgrade(herder),
        peer: herder.peer(sharing),
        wanted: BTreeSet::new(),
    };
    Member::join_group(&herder.shared.cluster.reader, settings, protocol)
}

/// Does what the group says until it is out of it for good, and says why.
async fn follow(herder: &Arc<Herder>, member: &mut Member, was_in: &mut bool) -> KafkaError {
    // Whether it has joined anew since it was assigned something. What came before that still waits
    // to be heard, and a second join would say that nothing is held of what is being assigned.
    let mut joins = false;
    loop {
        let must_join = match next(member).await {
            GroupEvent::Assigned(assigned) => {
                (*was_in, joins) = (true, false);
                heard(member, herder.take(assigned)).await
            }
            GroupEvent::Revoking => true,
            GroupEvent::Lost(reason) => {
                heard(member, herder.lose(&reason)).await;
                true
            }
            GroupEvent::Failed(error) => return error,
        };
        if must_join && !joins {
            member.join().await;
            joins = true;
        }
    }
}

async fn next(member: &mut Member) -> GroupEvent {
    loop {
        member.hear();
        if let Ok(event) = timeout(HEAR, member.event()).await {
            return event;
        }
    }
}

/// Works on something, and has the member hear of it.
async fn heard<T>(member: &Member, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        member.hear();
        if let Ok(done) = timeout(HEAR, &mut work).await {
            return done;
        }
    }
}

/// What the group shares out.
struct SharingOut {
    herder: Weak<Herder>,
    peer: Peer,
    /// All that was shared out last.
    wanted: BTreeSet<Work>,
}

#[async_trait]
impl GroupProtocol for SharingOut {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn protocols(&mut self) -> Result<Vec<(String, Bytes)>, KafkaError> {
        let has = self.herder.upgrade().map(|herder| herder.standing().works());
        let claim = Claim { worker: self.peer.clone(), has: has.unwrap_or_default() };
        Ok(vec![(PROTOCOL.to_owned(), group_texts::encode(&claim))])
    }

    async fn assign(
        &mut self,
        _protocol: &str,
        members: Vec<GroupMember>,
    ) -> Result<Vec<(String, Bytes)>, KafkaError> {
        let Some(herder) = self.herder.upgrade() else { return Ok(Vec::new()) };
        if let Err(error) = herder.hear_configs().await {
            tracing::warn!(%error, "the work is shared out as far as it is known");
        }
        // What takes longer is shared out in the next round.
        drop(timeout(SETTLE, herder.act()).await);
        herder.update_wanted();
        self.wanted = herder.wanted.borrow().clone();
        let claims: BTreeMap<String, Claim> = members.into_iter().filter_map(claim).collect();
        warn_of_namesakes(&claims);
        let running: Shares =
            claims.iter().map(|(id, claim)| (id.clone(), claim.has.clone())).collect();
        let shares = assignment::assign(&self.wanted, &running);
        herder.round.send_replace(round(&claims, &shares));
        let leader = self.peer.clone();
        let workers: Vec<Peer> = claims.into_values().map(|claim| claim.worker).collect();
        let share = |(id, has): (String, BTreeSet<Work>)| {
            let (leader, workers) = (leader.clone(), workers.clone());
            (id, group_texts::encode(&Share { leader, workers, has }))
        };
        Ok(shares.into_iter().map(share).collect())
    }

    async fn is_stale(&mut self, leads: bool) -> Result<bool, KafkaError> {
        let wanted =
            self.herder.upgrade().filter(|_| leads).map(|herder| herder.wanted.subscribe());
        let Some(mut wanted) = wanted else { return std::future::pending().await };
        let changed = wanted.wait_for(|wanted| *wanted != self.wanted).await.is_ok();
        // Else the worker has ended.
        if changed { Ok(true) } else { std::future::pending().await }
    }
}

/// One whose word cannot be read gets nothing.
fn claim(member: GroupMember) -> Option<(String, Claim)> {
    match group_texts::decode(&member.metadata) {
        Ok(claim) => Some((member.member_id, claim)),
        Err(error) => {
            tracing::error!(member = member.member_id, %error, "a worker of the group gets nothing");
            None
        }
    }
}

/// Requests that are for one would come to the other.
fn warn_of_namesakes(claims: &BTreeMap<String, Claim>) {
    let mut urls = BTreeSet::new();
    for Claim { worker, .. } in claims.values() {
        if !urls.insert(&worker.url) {
            let url = &worker.url;
            tracing::error!(
                url,
                "two workers say that they are reached there: set worker.advertised_url"
            );
        }
    }
}

fn round(claims: &BTreeMap<String, Claim>, shares: &Shares) -> Round {
    let claimed = claims.values().flat_map(|claim| claim.has.clone()).collect();
    let owned = |(id, works): (&String, &BTreeSet<Work>)| {
        let place = claims.get(id).map(|claim| claim.worker.clone());
        works.iter().cloned().zip(place.into_iter().cycle()).collect::<Vec<_>>()
    };
    Round { claimed, given: shares.iter().flat_map(owned).collect() }
}
