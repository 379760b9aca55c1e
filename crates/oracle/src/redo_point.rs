//! Where a redo record stands.

use std::fmt;

use crate::{RedoAddress, Scn};

/// Number of a redo thread (`THREAD#`); an instance of a cluster has one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RedoThread(pub u32);

impl fmt::Display for RedoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a redo record stands: thread, SCN, and its address, which rows of some servers lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RedoPoint {
    /// Thread that wrote it.
    pub thread: RedoThread,
    /// Its SCN.
    pub scn: Scn,
    /// Where it lies; `None` where the server gave an address of all zeros.
    pub address: Option<RedoAddress>,
}
