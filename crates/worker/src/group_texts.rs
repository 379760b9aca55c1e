//! What the workers of a group tell each other, as JSON: each what it has, and the leader what each
//! shall have. Fields that are not known are let pass, so that releases can meet in a group.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use highwater_kafka::KafkaError;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::assignment::Work;

/// The kind of group that Kafka keeps apart from others: while one of Kafka Connect's workers is in
/// the group of this name, Kafka does not let us in, and the other way round.
pub(crate) const KIND: &str = "highwater";

/// How the group shares out; a form of these texts that older releases cannot read gets another.
pub(crate) const PROTOCOL: &str = "highwater-1";

/// A worker, and where it answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// Its name in statuses.
    pub(crate) id: String,
    /// Where the others reach its REST API.
    pub(crate) url: String,
}

/// What a worker says when it joins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) worker: Peer,
    /// What it has until it is told otherwise.
    #[serde(with = "works")]
    pub(crate) has: BTreeSet<Work>,
}

/// What the leader says to one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) leader: Peer,
    /// All that are in the group; a leader of an earlier release does not say.
    #[serde(default)]
    pub(crate) workers: Vec<Peer>,
    /// What it has from now on.
    #[serde(with = "works")]
    pub(crate) has: BTreeSet<Work>,
}

/// A text as it is sent.
pub(crate) fn encode(text: &impl Serialize) -> Bytes {
    // Maps with text keys can always be written.
    serde_json::to_vec(text).unwrap_or_default().into()
}

/// Reads a text of another worker.
///
/// # Errors
/// `Malformed`.
pub(crate) fn decode<T: DeserializeOwned>(text: &[u8]) -> Result<T, KafkaError> {
    serde_json::from_slice(text).map_err(|error| KafkaError::Malformed {
        what: "what another worker of the group says".to_owned(),
        detail: error.to_string(),
    })
}

/// Works by connector: `{"connectors": ["a"], "tasks": {"a": [0, 2]}}`.
mod works {
    use super::*;
    use serde::{Deserializer, Serializer};

    #[derive(Default, Serialize, Deserialize)]
    struct Text {
        #[serde(default)]
        connectors: BTreeSet<String>,
        #[serde(default)]
        tasks: BTreeMap<String, BTreeSet<u32>>,
    }

    pub(super) fn serialize<S: Serializer>(
        works: &BTreeSet<Work>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut text = Text::default();
        for work in works {
            match work {
                Work::Connector(name) => drop(text.connectors.insert(name.clone())),
                Work::Task(name, id) => {
                    text.tasks.entry(name.clone()).or_default().insert(*id);
                }
            }
        }
        text.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeSet<Work>, D::Error> {
        let Text { connectors, tasks } = Text::deserialize(deserializer)?;
        let of = |(name, ids): (String, BTreeSet<u32>)| {
            ids.into_iter().map(move |id| Work::Task(name.clone(), id))
        };
        let tasks = tasks.into_iter().flat_map(of);
        Ok(connectors.into_iter().map(Work::Connector).chain(tasks).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn peer() -> Peer {
        Peer { id: "a:8083".to_owned(), url: "http://a:8083".to_owned() }
    }

    #[test]
    fn the_form_stays() {
        let has = [Work::Connector("shop".into()), Work::Task("shop".into(), 2)].into();
        let text = encode(&Claim { worker: peer(), has });
        let expected = r#"{"worker":{"id":"a:8083","url":"http://a:8083"},"has":{"connectors":["shop"],"tasks":{"shop":[2]}}}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_not_known_is_let_pass_and_what_is_missing_is_refused() {
        let later =
            r#"{"leader":{"id":"a","url":"u","zone":"x"},"has":{"tasks":{"s":[1]}},"more":1}"#;
        let share: Share = decode(later.as_bytes()).unwrap();
        assert_eq!(share.has, [Work::Task("s".into(), 1)].into());
        assert_eq!(share.workers, [], "as an earlier release says it");
        for wrong in ["", "{}", "[]", r#"{"leader":{"id":"a","url":"u"}}"#] {
            assert!(decode::<Share>(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn it_is_read_back(names in prop::collection::btree_map(".{0,8}", prop::collection::btree_set(any::<u32>(), 0..4), 0..5)) {
            let has: BTreeSet<Work> = names
                .iter()
                .flat_map(|(name, ids)| {
                    let tasks = ids.iter().map(|id| Work::Task(name.clone(), *id));
                    std::iter::once(Work::Connector(name.clone())).chain(tasks)
                })
                .collect();
            let share = Share { leader: peer(), workers: vec![peer()], has };
            prop_assert_eq!(decode::<Share>(&encode(&share)).unwrap(), share);
        }
    }
}
