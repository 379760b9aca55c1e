//! Headers that say where a change stands, by the names that readers of other LogMiner connectors know. The
//! numbers are decimal text, as Kafka Connect's `SimpleHeaderConverter` writes them.

use bytes::Bytes;
use highwater_connector::Json;

use super::shape::Shape;
use crate::{Committed, Scn};

/// A header.
pub(crate) type Header = (&'static str, Bytes);

/// What all records of a transaction have alike.
#[derive(Clone, Debug)]
pub(crate) struct TransactionHeaders {
    commit_scn: Bytes,
    xid: Bytes,
    count: Bytes,
}

impl TransactionHeaders {
    pub(crate) fn of(committed: &Committed) -> Self {
        Self {
            commit_scn: Bytes::from(committed.commit.scn.to_string()),
            xid: Bytes::from(committed.key.xid.to_string()),
            count: Bytes::from(committed.count.to_string()),
        }
    }

    /// Headers of the records of a change.
    pub(crate) fn change(
        &self,
        json: &mut Json,
        shape: &Shape,
        scn: Scn,
        index: u64,
        is_split: bool,
    ) -> Vec<Header> {
        let mut headers = Vec::with_capacity(7);
        headers.extend([
            ("cdc.scn", number(json, scn.0)),
            ("cdc.commit_scn", self.commit_scn.clone()),
            ("cdc.xid", self.xid.clone()),
            ("cdc.event_index", number(json, index)),
            ("cdc.event_count", self.count.clone()),
            ("cdc.schema_version", shape.version_text.clone()),
        ]);
        if is_split {
            headers.push(("cdc.split", Bytes::from_static(b"true")));
        }
        headers
    }
}

/// Headers of a row of a snapshot at this SCN.
pub(crate) fn snapshot(json: &mut Json, shape: &Shape, scn: Scn) -> Vec<Header> {
    vec![
        ("cdc.scn", number(json, scn.0)),
        ("cdc.snapshot", Bytes::from_static(b"true")),
        ("cdc.schema_version", shape.version_text.clone()),
    ]
}

/// A number as text, out of the writer's buffer.
fn number(json: &mut Json, number: u64) -> Bytes {
    json.discard();
    json.int(i128::from(number));
    json.finish()
}
