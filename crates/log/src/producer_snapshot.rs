//! Producer snapshots (`.snapshot`) in Kafka's format, so that recovery need not read the whole log.
//!
//! Version (16 bits), CRC-32C of what follows (32 bits), number of entries (32 bits), entries; all
//! big-endian. Kafka keeps one batch a producer in them, so after a start from a snapshot the
//! offsets of older ones are not known again; a duplicate of one is still told from a new batch.

use bytes::{Buf, BufMut};

use crate::producers::{Producers, Sequenced, go_back};

const VERSION: i16 = 1;
const HEADER: usize = 2 + 4;
const ENTRY: usize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8;

/// The snapshot of what the producers sent last.
pub(crate) fn encode(producers: &Producers) -> Vec<u8> {
    let newest = producers.newest();
    let mut body = Vec::with_capacity(4 + newest.len() * ENTRY);
    body.put_u32(u32::try_from(newest.len()).unwrap_or(u32::MAX));
    for (batch, seen_ms) in newest {
        body.put_i64(batch.producer_id);
        body.put_i16(batch.epoch);
        body.put_i32(batch.last);
        body.put_i64(batch.last_offset);
        body.put_i32(i32::try_from(batch.last_offset - batch.base_offset).unwrap_or(i32::MAX));
        body.put_i64(seen_ms);
        body.put_i32(-1); // coordinator epoch: no transactions yet
        body.put_i64(-1); // first offset of an open transaction
    }
    let mut out = Vec::with_capacity(HEADER + body.len());
    out.put_i16(VERSION);
    out.put_u32(crc32c::crc32c(&body));
    out.extend_from_slice(&body);
    out
}

/// Reads a snapshot; None if it is not whole.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Producers> {
    if bytes.len() < HEADER + 4 || bytes.get_i16() != VERSION {
        return None;
    }
    if bytes.get_u32() != crc32c::crc32c(bytes) {
        return None;
    }
    let count = usize::try_from(bytes.get_u32()).ok()?;
    if bytes.len() != count.checked_mul(ENTRY)? {
        return None;
    }
    let mut producers = Producers::default();
    while bytes.has_remaining() {
        let (batch, seen_ms) = decode_entry(&mut bytes);
        producers.restore(batch, seen_ms);
    }
    Some(producers)
}

fn decode_entry(bytes: &mut &[u8]) -> (Sequenced, i64) {
    let (producer_id, epoch, last) = (bytes.get_i64(), bytes.get_i16(), bytes.get_i32());
    let (last_offset, delta) = (bytes.get_i64(), bytes.get_i32());
    let seen_ms = bytes.get_i64();
    bytes.advance(4 + 8);
    let batch = Sequenced {
        producer_id,
        epoch,
        first: go_back(last, delta),
        last,
        base_offset: last_offset.saturating_sub(i64::from(delta)),
        last_offset,
        timestamp: -1,
    };
    (batch, seen_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn producers() -> Producers {
        let mut producers = Producers::default();
        for producer_id in [9, 3] {
            let batch = Sequenced {
                producer_id,
                epoch: 2,
                first: 4,
                last: 6,
                base_offset: 10,
                last_offset: 12,
                timestamp: -1,
            };
            producers.record(batch, 77);
        }
        producers
    }

    #[test]
    fn a_snapshot_comes_back() {
        let bytes = encode(&producers());
        assert_eq!(decode(&bytes).unwrap().newest(), producers().newest());
        assert_eq!(decode(&encode(&Producers::default())).unwrap().newest(), []);
    }

    #[test]
    fn a_damaged_snapshot_is_not_believed() {
        let bytes = encode(&producers());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_none(), "byte {at}");
            assert!(decode(&bytes[..at]).is_none(), "cut at {at}");
        }
    }

    #[test]
    fn the_layout_is_kafkas() {
        let bytes = encode(&producers());
        assert_eq!(bytes.len(), 2 + 4 + 4 + 2 * 46);
        assert_eq!(bytes[..2], [0, 1]);
        assert_eq!(bytes[6..10], [0, 0, 0, 2]);
        assert_eq!(bytes[10..18], 3i64.to_be_bytes(), "entries come by producer id");
    }
}
