//! The position token (rule S1): what `pos` holds, sealed, the same bytes for the same record
//! wherever and whenever it is made.
//!
//! A token is base64url without padding of a head and a sealed body. The head says in clear, as
//! short hashes, which stream, topic and topic id the token belongs to, with a checksum of its own,
//! so that a token used in the wrong place is told apart from a damaged one. The body is AES-GCM-SIV
//! under a key derived from topic id and stream; that cipher keeps its promise under the fixed
//! nonce which determinism asks for (RFC 8452). The key is no secret and the token no credential:
//! sealing keeps clients from building on its content.

use aes_gcm_siv::aead::{Aead, KeyInit, Payload};
use aes_gcm_siv::{Aes256GcmSiv, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use highwater_connector::Generation;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::contract::ContractHash;
use crate::fingerprint::{Fingerprint, first};
use crate::marks::{Mark, Marks};
use crate::trail::TopicPartition;

/// Version of the layout.
const VERSION: u8 = 1;
/// Bytes of the head: version, three hashes of four bytes, three bytes of checksum.
const HEAD: usize = 16;
/// A token is never longer than this; bounds what a request can make the server decode.
pub(crate) const LONGEST: usize = 16 << 10;

/// Where a record stands in the log, and what it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) contract: ContractHash,
    pub(crate) fingerprint: Fingerprint,
}

/// Why a token cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenFault {
    /// Not a token in full: bits or bytes were changed or lost.
    Damaged,
    /// Made by a release that this one cannot read.
    Version(u8),
    /// Given out by another stream.
    OtherStream,
    /// Given out by this stream when it read another topic or partition.
    OtherTopic,
    /// The topic was deleted and one of the same name made since.
    TopicRemade,
}

/// Seals and opens the tokens of one stream over one partition.
#[derive(Clone)]
pub(crate) struct Sealer {
    head: [u8; HEAD],
    cipher: Aes256GcmSiv,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("head", &self.head).finish_non_exhaustive()
    }
}

impl Sealer {
    pub(crate) fn new(stream: &str, source: &TopicPartition, topic_id: Uuid) -> Self {
        let mut head = [0; HEAD];
        head[0] = VERSION;
        head[1..5].copy_from_slice(&short("stream", stream.as_bytes()));
        head[5..9].copy_from_slice(&short("topic", source.to_string().as_bytes()));
        head[9..13].copy_from_slice(&short("topic id", topic_id.as_bytes()));
        let check = checksum(&head);
        head[13..].copy_from_slice(&check);
        let key = Sha256::new()
            .chain_update(b"highwater stream position key 1")
            .chain_update(topic_id.as_bytes())
            .chain_update(stream.as_bytes())
            .finalize();
        Self { head, cipher: Aes256GcmSiv::new(&key) }
    }

    /// The token of the record at `place`, with the marks that hold once it was sent.
    pub(crate) fn seal(&self, place: &Place, marks: &Marks) -> String {
        let body = encode(place, marks);
        let payload = Payload { msg: &body, aad: &self.head };
        // The cipher refuses only messages of many gigabytes.
        let sealed = self.cipher.encrypt(&Nonce::default(), payload).unwrap_or_default();
        let mut token = Vec::with_capacity(HEAD + sealed.len());
        token.extend_from_slice(&self.head);
        token.extend_from_slice(&sealed);
        URL_SAFE_NO_PAD.encode(token)
    }

    /// What a token says.
    ///
    /// # Errors
    /// When it is damaged or belongs elsewhere.
    pub(crate) fn open(&self, token: &str) -> Result<(Place, Marks), TokenFault> {
        let bytes = if token.len() > LONGEST { None } else { URL_SAFE_NO_PAD.decode(token).ok() };
        let bytes = bytes.ok_or(TokenFault::Damaged)?;
        let (head, sealed) = bytes.split_first_chunk::<HEAD>().ok_or(TokenFault::Damaged)?;
        self.check_head(head)?;
        let payload = Payload { msg: sealed, aad: head };
        let body =
            self.cipher.decrypt(&Nonce::default(), payload).map_err(|_| TokenFault::Damaged)?;
        decode(&body).ok_or(TokenFault::Damaged)
    }

    fn check_head(&self, head: &[u8; HEAD]) -> Result<(), TokenFault> {
        match head {
            _ if checksum(head) != head[13..] => Err(TokenFault::Damaged),
            _ if head[0] != VERSION => Err(TokenFault::Version(head[0])),
            _ if head[1..5] != self.head[1..5] => Err(TokenFault::OtherStream),
            _ if head[5..9] != self.head[5..9] => Err(TokenFault::OtherTopic),
            _ if head[9..13] != self.head[9..13] => Err(TokenFault::TopicRemade),
            _ => Ok(()),
        }
    }
}

/// A short hash of one thing that a token is bound to.
fn short(kind: &str, what: &[u8]) -> [u8; 4] {
    first(&Sha256::new().chain_update(kind).chain_update([0]).chain_update(what).finalize())
}

/// Checksum over the first 13 bytes of a head.
fn checksum(head: &[u8; HEAD]) -> [u8; 3] {
    first(&Sha256::new().chain_update(b"head").chain_update(&head[..13]).finalize())
}

/// The body: varints, fixed bytes and texts behind their length, in this order.
pub(crate) fn encode(place: &Place, marks: &Marks) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    varint(&mut out, place.offset as u64);
    varint(&mut out, u64::from(place.leader_epoch as u32));
    out.extend_from_slice(&place.contract.0);
    out.extend_from_slice(&place.fingerprint.0);
    out.push(u8::from(marks.generation.is_some()));
    out.extend_from_slice(&marks.generation.map_or(0, Generation::bits).to_be_bytes());
    varint(&mut out, marks.lanes.len() as u64);
    for (lane, mark) in &marks.lanes {
        text(&mut out, lane);
        text(&mut out, &mark.position);
        varint(&mut out, mark.index);
        varint(&mut out, u64::from(mark.part));
    }
    out
}

pub(crate) fn decode(body: &[u8]) -> Option<(Place, Marks)> {
    let mut body = Body(body);
    let place = Place {
        offset: i64::try_from(body.varint()?).ok()?,
        leader_epoch: u32::try_from(body.varint()?).ok()? as i32,
        contract: ContractHash(body.array()?),
        fingerprint: Fingerprint(body.array()?),
    };
    let [known] = body.array()?;
    let generation = Generation::from_bits(u64::from_be_bytes(body.array()?));
    let mut marks =
        Marks { generation: (known == 1).then_some(generation), lanes: Default::default() };
    for _ in 0..body.varint()? {
        let lane = body.text()?;
        let position = body.text()?;
        let index = body.varint()?;
        let part = u32::try_from(body.varint()?).ok()?;
        marks.lanes.insert(lane, Mark { position, index, part });
    }
    body.0.is_empty().then_some((place, marks))
}

/// LEB128.
fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn text(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// What is still to be read of a body.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}
