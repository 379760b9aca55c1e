//! The topics under load, each with another way to lose its records by right.

use highwater_kafka::{Admin, NewTopic, Reader};
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;

use crate::load::client_config;
use crate::numbers::Numbers;

/// Topic and partition.
pub type Place = (&'static str, i32);

pub struct Topic {
    pub name: &'static str,
    pub partitions: i32,
    settings: &'static [(&'static str, &'static str)],
}

pub const PLAIN: Topic =
    Topic { name: "plain", partitions: 2, settings: &[("segment.bytes", "16384")] };

/// Loses its oldest records, by size and by DeleteRecords.
pub const AGED: Topic = Topic {
    name: "aged",
    partitions: 2,
    settings: &[("segment.bytes", "4096"), ("retention.bytes", "8192")],
};

/// Loses records that a later one of the same key replaces, what was aborted, and markers.
pub const COMPACTED: Topic = Topic {
    name: "compacted",
    partitions: 2,
    settings: &[
        ("cleanup.policy", "compact"),
        ("segment.bytes", "16384"),
        ("min.cleanable.dirty.ratio", "0.05"),
        ("delete.retention.ms", "300"),
    ],
};

/// What the pipelines read, and what they write.
pub const SOURCE: Topic =
    Topic { name: "source", partitions: 3, settings: &[("segment.bytes", "32768")] };
pub const COPIES: Topic =
    Topic { name: "copies", partitions: 2, settings: &[("segment.bytes", "32768")] };

pub const TOPICS: [Topic; 5] = [PLAIN, AGED, COMPACTED, SOURCE, COPIES];

/// What producers write to.
pub const WRITTEN: [Topic; 4] = [PLAIN, AGED, COMPACTED, SOURCE];

/// Where the coordinators keep their state: rolled and compacted under load, too.
pub const INTERNAL: [&str; 2] = ["__consumer_offsets", "__transaction_state"];
const INTERNAL_SETTINGS: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("segment.bytes", "32768"),
    ("min.cleanable.dirty.ratio", "0.2"),
];

impl Topic {
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let name = self.name;
        (0..self.partitions).map(move |partition| (name, partition))
    }
}

pub fn any_place(numbers: &mut Numbers, topics: &[Topic]) -> Place {
    let topic = numbers.pick(topics);
    let partitions = u64::from(topic.partitions.unsigned_abs());
    (topic.name, i32::try_from(numbers.below(partitions)).unwrap())
}

pub async fn make(kafka: &str) {
    let admin = Admin::new(Reader::new(kafka));
    for topic in &TOPICS {
        let settings = topic.settings.iter().chain(&[("index.interval.bytes", "512")]);
        let configs =
            settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let new =
            NewTopic { partitions: topic.partitions, configs, ..NewTopic::of_one(topic.name) };
        admin.create_topic(&new).await.unwrap();
    }
}

/// The coordinators' topics, once they are there.
pub async fn make_internal_small(kafka: &str) {
    let admin: AdminClient<DefaultClientContext> = client_config(kafka).create().unwrap();
    for topic in INTERNAL {
        let alter = AlterConfig {
            specifier: ResourceSpecifier::Topic(topic),
            entries: INTERNAL_SETTINGS.into(),
        };
        let altered = admin.alter_configs([&alter], &AdminOptions::new()).await.unwrap();
        altered.into_iter().for_each(|one| assert!(one.is_ok(), "{topic}: {one:?}"));
    }
}
