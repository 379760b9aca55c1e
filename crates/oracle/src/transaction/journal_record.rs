//! The records of the journal topic: keys, chunks and tombstones, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::entry::Start;
use crate::{
    ClientSession, Code, OracleError, RedoAddress, RedoPoint, RedoThread, Scn, TransactionKey,
};

/// Version of a chunk's form. 1 is one with another payload, which is not read.
const VERSION: u64 = 2;

/// A record of the journal topic. The topic is compacted and has one partition.
///
/// It carries the position that was right before it: before the call that made it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalRecord {
    /// Key.
    pub key: Vec<u8>,
    /// A chunk; `None` is the tombstone of one.
    pub value: Option<Vec<u8>>,
}

/// Names a chunk.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct ChunkKey {
    /// `cdc.topic.prefix`: the connector whose chunk it is.
    pub(super) server: String,
    /// Its transaction.
    pub(super) transaction: TransactionKey,
    /// Its number in the transaction, from 0.
    pub(super) number: u32,
    /// The start that wrote it.
    pub(super) generation: u64,
}

#[derive(Serialize, Deserialize)]
struct KeyForm {
    server: String,
    con_id: u32,
    xid: String,
    chunk: u32,
    generation: u64,
}

impl ChunkKey {
    /// The key as it is written: always the same bytes, since the topic is compacted by them.
    #[expect(clippy::expect_used, reason = "numbers and texts are always JSON")]
    pub(super) fn encode(&self) -> Vec<u8> {
        let TransactionKey { container, xid } = self.transaction;
        let form = KeyForm {
            server: self.server.clone(),
            con_id: container,
            xid: xid.to_string(),
            chunk: self.number,
            generation: self.generation,
        };
        serde_json::to_vec(&form).expect("a key is JSON")
    }

    /// Reads a key.
    pub(super) fn decode(key: &[u8]) -> Result<Self, OracleError> {
        let form: KeyForm = serde_json::from_slice(key).map_err(|error| unreadable_key(&error))?;
        let parsed: TransactionKey = form.xid.parse().map_err(|error| unreadable_key(&error))?;
        Ok(Self {
            server: form.server,
            transaction: TransactionKey { container: form.con_id, xid: parsed.xid },
            number: form.chunk,
            generation: form.generation,
        })
    }

    /// The record that removes the chunk.
    pub(super) fn tombstone(&self) -> JournalRecord {
        JournalRecord { key: self.encode(), value: None }
    }
}

/// What a chunk says of its frames and its transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ChunkHead {
    /// Where its first frame begins.
    pub(super) first: RedoPoint,
    /// Where its last frame ends.
    pub(super) last: RedoPoint,
    /// Where the chunk before it ends.
    pub(super) after: Option<RedoPoint>,
    /// Changes in it.
    pub(super) events: u64,
    /// Undos in it.
    pub(super) undos: u64,
    /// First captured row of the transaction.
    pub(super) first_captured: RedoPoint,
    /// START row of the transaction, where that was read.
    pub(super) start: Option<Start>,
}

impl ChunkHead {
    /// The thread of its frames; all are of one.
    pub(super) const fn thread(&self) -> RedoThread {
        self.first.thread
    }

    /// The chunk as it is written.
    pub(super) fn encode(&self, payload: &[u8]) -> Vec<u8> {
        let mut fields = Map::new();
        fields.insert("v".to_owned(), VERSION.into());
        put_point("first", &self.first, &mut fields);
        put_point("last", &self.last, &mut fields);
        self.after.iter().for_each(|after| put_point("after", after, &mut fields));
        fields.insert("events".to_owned(), self.events.into());
        fields.insert("undos".to_owned(), self.undos.into());
        put_point("first_captured", &self.first_captured, &mut fields);
        self.start.iter().for_each(|start| put_start(start, &mut fields));
        fields.insert("thread".to_owned(), self.thread().0.into());
        fields.insert("payload".to_owned(), STANDARD.encode(payload).into());
        Value::Object(fields).to_string().into_bytes()
    }

