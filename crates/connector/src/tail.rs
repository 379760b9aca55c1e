//! The `hw.tail` header of offset records (rule P2): what the log must still end with.

use serde::{Deserialize, Serialize};

/// Name of the offset record header that holds an encoded [`Tail`].
pub const TAIL_HEADER: &str = "hw.tail";

/// The last record that was written to one partition before the offset record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TailEntry {
    /// Topic written to.
    pub topic: String,
    /// Partition written to.
    pub partition: i32,
    /// Offset of the last record written there.
    pub offset: i64,
    /// Text of that record's [`crate::RecordId`]; empty for a record without `hw` header.
    pub id: String,
}

/// One entry a partition that was written since the offset record before.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tail(pub Vec<TailEntry>);

impl Tail {
    /// The header's bytes, as JSON.
    pub fn encode(&self) -> Vec<u8> {
        // Strings and numbers always serialise into a vector.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the header.
    ///
    /// # Errors
    /// When it is not such JSON.
    pub fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_read_back_as_it_was_written() {
        let entry = TailEntry {
            topic: "shop".to_owned(),
            partition: 0,
            offset: i64::MAX,
            id: "0000000000000007:00000000/01A2B3C8:4:0".to_owned(),
        };
        let tail = Tail(vec![entry]);
        assert_eq!(Tail::decode(&tail.encode()).unwrap(), tail);
        assert_eq!(Tail::default().encode(), b"[]");
    }

    #[test]
    fn what_is_no_tail_is_an_error() {
        assert!(Tail::decode(br#"[{"topic":"shop"}]"#).is_err());
    }
}
