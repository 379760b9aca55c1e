//! The gap record (rule S3): what is missing is said, with both edges.

use serde_json::{Value, json};

use crate::encoding::Encoding;
use crate::metafields::Meta;

/// Records that a client will not get because they are no longer kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gap {
    /// Last offset before the gap: the one that the client had come to.
    pub(crate) after: i64,
    /// First offset behind the gap: where delivery goes on.
    pub(crate) until: i64,
}

impl Gap {
    /// The record. It has no `pos`: until another record is processed, the old position stands
    /// for how far the client has come.
    pub(crate) fn record(&self, encoding: &Encoding) -> Value {
        json!({
            encoding.meta_fields.name_or_default(Meta::OpType): "GAP",
            "code": "records_purged",
            "what": format!(
                "records between offset {} and offset {} are no longer kept and are not delivered",
                self.after, self.until
            ),
            "after_offset": self.after.to_string(),
            "until_offset": self.until.to_string(),
        })
    }
}
