//! Changes and undos as frames of bytes, each with its length and checksum before it: in memory, in
//! a spill file and in the journal.
//!
//! A frame names its table by a number in a [`TableDictionary`]. Whoever keeps frames where the
//! dictionary is not, keeps the dictionary beside them ([`TableDictionary::encode`]).

use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;

use super::spill_bytes::{Bytes, put_bytes, put_number};
use super::undo::Undo;
use crate::{
    Change, Image, LobColumn, LobValue, RedoAddress, RedoPoint, RedoThread, Scn, TableName, Verb,
};

/// Bytes before the payload of a frame: eight of length, four of CRC32C.
pub(super) const HEADER: usize = 12;

/// What happened in a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A row was changed.
    Change(Change),
    /// A change was taken back.
    Undo(Undo),
}

/// Bytes that are no frame, or not the frame that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FrameError {
    /// They end inside a frame.
    #[error("it ends inside a frame")]
    Cut,
    /// The checksum is that of other bytes.
    #[error("the checksum of a frame does not match")]
    Checksum,
    /// The checksum matches, the content is none that is written.
    #[error("a frame holds what no frame can")]
    Content,
}

/// The tables that frames name, by number.
#[derive(Clone, Debug, Default)]
pub struct TableDictionary {
    names: Vec<Arc<TableName>>,
    /// Numbers by name, once there are more names than are quickly compared.
    numbers: HashMap<Arc<TableName>, u32>,
    last: u32,
}

/// Up to so many names are compared one by one.
const COMPARED: usize = 8;

impl TableDictionary {
    /// The number of a table, which is new where the table is.
    pub fn number(&mut self, table: &Arc<TableName>) -> u32 {
        let is_last = self.name(self.last).is_some_and(|name| Arc::ptr_eq(name, table));
        if !is_last {
            self.last = self.find(table).unwrap_or_else(|| self.push(Arc::clone(table)));
        }
        self.last
    }

    fn find(&self, table: &Arc<TableName>) -> Option<u32> {
        if self.names.len() > COMPARED {
            return self.numbers.get(table).copied();
        }
        self.names.iter().position(|name| name == table).map(|number| number as u32)
    }

    fn push(&mut self, table: Arc<TableName>) -> u32 {
        self.names.push(table);
        if self.names.len() > COMPARED {
            let known = self.numbers.len();
            let numbered = self.names.iter().zip(0..).skip(known);
            self.numbers.extend(numbered.map(|(name, number)| (Arc::clone(name), number)));
        }
        self.names.len() as u32 - 1
    }

    /// The table of a number.
    pub fn name(&self, number: u32) -> Option<&Arc<TableName>> {
        self.names.get(number as usize)
    }

    /// How many tables there are.
    pub const fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Writes all names.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_number(self.names.len() as u64, out);
        for name in &self.names {
            put_bytes(name.pdb.as_deref().unwrap_or_default().as_bytes(), out);
            put_bytes(name.owner.as_bytes(), out);
            put_bytes(name.table.as_bytes(), out);
        }
    }

    /// Reads what [`encode`](Self::encode) wrote and leaves `bytes` behind it.
    ///
    /// # Errors
    /// When it is not that.
    pub fn decode(bytes: &mut &[u8]) -> Result<Self, FrameError> {
        let mut input = Bytes(bytes);
        let mut read = Self::default();
        for _ in 0..input.number().ok_or(FrameError::Cut)? {
            read.push(Arc::new(table_name(&mut input).ok_or(FrameError::Cut)?));
        }
        *bytes = input.0;
        Ok(read)
    }
}

fn table_name(input: &mut Bytes<'_>) -> Option<TableName> {
    let pdb = Some(input.text()?.to_owned()).filter(|pdb| !pdb.is_empty());
    Some(TableName { pdb, owner: input.text()?.to_owned(), table: input.text()?.to_owned() })
}

impl Frame {
    /// Writes the frame.
    pub fn encode(&self, tables: &mut TableDictionary, out: &mut Vec<u8>) {
        match self {
            Self::Change(change) => encode_change(change, tables, out),
            Self::Undo(undo) => encode_undo(undo, tables, out),
        }
    }

