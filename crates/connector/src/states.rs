//! The `hw.states` header: columns of a row that have no value to show.

use serde::{Deserialize, Serialize};

/// Name of the record header that holds encoded [`ColumnStates`].
pub const STATES_HEADER: &str = "hw.states";

/// Columns whose value in the row's image is a placeholder (rule R1).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ColumnStates {
    /// The statement did not touch them and the source did not send them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<String>,
    /// They changed or may have, and the source cannot give the value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
}

impl ColumnStates {
    /// Whether there is nothing to say, and so no header to send.
    pub fn is_empty(&self) -> bool {
        self.unchanged.is_empty() && self.unavailable.is_empty()
    }

    /// The header's bytes, as JSON.
    pub fn encode(&self) -> Vec<u8> {
        // Lists of strings always serialise into a vector.
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
    fn states_are_read_back_as_they_were_written() {
        let states = ColumnStates { unchanged: vec!["body".to_owned()], ..ColumnStates::default() };
        assert_eq!(states.encode(), br#"{"unchanged":["body"]}"#);
        assert_eq!(ColumnStates::decode(&states.encode()).unwrap(), states);
        assert!(!states.is_empty() && ColumnStates::default().is_empty());
    }
}
