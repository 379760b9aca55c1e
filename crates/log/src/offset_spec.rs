//! What ListOffsets may ask for, and what it answers.

/// Which offset is asked for: Kafka's special timestamps and times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetSpec {
    /// -1: the end of what the reader sees.
    Latest,
    /// -2: the log start.
    Earliest,
    /// -3 (KIP-734): the first record with the greatest timestamp.
    MaxTimestamp,
    /// -4: the first offset on the local disk; without tiers the log start.
    EarliestLocal,
    /// -5: the last offset in a remote tier; without tiers no answer.
    LatestTiered,
    /// -6: the first offset still to be uploaded; without tiers no answer.
    EarliestPendingUpload,
    /// The first record at or after a time, in milliseconds.
    Timestamp(i64),
}

impl OffsetSpec {
    /// Reads the wire's number; None for a negative number that has no meaning.
    pub fn from_wire(timestamp: i64) -> Option<Self> {
        Some(match timestamp {
            -1 => Self::Latest,
            -2 => Self::Earliest,
            -3 => Self::MaxTimestamp,
            -4 => Self::EarliestLocal,
            -5 => Self::LatestTiered,
            -6 => Self::EarliestPendingUpload,
            0.. => Self::Timestamp(timestamp),
            _ => return None,
        })
    }

    /// The first version of ListOffsets in which it may be asked for (KIP-734, 405, 1005, 1023).
    pub fn since_version(self) -> i16 {
        match self {
            Self::Latest | Self::Earliest | Self::Timestamp(_) => 1,
            Self::MaxTimestamp => 7,
            Self::EarliestLocal => 8,
            Self::LatestTiered => 9,
            Self::EarliestPendingUpload => 11,
        }
    }
}

/// Whether records of open transactions are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// Up to the high watermark.
    ReadUncommitted,
    /// Up to the last stable offset.
    ReadCommitted,
}

/// An answer. "No answer" is `None` beside it: offset, timestamp and epoch -1 on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundOffset {
    /// The offset.
    pub offset: i64,
    /// The record's timestamp in milliseconds, -1 where no record was asked for.
    pub timestamp: i64,
    /// The leader epoch of the batch, or the current one for [`OffsetSpec::Latest`]; -1 if unknown.
    pub leader_epoch: i32,
}
