//! Log sequence numbers: byte addresses in PostgreSQL's write-ahead log.

use std::fmt;
use std::str::FromStr;

/// A byte address in the write-ahead log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lsn(pub u64);

/// A text that is no LSN.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no LSN; one looks like 16/B374D848")]
pub struct LsnError(String);

impl Lsn {
    /// Eight hex digits, a slash and eight more: byte order is the log's order, and `pg_lsn` reads
    /// it.
    pub fn sortable(self) -> String {
        format!("{:08X}/{:08X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl FromStr for Lsn {
    type Err = LsnError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let half = |digits: &str| {
            let hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            (hex && (1..=8).contains(&digits.len()))
                .then(|| u64::from_str_radix(digits, 16).ok())
                .flatten()
        };
        text.split_once('/')
            .and_then(|(high, low)| Some(Self(half(high)? << 32 | half(low)?)))
            .ok_or_else(|| LsnError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_texts_are_read_back() {
        let lsn = Lsn(0x0000_0016_B374_D848);
        assert_eq!(lsn.to_string(), "16/B374D848");
        assert_eq!(lsn.sortable(), "00000016/B374D848");
        assert_eq!(lsn.to_string().parse(), Ok(lsn));
        assert_eq!(lsn.sortable().parse(), Ok(lsn));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "/", "1", "1/", "/1", "+1/2", "1/123456789", "g/1", "1/2/3"] {
            assert!(text.parse::<Lsn>().is_err(), "{text}");
        }
    }

    #[test]
    fn sortable_text_sorts_as_the_numbers_do() {
        let (low, high) = (Lsn(0xF_FFFF_FFFF), Lsn(0x10_0000_0000));
        assert!(low < high && low.sortable() < high.sortable());
    }
}
