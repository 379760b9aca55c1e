//! What stands in keys and values of Kafka's internal topics, and in the metadata of a group's members:
//! a version of 16 bits, then fields as a message has them.

mod assignment;
mod group_metadata;
mod offset_commit;
mod subscription;
mod transaction_log;

use std::ops::RangeInclusive;

use bytes::{BufMut, Bytes, BytesMut};

pub use assignment::*;
pub use group_metadata::*;
pub use offset_commit::*;
pub use subscription::*;
pub use transaction_log::*;

use crate::DecodeError;
use crate::reader::Reader;
use crate::wire::Wire;
use crate::writer::Writer;

/// A key or value with its version in front.
pub trait Stored: Sized {
    /// The versions that can be read and written.
    const VERSIONS: RangeInclusive<i16>;

    /// Reads what was stored, whatever known version it has.
    ///
    /// # Errors
    /// Any [`DecodeError`]; [`DecodeError::UnknownStored`] for a version that we do not know.
    fn from_stored(bytes: Bytes) -> Result<Self, DecodeError>;

    /// The bytes to store, at a version.
    fn to_stored(&self, version: i16) -> Bytes;
}

/// The version in front of a key or value; None if it is too short to have one.
pub fn stored_version(bytes: &[u8]) -> Option<i16> {
    bytes.first_chunk().map(|version| i16::from_be_bytes(*version))
}

macro_rules! stored {
    ($( $name:ident = $versions:expr, flexible $flexible:expr; )*) => { $(
        impl Stored for $name {
            const VERSIONS: RangeInclusive<i16> = $versions;

            fn from_stored(bytes: Bytes) -> Result<Self, DecodeError> {
                read(bytes, Self::VERSIONS, $flexible)
            }

            fn to_stored(&self, version: i16) -> Bytes {
                write(self, version, $flexible)
            }
        }
    )* };
}

/// No version is flexible.
const NEVER: i16 = i16::MAX;

stored! {
    OffsetCommitKey = 0..=1, flexible NEVER;
    OffsetCommitValue = 0..=4, flexible 4;
    GroupMetadataKey = 2..=2, flexible NEVER;
    GroupMetadataValue = 0..=4, flexible 4;
    TransactionLogKey = 0..=0, flexible NEVER;
    TransactionLogValue = 0..=1, flexible 1;
}

impl ConsumerSubscription {
    /// The topics in a consumer's metadata. Every version of it begins with the fields of version 0,
    /// and newer ones add behind them, so those alone are read.
    ///
    /// # Errors
    /// Any [`DecodeError`]: it is no consumer's metadata.
    pub fn from_metadata(metadata: Bytes) -> Result<Self, DecodeError> {
        beginning(metadata)
    }

    /// A consumer's metadata, at version 0.
    pub fn to_metadata(&self) -> Bytes {
        write(self, 0, NEVER)
    }
}

impl ConsumerAssignment {
    /// What a leader assigned. Every version of it begins with the fields of version 0. A member
    /// that is assigned nothing may get no bytes at all.
    ///
    /// # Errors
    /// Any [`DecodeError`]: it is no consumer's assignment.
    pub fn from_assignment(assignment: Bytes) -> Result<Self, DecodeError> {
        if assignment.is_empty() { Ok(Self::default()) } else { beginning(assignment) }
    }

    /// What a leader assigns, at version 0.
    pub fn to_assignment(&self) -> Bytes {
        write(self, 0, NEVER)
    }
}

/// The fields of version 0, with which every version begins.
fn beginning<T: Wire>(bytes: Bytes) -> Result<T, DecodeError> {
    let mut reader = Reader::new(bytes);
    let version = reader.i16()?;
    if version < 0 {
        return Err(DecodeError::UnknownStored { version });
    }
    reader.set_version(0, false);
    T::read(&mut reader)
}

fn read<T: Wire>(
    bytes: Bytes,
    versions: RangeInclusive<i16>,
    flexible: i16,
) -> Result<T, DecodeError> {
    let mut reader = Reader::new(bytes);
    let version = reader.i16()?;
    if !versions.contains(&version) {
        return Err(DecodeError::UnknownStored { version });
    }
    reader.set_version(version, version >= flexible);
    let value = T::read(&mut reader)?;
    reader.finish()?;
    Ok(value)
}

fn write<T: Wire>(value: &T, version: i16, flexible: i16) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(version);
    value.write(&mut Writer::new(&mut out, version, version >= flexible));
    out.freeze()
}
