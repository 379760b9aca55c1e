//! Redo byte addresses: where a redo record stands in the log of its thread.

use std::fmt;

use thiserror::Error;

/// A redo byte address: `RS_ID` and `SSN` of a row. Within one redo thread the log is written in this
/// order and in no other; addresses of two threads say nothing about each other, since their
/// sequences overlap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RedoAddress {
    /// Sequence of the redo log.
    pub sequence: u64,
    /// Block in the log.
    pub block: u64,
    /// Byte in the block.
    pub byte: u32,
    /// Place inside the redo record (`SSN`).
    pub ssn: u64,
}

/// An `RS_ID` that is not of Oracle's form.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0:?} is no redo byte address, such as 0x00002a.00001f40.0010")]
pub struct AddressError(String);

impl RedoAddress {
    /// Reads an `RS_ID` such as `" 0x00002a.00001f40.0010 "` and the `SSN` beside it. `None` for the
    /// address of all zeros, which is no address: some servers give it for a ROLLBACK row.
    ///
    /// # Errors
    /// When the text is not `0x` and three hexadecimal numbers with dots between them.
    pub fn parse(rs_id: &str, ssn: u64) -> Result<Option<Self>, AddressError> {
        let [sequence, block, byte] =
            parts(rs_id).ok_or_else(|| AddressError(rs_id.chars().take(64).collect()))?;
        let byte = u32::try_from(byte).map_err(|_| AddressError(rs_id.to_owned()))?;
        let is_zero = sequence == 0 && block == 0 && byte == 0;
        Ok((!is_zero).then_some(Self { sequence, block, byte, ssn }))
    }

    /// The `RS_ID` as LogMiner writes it, without the spaces around it.
    pub fn rs_id(&self) -> String {
        format!("0x{:06x}.{:08x}.{:04x}", self.sequence, self.block, self.byte)
    }

    /// Where the log of this sequence begins.
    pub const fn start_of_log(sequence: u64) -> Self {
        Self { sequence, block: 0, byte: 0, ssn: 0 }
    }
}

fn parts(rs_id: &str) -> Option<[u64; 3]> {
    let mut parts = rs_id.trim().strip_prefix("0x")?.split('.').map(hexadecimal);
    let read = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(read)
}

/// `from_str_radix` also takes a sign, which an address has not.
fn hexadecimal(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

impl fmt::Display for RedoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.rs_id(), self.ssn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_logminer_writes_it() {
        let read = RedoAddress::parse(" 0x00002a.00001f40.0010 ", 3).unwrap().unwrap();
        assert_eq!(read, RedoAddress { sequence: 42, block: 8000, byte: 16, ssn: 3 });
        assert_eq!(read.to_string(), "0x00002a.00001f40.0010/3");
    }

    #[test]
    fn a_sequence_wider_than_its_field_is_still_greater() {
        let read = |rs_id| RedoAddress::parse(rs_id, 0).unwrap().unwrap();
        assert!(read("0x1000000.00000001.0010") > read("0xffffff.00000001.0010"));
    }

    #[test]
    fn all_zeros_are_no_address() {
        assert_eq!(RedoAddress::parse("0x000000.00000000.0000", 0), Ok(None));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "0x", "00002a.00001f40.0010", "0x1.2", "0x1.2.3.4", "0x+1.2.3", "0xg.0.0"]
        {
            assert!(RedoAddress::parse(text, 0).is_err(), "{text:?}");
        }
        assert!(RedoAddress::parse("0x1.2.fffffffff", 0).is_err());
    }
}
