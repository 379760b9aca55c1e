//! What a connector keeps at its source, and what it does not share with another.

use crate::CONNECTOR_NAME;

/// A name and its value, as text whatever its type (rule U1).
pub type Fact = (&'static str, String);

/// What a source keeps until a connector has read it, such as the log behind a replication slot.
/// It grows while nobody reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    /// One sentence: what, how much, and how much the source bears.
    pub says: String,
    /// What to do about it; [`CONNECTOR_NAME`] in it is replaced by [`Hold::of`].
    pub remedy: String,
    /// What to do by hand once the connector is gone and nothing of ours speaks to its source.
    pub by_hand: String,
    /// Whether the source, or what was not read yet, is in danger.
    pub pressing: bool,
    /// The numbers of the sentence.
    pub facts: Vec<Fact>,
}

impl Hold {
    /// The same as it concerns the connector of this name.
    #[must_use]
    pub fn of(mut self, connector: &str) -> Self {
        self.remedy = self.remedy.replace(CONNECTOR_NAME, connector);
        self
    }
}

/// Something of which a connector is the only user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The configuration key that leads to it.
    pub key: &'static str,
    /// What it is; two connectors with the same text would share it.
    pub what: String,
}
