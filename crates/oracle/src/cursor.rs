//! How far redo was read.

use std::collections::BTreeMap;

use crate::{RedoAddress, RedoThread, Scn};

/// The greatest addresses that were applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Marks {
    /// None: a start from an SCN.
    None,
    /// Of a position that names no thread; exact while one thread is mined.
    AnyThread(RedoAddress),
    /// One a thread.
    Threads(BTreeMap<RedoThread, RedoAddress>),
}

/// How far redo was read: everything up to here was applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// First SCN that was not read. It selects logs and bounds steps; rows are selected by `marks`.
    pub scn: Scn,
    /// See [`Marks`].
    pub marks: Marks,
}

impl Cursor {
    /// The greatest address of a thread that was applied, where one is known.
    pub fn mark(&self, thread: RedoThread) -> Option<RedoAddress> {
        match &self.marks {
            Marks::None => None,
            Marks::AnyThread(address) => Some(*address),
            Marks::Threads(marks) => marks.get(&thread).copied(),
        }
    }
}