    /// Reads a frame, checks it, and leaves `bytes` behind it.
    ///
    /// # Errors
    /// When the bytes are not a frame that was written with these tables.
    pub fn decode(bytes: &mut &[u8], tables: &TableDictionary) -> Result<Self, FrameError> {
        Self::from_payload(split_frame(bytes)?, tables)
    }

    /// Reads the payload of a frame that was checked.
    pub(super) fn from_payload(
        payload: &[u8],
        tables: &TableDictionary,
    ) -> Result<Self, FrameError> {
        frame(&mut Bytes(payload), tables).ok_or(FrameError::Content)
    }
}

/// Writes a change as a frame.
pub fn encode_change(change: &Change, tables: &mut TableDictionary, out: &mut Vec<u8>) {
    let table = tables.number(&change.table);
    let image = if change.image == Image::Locator { LOCATOR } else { 0 };
    out.reserve(HEADER + 64 + change.row_id.len() + change.sql.len());
    put_frame(out, |out| {
        put_head(image | verb_bits(change.verb), table, &change.row_id, &change.at, out);
        put_number(u64::from(change.table_version), out);
        put_bytes(change.sql.as_bytes(), out);
        put_number(change.lobs.len() as u64, out);
        for lob in &change.lobs {
            put_lob(lob, out);
        }
    });
}

/// Writes an undo as a frame.
pub fn encode_undo(undo: &Undo, tables: &mut TableDictionary, out: &mut Vec<u8>) {
    let table = tables.number(&undo.table);
    put_frame(out, |out| {
        put_head(UNDO | verb_bits(undo.verb), table, &undo.row_id, &undo.at, out);
    });
}

/// Takes a checked payload off the front.
///
/// # Errors
/// When the bytes end inside the frame, or its checksum is that of other bytes.
pub(super) fn split_frame<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], FrameError> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(FrameError::Cut)?;
    let (length, checksum) = read_header(header);
    let length = usize::try_from(length).map_err(|_| FrameError::Cut)?;
    let (payload, rest) = rest.split_at_checked(length).ok_or(FrameError::Cut)?;
    check_payload(payload, checksum)?;
    *bytes = rest;
    Ok(payload)
}

/// Compares a payload with its checksum. None is empty: bytes of zeros are no frames.
pub(super) fn check_payload(payload: &[u8], checksum: u32) -> Result<(), FrameError> {
    let is_sound = !payload.is_empty() && crc32c::crc32c(payload) == checksum;
    if is_sound { Ok(()) } else { Err(FrameError::Checksum) }
}

/// Length and checksum of the payload that follows.
pub(super) const fn read_header(header: &[u8; HEADER]) -> (u64, u32) {
    let [a, b, c, d, e, f, g, h, checksum @ ..] = *header;
    (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes(checksum))
}

fn put_frame(out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    payload(out);
    let (header, payload) = out[start..].split_at_mut(HEADER);
    header[..8].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    header[8..].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
}

/// What names the change in a frame: read without the rest when undos are resolved.
pub(super) struct Head<'a> {
    pub(super) is_undo: bool,
    pub(super) verb: Verb,
    pub(super) image: Image,
    pub(super) table: u32,
    pub(super) row_id: &'a str,
}

impl<'a> Head<'a> {
    /// Reads the front of a payload.
    pub(super) fn of(payload: &'a [u8]) -> Result<Self, FrameError> {
        head(&mut Bytes(payload)).ok_or(FrameError::Content)
    }

    /// Whether it is the payload of an undo.
    pub(super) fn is_undo(payload: &[u8]) -> bool {
        payload.first().is_some_and(|bits| bits & UNDO != 0)
    }

    /// Bytes of the frame with this payload.
    pub(super) const fn frame_length(payload: &[u8]) -> u64 {
        (HEADER + payload.len()) as u64
    }
}

const UNDO: u8 = 1;
const LOCATOR: u8 = 2;

const fn verb_bits(verb: Verb) -> u8 {
    match verb {
        Verb::Insert => 0x10,
        Verb::Delete => 0x20,
        Verb::Update => 0x30,
    }
}

const fn verb_of(bits: u8) -> Option<Verb> {
    match bits & 0xf0 {
        0x10 => Some(Verb::Insert),
        0x20 => Some(Verb::Delete),
        0x30 => Some(Verb::Update),
        _ => None,
    }
}

