//! Breaking holds where the log is full (rule L7): loudly, and one topic at a time.

use std::sync::Arc;

use crate::counters;
use crate::hold::{self, Hold};
use crate::log::{Inner, Topic};
use crate::retention::{Spare, retained};
use crate::{LogError, PartitionState, TopicConfig};

impl Inner {
    /// Marks holds that retention had to break: what they hold is not all there any more. Found by what is
    /// gone, so that none is missed if a crash came in between.
    pub(crate) fn mark_broken_holds(&self, now_ms: i64) {
        let topics: Vec<Topic> = self.topics.read().values().cloned().collect();
        for topic in topics.iter().filter(|topic| !topic.info.config.holds.is_empty()) {
            let broken = topic.broken_holds(now_ms);
            if broken.is_empty() {
                continue;
            }
            if let Err(error) = self.mark_broken(&topic.info.name, &broken, now_ms) {
                tracing::warn!(topic = topic.info.name, %error, "a hold is broken, which cannot be noted now");
            }
        }
    }

    fn mark_broken(&self, topic: &str, broken: &[String], now_ms: i64) -> Result<(), LogError> {
        let mut catalog = self.catalog.lock();
        let mut overrides = self.stored(&catalog, topic)?.config;
        for hold in broken {
            if let Some(text) = overrides.get_mut(&format!("{}{hold}", hold::HOLD_PREFIX)) {
                *text = hold::broken_text(text, now_ms);
            }
        }
        let config = Arc::new(TopicConfig::parse(overrides)?);
        self.put_config(&mut catalog, topic, &config)?;
        for hold in broken {
            counters::hold_broken();
            tracing::error!(
                topic,
                hold,
                "a hold is broken: the log was full, and what retention alone would have removed is gone"
            );
        }
        Ok(())
    }

    /// Gives up what one topic holds, the one that gives most back: appends are refused, and nothing else
    /// can go. Answers how many segments went.
    pub(crate) fn break_holds(&self, now_ms: i64) -> usize {
        let works = self.archive.as_ref().is_some_and(|archive| archive.fault().is_none());
        let spare = if works { Spare::Unarchived } else { Spare::Nothing };
        let topics: Vec<Topic> = self.topics.read().values().cloned().collect();
        let held = topics.iter().map(|topic| {
            let partitions = topic.partitions.iter();
            let kept = partitions.map(|partition| partition.kept_by_holds(spare, now_ms));
            (kept.sum::<u64>(), topic)
        });
        let most = held.filter(|(bytes, _)| *bytes > 0).max_by_key(|(bytes, _)| *bytes);
        let Some((_, topic)) = most else { return 0 };
        let removed = retained(&topic.partitions, spare, now_ms);
        self.mark_broken_holds(now_ms);
        removed
    }
}

impl Topic {
    /// Names of holds of which something is gone.
    fn broken_holds(&self, now_ms: i64) -> Vec<String> {
        let gone = |hold: &&Hold| {
            (0..).zip(&self.partitions).any(|(index, partition)| {
                let now = partition.watermarks_now();
                // One that is offline has no log start to go by.
                let known = matches!(now.state, PartitionState::Online | PartitionState::Poisoned);
                known && hold.holds(index, now_ms).is_some_and(|from| from < now.log_start)
            })
        };
        self.info.config.holds.iter().filter(gone).map(|hold| hold.name.clone()).collect()
    }
}
