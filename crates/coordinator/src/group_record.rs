//! The records of `__consumer_offsets`, in Kafka's formats.

use bytes::Bytes;
use highwater_protocol::DecodeError;
use highwater_protocol::stored::{
    GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue, Stored,
    stored_version,
};

use crate::StateRecord;
use crate::offsets::CommittedOffset;

/// Versions that are written: the newest that every Kafka since 2.3 reads (KIP-915).
const OFFSET_KEY: i16 = 1;
const OFFSET_VALUE: i16 = 3;
/// The one version that says when an offset may go.
const EXPIRING_OFFSET_VALUE: i16 = 1;
const GROUP_KEY: i16 = 2;
const GROUP_VALUE: i16 = 3;

/// What a record says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GroupRecord {
    /// An offset was committed, or forgotten.
    Offset { group: String, topic: String, partition: i32, committed: Option<CommittedOffset> },
    /// A group was stored, or deleted.
    Group { group: String, value: Option<GroupMetadataValue> },
    /// Something of a newer Kafka's groups, which means nothing here.
    Foreign,
}

/// The record of an offset; without one it is a tombstone.
pub(crate) fn of_offset(
    group: &str,
    topic: &str,
    partition: i32,
    committed: Option<&CommittedOffset>,
) -> StateRecord {
    let key = OffsetCommitKey { group: group.to_owned(), topic: topic.to_owned(), partition };
    let value = committed.map(|committed| {
        let version =
            if committed.expire_ms.is_some() { EXPIRING_OFFSET_VALUE } else { OFFSET_VALUE };
        committed.to_stored().to_stored(version)
    });
    StateRecord { key: key.to_stored(OFFSET_KEY), value }
}

/// The record of a group; without a value it is a tombstone.
pub(crate) fn of_group(group: &str, value: Option<&GroupMetadataValue>) -> StateRecord {
    let key = GroupMetadataKey { group: group.to_owned() };
    let value = value.map(|value| value.to_stored(GROUP_VALUE));
    StateRecord { key: key.to_stored(GROUP_KEY), value }
}

/// Reads a record that lies at an offset.
pub(crate) fn read(record: StateRecord, record_offset: i64) -> Result<GroupRecord, DecodeError> {
    let StateRecord { key, value } = record;
    match stored_version(&key) {
        Some(0 | OFFSET_KEY) => {
            let OffsetCommitKey { group, topic, partition } = Stored::from_stored(key)?;
            let committed = value.map(|value| committed(value, record_offset)).transpose()?;
            Ok(GroupRecord::Offset { group, topic, partition, committed })
        }
        Some(GROUP_KEY) => {
            let GroupMetadataKey { group } = Stored::from_stored(key)?;
            let value = value.map(GroupMetadataValue::from_stored).transpose()?;
            Ok(GroupRecord::Group { group, value })
        }
        _ => Ok(GroupRecord::Foreign),
    }
}

fn committed(value: Bytes, record_offset: i64) -> Result<CommittedOffset, DecodeError> {
    let value = OffsetCommitValue::from_stored(value)?;
    Ok(CommittedOffset::from_stored(value, record_offset))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn offset(expire_ms: Option<i64>) -> CommittedOffset {
        CommittedOffset {
            offset: 5,
            leader_epoch: if expire_ms.is_some() { -1 } else { 2 },
            metadata: "m".to_owned(),
            commit_ms: 1,
            expire_ms,
            record_offset: 9,
        }
    }

    /// Bytes as Kafka's own schemas have them: `OffsetCommitKey` 1, `OffsetCommitValue` 3 and 1.
    #[test]
    fn an_offset_has_kafka_s_bytes() {
        let record = of_offset("g", "t", 3, Some(&offset(None)));
        assert_eq!(record.key, [0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 3].as_slice());
        let value = [0, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 1, b'm', 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(record.value.unwrap(), value.as_slice());
        let record = of_offset("g", "t", 3, Some(&offset(Some(258))));
        let value = [
            0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 1, b'm', 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1,
            2,
        ];
        assert_eq!(record.value.unwrap(), value.as_slice());
    }

    /// `GroupMetadataKey` 2, `GroupMetadataValue` 3.
    #[test]
    fn a_group_has_kafka_s_bytes() {
        let value = GroupMetadataValue {
            protocol_type: "c".to_owned(),
            generation: 1,
            current_state_timestamp: 2,
            ..Default::default()
        };
        let record = of_group("g", Some(&value));
        assert_eq!(record.key, [0, 2, 0, 1, b'g'].as_slice());
        let bytes = [
            0, 3, 0, 1, b'c', 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,
            0,
        ];
        assert_eq!(record.value.unwrap(), bytes.as_slice());
    }

    #[test]
    fn what_is_written_is_read() {
        for expire_ms in [None, Some(7)] {
            let committed = offset(expire_ms);
            let read = read(of_offset("g", "t", 3, Some(&committed)), 9).unwrap();
            let (group, topic) = ("g".to_owned(), "t".to_owned());
            let committed = Some(committed);
            assert_eq!(read, GroupRecord::Offset { group, topic, partition: 3, committed });
        }
        let gone = read(of_group("g", None), 1).unwrap();
        assert_eq!(gone, GroupRecord::Group { group: "g".to_owned(), value: None });
        // ConsumerGroupMetadataKey of KIP-848.
        let foreign = StateRecord { key: vec![0, 3, 0, 1, b'g'].into(), value: None };
        assert_eq!(read(foreign, 1), Ok(GroupRecord::Foreign));
        let broken = StateRecord { key: vec![0, 1, 0, 9, b'g'].into(), value: None };
        assert!(read(broken, 1).is_err());
    }
}
