//! Whether the log still holds what the stored offset relies on (rule P2).

use highwater_connector::{ConnectorError, ErrorKind, HW_HEADER, Hw, Routing, Tail, TailEntry};
use highwater_kafka::{ErrorCode, KafkaError, OffsetSpec, ReadRecord, Reader};

/// Bytes fetched to see one record.
const FETCH_BYTES: u32 = 64 << 10;

/// What the log holds at an entry of a tail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The topic or partition is not there.
    NoPartition,
    /// The record is not there, and the log goes from `start` to `end` (exclusive).
    NoRecord {
        /// First offset that is kept.
        start: i64,
        /// One past the last record.
        end: i64,
    },
    /// A record, and whether the log goes on behind it.
    Record {
        /// Text of its identity; empty without `hw` header.
        id: String,
        /// One past the last record.
        end: i64,
    },
}

/// What an entry of a tail proves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The record is there and is the last one: nothing lies behind the stored offset.
    Last,
    /// Nothing contradicts the entry, but records may lie behind it.
    Passes,
    /// The log lost what the offset relies on, for this reason.
    Behind(String),
}

/// Decides on one entry. A record gone by retention or compaction passes.
pub(crate) fn judge(entry: &TailEntry, found: &Found) -> Verdict {
    let TailEntry { topic, partition, offset, id } = entry;
    match found {
        Found::NoPartition => Verdict::Behind(format!(
            "the stored offset relies on record {offset} of {topic}-{partition}, \
             which does not exist any more"
        )),
        Found::NoRecord { end, .. } | Found::Record { end, .. } if end <= offset => {
            Verdict::Behind(format!(
                "the stored offset relies on record {offset} of {topic}-{partition}, \
                 which ends at {end}"
            ))
        }
        Found::NoRecord { .. } => Verdict::Passes,
        Found::Record { id: other, .. } if other != id => Verdict::Behind(format!(
            "the stored offset relies on record {offset} of {topic}-{partition} being {id:?}, \
             but {other:?} stands there"
        )),
        Found::Record { end, .. } if *end == offset + 1 => Verdict::Last,
        Found::Record { .. } => Verdict::Passes,
    }
}

/// Checks every entry against the log. `Ok(true)` when the log may hold records behind the stored
/// offset: only a trail's own last record proves that it does not. A tail names the partitions
/// that were written last, so of topics of tables it proves nothing.
///
/// # Errors
/// `LOG_BEHIND_OFFSETS` with the numbers; what the log says when it cannot be read.
pub(crate) async fn check(
    reader: &Reader,
    connector: &str,
    routing: &Routing,
    tail: &Tail,
) -> Result<bool, ConnectorError> {
    let mut may_hold_more = true;
    for entry in &tail.0 {
        let found = look(reader, entry).await.map_err(|error| crate::cluster::log_error(&error))?;
        match judge(entry, &found) {
            Verdict::Last => {
                may_hold_more &= !matches!(routing, Routing::Trail(trail) if *trail == entry.topic);
            }
            Verdict::Passes => {}
            Verdict::Behind(what) => return Err(behind(connector, what)),
        }
    }
    Ok(may_hold_more)
}

fn behind(connector: &str, what: String) -> ConnectorError {
    ConnectorError::stop(
        "LOG_BEHIND_OFFSETS",
        ErrorKind::Position,
        what,
        format!(
            "bring the topic back, or give up what it held: PUT /connectors/{connector}/stop, then \
             PATCH or DELETE /connectors/{connector}/offsets, then PUT /connectors/{connector}/resume"
        ),
    )
    .keeping("the stored offset; nothing was read from the source")
}

async fn look(reader: &Reader, entry: &TailEntry) -> Result<Found, KafkaError> {
    match look_at(reader, entry).await {
        Err(KafkaError::UnknownPartition { .. }) => Ok(Found::NoPartition),
        Err(error) if error.is(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => Ok(Found::NoPartition),
        other => other,
    }
}

async fn look_at(reader: &Reader, entry: &TailEntry) -> Result<Found, KafkaError> {
    let TailEntry { topic, partition, offset, .. } = entry;
    let start = reader.list_offset(topic, *partition, OffsetSpec::Earliest).await?;
    let start = start.map_or(0, |listed| listed.offset);
    // Not the last stable offset: what an open transaction holds back is not lost.
    let end = reader.fetch(topic, *partition, start, 1).await?.watermarks.high_watermark;
    if *offset < start || *offset >= end {
        return Ok(Found::NoRecord { start, end });
    }
    match reader.fetch(topic, *partition, *offset, FETCH_BYTES).await {
        Ok(fetched) => Ok(fetched.records.first().filter(|first| first.offset == *offset).map_or(
            Found::NoRecord { start, end },
            |first| Found::Record { id: identity(first), end },
        )),
        // Retention took it between the questions.
        Err(error) if error.is(ErrorCode::OFFSET_OUT_OF_RANGE) => {
            Ok(Found::NoRecord { start: *offset + 1, end })
        }
        Err(error) => Err(error),
    }
}

/// Text of a record's identity; empty for a record without a readable `hw` header.
fn identity(record: &ReadRecord) -> String {
    record
        .header(HW_HEADER)
        .and_then(|header| Hw::decode(header).ok())
        .map(|hw| hw.record_id().to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> TailEntry {
        TailEntry { topic: "shop".to_owned(), partition: 0, offset: 7, id: "g:p:1:0".to_owned() }
    }

    fn record(id: &str, end: i64) -> Found {
        Found::Record { id: id.to_owned(), end }
    }

    #[test]
    fn the_record_itself_passes_and_tells_whether_it_is_the_last() {
        assert_eq!(judge(&entry(), &record("g:p:1:0", 8)), Verdict::Last);
        assert_eq!(judge(&entry(), &record("g:p:1:0", 9)), Verdict::Passes);
    }

    #[test]
    fn a_log_that_ends_at_or_below_the_tail_stops_with_the_numbers() {
        for end in [0, 3, 7] {
            let Verdict::Behind(what) = judge(&entry(), &Found::NoRecord { start: 0, end }) else {
                panic!("end {end} passed");
            };
            assert!(what.contains("record 7 of shop-0") && what.contains(&format!("at {end}")));
        }
    }

    #[test]
    fn another_identity_there_stops_and_names_both() {
        let Verdict::Behind(what) = judge(&entry(), &record("h:p:1:0", 8)) else {
            panic!("another identity passed");
        };
        assert!(what.contains("g:p:1:0") && what.contains("h:p:1:0"));
        assert!(matches!(judge(&entry(), &record("", 8)), Verdict::Behind(_)));
    }

    #[test]
    fn a_topic_that_is_gone_stops() {
        assert!(matches!(judge(&entry(), &Found::NoPartition), Verdict::Behind(_)));
    }

    #[test]
    fn what_retention_or_compaction_took_passes() {
        assert_eq!(judge(&entry(), &Found::NoRecord { start: 9, end: 12 }), Verdict::Passes);
        assert_eq!(judge(&entry(), &Found::NoRecord { start: 0, end: 12 }), Verdict::Passes);
    }
}
