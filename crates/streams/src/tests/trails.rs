//! Records of trails.

use bytes::Bytes;
use highwater_connector::{
    Column, ColumnStates, Generation, HW_HEADER, Hw, STATES_HEADER, TableDescription,
};
use highwater_kafka::ReadRecord;

use super::memory::MemoryLog;

pub(crate) const TRAIL: &str = "shop";
pub(crate) const COMMIT: i64 = 1_793_000_000_123_456;

/// The header of a row of the lane `pg`.
pub(crate) fn hw(transaction: u64, index: u64) -> Hw {
    Hw {
        generation: Generation::from_bits(7),
        lane: Some("pg".to_owned()),
        position: format!("00000000/{transaction:08X}"),
        index,
        part: 0,
        commit_time_us: Some(COMMIT),
        table_version: Some(1),
        xid: Some(format!("{}", 700 + transaction)),
        count: None,
    }
}

/// The header of a row of a snapshot.
pub(crate) fn snapshot(index: u64) -> Hw {
    Hw { lane: None, xid: None, ..hw(1, index) }
}

pub(crate) fn record(hw: &Hw, value: &str) -> ReadRecord {
    ReadRecord {
        offset: 0,
        timestamp: 0,
        leader_epoch: 0,
        key: Some(Bytes::from_static(br#"{"id":1}"#)),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
        headers: vec![(HW_HEADER.to_owned(), hw.encode().into())],
    }
}

pub(crate) fn with_states(mut record: ReadRecord, states: &ColumnStates) -> ReadRecord {
    record.headers.push((STATES_HEADER.to_owned(), states.encode().into()));
    record
}

/// An envelope of table `public.orders`; `rest` are its members besides `source`.
pub(crate) fn envelope(rest: &str) -> String {
    format!(
        r#"{{{rest},"source":{{"version":"0.1.0","connector":"postgresql","name":"shop","ts_ms":1,"ts_us":1000,"ts_ns":1000000,"snapshot":"false","db":"shop","sequence":null,"schema":"public","table":"orders","txId":7,"lsn":1,"xmin":null}},"transaction":null,"ts_ms":2}}"#
    )
}

pub(crate) fn insert(id: u64) -> String {
    envelope(&format!(r#""op":"c","before":null,"after":{{"id":{id},"total":"12.50"}}"#))
}

/// An insert of a one-row transaction.
pub(crate) fn row(transaction: u64) -> ReadRecord {
    record(&Hw { count: Some(1), ..hw(transaction, 0) }, &insert(transaction))
}

pub(crate) fn orders(version: u32) -> TableDescription {
    let column = |name: &str, source_type: &str, json_type: &str, key: bool| Column {
        name: name.to_owned(),
        source_type: source_type.to_owned(),
        json_type: json_type.to_owned(),
        nullable: !key,
        key,
        type_id: String::new(),
    };
    let mut columns = vec![
        column("id", "integer", "number", true),
        column("total", "numeric(10,2)", "string", false),
    ];
    if version > 1 {
        columns.push(column("note", "text", "string", false));
    }
    TableDescription {
        table: "public.orders".to_owned(),
        version,
        from_position: "00000000/00000000".to_owned(),
        from_index: 0,
        columns,
        notes: None,
    }
}

/// Stores a table description beside the trail.
pub(crate) fn describe(log: &MemoryLog, table: &TableDescription) {
    let record = ReadRecord {
        offset: 0,
        timestamp: 0,
        leader_epoch: 0,
        key: Some(serde_json::to_vec(&table.key()).unwrap().into()),
        value: Some(serde_json::to_vec(table).unwrap().into()),
        headers: Vec::new(),
    };
    log.append("shop.schema", record);
}
