//! Who runs what among many workers: the decision that the leader of their group makes.
//!
//! Nothing ever has two owners. What changes hands is first taken from its owner and given to
//! nobody; its owner joins again once it has ended it, and the round after gives it away, as in
//! Kafka Connect's incremental cooperative rebalancing (KIP-415). All else goes on meanwhile.

use std::collections::{BTreeMap, BTreeSet};

/// What a worker can be given.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Work {
    /// A connector by itself: its checks, and the configurations of its tasks.
    Connector(String),
    /// One of its tasks.
    Task(String, u32),
}

impl Work {
    /// Name of the connector.
    pub(crate) fn connector(&self) -> &str {
        match self {
            Self::Connector(name) | Self::Task(name, _) => name,
        }
    }

    const fn is_task(&self) -> bool {
        matches!(self, Self::Task(..))
    }
}

/// Work by the member that has it.
pub(crate) type Shares = BTreeMap<String, BTreeSet<Work>>;

/// Shares `wanted` among the members, who say what they run. Connectors and tasks are balanced
/// each for themselves, the tasks of one connector apart where that costs nothing, and as little
/// moves as that allows.
///
/// What a member runs beside its share, it ends.
pub(crate) fn assign(wanted: &BTreeSet<Work>, running: &Shares) -> Shares {
    let mut balance = Balance::of(wanted, running);
    if balance.shares.is_empty() {
        return balance.shares;
    }
    for work in wanted.iter().filter(|work| !balance.is_held(work)).cloned().collect::<Vec<_>>() {
        balance.give(work);
    }
    balance.level(Work::is_task);
    balance.level(|work| !work.is_task());
    balance.shares
}

struct Balance {
    shares: Shares,
    /// What has to end where it runs before it can go to this member.
    leaving: BTreeMap<Work, String>,
}

impl Balance {
    /// What is wanted stays where it runs. What two members run at once, one of which was away for
    /// too long, ends with both.
    fn of(wanted: &BTreeSet<Work>, running: &Shares) -> Self {
        let mut owners: BTreeMap<&Work, usize> = BTreeMap::new();
        for work in running.values().flatten() {
            *owners.entry(work).or_default() += 1;
        }
        let kept = |work: &&Work| wanted.contains(*work) && owners.get(work) == Some(&1);
        let share = |works: &BTreeSet<Work>| works.iter().filter(kept).cloned().collect();
        let shares: Shares =
            running.iter().map(|(member, works)| (member.clone(), share(works))).collect();
        let contested =
            owners.iter().filter(|(work, count)| **count > 1 && wanted.contains(**work));
        let leaving = contested.map(|(work, _)| ((*work).clone(), String::new())).collect();
        Self { shares, leaving }
    }

    fn is_held(&self, work: &Work) -> bool {
        self.leaving.contains_key(work) || self.shares.values().any(|works| works.contains(work))
    }

    /// How much of a kind a member has or will have.
    fn load(&self, member: &str, kind: impl Fn(&Work) -> bool) -> usize {
        let has = self.shares.get(member).into_iter().flatten().filter(|work| kind(work)).count();
        let coming = self.leaving.iter().filter(|(work, to)| *to == member && kind(work)).count();
        has + coming
    }

    /// To the member with the least of its kind, then of its connector, then in all.
    fn give(&mut self, work: Work) {
        let least = self.shares.keys().min_by_key(|member| {
            (
                self.load(member, |other| other.is_task() == work.is_task()),
                self.load(member, |other| other.connector() == work.connector()),
                self.load(member, |_| true),
            )
        });
        let Some(member) = least.cloned() else { return };
        self.shares.entry(member).or_default().insert(work);
    }

