//! Why bytes are not a record batch.

use thiserror::Error;

use super::Compression;
use crate::ErrorCode;

/// Bytes that are not the record batch they should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The bytes end before the batch does. In a fetch answer, or at the end of a segment after a
    /// crash, that is where to stop.
    #[error("the batch is cut: {needed} bytes needed, {left} there")]
    Cut {
        /// Bytes that the header or the batch takes.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A format other than 2. Formats 0 and 1 went out of use with Kafka 0.11.
    #[error("record format {magic} is not spoken here, only 2")]
    Magic {
        /// The format as sent.
        magic: i8,
    },
    /// A batch length that cannot hold a header.
    #[error("a batch length of {length} cannot hold a batch header")]
    Length {
        /// The length as sent.
        length: i32,
    },
    /// Offsets that no log can have.
    #[error("base offset {base} with a last offset delta of {delta} is impossible")]
    Offsets {
        /// The base offset as sent.
        base: i64,
        /// The last offset delta as sent.
        delta: i32,
    },
    /// A CRC that is not that of the bytes.
    #[error("the batch has CRC {stored:08x} but its bytes have {computed:08x}")]
    Crc {
        /// The CRC in the header.
        stored: u32,
        /// The CRC of the bytes.
        computed: u32,
    },
    /// A compression that Kafka does not have.
    #[error("compression {id} is none of 0 (none), 1 (gzip), 2 (snappy), 3 (lz4), 4 (zstd)")]
    Codec {
        /// The number as sent.
        id: i16,
    },
    /// Compressed bytes that cannot be decompressed.
    #[error("the {codec:?} data of the batch cannot be read: {reason}")]
    Compressed {
        /// The compression.
        codec: Compression,
        /// What the decompressor says.
        reason: String,
    },
    /// Records larger than the caller allows.
    #[error("the records of the batch take more than {limit} bytes decompressed")]
    TooLarge {
        /// The caller's limit.
        limit: usize,
    },
    /// A record that does not hold what its lengths say.
    #[error("record {index} of the batch is malformed: {reason}")]
    Record {
        /// Which record of the batch, from 0.
        index: i32,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Fewer or more records than the header says, or none.
    #[error("the batch header counts {count} records, which its content contradicts: {reason}")]
    Count {
        /// The count in the header.
        count: i32,
        /// How.
        reason: &'static str,
    },
}

impl BatchError {
    /// What a broker answers to a producer that sends such a batch.
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::Cut { .. }
            | Self::Length { .. }
            | Self::Offsets { .. }
            | Self::Crc { .. }
            | Self::Compressed { .. } => ErrorCode::CORRUPT_MESSAGE,
            Self::Codec { .. } => ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            Self::TooLarge { .. } => ErrorCode::MESSAGE_TOO_LARGE,
            Self::Magic { .. } | Self::Record { .. } | Self::Count { .. } => {
                ErrorCode::INVALID_RECORD
            }
        }
    }
}
