//! Reading the fields of a record.

/// What is left of a record; a field that does not fit is `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A zigzag variable-length integer of 32 bits.
    pub(super) fn varint(&mut self) -> Option<i32> {
        let raw = u32::try_from(self.base_128(5)?).ok()?;
        Some((raw >> 1) as i32 ^ -((raw & 1) as i32))
    }

    /// A zigzag variable-length integer of 64 bits.
    pub(super) fn varlong(&mut self) -> Option<i64> {
        let raw = self.base_128(10)?;
        Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// Bytes with their length in front.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.take(usize::try_from(length).ok()?)
    }

    /// Bytes with their length in front, -1 for null.
    pub(super) fn nullable_bytes(&mut self) -> Option<Option<&'a [u8]>> {
        match self.varint()? {
            -1 => Some(None),
            length => self.take(usize::try_from(length).ok()?).map(Some),
        }
    }

    fn base_128(&mut self, longest: u32) -> Option<u64> {
        let mut value = 0_u64;
        for index in 0..longest {
            let byte = u64::from(self.byte()?);
            // The tenth byte has room for one bit.
            if index == 9 && byte > 1 {
                return None;
            }
            value |= (byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}
