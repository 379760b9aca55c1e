//! Producer snapshots (`.snapshot`) in Kafka's format, so that recovery need not read the whole log.
//!
//! Version (16 bits), CRC-32C of what follows (32 bits), number of entries (32 bits), entries; all
//! big-endian, open transactions with them. Kafka keeps one batch a producer in them, so after a start from a snapshot the
//! offsets of older ones are not known again; a duplicate of one is still told from a new batch.

use bytes::{Buf, BufMut};

use crate::producer::Kept;
use crate::producers::Producers;

const VERSION: i16 = 1;
const HEADER: usize = 2 + 4;
const ENTRY: usize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8;

/// The snapshot of what the producers sent last.
pub(crate) fn encode(producers: &Producers) -> Vec<u8> {
    let all = producers.kept();
    let mut body = Vec::with_capacity(4 + all.len() * ENTRY);
    body.put_u32(u32::try_from(all.len()).unwrap_or(u32::MAX));
    for kept in all {
        body.put_i64(kept.producer_id);
        body.put_i16(kept.epoch);
        body.put_i32(kept.last_sequence);
        body.put_i64(kept.last_offset);
        body.put_i32(kept.offset_delta);
        body.put_i64(kept.seen_ms);
        body.put_i32(kept.coordinator_epoch);
        body.put_i64(kept.open.unwrap_or(-1));
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
        producers.restore(&decode_entry(&mut bytes));
    }
    Some(producers)
}

fn decode_entry(bytes: &mut &[u8]) -> Kept {
    Kept {
        producer_id: bytes.get_i64(),
        epoch: bytes.get_i16(),
        last_sequence: bytes.get_i32(),
        last_offset: bytes.get_i64(),
        offset_delta: bytes.get_i32(),
        seen_ms: bytes.get_i64(),
        coordinator_epoch: bytes.get_i32(),
        open: Some(bytes.get_i64()).filter(|first| *first >= 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn producers() -> Producers {
        let mut producers = Producers::default();
        for (producer_id, open) in [(9, Some(4)), (3, None)] {
            producers.restore(&Kept {
                producer_id,
                epoch: 2,
                last_sequence: 6,
                last_offset: 12,
                offset_delta: 2,
                seen_ms: 77,
                coordinator_epoch: 5,
                open,
            });
        }
        let nothing =
            Kept { producer_id: 1, last_sequence: -1, last_offset: -1, ..producers.kept()[0] };
        producers.restore(&Kept { offset_delta: 0, ..nothing });
        producers
    }

    #[test]
    fn a_snapshot_comes_back() {
        let bytes = encode(&producers());
        assert_eq!(decode(&bytes).unwrap().kept(), producers().kept());
        assert_eq!(decode(&bytes).unwrap().open().map(|open| open.0).collect::<Vec<_>>(), [4]);
        assert_eq!(decode(&encode(&Producers::default())).unwrap().kept(), []);
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
        assert_eq!(bytes.len(), 2 + 4 + 4 + 3 * 46);
        assert_eq!(bytes[..2], [0, 1]);
        assert_eq!(bytes[6..10], [0, 0, 0, 3]);
        let last = &bytes[bytes.len() - 46..];
        assert_eq!(last[..8], 9i64.to_be_bytes(), "entries come by producer id");
        assert_eq!(last[34..38], 5i32.to_be_bytes());
        assert_eq!(last[38..], 4i64.to_be_bytes());
        assert_eq!(bytes[bytes.len() - 54..bytes.len() - 46], (-1i64).to_be_bytes());
    }
}
