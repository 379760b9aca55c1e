//! What real databases do that a plain model of one does not. Each can be switched on alone.

use std::collections::BTreeSet;

/// A behaviour of Oracle or LogMiner that an engine must live with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Quirk {
    /// A change gets its SCN when it is made, but waits in the private strand of its transaction until
    /// the commit, until the strand is full, or until a log switch: it reaches the log after rows with
    /// higher SCNs. Off, every change is written at once.
    LateStrands,
}

impl Quirk {
    /// Every quirk.
    pub const ALL: &[Self] = &[Self::LateStrands];

    /// The quirk of this name, written as in the code.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|quirk| format!("{quirk:?}").eq_ignore_ascii_case(name))
    }
}

/// Which quirks are on.
pub type Quirks = BTreeSet<Quirk>;
