//! Numbers and texts as bytes: numbers in seven bits a byte, lowest first; texts with their length
//! before them.

/// Writes a number.
pub(super) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes bytes, their length first.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Bytes that are read from the front. Every call gives `None` where they are not what was written.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    /// Reads one byte.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads a number.
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number that fits 32 bits.
    pub(super) fn small_number(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// Reads bytes that have their length before them.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads a text.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_number(number, &mut out);
            assert_eq!(Bytes(&out).number(), Some(number));
        }
    }

    #[test]
    fn a_number_that_is_cut_or_too_wide_is_none() {
        assert_eq!(Bytes(&[0x80]).number(), None);
        assert_eq!(Bytes(&[0xff; 10]).number(), None);
        assert_eq!(Bytes(&[0xff; 11]).number(), None);
    }

    #[test]
    fn a_text_that_is_cut_or_no_text_is_none() {
        assert_eq!(Bytes(&[3, b'a', b'b']).text(), None);
        assert_eq!(Bytes(&[1, 0xff]).text(), None);
        assert_eq!(Bytes(&[2, b'a', b'b', b'c']).text(), Some("ab"));
    }
}
