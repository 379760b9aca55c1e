//! Rows as bytes, for the file of a step that memory does not hold.

use crate::row::{ClientSession, ObjectId, Operation, RedoRow};
use crate::{RedoAddress, RedoPoint, RedoThread, Scn, TransactionKey, Xid};

use super::staged_row::StagedRow;

/// Length that stands for no text.
const NO_TEXT: u32 = u32::MAX;

/// Appends a row.
pub(super) fn encode(row: &StagedRow, to: &mut Vec<u8>) {
    let mut to = Encoder(to);
    to.byte(u8::from(matches!(row, StagedRow::PartialRollback(_))));
    let row = row.row();
    to.point(&row.at);
    to.transaction(&row.transaction);
    to.u32(u32::from(code(row.operation)));
    to.byte(u8::from(row.is_undo) | u8::from(row.is_continued) << 1);
    to.u32(row.status);
    to.text(row.info.as_deref());
    to.u64(row.time_us.cast_unsigned());
    to.u32(row.object.container);
    to.u64(row.object.number);
    to.u64(row.object_version);
    to.text(row.pdb.as_deref());
    to.text(row.owner.as_deref());
    to.text(row.table.as_deref());
    to.text(Some(&row.row_id));
    to.text(row.user.as_deref());
    to.u32(row.session.number);
    to.u32(row.session.serial);
    to.text(row.session.client_id.as_deref());
    to.text(row.sql_redo.as_deref());
}

/// Reads a row that takes all of the bytes; `None` if it does not.
pub(super) fn decode(bytes: &[u8]) -> Option<StagedRow> {
    let mut from = Decoder(bytes);
    let is_partial_rollback = from.byte()? == 1;
    let at = from.point()?;
    let transaction = from.transaction()?;
    let operation = Operation::from_code(u16::try_from(from.u32()?).ok()?);
    let flags = from.byte()?;
    let row = RedoRow {
        at,
        transaction,
        operation,
        is_undo: flags & 1 != 0,
        is_continued: flags & 2 != 0,
        status: from.u32()?,
        info: from.text()?,
        time_us: from.u64()?.cast_signed(),
        object: ObjectId { container: from.u32()?, number: from.u64()? },
        object_version: from.u64()?,
        pdb: from.text()?,
        owner: from.text()?,
        table: from.text()?,
        row_id: from.text()??,
        user: from.text()?,
        session: ClientSession {
            number: from.u32()?,
            serial: from.u32()?,
            client_id: from.text()?,
        },
        sql_redo: from.text()?,
    };
    let staged = if is_partial_rollback { StagedRow::PartialRollback } else { StagedRow::Whole };
    from.0.is_empty().then(|| staged(row))
}

/// The code that [`Operation::from_code`] reads as this operation.
const fn code(operation: Operation) -> u16 {
    match operation {
        Operation::Insert => 1,
        Operation::Delete => 2,
        Operation::Update => 3,
        Operation::Ddl => 5,
        Operation::Start => 6,
        Operation::Commit => 7,
        Operation::LobLocator => 9,
        Operation::LobWrite => 10,
        Operation::LobTrim => 11,
        Operation::LobErase => 29,
        Operation::MissingScn => 34,
        Operation::Rollback => 36,
        Operation::Unsupported => 255,
        Operation::Other(code) => code,
    }
}

struct Encoder<'a>(&'a mut Vec<u8>);

impl Encoder<'_> {
    fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, text: Option<&str>) {
        match text {
            // A text of 4 GiB cannot be: a statement is far below, and the file refuses its frame.
            Some(text) => {
                self.u32(u32::try_from(text.len()).unwrap_or(NO_TEXT - 1));
                self.0.extend_from_slice(text.as_bytes());
            }
            None => self.u32(NO_TEXT),
        }
    }

    fn point(&mut self, at: &RedoPoint) {
        self.u32(at.thread.0);
        self.u64(at.scn.0);
        self.byte(u8::from(at.address.is_some()));
        if let Some(address) = at.address {
            self.u64(address.sequence);
            self.u64(address.block);
            self.u32(address.byte);
            self.u64(address.ssn);
        }
    }

    fn transaction(&mut self, key: &TransactionKey) {
        let Xid { usn, slot, sequence } = key.xid;
        [key.container, usn, slot, sequence].into_iter().for_each(|number| self.u32(number));
    }
}

struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// `Some(None)` where there is no text.
    fn text(&mut self) -> Option<Option<String>> {
        match self.u32()? {
            NO_TEXT => Some(None),
            length => {
                let bytes = self.take(usize::try_from(length).ok()?)?;
                Some(Some(String::from_utf8(bytes.to_vec()).ok()?))
            }
        }
    }

    fn point(&mut self) -> Option<RedoPoint> {
        let (thread, scn) = (RedoThread(self.u32()?), Scn(self.u64()?));
        let address = match self.byte()? {
            0 => None,
            _ => Some(RedoAddress {
                sequence: self.u64()?,
                block: self.u64()?,
                byte: self.u32()?,
                ssn: self.u64()?,
            }),
        };
        Some(RedoPoint { thread, scn, address })
    }

    fn transaction(&mut self) -> Option<TransactionKey> {
        let container = self.u32()?;
        let xid = Xid { usn: self.u32()?, slot: self.u32()?, sequence: self.u32()? };
        Some(TransactionKey { container, xid })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::mining::fake::{row, transaction};
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = Option<String>> {
        proptest::option::of("[a-zé'\u{0}]{0,9}")
    }

    prop_compose! {
        pub(in super::super) fn any_row()(
            numbers in any::<[u32; 8]>(),
            code in any::<u16>(),
            address in any::<Option<(u64, u64, u32, u64)>>(),
            wide in any::<[u64; 4]>(),
            flags in any::<[bool; 3]>(),
            texts in prop::collection::vec(text(), 7),
            row_id in "[A-Za-z]{0,18}",
        ) -> StagedRow {
            let address = address.map(|(sequence, block, byte, ssn)| {
                RedoAddress { sequence, block, byte, ssn }
            });
            let mut row = row(1, 1, 1, Operation::from_code(code), transaction(1));
            row.at = RedoPoint { thread: RedoThread(numbers[0]), scn: Scn(wide[0]), address };
            row.transaction.xid.sequence = numbers[1];
            (row.transaction.container, row.status) = (numbers[2], numbers[3]);
            row.object = ObjectId { container: numbers[4], number: wide[1] };
            (row.object_version, row.time_us) = (wide[2], wide[3].cast_signed());
            (row.is_undo, row.is_continued) = (flags[0], flags[1]);
            (row.session.number, row.session.serial) = (numbers[5], numbers[6]);
            let mut texts = texts.into_iter();
            for place in [&mut row.info, &mut row.pdb, &mut row.owner, &mut row.table,
                          &mut row.user, &mut row.session.client_id, &mut row.sql_redo] {
                *place = texts.next().flatten();
            }
            row.row_id = row_id;
            if flags[2] { StagedRow::PartialRollback(row) } else { StagedRow::Whole(row) }
        }
    }

    proptest! {
        #[test]
        fn a_row_is_read_back(row in any_row()) {
            let mut bytes = Vec::new();
            encode(&row, &mut bytes);
            prop_assert_eq!(decode(&bytes), Some(row));
        }

        #[test]
        fn what_is_cut_is_no_row(row in any_row(), cut in any::<prop::sample::Index>()) {
            let mut bytes = Vec::new();
            encode(&row, &mut bytes);
            prop_assert_eq!(decode(&bytes[..cut.index(bytes.len())]), None);
            bytes.push(0);
            prop_assert_eq!(decode(&bytes), None);
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
