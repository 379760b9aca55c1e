//! Records of `__transaction_state`, in Kafka's own format (`TransactionLogKey`, `TransactionLogValue`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use highwater_protocol::TopicPartition;
use highwater_protocol::stored::{
    Stored, TransactionLogKey, TransactionLogPartitions, TransactionLogValue, stored_version,
};

use crate::StateRecord;
use crate::transaction::{NO_EPOCH, Producer, TransactionMetadata, TransactionState};

/// The version that is written: what a broker writes that does not offer the second transaction
/// protocol. A newer one is read as well.
const VERSION: i16 = 0;

/// Bytes that the state of one transactional id may take: it has to fit a batch of
/// `max.message.bytes`. Room for 200,000 partitions of one topic, or for 4,000 topics with the longest
/// names.
pub(crate) const MAX_STATE_BYTES: usize = 1_000_000;

/// What is read back of a transactional id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) transactional_id: String,
    /// None: it is forgotten.
    pub(crate) metadata: Option<TransactionMetadata>,
}

/// The record that says how a transactional id stands.
pub(crate) fn record(transactional_id: &str, metadata: &TransactionMetadata) -> StateRecord {
    let value = TransactionLogValue {
        producer_id: metadata.producer.id,
        producer_epoch: metadata.producer.epoch,
        transaction_timeout_ms: metadata.timeout_ms,
        transaction_status: metadata.state as i8,
        transaction_partitions: (metadata.state != TransactionState::Empty)
            .then(|| by_topic(&metadata.partitions)),
        transaction_last_update_timestamp_ms: metadata.updated_ms,
        transaction_start_timestamp_ms: metadata.start_ms,
        ..TransactionLogValue::default()
    };
    StateRecord { key: key(transactional_id), value: Some(value.to_stored(VERSION)) }
}

/// The record that forgets a transactional id.
pub(crate) fn tombstone(transactional_id: &str) -> StateRecord {
    StateRecord { key: key(transactional_id), value: None }
}

fn key(transactional_id: &str) -> Bytes {
    TransactionLogKey { transactional_id: transactional_id.to_owned() }.to_stored(VERSION)
}

fn by_topic(partitions: &BTreeSet<TopicPartition>) -> Vec<TransactionLogPartitions> {
    let mut topics = BTreeMap::<&str, Vec<i32>>::new();
    for TopicPartition { topic, partition } in partitions {
        topics.entry(topic).or_default().push(*partition);
    }
    let stored = |(topic, partition_ids): (&str, _)| TransactionLogPartitions {
        topic: topic.to_owned(),
        partition_ids,
    };
    topics.into_iter().map(stored).collect()
}

/// Reads a record. None: its key is of a kind that we do not know, as newer brokers may write them.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn parse(record: &StateRecord) -> Result<Option<Logged>, String> {
    let newest = *TransactionLogKey::VERSIONS.end();
    if stored_version(&record.key).is_none_or(|version| version > newest) {
        return Ok(None);
    }
    let key = TransactionLogKey::from_stored(record.key.clone());
    let transactional_id = key.map_err(|error| error.to_string())?.transactional_id;
    let metadata = record.value.clone().map(metadata).transpose()?;
    Ok(Some(Logged { transactional_id, metadata }))
}

fn metadata(value: Bytes) -> Result<TransactionMetadata, String> {
    let value = TransactionLogValue::from_stored(value).map_err(|error| error.to_string())?;
    let status = value.transaction_status;
    let state = TransactionState::from_id(status)
        .ok_or_else(|| format!("there is no state of a transaction with number {status}"))?;
    let topics = value.transaction_partitions.unwrap_or_default();
    let partitions =
        topics.into_iter().flat_map(|TransactionLogPartitions { topic, partition_ids }| {
            let topic: Arc<str> = topic.into();
            let of_topic = move |partition| TopicPartition::new(Arc::clone(&topic), partition);
            partition_ids.into_iter().map(of_topic)
        });
    Ok(TransactionMetadata {
        producer: Producer { id: value.producer_id, epoch: value.producer_epoch },
        previous_id: value.previous_producer_id,
        last_epoch: NO_EPOCH,
        timeout_ms: value.transaction_timeout_ms,
        state,
        partitions: partitions.collect(),
        start_ms: value.transaction_start_timestamp_ms,
        updated_ms: value.transaction_last_update_timestamp_ms,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn partition(topic: &str, partition: i32) -> TopicPartition {
        TopicPartition::new(topic, partition)
    }

    fn ongoing() -> TransactionMetadata {
        TransactionMetadata {
            producer: Producer { id: 7, epoch: 2 },
            previous_id: -1,
            last_epoch: NO_EPOCH,
            timeout_ms: 60_000,
            state: TransactionState::Ongoing,
            partitions: [partition("b", 0), partition("ab", 1)].into(),
            start_ms: 3,
            updated_ms: 4,
        }
    }

    /// Written down by hand from `TransactionLogKey.json` and `TransactionLogValue.json`.
    #[test]
    fn a_record_is_kafkas() {
        let StateRecord { key, value } = record("tx", &ongoing());
        assert_eq!(key[..], [0, 0, 0, 2, b't', b'x']);
        let expected = [
            [0, 0].as_slice(),
            &7_i64.to_be_bytes(),
            &2_i16.to_be_bytes(),
            &60_000_i32.to_be_bytes(),
            &[1],
            &[0, 0, 0, 2],
            &[0, 2, b'a', b'b', 0, 0, 0, 1, 0, 0, 0, 1],
            &[0, 1, b'b', 0, 0, 0, 1, 0, 0, 0, 0],
            &4_i64.to_be_bytes(),
            &3_i64.to_be_bytes(),
        ];
        assert_eq!(value.unwrap()[..], expected.concat());
    }

    #[test]
    fn a_record_comes_back() {
        let stands = ongoing();
        let empty = TransactionMetadata {
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            ..stands.clone()
        };
        for metadata in [stands, empty] {
            let logged =
                Logged { transactional_id: "tx".to_owned(), metadata: Some(metadata.clone()) };
            assert_eq!(parse(&record("tx", &metadata)), Ok(Some(logged)));
        }
        let gone = Logged { transactional_id: "tx".to_owned(), metadata: None };
        assert_eq!(parse(&tombstone("tx")), Ok(Some(gone)));
    }

    #[test]
    fn what_is_no_state_is_told_apart() {
        let mut broken = record("tx", &ongoing());
        broken.value = broken.value.map(|value| value.slice(..9));
        assert!(parse(&broken).is_err());
        let unknown = StateRecord { key: Bytes::from_static(&[0, 9, 0]), value: None };
        assert_eq!(parse(&unknown), Ok(None));
    }
}