    /// Takes from who has two more than another, until nobody has.
    fn level(&mut self, kind: impl Fn(&Work) -> bool + Copy) {
        loop {
            let loads: Vec<_> =
                self.shares.keys().map(|member| (self.load(member, kind), member)).collect();
            let (Some(most), Some(least)) = (loads.iter().max(), loads.iter().min()) else {
                return;
            };
            if most.0 < least.0 + 2 {
                return;
            }
            let (from, to) = (most.1.clone(), least.1.clone());
            let Some(works) = self.shares.get_mut(&from) else { return };
            let Some(work) = works.iter().rfind(|work| kind(work)).cloned() else { return };
            works.remove(&work);
            self.leaving.insert(work, to);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn work(connectors: &[(&str, u32)]) -> BTreeSet<Work> {
        let tasks = |(name, tasks): &(&str, u32)| {
            let name = (*name).to_owned();
            let connector = Work::Connector(name.clone());
            let tasks = (0..*tasks).map(move |task| Work::Task(name.clone(), task));
            std::iter::once(connector).chain(tasks)
        };
        connectors.iter().flat_map(tasks).collect()
    }

    fn members(names: &[&str]) -> Shares {
        names.iter().map(|name| ((*name).to_owned(), BTreeSet::new())).collect()
    }

    /// Rounds until nobody has to end anything, each member doing what it is told.
    fn settle(wanted: &BTreeSet<Work>, mut running: Shares) -> (Shares, usize) {
        for rounds in 1..10 {
            let said = assign(wanted, &running);
            for (member, works) in &said {
                for work in works {
                    let others = running.iter().filter(|(other, _)| *other != member);
                    assert!(
                        others.into_iter().all(|(_, theirs)| !theirs.contains(work)),
                        "{work:?}"
                    );
                }
            }
            running = said;
            if is_finished(wanted, &running) {
                return (running, rounds);
            }
        }
        panic!("no end: {running:?}");
    }

    /// Whether nothing has to end first that another round then gives away.
    fn is_finished(wanted: &BTreeSet<Work>, shares: &Shares) -> bool {
        wanted.iter().all(|work| shares.values().any(|works| works.contains(work)))
    }

    fn loads(shares: &Shares, kind: impl Fn(&Work) -> bool) -> Vec<usize> {
        shares.values().map(|works| works.iter().filter(|work| kind(work)).count()).collect()
    }

    #[test]
    fn the_first_round_gives_everything_away() {
        let wanted = work(&[("a", 4), ("b", 2)]);
        let said = assign(&wanted, &members(&["x", "y"]));
        assert!(is_finished(&wanted, &said));
        assert_eq!(loads(&said, Work::is_task), [3, 3]);
        assert_eq!(loads(&said, |work| !work.is_task()), [1, 1]);
        let of_a = loads(&said, |work| work.is_task() && work.connector() == "a");
        assert_eq!(of_a, [2, 2], "the tasks of a connector lie apart");
    }

    #[test]
    fn what_changes_hands_ends_first() {
        let wanted = work(&[("a", 4)]);
        let mut running = assign(&wanted, &members(&["x"]));
        running.insert("y".to_owned(), BTreeSet::new());
        let said = assign(&wanted, &running);
        assert!(!is_finished(&wanted, &said));
        assert_eq!(loads(&said, Work::is_task), [2, 0], "taken, and not given yet");
        let said = assign(&wanted, &said);
        assert_eq!(loads(&said, Work::is_task), [2, 2]);
    }

    #[test]
    fn what_two_run_at_once_ends_with_both() {
        let wanted = work(&[("a", 1)]);
        let running = [("x", wanted.clone()), ("y", wanted.clone())];
        let running = running.map(|(name, works)| (name.to_owned(), works)).into();
        let said = assign(&wanted, &running);
        assert!(said.values().all(BTreeSet::is_empty), "{said:?}");
        let (settled, _) = settle(&wanted, running);
        assert_eq!(settled.values().flatten().count(), 2);
    }

    #[test]
    fn what_is_wanted_no_more_ends() {
        let mut running = members(&["x"]);
        running.insert("x".to_owned(), work(&[("a", 2), ("b", 1)]));
        let said = assign(&work(&[("b", 1)]), &running);
        assert_eq!(said["x"], work(&[("b", 1)]));
    }

    #[test]
    fn nobody_there_is_no_fault() {
        assert_eq!(assign(&work(&[("a", 1)]), &Shares::new()), Shares::new());
    }

    proptest! {
        /// Whatever runs where: soon all that is wanted runs once, evenly, and stays as it is.
        #[test]
        fn all_settles(
            connectors in prop::collection::vec(0_u32..6, 0..5),
            owners in prop::collection::vec(prop::collection::vec(any::<bool>(), 40), 1..5),
        ) {
            let names: Vec<String> = (0..connectors.len()).map(|at| format!("c{at}")).collect();
            let list: Vec<(&str, u32)> =
                names.iter().map(String::as_str).zip(connectors.iter().copied()).collect();
            let wanted = work(&list);
            let gone = work(&[("gone", 2)]);
            let all: Vec<&Work> = wanted.iter().chain(&gone).collect();
            let running: Shares = owners
                .iter()
                .enumerate()
                .map(|(at, has)| {
                    let works = all.iter().zip(has).filter(|(_, has)| **has);
                    (format!("m{at}"), works.map(|(work, _)| (*work).clone()).collect())
                })
                .collect();
            let (settled, rounds) = settle(&wanted, running);
            prop_assert!(rounds <= 3, "{} rounds", rounds);
            let mut owned: Vec<&Work> = settled.values().flatten().collect();
            owned.sort();
            prop_assert_eq!(owned, wanted.iter().collect::<Vec<_>>());
            for kind in [Work::is_task, |work: &Work| !work.is_task()] {
                let loads = loads(&settled, kind);
                let spread = loads.iter().max().unwrap() - loads.iter().min().unwrap();
                prop_assert!(spread <= 1, "{:?}", loads);
            }
            let again = assign(&wanted, &settled);
            prop_assert_eq!(again, settled, "it rests");
        }
    }
}
