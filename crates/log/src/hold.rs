//! Retention holds (rule L7): what a topic keeps for somebody, whatever its retention says.
//!
//! A hold is the setting `highwater.hold.NAME`, whose text is words: `OFFSET`, which holds every partition
//! from there on, or `PARTITION:OFFSET` for each partition that is held; then `until TIME`, if it is to end
//! by itself. There is neither a comma nor an equals sign in it, at which kafka-configs takes settings apart.
//! The log itself adds `broken TIME` where it had to give up what was held.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{LogError, TopicConfig};

/// What every setting of a hold begins with.
pub const HOLD_PREFIX: &str = "highwater.hold.";

/// Holds of one topic at most.
pub(crate) const MAX_HOLDS: usize = 100;

/// Characters of a hold's name at most.
const MAX_NAME: usize = 100;

/// What its text must be, for people.
pub(crate) const FORM: &str = "give OFFSET, or PARTITION:OFFSET for each partition held, and then until TIME (as 2026-12-01T00:00:00Z) if it is to end";

/// A hold of a topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    /// Who or what it is for.
    pub name: String,
    /// What is held.
    pub from: HeldFrom,
    /// When it ends by itself, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// When the log broke it, in milliseconds since 1970. From then on it holds nothing.
    pub broken_ms: Option<i64>,
}

/// From which offset on records are held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeldFrom {
    /// The same one in every partition.
    Every(i64),
    /// One a partition; the others are not held.
    Each(BTreeMap<i32, i64>),
}

impl Hold {
    /// Reads the text of a setting; None if it is none.
    pub(crate) fn parse(name: &str, text: &str) -> Option<Self> {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if !(1..=MAX_NAME).contains(&name.len()) || !name.chars().all(legal) {
            return None;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let ends = |word: &&str| matches!(*word, "until" | "broken");
        let offsets = words.iter().position(ends).unwrap_or(words.len());
        let (offsets, times) = words.split_at_checked(offsets)?;
        let (mut until_ms, mut broken_ms) = (None, None);
        for pair in times.chunks(2) {
            let &[word, time] = pair else { return None };
            let time = Some(time.parse::<Timestamp>().ok()?.as_millisecond());
            match word {
                "until" if until_ms.is_none() && broken_ms.is_none() => until_ms = time,
                "broken" if broken_ms.is_none() => broken_ms = time,
                _ => return None,
            }
        }
        let from = HeldFrom::parse(offsets)?;
        Some(Self { name: name.to_owned(), from, until_ms, broken_ms })
    }

    /// The first offset it holds in a partition at a time; None if it holds nothing there.
    pub fn holds(&self, partition: i32, now_ms: i64) -> Option<i64> {
        let over = self.until_ms.is_some_and(|until| until <= now_ms);
        if over || self.broken_ms.is_some() { None } else { self.from.of(partition) }
    }
}

impl HeldFrom {
    fn parse(words: &[&str]) -> Option<Self> {
        if let [one] = words
            && !one.contains(':')
        {
            return Some(Self::Every(offset(one)?));
        }
        let mut each = BTreeMap::new();
        for word in words {
            let (partition, from) = word.split_once(':')?;
            let partition = partition.parse().ok().filter(|index: &i32| *index >= 0)?;
            if each.insert(partition, offset(from)?).is_some() {
                return None;
            }
        }
        (!each.is_empty()).then_some(Self::Each(each))
    }

    /// The offset in a partition.
    pub fn of(&self, partition: i32) -> Option<i64> {
        match self {
            Self::Every(offset) => Some(*offset),
            Self::Each(each) => each.get(&partition).copied(),
        }
    }