fn put_head(bits: u8, table: u32, row_id: &str, at: &RedoPoint, out: &mut Vec<u8>) {
    out.push(bits);
    put_number(u64::from(table), out);
    put_bytes(row_id.as_bytes(), out);
    put_point(at, out);
}

/// The thread comes with a bit that says whether there is an address.
fn put_point(at: &RedoPoint, out: &mut Vec<u8>) {
    put_number(u64::from(at.thread.0) << 1 | u64::from(at.address.is_some()), out);
    put_number(at.scn.0, out);
    if let Some(address) = &at.address {
        put_number(address.sequence, out);
        put_number(address.block, out);
        put_number(u64::from(address.byte), out);
        put_number(address.ssn, out);
    }
}

fn head<'a>(input: &mut Bytes<'a>) -> Option<Head<'a>> {
    let bits = input.byte()?;
    Some(Head {
        is_undo: bits & UNDO != 0,
        verb: verb_of(bits)?,
        image: if bits & LOCATOR == 0 { Image::Statement } else { Image::Locator },
        table: input.small_number()?,
        row_id: input.text()?,
    })
}

fn point(input: &mut Bytes<'_>) -> Option<RedoPoint> {
    let thread = input.number()?;
    let scn = Scn(input.number()?);
    let address = if thread & 1 == 0 { None } else { Some(address(input)?) };
    Some(RedoPoint { thread: RedoThread(u32::try_from(thread >> 1).ok()?), scn, address })
}

fn address(input: &mut Bytes<'_>) -> Option<RedoAddress> {
    let [sequence, block] = [input.number()?, input.number()?];
    Some(RedoAddress { sequence, block, byte: input.small_number()?, ssn: input.number()? })
}

fn frame(input: &mut Bytes<'_>, tables: &TableDictionary) -> Option<Frame> {
    let head = head(input)?;
    let at = point(input)?;
    let table = Arc::clone(tables.name(head.table)?);
    let (verb, row_id) = (head.verb, Box::from(head.row_id));
    let frame = if head.is_undo {
        Frame::Undo(Undo { at, verb, table, row_id })
    } else {
        let table_version = input.small_number()?;
        let sql = Box::from(input.text()?);
        let lobs = lobs(input)?;
        Frame::Change(Change {
            at,
            verb,
            table,
            table_version,
            row_id,
            image: head.image,
            sql,
            lobs,
        })
    };
    input.0.is_empty().then_some(frame)
}

fn lobs(input: &mut Bytes<'_>) -> Option<Vec<LobColumn>> {
    (0..input.number()?).map(|_| lob(input)).collect()
}

fn put_lob(lob: &LobColumn, out: &mut Vec<u8>) {
    put_bytes(lob.column.as_bytes(), out);
    let (tag, content): (u8, &[u8]) = match &lob.value {
        LobValue::Text(text) => (0, text.as_bytes()),
        LobValue::Bytes(bytes) => (1, bytes),
        LobValue::Unavailable => (2, &[]),
        LobValue::TooLarge => (3, &[]),
        LobValue::Null => (4, &[]),
        LobValue::Undecodable(why) => (5, why.as_bytes()),
    };
    out.push(tag);
    put_bytes(content, out);
    put_point(&lob.last, out);
}

fn lob(input: &mut Bytes<'_>) -> Option<LobColumn> {
    let column = input.text()?.to_owned();
    let value = match (input.byte()?, input.bytes()?) {
        (0, text) => LobValue::Text(text_of(text)?),
        (1, bytes) => LobValue::Bytes(bytes.to_vec()),
        (2, []) => LobValue::Unavailable,
        (3, []) => LobValue::TooLarge,
        (4, []) => LobValue::Null,
        (5, why) => LobValue::Undecodable(text_of(why)?),
        _ => return None,
    };
    Some(LobColumn { column, value, last: point(input)? })
}

