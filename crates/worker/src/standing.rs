//! Which part of the work is this worker's: all of it, or what its group has given it.

use std::collections::BTreeSet;

use crate::assignment::Work;
use crate::elsewhere::Whereabouts;
use crate::group_texts::Peer;

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Standing {
    /// It shares with nobody.
    Alone,
    /// It shares, and has been given nothing yet, or has lost what it had.
    #[default]
    Out,
    /// It has its share.
    In(Membership),
}

/// What the group has said last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Membership {
    pub(crate) generation: i32,
    /// The one who leads; not known where its word is not understood.
    pub(crate) leader: Option<Peer>,
    /// Whether this worker is the leader.
    pub(crate) leads: bool,
    /// All that are in the group; nobody where its leader does not say.
    pub(crate) workers: Vec<Peer>,
    pub(crate) works: BTreeSet<Work>,
}

/// Kafka Connect's group generation, as a worker without a group says it.
const ALONE: i32 = 1;

impl Standing {
    pub(crate) fn has(&self, work: &Work) -> bool {
        match self {
            Self::Alone => true,
            Self::Out => false,
            Self::In(membership) => membership.works.contains(work),
        }
    }

    /// What it has, as far as a group has given it.
    pub(crate) fn works(&self) -> BTreeSet<Work> {
        match self {
            Self::Alone | Self::Out => BTreeSet::new(),
            Self::In(membership) => membership.works.clone(),
        }
    }

    /// Its part of one connector.
    pub(crate) fn portion(&self, name: &str) -> Portion {
        match self {
            Self::Alone => Portion::All,
            Self::Out => Portion::none(),
            Self::In(membership) => {
                let own = membership.works.iter().filter(|work| work.connector() == name);
                let mut portion = Portion::none();
                own.for_each(|work| portion.add(work));
                portion
            }
        }
    }

    /// Whether it alone changes what operators want.
    pub(crate) const fn leads(&self) -> bool {
        match self {
            Self::Alone => true,
            Self::Out => false,
            Self::In(membership) => membership.leads,
        }
    }

    pub(crate) const fn leader(&self) -> Option<&Peer> {
        match self {
            Self::Alone | Self::Out => None,
            Self::In(membership) => membership.leader.as_ref(),
        }
    }

    /// Where the worker of this name is.
    pub(crate) fn whereabouts(&self, worker_id: &str) -> Whereabouts {
        let Self::In(Membership { workers, .. }) = self else { return Whereabouts::Unknown };
        match workers.iter().find(|worker| worker.id == worker_id) {
            Some(worker) => Whereabouts::At(worker.url.clone()),
            None if workers.is_empty() => Whereabouts::Unknown,
            None => Whereabouts::Gone,
        }
    }

    /// The workers of the group beside the one of this name, as far as they are known.
    pub(crate) fn others(&self, worker_id: &str) -> Vec<Peer> {
        match self {
            Self::Alone | Self::Out => Vec::new(),
            Self::In(membership) => {
                let others = membership.workers.iter().filter(|worker| worker.id != worker_id);
                others.cloned().collect()
            }
        }
    }

    pub(crate) const fn generation(&self) -> i32 {
        match self {
            Self::Alone | Self::Out => ALONE,
            Self::In(membership) => membership.generation,
        }
    }
}

/// A worker's part of one connector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Portion {
    All,
    Part {
        /// The connector by itself: its standing, and the fence before its tasks.
        connector: bool,
        tasks: BTreeSet<u32>,
    },
}

impl Portion {
    pub(crate) const fn none() -> Self {
        Self::Part { connector: false, tasks: BTreeSet::new() }
    }

    fn add(&mut self, work: &Work) {
        match (self, work) {
            (Self::All, _) => {}
            (Self::Part { connector, .. }, Work::Connector(_)) => *connector = true,
            (Self::Part { tasks, .. }, Work::Task(_, id)) => drop(tasks.insert(*id)),
        }
    }

    pub(crate) const fn has_connector(&self) -> bool {
        matches!(self, Self::All | Self::Part { connector: true, .. })
    }

    pub(crate) fn has_task(&self, id: u32) -> bool {
        match self {
            Self::All => true,
            Self::Part { tasks, .. } => tasks.contains(&id),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(workers: Vec<Peer>, works: BTreeSet<Work>) -> Standing {
        Standing::In(Membership { generation: 3, leader: None, leads: false, workers, works })
    }

    #[test]
    fn who_is_in_the_group_is_known_where_its_leader_says_so() {
        let peer = Peer { id: "a:1".to_owned(), url: "https://a:1".to_owned() };
        let told = standing(vec![peer], BTreeSet::new());
        assert_eq!(told.whereabouts("a:1"), Whereabouts::At("https://a:1".to_owned()));
        assert_eq!(told.whereabouts("b:1"), Whereabouts::Gone);
        assert_eq!((told.others("a:1").len(), told.others("b:1").len()), (0, 1));
        for standing in [Standing::Alone, Standing::Out, standing(Vec::new(), BTreeSet::new())] {
            assert_eq!(standing.whereabouts("b:1"), Whereabouts::Unknown, "{standing:?}");
        }
    }

    #[test]
    fn a_portion_is_what_was_given_of_one_connector() {
        let works =
            [Work::Connector("a".into()), Work::Task("a".into(), 1), Work::Task("b".into(), 0)];
        let standing = standing(Vec::new(), works.into());
        let (a, b) = (standing.portion("a"), standing.portion("b"));
        assert!(a.has_connector() && a.has_task(1) && !a.has_task(0));
        assert!(!b.has_connector() && b.has_task(0) && !b.is_empty());
        assert!(standing.portion("c").is_empty());
        assert!(Standing::Out.portion("a").is_empty() && !Standing::Out.leads());
        assert!(Standing::Alone.portion("a").has_task(7) && Standing::Alone.leads());
    }
}
