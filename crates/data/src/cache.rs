//! A memory of things that are dear to make, with a bound.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

use parking_lot::Mutex;

use crate::error::DataError;
use crate::schema::Schema;

/// Keeps what was used of late: entries are young when put or used, become old when there are half as
/// many young ones as there may be entries, and are dropped if they are not used until it happens again.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half: usize,
}

impl<K: Hash + Eq, V> Cache<K, V> {
    /// A cache of at most this many entries, but of one at least.
    pub(crate) fn new(size: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), half: size.div_ceil(2).max(1) }
    }

    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if !self.young.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            self.put(key, value);
        }
        self.young.get(key)
    }

    pub(crate) fn put(&mut self, key: K, value: V) {
        if self.young.len() >= self.half {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

/// How many schemas a [`SchemaMemo`] remembers.
const REMEMBERED: usize = 64;

/// A schema and what was made of it; the first is held, so that its identity stays its own.
type Made = (Schema, Schema);

/// What was made of schemas of late, so that each record of a topic has the same schema, not only an
/// equal one.
#[derive(Debug)]
pub struct SchemaMemo(Mutex<Cache<usize, Made>>);

impl Default for SchemaMemo {
    fn default() -> Self {
        Self(Mutex::new(Cache::new(REMEMBERED)))
    }
}

impl SchemaMemo {
    /// What was made of this schema, or is made now.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn get(
        &self,
        schema: &Schema,
        make: impl FnOnce() -> Result<Schema, DataError>,
    ) -> Result<Schema, DataError> {
        if let Some((_, made)) = self.0.lock().get(&schema.identity()) {
            return Ok(made.clone());
        }
        let made = make()?;
        self.0.lock().put(schema.identity(), (schema.clone(), made.clone()));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_is_used_and_no_more_than_its_size() {
        let mut cache = Cache::new(10);
        for number in 0..1000 {
            cache.put(number, number);
            assert!(cache.young.len() + cache.old.len() <= 10);
            assert_eq!(cache.get(&0), Some(&0), "after {number}");
        }
        assert_eq!(cache.get(&500), None);
        assert_eq!(cache.get(&999), Some(&999));
    }
}