fn text_of(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point() -> impl Strategy<Value = RedoPoint> {
        let address = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u64>());
        let address =
            prop::option::of(address.prop_map(|(sequence, block, byte, ssn)| RedoAddress {
                sequence,
                block,
                byte,
                ssn,
            }));
        (any::<u32>(), any::<u64>(), address).prop_map(|(thread, scn, address)| RedoPoint {
            thread: RedoThread(thread),
            scn: Scn(scn),
            address,
        })
    }

    fn table() -> impl Strategy<Value = Arc<TableName>> {
        (prop::option::of("[A-Z]{1,3}"), "[A-C]{0,2}", "[A-Za-z ]{0,3}")
            .prop_map(|(pdb, owner, table)| Arc::new(TableName { pdb, owner, table }))
    }

    fn verb() -> impl Strategy<Value = Verb> {
        prop_oneof![Just(Verb::Insert), Just(Verb::Delete), Just(Verb::Update)]
    }

    fn lob() -> impl Strategy<Value = LobColumn> {
        let value = prop_oneof![
            Just(LobValue::Null),
            any::<String>().prop_map(LobValue::Text),
            any::<Vec<u8>>().prop_map(LobValue::Bytes),
            Just(LobValue::Unavailable),
            Just(LobValue::TooLarge),
            any::<String>().prop_map(LobValue::Undecodable),
        ];
        let columns = (any::<String>(), value, point());
        columns.prop_map(|(column, value, last)| LobColumn { column, value, last })
    }

    fn change() -> impl Strategy<Value = Frame> {
        let image = prop_oneof![Just(Image::Statement), Just(Image::Locator)];
        let head = (point(), verb(), table(), any::<u32>(), any::<String>());
        let rest = (image, any::<String>(), prop::collection::vec(lob(), 0..3));
        (head, rest).prop_map(|((at, verb, table, table_version, row_id), (image, sql, lobs))| {
            let (row_id, sql) = (row_id.into(), sql.into());
            Frame::Change(Change { at, verb, table, table_version, row_id, image, sql, lobs })
        })
    }

    fn undo() -> impl Strategy<Value = Frame> {
        (point(), verb(), table(), any::<String>()).prop_map(|(at, verb, table, row_id)| {
            Frame::Undo(Undo { at, verb, table, row_id: row_id.into() })
        })
    }

    fn frames() -> impl Strategy<Value = Vec<Frame>> {
        prop::collection::vec(prop_oneof![3 => change(), 1 => undo()], 1..30)
    }

    /// As the journal keeps them: the dictionary, then the frames.
    fn encoded(frames: &[Frame]) -> Vec<u8> {
        let (mut tables, mut bytes) = (TableDictionary::default(), Vec::new());
        frames.iter().for_each(|frame| frame.encode(&mut tables, &mut bytes));
        let mut all = Vec::new();
        tables.encode(&mut all);
        all.extend(bytes);
        all
    }

    fn decoded(mut bytes: &[u8]) -> Result<Vec<Frame>, FrameError> {
        let tables = TableDictionary::decode(&mut bytes)?;
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            frames.push(Frame::decode(&mut bytes, &tables)?);
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn frames_are_read_back(frames in frames()) {
            prop_assert_eq!(decoded(&encoded(&frames)), Ok(frames));
        }

        #[test]
        fn a_damaged_frame_is_never_another(
            frame in prop_oneof![change(), undo()],
            at in any::<prop::sample::Index>(),
            flip in 1..=255u8,
        ) {
            let (mut tables, mut bytes) = (TableDictionary::default(), Vec::new());
            frame.encode(&mut tables, &mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert!(Frame::decode(&mut bytes.as_slice(), &tables).is_err());
        }

        #[test]
        fn what_is_cut_is_told(frames in frames(), at in any::<prop::sample::Index>()) {
            let bytes = encoded(&frames);
            let cut = &bytes[..at.index(bytes.len())];
            prop_assert!(decoded(cut) != Ok(frames));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in any::<Vec<u8>>()) {
            let _ = decoded(&bytes);
            let tables = TableDictionary::default();
            prop_assert!(Frame::from_payload(&bytes, &tables).is_err());
        }
    }

    #[test]
    fn a_table_has_one_number_whether_or_not_it_is_the_same_object() {
        let name = |n: usize| {
            Arc::new(TableName { pdb: None, owner: "SHOP".into(), table: format!("T{n}") })
        };
        let mut tables = TableDictionary::default();
        for _ in 0..2 {
            for n in 0..30 {
                assert_eq!(tables.number(&name(n)), n as u32);
                assert_eq!(tables.number(&name(n)), n as u32);
            }
        }
        assert_eq!(tables.len(), 30);
        assert_eq!(tables.name(29), Some(&name(29)));
        assert_eq!(tables.name(30), None);
    }
}
