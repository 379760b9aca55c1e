//! Messages are read as the manual lays them out; anything else is an error, never a panic.

use proptest::prelude::*;

use super::*;

struct Wire(Vec<u8>);

impl Wire {
    fn new(tag: u8) -> Self {
        Self(vec![tag])
    }

    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn text(mut self, value: &str) -> Self {
        self.0.extend(value.as_bytes());
        self.u8(0)
    }

    fn bytes(mut self, value: &[u8]) -> Self {
        self.0.extend(value);
        self
    }

    fn read(self) -> Result<Message, DecodeError> {
        Decoder::default().decode(Bytes::from(self.0)).map(|(_, message)| message)
    }
}

const TIME: PgTime = PgTime(5);

#[test]
fn transactions_of_version_1() {
    assert_eq!(
        Wire::new(b'B').u64(1).u64(5).u32(7).read(),
        Ok(Message::Begin { commit_lsn: Lsn(1), commit_time: TIME, xid: 7 })
    );
    assert_eq!(
        Wire::new(b'C').u8(0).u64(1).u64(2).u64(5).read(),
        Ok(Message::Commit { commit_lsn: Lsn(1), end_lsn: Lsn(2), commit_time: TIME })
    );
    assert_eq!(
        Wire::new(b'O').u64(1).text("peer").read(),
        Ok(Message::Origin { commit_lsn: Lsn(1), name: "peer".to_owned() })
    );
    let (prefix, content) = ("app".to_owned(), Bytes::from_static(b"hi"));
    assert_eq!(
        Wire::new(b'M').u8(1).u64(3).text("app").u32(2).bytes(b"hi").read(),
        Ok(Message::Logical { transactional: true, lsn: Lsn(3), prefix, content })
    );
}

#[test]
fn relations_and_types() {
    let columns = vec![RelationColumn {
        key: true,
        name: "ключ".to_owned(),
        type_oid: 23,
        type_modifier: -1,
    }];
    let relation = |schema: &str| Relation {
        oid: 9,
        schema: schema.to_owned(),
        table: "t".to_owned(),
        identity: ReplicaIdentity::Full,
        columns: columns.clone(),
    };
    for (wire, schema) in [("s", "s"), ("", "pg_catalog")] {
        let message = Wire::new(b'R').u32(9).text(wire).text("t").u8(b'f').u16(1);
        let message = message.u8(1).text("ключ").u32(23).u32(u32::MAX).read();
        assert_eq!(message, Ok(Message::Relation(relation(schema))));
    }
    let (schema, name) = ("s".to_owned(), "mood".to_owned());
    assert_eq!(
        Wire::new(b'Y').u32(4).text("s").text("mood").read(),
        Ok(Message::Type { oid: 4, schema, name })
    );
}

#[test]
fn rows_have_four_kinds_of_values() {
    let new = Tuple(vec![
        Cell::Null,
        Cell::Unchanged,
        Cell::Text(Bytes::from_static(b"ab")),
        Cell::Binary(Bytes::from_static(b"\0")),
    ]);
    let values = |wire: Wire| {
        wire.u16(4).u8(b'n').u8(b'u').u8(b't').u32(2).bytes(b"ab").u8(b'b').u32(1).u8(0)
    };
    let read = values(Wire::new(b'I').u32(9).u8(b'N')).read();
    assert_eq!(read, Ok(Message::Insert { relation: 9, new: new.clone() }));
    let read = values(Wire::new(b'U').u32(9).u8(b'N')).read();
    assert_eq!(read, Ok(Message::Update { relation: 9, old: None, new: new.clone() }));
    let read = values(values(Wire::new(b'U').u32(9).u8(b'K')).u8(b'N')).read();
    let old = Some(OldTuple::Key(new.clone()));
    assert_eq!(read, Ok(Message::Update { relation: 9, old, new: new.clone() }));
    let read = values(Wire::new(b'D').u32(9).u8(b'O')).read();
    assert_eq!(read, Ok(Message::Delete { relation: 9, old: OldTuple::Full(new) }));
    let read = Wire::new(b'T').u32(2).u8(3).u32(8).u32(9).read();
    let relations = vec![8, 9];
    assert_eq!(read, Ok(Message::Truncate { relations, cascade: true, restart_identity: true }));
}

