//! The truth as JSON, one transaction or row a line.

use highwater_oracle::{TableName, Verb};
use serde_json::{Value, json};

use crate::truth::{CommittedChange, CommittedTransaction, RowImage};

impl CommittedTransaction {
    /// The transaction as JSON: thread, id, place and time of the commit, user, and its changes.
    pub fn to_json(&self) -> Value {
        let address = self.commit.address;
        json!({
            "thread": self.commit.thread.0,
            "xid": self.key.to_string(),
            "scn": self.commit.scn.0,
            "rs_id": address.map(|address| address.rs_id()),
            "ssn": address.map(|address| address.ssn),
            "start_scn": self.start.0,
            "time_us": self.time_us,
            "user": self.user,
            "changes": self.changes.iter().map(CommittedChange::to_json).collect::<Vec<_>>(),
        })
    }
}

impl CommittedChange {
    /// The change as JSON: table, verb, key, and the row before and after as far as the redo tells.
    pub fn to_json(&self) -> Value {
        json!({
            "table": self.table.to_string(),
            "verb": verb(self.verb),
            "key": self.key,
            "before": self.before,
            "after": self.after,
            "lost": self.lost,
        })
    }
}

/// A row of a table as JSON.
pub fn row_json(table: &TableName, row: &RowImage) -> Value {
    json!({ "table": table.to_string(), "row": row })
}

const fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Insert => "insert",
        Verb::Delete => "delete",
        Verb::Update => "update",
    }
}
