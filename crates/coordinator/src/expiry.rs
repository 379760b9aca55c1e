//! Which offsets of a group may go (KIP-211). Pure.

use crate::clock::Now;
use crate::group::{Group, GroupState};
use crate::offsets::{CommittedOffset, Offsets};

/// From when the time counts after which an offset goes.
enum Since {
    /// From when the group lost its last member.
    Moment(i64),
    /// From the offset's own commit.
    Commit,
}

/// The offsets that are over their time.
pub(crate) fn expired(
    group: &Group,
    offsets: &Offsets,
    retention_ms: i64,
    now: Now,
) -> Vec<(String, i32)> {
    let Some(since) = since(group) else { return Vec::new() };
    let mut expired = Vec::new();
    for (topic, partitions) in offsets.topics().filter(|(topic, _)| !group.is_subscribed(topic)) {
        for (partition, offset) in partitions {
            if is_over(&since, offset, retention_ms, now) && !offsets.has_pending(topic, *partition)
            {
                expired.push((topic.clone(), *partition));
            }
        }
    }
    expired
}

/// None where no offset may go: members read, and what they are subscribed to is not known.
fn since(group: &Group) -> Option<Since> {
    match group.state {
        // Nobody ever joined: offsets are all there is.
        _ if group.protocol_type.is_none() => Some(Since::Commit),
        GroupState::Empty => Some(group.since_ms.map_or(Since::Commit, Since::Moment)),
        GroupState::Stable if group.subscribed.is_some() => Some(Since::Commit),
        _ => None,
    }
}

fn is_over(since: &Since, offset: &CommittedOffset, retention_ms: i64, now: Now) -> bool {
    let until = match (offset.expire_ms, since) {
        (Some(expire_ms), _) => expire_ms,
        (None, Since::Moment(moment)) => moment.saturating_add(retention_ms),
        (None, Since::Commit) => offset.commit_ms.saturating_add(retention_ms),
    };
    now.wall_ms >= until
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETENTION: i64 = 100;

    fn at(wall_ms: i64) -> Now {
        Now { tick_ms: 0, wall_ms }
    }

    fn offsets(commit_ms: i64, expire_ms: Option<i64>) -> Offsets {
        let metadata = String::new();
        let committed = CommittedOffset {
            offset: 1,
            leader_epoch: -1,
            metadata,
            commit_ms,
            expire_ms,
            record_offset: 1,
        };
        let mut offsets = Offsets::default();
        offsets.put("t", 0, committed);
        offsets
    }

    /// The first time at which the offset goes.
    fn goes_at(group: &Group, offsets: &Offsets) -> Option<i64> {
        (0..400).find(|wall_ms| !expired(group, offsets, RETENTION, at(*wall_ms)).is_empty())
    }

    fn group(state: GroupState, subscribed: Option<&[&str]>) -> Group {
        let mut group = Group::new(at(50));
        group.protocol_type = Some("consumer".to_owned());
        group.move_to(state, at(200));
        group.subscribed = subscribed.map(|topics| topics.iter().map(|&t| t.to_owned()).collect());
        group
    }

    #[test]
    fn without_members_ever_from_the_commit() {
        assert_eq!(goes_at(&Group::new(at(50)), &offsets(30, None)), Some(130));
    }

    #[test]
    fn without_members_any_more_from_when_the_last_one_went() {
        assert_eq!(goes_at(&group(GroupState::Empty, Some(&[])), &offsets(30, None)), Some(300));
    }

    #[test]
    fn with_members_only_where_nobody_is_subscribed() {
        let other = group(GroupState::Stable, Some(&["u"]));
        assert_eq!(goes_at(&other, &offsets(30, None)), Some(130));
        assert_eq!(goes_at(&group(GroupState::Stable, Some(&["t"])), &offsets(30, None)), None);
        assert_eq!(goes_at(&group(GroupState::Stable, None), &offsets(30, None)), None);
        let rebalancing = group(GroupState::PreparingRebalance, Some(&["u"]));
        assert_eq!(goes_at(&rebalancing, &offsets(30, None)), None);
    }

    #[test]
    fn when_its_client_said() {
        let empty = group(GroupState::Empty, Some(&[]));
        assert_eq!(goes_at(&empty, &offsets(30, Some(77))), Some(77));
    }

    #[test]
    fn not_under_an_open_transaction() {
        let mut offsets = offsets(30, None);
        let pending = offsets.get("t", 0).cloned();
        if let Some(pending) = pending {
            offsets.put_pending(7, "t", 0, pending);
        }
        assert_eq!(goes_at(&Group::new(at(50)), &offsets), None);
    }
}
