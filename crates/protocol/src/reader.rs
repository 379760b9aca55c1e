//! Reading from bytes that may be hostile.

use bytes::{Buf, Bytes};

use crate::DecodeError;

/// Memory that the array elements of one message may take. A metadata response of 200,000
/// partitions with three replicas takes about 25 MB; a hostile frame can make two bytes on the
/// wire into forty in memory, so the length of the frame alone is no bound.
const ARRAY_MEMORY: usize = 64 << 20;

/// A cursor over the bytes of one message, with the version they are read at.
///
/// Made by [`Message::decode_body`](crate::Message::decode_body); byte fields are slices of the
/// same memory.
#[derive(Debug)]
pub struct Reader {
    bytes: Bytes,
    version: i16,
    flexible: bool,
    array_memory: usize,
}

impl Reader {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes, version: 0, flexible: false, array_memory: ARRAY_MEMORY }
    }

    /// Bytes not read yet.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Ends reading.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`] if bytes are left.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing { left }),
        }
    }

    pub(crate) fn set_version(&mut self, version: i16, flexible: bool) {
        self.version = version;
        self.flexible = flexible;
    }

    pub(crate) fn version(&self) -> i16 {
        self.version
    }

    /// Accounts for `count` array elements of `size` bytes each, before room is made for them.
    pub(crate) fn spend(&mut self, count: usize, size: usize) -> Result<(), DecodeError> {
        let spent = count.saturating_mul(size);
        self.array_memory = self
            .array_memory
            .checked_sub(spent)
            .ok_or(DecodeError::Arrays { limit: ARRAY_MEMORY })?;
        Ok(())
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<Bytes, DecodeError> {
        self.need(count)?;
        Ok(self.bytes.split_to(count))
    }

    pub(crate) fn i8(&mut self) -> Result<i8, DecodeError> {
        self.need(1)?;
        Ok(self.bytes.get_i8())
    }

    pub(crate) fn i16(&mut self) -> Result<i16, DecodeError> {
        self.need(2)?;
        Ok(self.bytes.get_i16())
    }

    pub(crate) fn i32(&mut self) -> Result<i32, DecodeError> {
        self.need(4)?;
        Ok(self.bytes.get_i32())
    }

    pub(crate) fn i64(&mut self) -> Result<i64, DecodeError> {
        self.need(8)?;
        Ok(self.bytes.get_i64())
    }

    pub(crate) fn u128(&mut self) -> Result<u128, DecodeError> {
        self.need(16)?;
        Ok(self.bytes.get_u128())
    }

    /// An unsigned variable-length integer of at most 32 bits.
    pub(crate) fn uvarint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            self.need(1)?;
            let byte = self.bytes.get_u8();
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| DecodeError::Varint);
            }
        }
        Err(DecodeError::Varint)
    }

    /// The length of a string: 16 bits, or compact in a flexible version. `None` is null.
    pub(crate) fn short_length(&mut self) -> Result<Option<usize>, DecodeError> {
        let length = if self.flexible { self.compact_length()? } else { self.i16()?.into() };
        self.bounded(length)
    }

    /// The length of bytes or of an array: 32 bits, or compact in a flexible version. `None` is
    /// null. An array's element takes a byte at least, so the same bound holds for both.
    pub(crate) fn length(&mut self) -> Result<Option<usize>, DecodeError> {
        let length = if self.flexible { self.compact_length()? } else { self.i32()?.into() };
        self.bounded(length)
    }

    /// The tagged fields at the end of a flexible structure. `known` reads the field of a tag and
    /// says whether it knew it; the others are skipped.
    pub(crate) fn tagged(
        &mut self,
        mut known: impl FnMut(u32, &mut Reader) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        if !self.flexible {
            return Ok(());
        }
        let mut lowest = 0;
        for _ in 0..self.uvarint()? {
            let tag = self.uvarint()?;
            if u64::from(tag) < lowest {
                return Err(DecodeError::Tag { tag });
            }
            lowest = u64::from(tag) + 1;
            self.tagged_field(tag, &mut known)?;
        }
        Ok(())
    }

    fn tagged_field(
        &mut self,
        tag: u32,
        known: &mut impl FnMut(u32, &mut Reader) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        let size = i64::from(self.uvarint()?);
        let size = self.bounded(size)?.ok_or(DecodeError::Null)?;
        let mut field = Reader { bytes: self.take(size)?, ..*self };
        if known(tag, &mut field)? && field.left() > 0 {
            return Err(DecodeError::Tag { tag });
        }
        self.array_memory = field.array_memory;
        Ok(())
    }

    fn compact_length(&mut self) -> Result<i64, DecodeError> {
        Ok(i64::from(self.uvarint()?) - 1)
    }

    fn bounded(&self, length: i64) -> Result<Option<usize>, DecodeError> {
        let left = self.left();
        match usize::try_from(length) {
            Ok(length) if length <= left => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            _ => Err(DecodeError::Length { length, left }),
        }
    }

    fn need(&self, needed: usize) -> Result<(), DecodeError> {
        let left = self.left();
        if left < needed { Err(DecodeError::Truncated { needed, left }) } else { Ok(()) }
    }
}
