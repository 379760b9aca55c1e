//! Who reads what: the `range` assignor, as Kafka's Java client has it, so that a group may have
//! members of both.

use std::collections::{BTreeMap, BTreeSet};

/// Its name in a group.
pub(crate) const RANGE: &str = "range";

/// A member, and the topics that it wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Subscriber {
    pub(crate) member_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) topics: BTreeSet<String>,
}

impl Subscriber {
    /// Static members come first, by their names, then the others by their ids.
    fn place(&self) -> (bool, &str) {
        (self.instance_id.is_none(), self.instance_id.as_deref().unwrap_or(&self.member_id))
    }
}

/// The partitions of a member, by topic.
pub(crate) type Share = BTreeMap<String, Vec<i32>>;

/// Shares out the partitions of each topic in consecutive runs of about the same length; where it
/// does not come out even, the first members have one more. `counts` are the partitions that topics
/// have; one that it lacks does not exist.
pub(crate) fn range(
    mut members: Vec<Subscriber>,
    counts: &BTreeMap<String, i32>,
) -> BTreeMap<String, Share> {
    members.sort_by(|one, other| one.place().cmp(&other.place()));
    let mut shares: BTreeMap<String, Share> =
        members.iter().map(|member| (member.member_id.clone(), Share::new())).collect();
    for (topic, count) in counts {
        let wanting: Vec<_> =
            members.iter().filter(|member| member.topics.contains(topic)).collect();
        for (member, run) in wanting.iter().zip(runs(*count, wanting.len())) {
            if let Some(share) = shares.get_mut(&member.member_id).filter(|_| !run.is_empty()) {
                share.insert(topic.clone(), run.collect());
            }
        }
    }
    shares
}

/// The partitions `0..count` in as many consecutive runs.
fn runs(count: i32, members: usize) -> impl Iterator<Item = std::ops::Range<i32>> {
    // More members than there may be partitions get what that many would get.
    let members = i32::try_from(members).unwrap_or(i32::MAX).max(1);
    let (each, more) = (count.max(0) / members, count.max(0) % members);
    (0..members).map(move |index| {
        let start = each * index + index.min(more);
        start..start + each + i32::from(index < more)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn member(id: &str, instance: Option<&str>, topics: &[&str]) -> Subscriber {
        Subscriber {
            member_id: id.to_owned(),
            instance_id: instance.map(str::to_owned),
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
        }
    }

    fn counts(pairs: &[(&str, i32)]) -> BTreeMap<String, i32> {
        pairs.iter().map(|(topic, count)| ((*topic).to_owned(), *count)).collect()
    }

    /// The example of the Java class's own documentation: two members, two topics of three partitions.
    #[test]
    fn the_first_members_have_one_more_of_each_topic() {
        let members = vec![member("c1", None, &["t0", "t1"]), member("c0", None, &["t0", "t1"])];
        let shares = range(members, &counts(&[("t0", 3), ("t1", 3)]));
        assert_eq!(shares["c0"]["t0"], [0, 1]);
        assert_eq!(shares["c0"]["t1"], [0, 1]);
        assert_eq!((&shares["c1"]["t0"], &shares["c1"]["t1"]), (&vec![2], &vec![2]));
    }

    #[test]
    fn static_members_come_first_by_their_names() {
        let members = vec![
            member("a", None, &["t"]),
            member("z", Some("one"), &["t"]),
            member("b", Some("two"), &["t"]),
        ];
        let shares = range(members, &counts(&[("t", 4)]));
        assert_eq!(shares["z"]["t"], [0, 1]);
        assert_eq!((&shares["b"]["t"], &shares["a"]["t"]), (&vec![2], &vec![3]));
    }

    #[test]
    fn a_topic_that_is_not_there_and_a_member_too_many_get_nothing() {
        let members = vec![member("a", None, &["t", "gone"]), member("b", None, &["t"])];
        let shares = range(members, &counts(&[("t", 1)]));
        assert_eq!(shares["a"].len(), 1);
        assert!(shares["b"].is_empty());
    }

    proptest! {
        #[test]
        fn every_partition_that_somebody_wants_has_one_reader(
            wants in proptest::collection::vec(proptest::collection::btree_set(0..4_u8, 0..4), 1..8),
            sizes in proptest::collection::vec(0..20_i32, 4),
        ) {
            let members: Vec<_> = (0..).zip(&wants).map(|(index, topics)| Subscriber {
                member_id: format!("m{index}"),
                instance_id: None,
                topics: topics.iter().map(|topic| format!("t{topic}")).collect(),
            }).collect();
            let counts: BTreeMap<_, _> =
                (0..).zip(&sizes).map(|(topic, count)| (format!("t{topic}"), *count)).collect();
            let shares = range(members.clone(), &counts);
            for (topic, count) in &counts {
                let mut read: Vec<i32> = shares.values().filter_map(|share| share.get(topic)).flatten().copied().collect();
                read.sort_unstable();
                let wanted = members.iter().any(|member| member.topics.contains(topic));
                let all: Vec<i32> = if wanted { (0..*count).collect() } else { Vec::new() };
                prop_assert_eq!(read, all);
                for member in &members {
                    prop_assert!(member.topics.contains(topic) || !shares[&member.member_id].contains_key(topic));
                }
            }
        }
    }
}