    /// Reads a chunk, and its payload.
    pub(super) fn decode(key: &ChunkKey, value: &[u8]) -> Result<(Self, Vec<u8>), OracleError> {
        let fields: Map<String, Value> =
            serde_json::from_slice(value).map_err(|error| damaged(key, &error))?;
        let fields = Fields { key, fields: &fields };
        let version = fields.number("v")?;
        if version != VERSION {
            return Err(damaged(key, &format!("it is of version {version}, {VERSION} is read")));
        }
        let payload = STANDARD.decode(fields.text("payload")?);
        Ok((fields.head()?, payload.map_err(|error| damaged(key, &error))?))
    }
}

fn put_point(name: &str, point: &RedoPoint, fields: &mut Map<String, Value>) {
    fields.insert(format!("{name}_scn"), point.scn.0.into());
    if let Some(address) = &point.address {
        fields.insert(format!("{name}_rs_id"), address.rs_id().into());
        fields.insert(format!("{name}_ssn"), address.ssn.into());
    }
}

fn put_start(start: &Start, fields: &mut Map<String, Value>) {
    put_point("start", &start.at, fields);
    let ClientSession { number, serial, client_id } = &start.session;
    fields.extend(start.user.iter().map(|user| ("username".to_owned(), user.clone().into())));
    fields.extend(client_id.iter().map(|id| ("client_id".to_owned(), id.clone().into())));
    fields.insert("session".to_owned(), (*number).into());
    fields.insert("serial".to_owned(), (*serial).into());
}

/// The fields of a chunk that is read.
#[derive(Clone, Copy)]
struct Fields<'a> {
    key: &'a ChunkKey,
    fields: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn head(self) -> Result<ChunkHead, OracleError> {
        let thread = RedoThread(self.small_number("thread")?);
        Ok(ChunkHead {
            first: self.point("first", thread)?,
            last: self.point("last", thread)?,
            after: self.has_point("after").then(|| self.point("after", thread)).transpose()?,
            events: self.number("events")?,
            undos: self.number("undos")?,
            first_captured: self.point("first_captured", thread)?,
            start: self.has_point("start").then(|| self.start(thread)).transpose()?,
        })
    }

    fn start(self, thread: RedoThread) -> Result<Start, OracleError> {
        let text = |name: &str| self.fields.contains_key(name).then(|| self.text(name)).transpose();
        let session = ClientSession {
            number: self.small_number("session")?,
            serial: self.small_number("serial")?,
            client_id: text("client_id")?.map(str::to_owned),
        };
        let user = text("username")?.map(str::to_owned);
        Ok(Start { at: self.point("start", thread)?, user, session })
    }

    fn has_point(self, name: &str) -> bool {
        self.fields.contains_key(&format!("{name}_scn"))
    }

    fn point(self, name: &str, thread: RedoThread) -> Result<RedoPoint, OracleError> {
        let scn = Scn(self.number(&format!("{name}_scn"))?);
        let rs_id = format!("{name}_rs_id");
        if !self.fields.contains_key(&rs_id) {
            return Ok(RedoPoint { thread, scn, address: None });
        }
        let ssn = self.number(&format!("{name}_ssn"))?;
        let address = RedoAddress::parse(self.text(&rs_id)?, ssn);
        Ok(RedoPoint { thread, scn, address: address.map_err(|error| damaged(self.key, &error))? })
    }

    fn number(self, name: &str) -> Result<u64, OracleError> {
        self.fields.get(name).and_then(Value::as_u64).ok_or_else(|| self.no_field(name))
    }

    fn small_number(self, name: &str) -> Result<u32, OracleError> {
        u32::try_from(self.number(name)?).map_err(|_| self.no_field(name))
    }

    fn text(self, name: &str) -> Result<&'a str, OracleError> {
        self.fields.get(name).and_then(Value::as_str).ok_or_else(|| self.no_field(name))
    }

    fn no_field(self, name: &str) -> OracleError {
        damaged(self.key, &format!("its field {name} cannot be read"))
    }
}

const REMEDY: &str = "let the journal topic keep its records (compacted, without retention by time or \
                      size), then move the offset to before the first change of the transaction with \
                      highwater offsets set";

/// The error of a chunk that cannot be used.
pub(super) fn damaged(key: &ChunkKey, why: &dyn std::fmt::Display) -> OracleError {
    let ChunkKey { transaction, number, generation, .. } = key;
    OracleError::new(
        Code::JournalCorruption,
        format!(
            "chunk {number} of transaction {transaction}, of generation {generation}, in the journal \
             cannot be used: {why}"
        ),
        REMEDY,
    )
}

