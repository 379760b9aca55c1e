//! Writing a message at one version.

use bytes::{BufMut, BytesMut};

use crate::apart::Gap;
use crate::wire::Wire;

/// A tagged field that is to be written.
#[derive(Debug)]
pub(crate) struct TaggedField {
    tag: u32,
    content: BytesMut,
}

/// Where a message is written, and the version it is written at.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) out: &'a mut BytesMut,
    pub(crate) version: i16,
    pub(crate) flexible: bool,
    /// Where bytes are missing that the sender adds.
    pub(crate) gaps: Vec<Gap>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut BytesMut, version: i16, flexible: bool) -> Self {
        Self { out, version, flexible, gaps: Vec::new() }
    }

    /// An unsigned variable-length integer.
    pub(crate) fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.put_u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.out.put_u8(value as u8);
    }

    /// The length of a string, `None` for null.
    pub(crate) fn short_length(&mut self, length: Option<usize>) {
        match (self.flexible, length) {
            (true, length) => self.compact_length(length),
            (false, Some(length)) => self.out.put_i16(i16::try_from(length).unwrap_or(i16::MAX)),
            (false, None) => self.out.put_i16(-1),
        }
    }

    /// The length of bytes or of an array, `None` for null.
    pub(crate) fn length(&mut self, length: Option<usize>) {
        match (self.flexible, length) {
            (true, length) => self.compact_length(length),
            (false, Some(length)) => self.out.put_i32(i32::try_from(length).unwrap_or(i32::MAX)),
            (false, None) => self.out.put_i32(-1),
        }
    }

    /// The longest string that a length can stand for at this version.
    pub(crate) fn longest_string(&self) -> usize {
        let longest = if self.flexible { i32::MAX } else { i16::MAX.into() };
        usize::try_from(longest).unwrap_or(usize::MAX)
    }

    /// A tagged field, apart; `None` where this version has none or it would say nothing new.
    pub(crate) fn tagged_field<T: Wire + PartialEq>(
        &self,
        tag: u32,
        present: bool,
        value: &T,
        default: &T,
    ) -> Option<TaggedField> {
        if !self.flexible || !present || value == default {
            return None;
        }
        let mut content = BytesMut::new();
        value.write(&mut Writer::new(&mut content, self.version, self.flexible));
        Some(TaggedField { tag, content })
    }

    /// The tagged fields at the end of a flexible structure, in ascending order of tag.
    pub(crate) fn tagged<const N: usize>(&mut self, fields: [Option<TaggedField>; N]) {
        if !self.flexible {
            return;
        }
        self.uvarint(saturated(fields.iter().flatten().count()));
        for TaggedField { tag, content } in fields.into_iter().flatten() {
            self.uvarint(tag);
            self.uvarint(saturated(content.len()));
            self.out.put_slice(&content);
        }
    }

    fn compact_length(&mut self, length: Option<usize>) {
        self.uvarint(length.map_or(0, |length| saturated(length).saturating_add(1)));
    }
}

fn saturated(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