    /// The greatest partition that is named.
    pub(crate) fn greatest_partition(&self) -> Option<i32> {
        match self {
            Self::Every(_) => None,
            Self::Each(each) => each.last_key_value().map(|(partition, _)| *partition),
        }
    }
}

fn offset(word: &str) -> Option<i64> {
    word.parse().ok().filter(|offset| *offset >= 0)
}

/// The hold that reaches furthest back in a partition, and its first offset.
pub(crate) fn tightest(config: &TopicConfig, now_ms: i64, partition: i32) -> Option<(&Hold, i64)> {
    let holds = config.holds.iter();
    let held = holds.filter_map(|hold| Some((hold, hold.holds(partition, now_ms)?)));
    held.min_by_key(|(_, from)| *from)
}

/// From which offset on a partition must stay as it is: retention, delete-records and compaction take nothing
/// at or above it. None if nothing is held.
pub(crate) fn held_from(config: &TopicConfig, now_ms: i64, partition: i32) -> Option<i64> {
    tightest(config, now_ms, partition).map(|(_, from)| from)
}

/// Refuses a hold that is new or changed and holds what is gone, or a partition that there is not.
pub(crate) fn check_new(
    new: &TopicConfig,
    before: &TopicConfig,
    log_starts: &[i64],
) -> Result<(), LogError> {
    for hold in new.holds.iter().filter(|hold| !before.holds.contains(hold)) {
        let refuse = |reason: String| {
            let name = format!("{HOLD_PREFIX}{}", hold.name);
            let value = new.overrides().get(&name).cloned().unwrap_or_default();
            Err(LogError::InvalidConfig { name, value, reason })
        };
        let partitions = i32::try_from(log_starts.len()).unwrap_or(i32::MAX);
        if hold.from.greatest_partition().is_some_and(|index| index >= partitions) {
            return refuse(format!("the topic has {partitions} partitions, numbered from 0"));
        }
        if hold.broken_ms.is_some() {
            continue;
        }
        for (index, start) in (0..).zip(log_starts) {
            if hold.from.of(index).is_some_and(|from| from < *start) {
                return refuse(format!("partition {index} begins at {start}: that is gone"));
            }
        }
    }
    Ok(())
}

/// The text of a hold that the log has broken.
pub(crate) fn broken_text(text: &str, now_ms: i64) -> String {
    let time = Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{} broken {time:.0}", text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    fn hold(text: &str) -> Option<Hold> {
        Hold::parse("audit", text)
    }

    fn config(holds: &[(&str, &str)]) -> TopicConfig {
        let set =
            |(name, text): &(&str, &str)| (format!("{HOLD_PREFIX}{name}"), (*text).to_owned());
        TopicConfig::parse(holds.iter().map(set).collect()).unwrap()
    }

    #[test]
    fn a_hold_is_an_offset_or_one_a_partition_and_a_time() {
        assert_eq!(hold("123").unwrap().from, HeldFrom::Every(123));
        let each = hold(" 0:7  2:9 until 2026-12-01T00:00:00Z ").unwrap();
        assert_eq!(each.from, HeldFrom::Each([(0, 7), (2, 9)].into()));
        assert_eq!(each.until_ms, Some(1_796_083_200_000));
        let broken = hold(&broken_text("5 until 2030-01-01T00:00:00Z", NOW)).unwrap();
        assert_eq!((broken.broken_ms, broken.from), (Some(NOW), HeldFrom::Every(5)));
        for text in [
            "",
            "-1",
            "1 2",
            "0:1 0:2",
            "0:1 5",
            "x",
            "1 until",
            "1 until tomorrow",
            "until 5",
            ":1",
            "-1:1",
            "1 until 2026-12-01",
            "1 until 2026-12-01T00:00:00Z until 2027-12-01T00:00:00Z",
        ] {
            assert_eq!(hold(text), None, "{text:?}");
        }
        assert_eq!(Hold::parse("", "1"), None);
        assert_eq!(Hold::parse("a b", "1"), None);
    }

    #[test]
    fn the_hold_that_reaches_furthest_back_counts_while_it_lasts() {
        let until = |ms| Timestamp::from_millisecond(ms).unwrap().to_string();
        let config = config(&[
            ("a", "100"),
            ("b", &format!("1:40 until {}", until(NOW + 1000))),
            ("c", &broken_text("3", NOW)),
        ]);
        assert_eq!(held_from(&config, NOW, 0), Some(100));
        assert_eq!(held_from(&config, NOW, 1), Some(40));
        assert_eq!(tightest(&config, NOW, 1).unwrap().0.name, "b");
        assert_eq!(held_from(&config, NOW + 1000, 1), Some(100), "it has ended");
        assert_eq!(held_from(&TopicConfig::default(), NOW, 0), None);
    }

    #[test]
    fn a_new_hold_must_hold_something() {
        let none = TopicConfig::default();
        let check = |text: &str| check_new(&config(&[("a", text)]), &none, &[5, 0]);
        assert!(check("5").is_ok() && check("1:0").is_ok() && check("0:5 1:9").is_ok());
        for text in ["4", "0:4", "2:9"] {
            assert!(matches!(check(text), Err(LogError::InvalidConfig { .. })), "{text}");
        }
        let old = config(&[("a", "4")]);
        assert!(check_new(&old, &old, &[5, 0]).is_ok(), "it stands already");
    }
}