#[test]
fn parts_of_transactions_in_progress_carry_the_subtransaction() {
    let mut decoder = Decoder::default();
    let mut read = |wire: Wire| decoder.decode(Bytes::from(wire.0)).unwrap();
    let start = Message::StreamStart { xid: 5, first: true };
    assert_eq!(read(Wire::new(b'S').u32(5).u8(1)), (None, start));
    let row = || Wire::new(b'I');
    let (xid, message) = read(row().u32(6).u32(9).u8(b'N').u16(0));
    assert_eq!((xid, message), (Some(6), Message::Insert { relation: 9, new: Tuple::default() }));
    assert_eq!(read(Wire::new(b'E')), (None, Message::StreamStop));
    let (xid, _) = read(row().u32(9).u8(b'N').u16(0));
    assert_eq!(xid, None);
    let abort = Message::StreamAbort { xid: 5, subxid: 6, at: None };
    assert_eq!(read(Wire::new(b'A').u32(5).u32(6)).1, abort);
    let at = Some((Lsn(1), TIME));
    let abort = Message::StreamAbort { xid: 5, subxid: 6, at };
    assert_eq!(read(Wire::new(b'A').u32(5).u32(6).u64(1).u64(5)).1, abort);
    let commit = Wire::new(b'c').u32(5).u8(0).u64(1).u64(2).u64(5);
    let (commit_lsn, end_lsn) = (Lsn(1), Lsn(2));
    let expected = Message::StreamCommit { xid: 5, commit_lsn, end_lsn, commit_time: TIME };
    assert_eq!(read(commit).1, expected);
}

#[test]
fn prepared_transactions_of_version_3() {
    let gid = "g".to_owned();
    let plain = |tag, flags: bool| {
        let wire = Wire::new(tag);
        let wire = if flags { wire.u8(0) } else { wire };
        wire.u64(1).u64(2).u64(5).u32(7).text("g").read().unwrap()
    };
    let (prepare_lsn, end_lsn, time, xid) = (Lsn(1), Lsn(2), TIME, 7);
    let expected = Message::BeginPrepare { prepare_lsn, end_lsn, time, xid, gid: gid.clone() };
    assert_eq!(plain(b'b', false), expected);
    let expected = Message::Prepare { prepare_lsn, end_lsn, time, xid, gid: gid.clone() };
    assert_eq!(plain(b'P', true), expected);
    let commit_lsn = prepare_lsn;
    let expected = Message::CommitPrepared { commit_lsn, end_lsn, time, xid, gid: gid.clone() };
    assert_eq!(plain(b'K', true), expected);
    let expected = Message::StreamPrepare { prepare_lsn, end_lsn, time, xid, gid: gid.clone() };
    assert_eq!(plain(b'p', true), expected);
    let wire = Wire::new(b'r').u8(0).u64(1).u64(2).u64(4).u64(5).u32(7).text("g");
    let (prepare_end_lsn, prepare_time) = (Lsn(1), PgTime(4));
    assert_eq!(
        wire.read(),
        Ok(Message::RollbackPrepared { prepare_end_lsn, end_lsn, prepare_time, time, xid, gid })
    );
}

#[test]
fn what_is_not_defined_is_refused() {
    assert_eq!(Wire::new(b'z').read(), Err(DecodeError::Unknown('z')));
    assert_eq!(Wire::new(b'E').u8(0).read(), Err(DecodeError::Trailing(1)));
    assert_eq!(Wire::new(b'B').u64(1).read(), Err(DecodeError::Short("time")));
    let wrong = Wire::new(b'I').u32(9).u8(b'X').u16(0).read();
    assert_eq!(wrong, Err(DecodeError::Value("tuple kind", i64::from(b'X'))));
    let negative = Wire::new(b'I').u32(9).u8(b'N').u16(1).u8(b't').u32(u32::MAX).read();
    assert_eq!(negative, Err(DecodeError::Value("value length", -1)));
    let flags = Wire::new(b'C').u8(1).u64(1).u64(2).u64(5).read();
    assert_eq!(flags, Err(DecodeError::Value("flags", 1)));
}

#[test]
fn a_count_that_lies_takes_no_memory() {
    let columns = Wire::new(b'I').u32(9).u8(b'N').u16(u16::MAX).read();
    assert_eq!(columns, Err(DecodeError::Short("value kind")));
    let relations = Wire::new(b'T').u32(u32::MAX).u8(0).u32(1).read();
    assert_eq!(relations, Err(DecodeError::Short("relation OID")));
    let content = Wire::new(b'M').u8(0).u64(1).text("p").u32(u32::MAX).read();
    assert_eq!(content, Err(DecodeError::Short("message")));
}

#[test]
fn a_cut_row_still_says_whose_it_is() {
    let wire = Wire::new(b'I').u32(9).u8(b'N').u16(3).u8(b't').u32(1).bytes(b"7");
    let wire = wire.u8(b't').u32(1_000_000).bytes(b"xxx");
    let cells = Tuple(vec![Cell::Text(Bytes::from_static(b"7"))]);
    assert_eq!(cut_row(Bytes::from(wire.0)), Some((9, cells)));
    assert_eq!(cut_row(Bytes::from_static(b"B")), None);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        messages in prop::collection::vec(
            (
                prop::sample::select(b"BCORYIUDTMSEcAbPKrpz".to_vec()),
                prop::collection::vec(any::<u8>(), 0..120),
            ),
            1..5,
        ),
    ) {
        let mut decoder = Decoder::default();
        for (tag, mut bytes) in messages {
            bytes.insert(0, tag);
            let bytes = Bytes::from(bytes);
            let _ = cut_row(bytes.clone());
            let _ = decoder.decode(bytes);
        }
    }
}
