//! The fingerprint of a record: tells whether the record at an offset is still the one that a
//! position was given for (rule S2).

use highwater_connector::RecordId;
use highwater_kafka::ReadRecord;
use sha2::{Digest, Sha256};

/// The first bytes of a hash over a record's identity, key and value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fingerprint(pub(crate) [u8; 8]);

impl Fingerprint {
    /// Of a record that is known by `id`. Its offset and timestamp take no part: they say where
    /// and when it was appended, not what it is.
    pub(crate) fn of(record: &ReadRecord, id: &RecordId) -> Self {
        let mut hash = Sha256::new();
        for part in [id.to_string().as_bytes(), bytes(&record.key), bytes(&record.value)] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(first(&hash.finalize()))
    }
}

fn bytes(field: &Option<bytes::Bytes>) -> &[u8] {
    field.as_deref().unwrap_or_default()
}

/// The first `N` bytes of a hash.
pub(crate) fn first<const N: usize>(hash: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.iter_mut().zip(hash).for_each(|(to, from)| *to = *from);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::trails::{hw, record};

    #[test]
    fn it_covers_what_a_record_is_and_not_where_it_stands() {
        let id = hw(1, 0).record_id();
        let one = record(&hw(1, 0), "value");
        let mark = Fingerprint::of(&one, &id);
        let moved = ReadRecord { offset: 9, timestamp: 9, leader_epoch: 9, ..one.clone() };
        assert_eq!(Fingerprint::of(&moved, &id), mark);
        let others = [
            Fingerprint::of(&record(&hw(1, 0), "other"), &id),
            Fingerprint::of(&ReadRecord { key: None, ..one.clone() }, &id),
            Fingerprint::of(&one, &hw(1, 1).record_id()),
        ];
        assert!(others.iter().all(|other| *other != mark));
    }
}
