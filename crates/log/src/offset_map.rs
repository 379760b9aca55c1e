//! The newest offset of each key, in bounded memory: what a compaction pass goes by.
//!
//! Keys are not kept, but 128 bits of hash under a secret that each map draws: two keys that are taken for
//! one would lose the older one's record, and nobody can look for such a pair. (Kafka's map has 128 bits of
//! MD5.)

use std::hash::{BuildHasher, RandomState};

/// A slot takes so many bytes.
const SLOT: usize = 24;

/// Of so many slots this many are used at most, as in Kafka (`log.cleaner.io.buffer.load.factor`).
const LOAD: (usize, usize) = (9, 10);

/// The least number of slots.
const LEAST: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: [u64; 2],
    /// -1 in an empty slot.
    offset: i64,
}

const EMPTY: Slot = Slot { hash: [0; 2], offset: -1 };

/// Keys and the newest offset of each. Up to [`OffsetMap::end`] it knows of every record.
#[derive(Debug)]
pub(crate) struct OffsetMap {
    slots: Vec<Slot>,
    used: usize,
    hashers: [RandomState; 2],
    end: i64,
}

impl OffsetMap {
    /// A map for `records` records that takes at most about `bytes` of memory and knows of all records
    /// below `start`.
    pub(crate) fn new(bytes: usize, records: u64, start: i64) -> Self {
        let (used, of) = LOAD;
        let needed = usize::try_from(records).unwrap_or(usize::MAX);
        let needed = (needed / used).saturating_add(1).saturating_mul(of);
        let slots = needed.min(bytes / SLOT).max(LEAST);
        let hashers = [RandomState::new(), RandomState::new()];
        Self { slots: vec![EMPTY; slots], used: 0, hashers, end: start }
    }

    /// Notes that the record at `offset`, above all noted before, has this key; false if there is no room.
    pub(crate) fn put(&mut self, key: &[u8], offset: i64) -> bool {
        let most = self.slots.len() / LOAD.1 * LOAD.0 + self.slots.len() % LOAD.1;
        let (hash, place) = self.find(key);
        let Some(slot) = self.slots.get_mut(place) else { return false };
        if slot.offset < 0 {
            if self.used >= most.min(self.slots_but_one()) {
                return false;
            }
            self.used += 1;
        }
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Slot { hash, offset };
        }
        self.end = offset + 1;
        true
    }

    /// One stays empty, so that every search ends.
    fn slots_but_one(&self) -> usize {
        self.slots.len() - 1
    }

    /// The newest offset noted for the key.
    pub(crate) fn newest(&self, key: &[u8]) -> Option<i64> {
        let slot = self.slots.get(self.find(key).1)?;
        (slot.offset >= 0).then_some(slot.offset)
    }

    /// It knows of all records below this offset.
    pub(crate) fn end(&self) -> i64 {
        self.end
    }

    /// Notes that there is no further record with a key below `end`.
    pub(crate) fn reach(&mut self, end: i64) {
        self.end = self.end.max(end);
    }

    /// The hash of a key, and its slot or the empty one where it belongs.
    fn find(&self, key: &[u8]) -> ([u64; 2], usize) {
        let hash = self.hashers.each_ref().map(|hasher| hasher.hash_one(key));
        let slots = self.slots.len();
        let mut place = usize::try_from(hash[0] % slots as u64).unwrap_or(0);
        while let Some(slot) = self.slots.get(place) {
            if slot.offset < 0 || slot.hash == hash {
                break;
            }
            place = (place + 1) % slots;
        }
        (hash, place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_newest_offset_of_each_key() {
        let mut map = OffsetMap::new(1 << 20, 5000, 0);
        let mut due = HashMap::new();
        for offset in 0..5000i64 {
            let key = format!("key {}", offset * offset % 997);
            assert!(map.put(key.as_bytes(), offset));
            due.insert(key, offset);
        }
        for (key, offset) in due {
            assert_eq!(map.newest(key.as_bytes()), Some(offset), "{key}");
        }
        assert_eq!(map.newest(b"another"), None);
        assert_eq!(map.end(), 5000);
    }

    #[test]
    fn a_full_map_takes_known_keys_only_and_ends_where_it_was_full() {
        let mut map = OffsetMap::new(0, u64::MAX, 7);
        assert_eq!(map.end(), 7, "what lies below the start is known");
        let full = (7..).find(|offset: &i64| !map.put(&offset.to_be_bytes(), *offset)).unwrap();
        assert_eq!((full, map.end()), (22, 22), "one of the sixteen slots stays empty");
        assert!(map.put(&7i64.to_be_bytes(), 30));
        assert_eq!((map.newest(&7i64.to_be_bytes()), map.end()), (Some(30), 31));
        assert!(!map.put(b"new", 31));
        assert_eq!(map.newest(b"new"), None);
    }

    #[test]
    fn its_memory_is_bounded_by_what_is_allowed_and_by_what_is_needed() {
        assert_eq!(OffsetMap::new(24_000, u64::MAX, 0).slots.len(), 1000);
        assert_eq!(OffsetMap::new(usize::MAX, 90, 0).slots.len(), 110);
        let mut map = OffsetMap::new(24_000, u64::MAX, 0);
        assert_eq!((0..).find(|offset: &i64| !map.put(&offset.to_be_bytes(), *offset)), Some(900));
    }
}
