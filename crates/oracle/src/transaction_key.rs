//! Names of transactions.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A transaction id inside one container: undo segment, slot, sequence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Xid {
    /// `XIDUSN`.
    pub usn: u32,
    /// `XIDSLT`.
    pub slot: u32,
    /// `XIDSQN`.
    pub sequence: u32,
}

impl Xid {
    /// `XIDSQN` where LogMiner does not know it: rows that a rollback wrote come so from some servers.
    pub const UNKNOWN_SEQUENCE: u32 = u32::MAX;

    /// Whether the row belongs to no transaction.
    pub const fn is_zero(&self) -> bool {
        self.usn == 0 && self.slot == 0 && self.sequence == 0
    }

    /// Whether the sequence is not known, so that the slot alone names the transaction.
    pub const fn is_partial(&self) -> bool {
        self.sequence == Self::UNKNOWN_SEQUENCE
    }
}

/// A transaction: the same [`Xid`] may be open in two pluggable databases at once, as undo is local to
/// each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TransactionKey {
    /// Container of the change (`SRC_CON_ID`); 0 in a database without containers.
    pub container: u32,
    /// Its id there.
    pub xid: Xid,
}

/// Not the name of a transaction.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0:?} is no transaction, such as 3:5.12.614 or, without containers, 5.12.614")]
pub struct TransactionKeyError(String);

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.usn, self.slot, self.sequence)
    }
}

impl fmt::Display for TransactionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.container, self.xid)
    }
}

impl FromStr for TransactionKey {
    type Err = TransactionKeyError;

    /// Without a container it is 0.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (container, xid) = text.split_once(':').unwrap_or(("0", text));
        let parsed = || {
            let mut parts = xid.split('.').map(|part| part.parse().ok());
            let [usn, slot, sequence] = [parts.next()??, parts.next()??, parts.next()??];
            let xid = Xid { usn, slot, sequence };
            parts.next().is_none().then_some(())?;
            Some(Self { container: container.parse().ok()?, xid })
        };
        parsed().ok_or_else(|| TransactionKeyError(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back() {
        let key: TransactionKey = "3:5.12.614".parse().unwrap();
        assert_eq!(key.container, 3);
        assert_eq!(key.xid, Xid { usn: 5, slot: 12, sequence: 614 });
        assert_eq!(key.to_string(), "3:5.12.614");
        assert_eq!("5.12.614".parse::<TransactionKey>().unwrap().to_string(), "0:5.12.614");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "1.2", "1.2.3.4", "a:1.2.3", "1:2", "1.2.-3"] {
            assert!(text.parse::<TransactionKey>().is_err(), "{text:?}");
        }
    }
}
