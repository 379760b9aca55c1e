//! A system change number, Oracle's clock.

use std::fmt;

/// A system change number (SCN). It says when a change was made, not where its redo lies: redo of a
/// private strand reaches the log late, under its old SCN, so an SCN alone is never a cursor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Scn(pub u64);

impl Scn {
    /// The end of a range that is still open, such as that of the current online log.
    pub const MAX: Self = Self(u64::MAX);

    /// The SCN after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The SCN before this one.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Scn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
