//! The oldest and the newest record that a trail still holds, for an answer that refuses a
//! position.

use highwater_kafka::{KafkaError, ReadRecord, Watermarks};
use serde::Serialize;

use crate::change::Change;
use crate::feed::View;
use crate::marks::Marks;
use crate::time;
use crate::trail::Log;

/// What is retained, with the values that `begin` can take.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Bounds {
    /// Generation of the newest record.
    generation: Option<String>,
    oldest: Option<Edge>,
    newest: Option<Edge>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Edge {
    offset: String,
    /// Commit time.
    time: Option<String>,
    /// The position of this record: begins with the record behind it.
    pos: String,
    /// What begins with this record (oldest) or behind it (newest).
    begin: &'static str,
}

/// Reads both ends of a trail.
pub(crate) async fn read(
    log: &dyn Log,
    view: &View,
    edges: Watermarks,
    look_back: u64,
) -> Result<Bounds, KafkaError> {
    let first = log.fetch(&view.source, edges.log_start, 1).await?;
    let oldest = first.records.first().and_then(|record| {
        let change = Change::decode(record).ok()?;
        let mut marks = Marks::default();
        marks.advance(&change.hw);
        Some(edge(view, record, &marks, "earliest"))
    });
    let (marks, last) = scan(log, view, edges, look_back).await?;
    Ok(Bounds {
        generation: marks.generation.map(|generation| generation.to_string()),
        oldest: oldest.flatten(),
        newest: last.and_then(|record| edge(view, &record, &marks, "now")),
    })
}

fn edge(view: &View, record: &ReadRecord, marks: &Marks, begin: &'static str) -> Option<Edge> {
    let change = Change::decode(record).ok()?;
    Some(Edge {
        offset: record.offset.to_string(),
        time: change.commit_time_us().and_then(time::iso),
        pos: view.pos(record, &change, marks),
        begin,
    })
}

/// Reads the last `look_back` offsets of a trail: the marks that hold at its end, and its last
/// record. Bytes asked for at once are few enough to hold in memory for every caller.
pub(crate) async fn scan(
    log: &dyn Log,
    view: &View,
    edges: Watermarks,
    look_back: u64,
) -> Result<(Marks, Option<ReadRecord>), KafkaError> {
    const AT_ONCE: u32 = 1 << 20;
    let reach = i64::try_from(look_back).unwrap_or(i64::MAX);
    let mut next = edges.log_start.max(edges.last_stable.saturating_sub(reach));
    let (mut marks, mut last) = (Marks::default(), None);
    while next < edges.last_stable {
        let fetched = log.fetch(&view.source, next, AT_ONCE).await?;
        if fetched.next_offset <= next {
            break;
        }
        next = fetched.next_offset;
        for record in fetched.records {
            if record.offset >= edges.last_stable {
                break;
            }
            // What cannot be decoded stops a session that comes to it; a look back passes it.
            if let Ok(change) = Change::decode(&record) {
                marks.advance(&change.hw);
            }
            last = Some(record);
        }
    }
    Ok((marks, last))
}
