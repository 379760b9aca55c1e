//! The `hw` header (rule P6): what `streams` orders and suppresses by, whatever the database.

use std::fmt;
use std::io::Write as _;

use serde::Deserialize;
#[cfg(test)]
use serde::Serialize;

use crate::Generation;

/// Name of the record header that holds an encoded [`Hw`].
pub const HW_HEADER: &str = "hw";

/// Version of the header's JSON that this crate writes.
const VERSION: u8 = 1;

/// Where a record stands in its source's history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hw {
    /// Generation of the delivery (rule P4).
    pub generation: Generation,
    /// The lane whose order it takes part in (rule P5); `None` for snapshot rows, which have no
    /// order and are never suppressed.
    pub lane: Option<String>,
    /// The source position as text whose byte order is the source's order inside a lane.
    pub position: String,
    /// Ordinal of the event among those that share the position, from 0.
    pub index: u64,
    /// Ordinal of the record among those of one event, from 0.
    pub part: u32,
    /// Commit time at the source, microseconds since 1970.
    pub commit_time_us: Option<i64>,
    /// Version of the table description that shapes the row.
    pub table_version: Option<u32>,
    /// The source's transaction id, for people.
    pub xid: Option<String>,
    /// Number of events of the transaction, on its last record.
    pub count: Option<u64>,
}

/// A record's identity (rule P4): the same event delivered again has the same one.
///
/// Its text is `generation:position:index:part`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordId {
    /// See [`Hw::generation`].
    pub generation: Generation,
    /// See [`Hw::position`].
    pub position: String,
    /// See [`Hw::index`].
    pub index: u64,
    /// See [`Hw::part`].
    pub part: u32,
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { generation, position, index, part } = self;
        write!(f, "{generation}:{position}:{index}:{part}")
    }
}

/// Why a header could not be read.
#[derive(Debug, thiserror::Error)]
pub enum HwError {
    /// Not the JSON that this header is made of.
    #[error("the hw header is not readable JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Written by a later release.
    #[error("the hw header has version {0}; this release reads up to {VERSION}")]
    Version(u8),
}

/// The JSON as it stands in the header; short names, since every record pays for them.
#[derive(Deserialize)]
#[cfg_attr(test, derive(Serialize))]
struct Wire {
    v: u8,
    g: Generation,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    lane: Option<String>,
    pos: String,
    i: u64,
    #[serde(default)]
    #[cfg_attr(test, serde(skip_serializing_if = "is_zero"))]
    part: u32,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    ct: Option<i64>,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    tv: Option<u32>,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    xid: Option<String>,
    #[cfg_attr(test, serde(skip_serializing_if = "Option::is_none"))]
    n: Option<u64>,
}

#[cfg(test)]
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(part: &u32) -> bool {
    *part == 0
}

/// A member whose value is a text.
fn text(out: &mut Vec<u8>, name: &str, text: &str) {
    out.extend_from_slice(name.as_bytes());
    // Texts always serialise into a vector.
    let _ = serde_json::to_writer(out, text);
}

impl Hw {
    /// The header's bytes: JSON with `v`, `g`, `lane`, `pos`, `i`, `part`, `ct`, `tv`, `xid`, `n`.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(160);
        let mut numbers = itoa::Buffer::new();
        let number = |out: &mut Vec<u8>, name: &str, text: &str| {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(text.as_bytes());
        };
        number(&mut out, "{\"v\":", numbers.format(VERSION));
        // Writing into a vector cannot fail.
        let _ = write!(out, ",\"g\":\"{}\"", self.generation);
        if let Some(lane) = &self.lane {
            text(&mut out, ",\"lane\":", lane);
        }
        text(&mut out, ",\"pos\":", &self.position);
        number(&mut out, ",\"i\":", numbers.format(self.index));
        if self.part != 0 {
            number(&mut out, ",\"part\":", numbers.format(self.part));
        }
        if let Some(time) = self.commit_time_us {
            number(&mut out, ",\"ct\":", numbers.format(time));
        }
        if let Some(version) = self.table_version {
            number(&mut out, ",\"tv\":", numbers.format(version));
        }
        if let Some(xid) = &self.xid {
            text(&mut out, ",\"xid\":", xid);
        }
        if let Some(count) = self.count {
            number(&mut out, ",\"n\":", numbers.format(count));
        }
        out.push(b'}');
        out
    }

    /// Reads a header.
    ///
    /// # Errors
    /// When it is not such JSON, or of a later version.
    pub fn decode(bytes: &[u8]) -> Result<Self, HwError> {
        let wire: Wire = serde_json::from_slice(bytes)?;
        if wire.v > VERSION {
            return Err(HwError::Version(wire.v));
        }
        Ok(Self {
            generation: wire.g,
            lane: wire.lane,
            position: wire.pos,
            index: wire.i,
            part: wire.part,
            commit_time_us: wire.ct,
            table_version: wire.tv,
            xid: wire.xid,
            count: wire.n,
        })
    }

    /// The record's identity.
    pub fn record_id(&self) -> RecordId {
        RecordId {
            generation: self.generation,
            position: self.position.clone(),
            index: self.index,
            part: self.part,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_hw() -> impl Strategy<Value = Hw> {
        let place =
            (any::<u64>(), prop::option::of(".{0,8}"), ".{0,24}", any::<u64>(), any::<u32>());
        let facts = (
            prop::option::of(any::<i64>()),
            prop::option::of(any::<u32>()),
            prop::option::of(".{0,8}"),
            prop::option::of(any::<u64>()),
        );
        (place, facts).prop_map(
            |((generation, lane, position, index, part), (time, version, xid, count))| Hw {
                generation: Generation::from_bits(generation),
                lane,
                position,
                index,
                part,
                commit_time_us: time,
                table_version: version,
                xid,
                count,
            },
        )
    }

    proptest! {
        #[test]
        fn a_header_is_read_back_as_it_was_written(hw in any_hw()) {
            prop_assert_eq!(Hw::decode(&hw.encode()).unwrap(), hw);
        }

        /// It is written by hand because every record pays for it.
        #[test]
        fn it_is_what_serde_would_write(hw in any_hw()) {
            let wire = Wire {
                v: VERSION,
                g: hw.generation,
                lane: hw.lane.clone(),
                pos: hw.position.clone(),
                i: hw.index,
                part: hw.part,
                ct: hw.commit_time_us,
                tv: hw.table_version,
                xid: hw.xid.clone(),
                n: hw.count,
            };
            prop_assert_eq!(hw.encode(), serde_json::to_vec(&wire).unwrap());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Hw::decode(&bytes);
        }
    }

    #[test]
    fn what_says_nothing_is_left_out() {
        let hw = Hw {
            generation: Generation::from_bits(0xa1),
            lane: None,
            position: "p".to_owned(),
            index: 3,
            part: 0,
            commit_time_us: None,
            table_version: None,
            xid: None,
            count: None,
        };
        let text = String::from_utf8(hw.encode()).unwrap();
        assert_eq!(text, r#"{"v":1,"g":"00000000000000a1","pos":"p","i":3}"#);
    }

    #[test]
    fn a_later_version_is_refused_by_number() {
        let error = Hw::decode(br#"{"v":9,"g":"0","pos":"p","i":0}"#).unwrap_err();
        assert!(error.to_string().contains("version 9"), "{error}");
    }
}
