//! Why bytes are not a message.

use thiserror::Error;

use crate::ApiKey;

/// Bytes that are not the message they should be.
///
/// The connection that carried them cannot be trusted any further: what follows cannot be told
/// apart from the middle of something else.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end inside a field.
    #[error("the message ends inside a field: {needed} bytes needed, {left} left")]
    Truncated {
        /// Bytes that the field takes.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A length or count is negative where null is not allowed, or larger than the bytes left.
    #[error("a length of {length} does not fit the {left} bytes left")]
    Length {
        /// The length as sent.
        length: i64,
        /// Bytes that are left.
        left: usize,
    },
    /// A null where this version of the schema has none.
    #[error("null in a field that cannot be null")]
    Null,
    /// A variable-length integer that does not end within its width.
    #[error("a variable-length integer is longer than its type allows")]
    Varint,
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8")]
    Utf8,
    /// Arrays whose elements would take more memory than one message may.
    #[error("the arrays of one message would take more than {limit} bytes of memory")]
    Arrays {
        /// The ceiling, in bytes.
        limit: usize,
    },
    /// Tagged fields that are not in ascending order, or one whose size is not its content's.
    #[error("tagged field {tag} is out of order or its size is wrong")]
    Tag {
        /// The field's tag.
        tag: u32,
    },
    /// Bytes behind the end of the message.
    #[error("{left} bytes behind the end of the message")]
    Trailing {
        /// How many.
        left: usize,
    },
    /// An API key that we do not speak.
    #[error("API key {key} is not known here")]
    UnknownApi {
        /// The key as sent.
        key: i16,
    },
    /// A version that we do not speak.
    #[error("{api:?} version {version} is not spoken here")]
    UnsupportedVersion {
        /// Whose version.
        api: ApiKey,
        /// The version as sent.
        version: i16,
    },
    /// A version of a stored key or value that we do not know.
    #[error("a stored key or value has version {version}, which is not known here")]
    UnknownStored {
        /// The version as stored.
        version: i16,
    },
}
