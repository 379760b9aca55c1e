//! Row ids of changes whose own the redo does not tell.
//!
//! An undo row names the change that it takes back by row id, so each change needs one that no other
//! row has.

use crate::RedoPoint;

/// `ROW_ID` of a row whose place in its block was not known when its redo was written.
pub const PLACEHOLDER: &str = "AAAAAAAAAAAAAAAAAA";

/// Whether a `ROW_ID` is the placeholder.
pub fn is_placeholder(row_id: &str) -> bool {
    row_id == PLACEHOLDER
}

/// The id of a change that begins at `at` and whose row's own is not known: the placeholder with the
/// address behind it. It follows from the redo alone, so that a change which is mined again gets the
/// same, and is never published.
pub fn synthetic(at: &RedoPoint) -> Box<str> {
    let id = match at.address {
        Some(address) => format!("{PLACEHOLDER}#{address}"),
        None => format!("{PLACEHOLDER}#{}", at.scn),
    };
    id.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RedoAddress, RedoThread, Scn};

    fn at(block: u64) -> RedoPoint {
        let address = RedoAddress { sequence: 42, block, byte: 16, ssn: 3 };
        RedoPoint { thread: RedoThread(1), scn: Scn(900), address: Some(address) }
    }

    #[test]
    fn an_id_says_where_its_change_begins() {
        let id = synthetic(&at(8000));
        assert_eq!(&*id, "AAAAAAAAAAAAAAAAAA#0x00002a.00001f40.0010/3");
        assert!(!is_placeholder(&id) && is_placeholder("AAAAAAAAAAAAAAAAAA"));
    }

    #[test]
    fn changes_that_begin_elsewhere_have_other_ids() {
        assert_ne!(synthetic(&at(1)), synthetic(&at(2)));
        assert_eq!(synthetic(&at(1)), synthetic(&at(1)));
    }
}
