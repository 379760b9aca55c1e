//! What stands in the log: the trail and the offset records.

use highwater_connector::{
    GENERATION_HEADER, Generation, GenerationMark, HW_HEADER, Hw, SourceOffset, TAIL_HEADER, Tail,
};
use highwater_kafka::{ReadRecord, Reader};
use serde_json::Value;

use crate::source::Place;

/// One record of the trail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) offset: i64,
    pub(crate) place: Place,
    /// Which start of a task sent it.
    pub(crate) run: usize,
    pub(crate) generation: Generation,
    /// Text of its identity.
    pub(crate) id: String,
}

async fn all(reader: &Reader, topic: &str) -> Vec<ReadRecord> {
    let mut records = Vec::new();
    reader.read_all(topic, 0, &mut |record| records.push(record)).await.unwrap();
    records
}

pub(crate) async fn rows(reader: &Reader, trail: &str) -> Vec<Row> {
    all(reader, trail).await.iter().map(row).collect()
}

fn row(record: &ReadRecord) -> Row {
    let hw = Hw::decode(record.header(HW_HEADER).unwrap()).unwrap();
    let value: Value = serde_json::from_slice(record.value.as_ref().unwrap()).unwrap();
    let number = |key: &str| value[key].as_u64().unwrap();
    Row {
        offset: record.offset,
        place: Place { tx: number("tx"), event: number("event") },
        run: usize::try_from(number("run")).unwrap(),
        generation: hw.generation,
        id: hw.record_id().to_string(),
    }
}

/// One record of the offsets topic.
#[derive(Clone, Debug)]
pub(crate) struct OffsetRow {
    pub(crate) key: String,
    pub(crate) offset: Option<SourceOffset>,
    pub(crate) mark: Option<GenerationMark>,
    pub(crate) tail: Option<Tail>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
}

pub(crate) async fn offset_rows(reader: &Reader) -> Vec<OffsetRow> {
    let records = all(reader, "highwater.offsets").await;
    records.iter().map(offset_row).collect()
}

fn offset_row(record: &ReadRecord) -> OffsetRow {
    let header = |name| record.header(name);
    OffsetRow {
        key: String::from_utf8(record.key.clone().unwrap().to_vec()).unwrap(),
        offset: record.value.as_ref().map(|value| serde_json::from_slice(value).unwrap()),
        mark: header(GENERATION_HEADER).map(|mark| GenerationMark::decode(mark).unwrap()),
        tail: header(TAIL_HEADER).map(|tail| Tail::decode(tail).unwrap()),
        headers: record
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.to_vec()))
            .collect(),
    }
}