fn unreadable_key(why: &dyn std::fmt::Display) -> OracleError {
    OracleError::new(
        Code::JournalCorruption,
        format!("a record of the journal has a key that cannot be read: {why}"),
        "give the connector a journal topic of its own (cdc.txjournal.topic), or remove what is not a \
         connector's from this one",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ChunkKey {
        let transaction = "3:5.12.614".parse().unwrap();
        ChunkKey { server: "shop".to_owned(), transaction, number: 2, generation: 7 }
    }

    fn point(scn: u64, block: Option<u64>) -> RedoPoint {
        let address = block.map(|block| RedoAddress { sequence: 42, block, byte: 16, ssn: 1 });
        RedoPoint { thread: RedoThread(2), scn: Scn(scn), address }
    }

    fn head() -> ChunkHead {
        let session = ClientSession { number: 77, serial: 5, client_id: Some("batch".to_owned()) };
        ChunkHead {
            first: point(900, Some(8000)),
            last: point(910, Some(8001)),
            after: Some(point(899, Some(7999))),
            events: 3,
            undos: 1,
            first_captured: point(800, Some(7000)),
            start: Some(Start { at: point(799, None), user: Some("ANN".to_owned()), session }),
        }
    }

    #[test]
    fn a_key_is_always_the_same_bytes() {
        let expected = r#"{"server":"shop","con_id":3,"xid":"5.12.614","chunk":2,"generation":7}"#;
        assert_eq!(String::from_utf8(key().encode()).unwrap(), expected);
        assert_eq!(ChunkKey::decode(expected.as_bytes()), Ok(key()));
        assert_eq!(key().tombstone(), JournalRecord { key: expected.into(), value: None });
    }

    #[test]
    fn a_chunk_has_the_fields_that_tools_read() {
        let read: Value = serde_json::from_slice(&head().encode(b"frames")).unwrap();
        let expected = serde_json::json!({
            "v": 2,
            "first_scn": 900, "first_rs_id": "0x00002a.00001f40.0010", "first_ssn": 1,
            "last_scn": 910, "last_rs_id": "0x00002a.00001f41.0010", "last_ssn": 1,
            "after_scn": 899, "after_rs_id": "0x00002a.00001f3f.0010", "after_ssn": 1,
            "events": 3, "undos": 1,
            "first_captured_scn": 800,
            "first_captured_rs_id": "0x00002a.00001b58.0010",
            "first_captured_ssn": 1,
            "start_scn": 799,
            "thread": 2,
            "username": "ANN", "client_id": "batch", "session": 77, "serial": 5,
            "payload": "ZnJhbWVz",
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn a_chunk_is_read_back() {
        let read = ChunkHead::decode(&key(), &head().encode(b"frames"));
        assert_eq!(read, Ok((head(), b"frames".to_vec())));
        let bare = ChunkHead { after: None, start: None, first: point(900, None), ..head() };
        assert_eq!(ChunkHead::decode(&key(), &bare.encode(b"")), Ok((bare, Vec::new())));
    }

    #[test]
    fn what_cannot_be_read_is_damage_and_says_what() {
        let whole: Value = serde_json::from_slice(&head().encode(b"frames")).unwrap();
        let with = |field: &str, value: Value| {
            let mut fields = whole.clone();
            fields[field] = value;
            ChunkHead::decode(&key(), fields.to_string().as_bytes()).unwrap_err()
        };
        for (field, value) in [
            ("v", Value::from(1)),
            ("first_rs_id", Value::from("here")),
            ("last_scn", Value::Null),
            ("thread", Value::from(1_u64 << 40)),
            ("username", Value::from(5)),
            ("payload", Value::from("?")),
        ] {
            let error = with(field, value);
            assert_eq!(error.code, Code::JournalCorruption);
            assert!(error.what.contains("3:5.12.614") && error.what.contains("chunk 2"), "{error}");
        }
        assert!(ChunkHead::decode(&key(), b"[]").is_err());
        for key in
            [&b""[..], b"{}", br#"{"server":"s","con_id":1,"xid":"1.2","chunk":0,"generation":1}"#]
        {
            assert_eq!(ChunkKey::decode(key).unwrap_err().code, Code::JournalCorruption);
        }
    }
}
