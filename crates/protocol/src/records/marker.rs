//! The records of control batches.

/// What a control record says: its key is a version and a type, 16 bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// The producer's open transaction is aborted.
    Abort,
    /// The producer's open transaction is committed.
    Commit,
    /// Something of the cluster's own, of no concern to a reader.
    Other(i16),
}

impl Marker {
    /// Reads the key of a control record; `None` if it is too short to be one.
    pub fn parse(key: &[u8]) -> Option<Self> {
        let (_version, rest) = key.split_first_chunk::<2>()?;
        Some(match i16::from_be_bytes(*rest.first_chunk()?) {
            0 => Self::Abort,
            1 => Self::Commit,
            other => Self::Other(other),
        })
    }
}
