//! Going through the records of a batch, without memory of its own.

use super::cursor::Cursor;
use super::{BatchError, BatchHeader, TimestampType};

/// Where and when a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordTime {
    /// Its offset.
    pub offset: i64,
    /// Its timestamp, in milliseconds since 1970, or -1.
    pub timestamp: i64,
}

/// A record where it lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordView<'a> {
    pub(super) time: RecordTime,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) headers: Headers<'a>,
}

/// The headers of a record, which [`Walk::next`] has found whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers<'a> {
    count: usize,
    cursor: Cursor<'a>,
}

/// How far a batch has been gone through.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    header: BatchHeader,
    at: usize,
    index: i32,
    last_delta: i32,
    ended: bool,
}

impl Walk {
    pub(super) fn new(header: &BatchHeader) -> Self {
        Self { header: *header, at: 0, index: 0, last_delta: -1, ended: false }
    }

    /// Where in the body the next record begins.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next record. The walk ends with the first error; `body` must always be the same.
    pub(super) fn next<'a>(
        &mut self,
        body: &'a [u8],
    ) -> Option<Result<RecordView<'a>, BatchError>> {
        let rest = body.get(self.at..).unwrap_or_default();
        if self.ended {
            return None;
        }
        if self.index == self.header.record_count {
            self.ended = true;
            return (!rest.is_empty())
                .then(|| Err(self.miscounted("bytes follow the last record")));
        }
        let record = self.record(rest);
        self.index += 1;
        self.ended = record.is_err();
        Some(record)
    }

    fn record<'a>(&mut self, rest: &'a [u8]) -> Result<RecordView<'a>, BatchError> {
        if rest.is_empty() {
            return Err(self.miscounted("the records end before"));
        }
        let mut cursor = Cursor(rest);
        let record = cursor.bytes().ok_or_else(|| self.malformed("its length"))?;
        self.at += rest.len() - cursor.0.len();
        self.fields(Cursor(record))
    }

    fn fields<'a>(&mut self, mut cursor: Cursor<'a>) -> Result<RecordView<'a>, BatchError> {
        cursor.byte().ok_or_else(|| self.malformed("its attributes"))?;
        let timestamp_delta = cursor.varlong().ok_or_else(|| self.malformed("its timestamp"))?;
        let offset_delta = cursor.varint().ok_or_else(|| self.malformed("its offset"))?;
        let time = self.time(timestamp_delta, offset_delta)?;
        let key = cursor.nullable_bytes().ok_or_else(|| self.malformed("its key"))?;
        let value = cursor.nullable_bytes().ok_or_else(|| self.malformed("its value"))?;
        let headers = Headers::read(cursor).ok_or_else(|| self.malformed("its headers"))?;
        Ok(RecordView { time, key, value, headers })
    }

    fn time(&mut self, timestamp_delta: i64, offset_delta: i32) -> Result<RecordTime, BatchError> {
        if offset_delta <= self.last_delta || offset_delta > self.header.last_offset_delta {
            return Err(self.malformed("its offset does not rise, or lies outside of the batch"));
        }
        self.last_delta = offset_delta;
        let timestamp = match self.header.timestamp_type() {
            // Wrapping, as in Java: any two timestamps have a delta.
            TimestampType::CreateTime => self.header.base_timestamp.wrapping_add(timestamp_delta),
            TimestampType::LogAppendTime => self.header.max_timestamp,
        };
        Ok(RecordTime { offset: self.header.base_offset + i64::from(offset_delta), timestamp })
    }

    fn malformed(&self, reason: &'static str) -> BatchError {
        BatchError::Record { index: self.index, reason }
    }

    fn miscounted(&self, reason: &'static str) -> BatchError {
        BatchError::Count { count: self.header.record_count, reason }
    }
}

impl<'a> Headers<'a> {
    /// Reads the count and goes through the headers; `None` if they do not fill the bytes exactly.
    fn read(mut cursor: Cursor<'a>) -> Option<Self> {
        let count = usize::try_from(cursor.varint()?).ok()?;
        let mut headers = Self { count, cursor };
        let whole = headers;
        for _ in 0..count {
            headers.header()?;
        }
        headers.cursor.0.is_empty().then_some(whole)
    }

    fn header(&mut self) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        let name = self.cursor.bytes()?;
        Some((name, self.cursor.nullable_bytes()?))
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        self.header()
    }
}
