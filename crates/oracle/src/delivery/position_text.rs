//! The position that the `hw` header gives: text whose byte order is the redo order of a thread.

use std::fmt::Write as _;

use crate::{RedoAddress, RedoPoint, RedoThread, TransactionKey};

/// A position in the order of its thread.
///
/// The thread stands in front since the addresses of two threads may be equal, and a record must have a
/// name of its own.
pub(crate) fn ordered(thread: RedoThread, address: RedoAddress) -> String {
    let RedoAddress { sequence, block, byte, ssn } = address;
    let mut text = String::with_capacity(40);
    // Writing into a string cannot fail.
    let _ = write!(text, "{thread}");
    for (separator, value, width) in
        [('/', sequence, 8), ('.', block, 8), ('.', u64::from(byte), 4), ('.', ssn, 8)]
    {
        text.push(separator);
        if value >> (4 * width) == 0 {
            let _ = write!(text, "{value:0width$x}");
        } else {
            // Oracle's fields are not so wide; if one grows, `g` sorts behind every digit.
            let _ = write!(text, "g{value:016x}");
        }
    }
    text
}

/// Where something stands: its lane (rule P5), and its position there.
///
/// A row without an address has no lane, as there is no order to put it into: nothing is suppressed by it.
pub(crate) fn place(at: &RedoPoint, transaction: &TransactionKey) -> (Option<String>, String) {
    let RedoPoint { thread, scn, address } = at;
    match address {
        Some(address) => (Some(thread.to_string()), ordered(*thread, *address)),
        None => (None, format!("{thread}/scn.{:016x}.{transaction}", scn.0)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Scn, Xid};

    #[test]
    fn it_is_read_as_oracle_shows_it() {
        let address = RedoAddress { sequence: 42, block: 8000, byte: 16, ssn: 3 };
        assert_eq!(ordered(RedoThread(1), address), "1/0000002a.00001f40.0010.00000003");
    }

    #[test]
    fn what_has_no_address_has_no_lane() {
        let at = RedoPoint { thread: RedoThread(2), scn: Scn(255), address: None };
        let key = TransactionKey { container: 3, xid: Xid { usn: 5, slot: 12, sequence: 614 } };
        assert_eq!(place(&at, &key), (None, "2/scn.00000000000000ff.3:5.12.614".to_owned()));
        let at = RedoPoint { address: Some(RedoAddress::start_of_log(7)), ..at };
        let expected = "2/00000007.00000000.0000.00000000";
        assert_eq!(place(&at, &key), (Some("2".to_owned()), expected.to_owned()));
    }

    /// Numbers at and around the width of their field.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0..40_u64, 0xfff0..0x1_0010_u64, 0xffff_fff0..0x1_0000_0010_u64, any::<u64>()]
    }

    fn address() -> impl Strategy<Value = RedoAddress> {
        let byte = number().prop_map(|byte| u32::try_from(byte).unwrap_or(u32::MAX));
        (number(), number(), byte, number()).prop_map(|(sequence, block, byte, ssn)| RedoAddress {
            sequence,
            block,
            byte,
            ssn,
        })
    }

    proptest! {
        #[test]
        fn its_byte_order_is_the_order_of_the_log(a in address(), b in address()) {
            let text = |address| ordered(RedoThread(1), address);
            prop_assert_eq!(text(a).as_bytes().cmp(text(b).as_bytes()), a.cmp(&b));
        }
    }
}
