//! What the generator knows of the state that it has brought about, by Apache Kafka's answers. It needs no
//! more than keeps most of its requests meaningful: whether an answer is right it does not judge.

use std::collections::{BTreeMap, HashMap};

use crate::groups::Members;
use crate::names::Producer;
use crate::random::Random;
use crate::transactions::Transactions;

/// The topic whose segments end: some of its records are so large that two fill one.
pub(crate) const ROLLING: &str = "d-rolling";

/// The topic that compresses anew what comes. What it stores is of another size on either side.
pub(crate) const RECOMPRESSED: &str = "d-recompressed";

/// Names of topics that come and go, each with the settings that it is mostly made with.
const TOPICS: [(&str, &[(&str, &str)]); 13] = [
    ("d-plain", &[]),
    ("d-compact", &[("cleanup.policy", "compact")]),
    ("d-both", &[("cleanup.policy", "compact,delete")]),
    ("d-stamped", &[("message.timestamp.type", "LogAppendTime")]),
    ("d-small", &[("max.message.bytes", "300")]),
    (ROLLING, &[("segment.bytes", "1048576")]),
    (RECOMPRESSED, &[("compression.type", "gzip")]),
    ("d-fine-index", &[("index.interval.bytes", "0")]),
    ("d-0", &[]),
    ("d-1", &[]),
    ("d-2", &[]),
    ("d.dot", &[]),
    ("d_dot", &[]),
];

/// Names that no topic has: such as could be, and such as may not be.
const STRANGE: [&str; 7] = ["d-missing", "", ".", "..", "a b", "ä", "d/0"];

pub(crate) struct World {
    pub(crate) random: Random,
    /// The topics that stand, with the log ends of their partitions as far as they were seen.
    pub(crate) topics: BTreeMap<String, Vec<i64>>,
    /// What each producer sent last to each partition of a topic; forgotten with the topic.
    pub(crate) sent: HashMap<(Producer, String, i32), Sent>,
    pub(crate) members: Members,
    pub(crate) transactions: Transactions,
}

/// With others a closed segment is compacted, or what is too large is another on either side.
pub(crate) fn keeps_settings(topic: &str) -> bool {
    matches!(topic, ROLLING | RECOMPRESSED)
}

/// The last batch of a producer in a partition.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) epoch: i16,
    pub(crate) sequence: i32,
    pub(crate) count: usize,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            topics: BTreeMap::new(),
            sent: HashMap::new(),
            members: Members::default(),
            transactions: Transactions::default(),
        }
    }

    /// A topic's name, mostly of one that stands.
    pub(crate) fn name(&mut self) -> String {
        match self.random.below(20) {
            0 => self.random.one_of(&STRANGE).to_owned(),
            1 | 2 => self.any_name(),
            _ => self.standing().unwrap_or_else(|| self.any_name()),
        }
    }

    /// A name, and not of a topic that must keep the settings that it was made with.
    pub(crate) fn alterable(&mut self) -> String {
        let name = self.name();
        if keeps_settings(&name) { self.strange() } else { name }
    }

    pub(crate) fn standing(&mut self) -> Option<String> {
        let count = self.topics.len();
        (count > 0)
            .then(|| self.random.below(count))
            .and_then(|nth| self.topics.keys().nth(nth).cloned())
    }

    pub(crate) fn any_name(&mut self) -> String {
        self.random.one_of(&TOPICS).0.to_owned()
    }

    pub(crate) fn strange(&mut self) -> String {
        self.random.one_of(&STRANGE).to_owned()
    }

    /// Whether a topic is mostly compacted.
    pub(crate) fn usual_settings(name: &str) -> &'static [(&'static str, &'static str)] {
        TOPICS.iter().find(|(known, _)| *known == name).map_or(&[], |(_, settings)| settings)
    }

    /// A name and a partition of it, mostly one that stands.
    pub(crate) fn partition(&mut self) -> (String, i32) {
        let name = self.name();
        let partition = self.index(&name);
        (name, partition)
    }

    pub(crate) fn index(&mut self, name: &str) -> i32 {
        let count = self.topics.get(name).map_or(2, Vec::len);
        if self.random.percent(3) {
            return self.random.one_of(&[-1, 99]);
        }
        i32::try_from(self.random.below(count)).unwrap()
    }

    /// Some partitions, each once.
    pub(crate) fn partitions(&mut self, most: usize) -> Vec<(String, i32)> {
        let wanted = 1 + self.random.below(most);
        let mut all: Vec<_> = (0..wanted).map(|_| self.partition()).collect();
        all.sort();
        all.dedup();
        all
    }

    /// An offset of a partition, or one that lies a little outside.
    pub(crate) fn offset(&mut self, name: &str, partition: i32) -> i64 {
        let ends = self.topics.get(name);
        let end = ends.and_then(|ends| ends.get(usize::try_from(partition).ok()?)).copied();
        let end = end.unwrap_or(0);
        match self.random.below(12) {
            0 => -1,
            1 => self.random.one_of(&[-2, i64::MIN, i64::MAX, end + 1, end + 7]),
            2 => end,
            3 => 0,
            _ => self.random.between(0, end.max(1)),
        }
    }

    /// A leader's epoch as a client believes to know it.
    pub(crate) fn leader_epoch(&mut self) -> i32 {
        self.random.one_of(&[-1, -1, -1, -1, 0, 0, 0, 1, 7, -2])
    }

    pub(crate) fn made(&mut self, name: &str, partitions: i32) {
        self.topics.insert(name.to_owned(), vec![0; usize::try_from(partitions).unwrap()]);
    }

    pub(crate) fn gone(&mut self, name: &str) {
        self.topics.remove(name);
        self.sent.retain(|(_, topic, _), _| topic != name);
        self.forget_in_txns(name);
    }

    pub(crate) fn appended(&mut self, name: &str, partition: i32, next: i64) {
        let ends = self.topics.get_mut(name).zip(usize::try_from(partition).ok());
        if let Some(end) = ends.and_then(|(ends, index)| ends.get_mut(index)) {
            *end = (*end).max(next);
        }
    }
}
