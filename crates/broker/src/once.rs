//! What a request names several times is answered once. An answer to a thousand namings of one thing, each
//! a hundred times as long as its name, would have no bound but the memory.

use std::collections::HashSet;
use std::hash::Hash;

/// Leaves of what has the same key the first.
pub(crate) fn once<T, K: Eq + Hash>(all: &mut Vec<T>, key: impl Fn(&T) -> K) {
    let mut seen = HashSet::with_capacity(all.len());
    all.retain(|one| seen.insert(key(one)));
}
