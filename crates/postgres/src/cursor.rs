//! Bounded reading of binary messages: every step checks what is left, nothing is copied.

use bytes::{Buf, Bytes};

use crate::lsn::Lsn;

/// Why a message could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The message ends inside a field.
    #[error("the message ends inside {0}")]
    Short(&'static str),
    /// Bytes are left behind the last field.
    #[error("{0} bytes are left behind the message")]
    Trailing(usize),
    /// A name is not UTF-8.
    #[error("{0} is not UTF-8")]
    Text(&'static str),
    /// A field has a value that the protocol does not define.
    #[error("{0} has the undefined value {1}")]
    Value(&'static str, i64),
    /// A message that this release does not know.
    #[error("message {0:?} is unknown to this release")]
    Unknown(char),
}

/// Reads fields from the front of a message.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    bytes: Bytes,
}

impl Cursor {
    pub(crate) const fn new(bytes: Bytes) -> Self {
        Self { bytes }
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.bytes.try_get_u8().map_err(|_| DecodeError::Short(field))
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.bytes.try_get_u16().map_err(|_| DecodeError::Short(field))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.bytes.try_get_u32().map_err(|_| DecodeError::Short(field))
    }

    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        self.bytes.try_get_i32().map_err(|_| DecodeError::Short(field))
    }

    pub(crate) fn i64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        self.bytes.try_get_i64().map_err(|_| DecodeError::Short(field))
    }

    pub(crate) fn lsn(&mut self, field: &'static str) -> Result<Lsn, DecodeError> {
        self.bytes.try_get_u64().map(Lsn).map_err(|_| DecodeError::Short(field))
    }

    pub(crate) fn take(&mut self, len: usize, field: &'static str) -> Result<Bytes, DecodeError> {
        if len > self.bytes.len() {
            return Err(DecodeError::Short(field));
        }
        Ok(self.bytes.split_to(len))
    }

    /// A text that ends with a zero byte.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<String, DecodeError> {
        let end = self.bytes.iter().position(|byte| *byte == 0);
        let text = self.take(end.ok_or(DecodeError::Short(field))?, field)?;
        self.bytes.advance(1);
        String::from_utf8(text.into()).map_err(|_| DecodeError::Text(field))
    }

    /// What is left.
    pub(crate) fn rest(self) -> Bytes {
        self.bytes
    }

    /// Checks that nothing is left.
    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}
