//! Where an answer of ours may differ from Apache Kafka's, and why. The same table stands in
//! `docs/reference/kafka-compatibility.md`; whatever is not in it is compared exactly.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use highwater_log::TopicConfig;

/// A difference that is meant.
pub(crate) struct Exception {
    /// What differs, as the documentation heads it.
    pub(crate) what: &'static str,
    pub(crate) why: &'static str,
}

pub(crate) const EXCEPTIONS: &[Exception] = &[
    Exception {
        what: "Names of its own",
        why: "cluster id, topic ids, producer ids, members' ids, host and port are compared by where they stand, not by what they are",
    },
    Exception {
        what: "Times of the log's own clock",
        why: "the time of an append, and of a transaction's marker, is the time at which it was made, and whether two share a millisecond is chance",
    },
    Exception { what: "Error texts", why: "they are for people; the codes are compared" },
    Exception {
        what: "Order of entries",
        why: "the order of topics, partitions, settings and resources in an answer; Kafka promises none",
    },
    Exception {
        what: "A cut last batch",
        why: "Kafka fills a Fetch answer up with the beginning of a batch that no client can use; here an answer ends with a whole batch, and other partitions have that room",
    },
    Exception {
        what: "A segment that ends for nothing",
        why: "Kafka ends a segment where a batch would not fit, also if its producer's sequence is then refused, or known already; here for what is appended alone",
    },
    Exception {
        what: "Aborted transactions behind the answer",
        why: "Kafka names also some that lie behind the records of a Fetch answer; here those among them alone",
    },
    Exception {
        what: "No protocol",
        why: "JoinGroup says null or an empty text where a group has no protocol: an error stands beside it",
    },
    Exception {
        what: "The transaction before is still being ended",
        why: "CONCURRENT_TRANSACTIONS is no answer yet: the request is sent again, as clients do",
    },
    Exception {
        what: "Whose transaction a batch belongs to",
        why: "Kafka asks whether the transactional id is the producer's for the first batch of a transaction in a partition; here for every one",
    },
    Exception {
        what: "A claim to be stamped by the log",
        why: "where a topic compresses anew, Kafka gives all records of a batch that claims LogAppendTime the greatest time of the batch; here they keep theirs",
    },
    Exception {
        what: "A producer id without an epoch",
        why: "Kafka takes a batch with a producer id and the epoch -1; no client sends it, and it is refused here",
    },
    Exception {
        what: "The coordinators' own topics",
        why: "clients choose their sizes and times of compaction alone, and delete none of their records: what was answered would be lost otherwise",
    },
    Exception {
        what: "What is named twice",
        why: "where an answer is longer than its question, what a request names twice is answered once, so that an answer has a bound",
    },
    Exception {
        what: "A transactional id without a name",
        why: "TxnOffsetCommit refuses it: whether its transaction is open could not be asked",
    },
    Exception {
        what: "A group of a refused request",
        why: "Kafka has an empty group after a commit or a JoinGroup of which it took nothing, until it looks for groups to forget; here there is none",
    },
    Exception {
        what: "An operation on a setting that is none",
        why: "Kafka fails over it (UNKNOWN_SERVER_ERROR); here it is INVALID_CONFIG",
    },
    Exception {
        what: "Names that collide in one request",
        why: "Kafka refuses a topic `a_b` beside `a.b`, and makes both when they come together; here the second is refused then, too",
    },
    Exception {
        what: "Settings that only one knows",
        why: "a topic has the settings that mean something here, and `highwater.*`; those that both know are compared with their sources",
    },
    Exception {
        what: "`file.delete.delay.ms` and `min.insync.replicas`",
        why: "files go at once here, and the least number of replicas is nobody's to set: default and source are others",
    },
    Exception {
        what: "Settings of the broker",
        why: "they are those of another program; an entry stands for the most asked for of them",
    },
    Exception {
        what: "Synonyms of defaults, and documentation",
        why: "a setting's default has no second name here, and its text is in the reference",
    },
];

/// Where DescribeConfigs says that a value was set for the topic.
pub(crate) const SET_FOR_TOPIC: i8 = 1;

/// Whether a topic's setting is known to both.
pub(crate) fn is_compared(setting: &str) -> bool {
    static KNOWN: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        TopicConfig::default().entries().into_iter().map(|entry| entry.name).collect()
    });
    const OTHERS: [&str; 2] = ["file.delete.delay.ms", "min.insync.replicas"];
    KNOWN.contains(setting) && !setting.starts_with("highwater.") && !OTHERS.contains(&setting)
}

#[test]
fn every_exception_is_documented() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/kafka-compatibility.md");
    let page = std::fs::read_to_string(page).unwrap();
    for exception in EXCEPTIONS {
        let row = format!("| {} | {} |", exception.what, exception.why);
        assert!(page.contains(&row), "not in the page: {row}");
    }
}
