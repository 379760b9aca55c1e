//! Rows of snapshots and the marks around them.

use super::*;
use crate::Scn;
use crate::delivery::{SnapshotEdge, SnapshotMark, SnapshotRow, SnapshotTable};
use crate::statement::{Columns, Literal};

fn columns() -> Columns<'static> {
    vec![("ID".into(), Literal::Text("7".into())), ("NAME".into(), Literal::Null)]
}

fn snapshot(output: Output) -> Vec<SourceRecord> {
    let layouts = sample::layouts(vec![sample::version(&["ID", "NAME"])]);
    let name = sample::table();
    let table = SnapshotTable { table: &name, version: 1, point: Scn(3000), time_us: COMMIT_US };
    let columns = columns();
    let row = SnapshotRow { columns: &columns, row_id: None, mark: SnapshotMark::First };
    let (position, mut out) = (positions()(0), Vec::new());
    let mut delivery = Delivery::new(output, &[]);
    let edges = [(SnapshotEdge::Begin, 0), (SnapshotEdge::End, 2)];
    let edge = |(edge, index), delivery: &mut Delivery, out: &mut Vec<SourceRecord>| {
        delivery.snapshot_edge((&table, edge), index, &layouts, &position, out).unwrap();
    };
    edge(edges[0], &mut delivery, &mut out);
    delivery.snapshot_row((&table, &row), 1, &layouts, &position, &mut out).unwrap();
    edge(edges[1], &mut delivery, &mut out);
    out.retain(|record| &*record.topic != "shop.schema");
    out
}

#[test]
fn a_row_is_a_record_without_an_order() {
    let records = snapshot(per_table());
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!(&*record.topic, "shop.HR.EMP");
    assert_eq!(json(&record.key)["ID"], 7);
    let envelope = value(record);
    assert_eq!(envelope["op"], "r");
    assert_eq!(envelope["after"].to_string(), r#"{"ID":7,"NAME":null}"#);
    assert_eq!((&envelope["before"], &envelope["transaction"]), (&Value::Null, &Value::Null));
    let source = &envelope["source"];
    assert_eq!((&source["snapshot"], &source["scn"]), (&"first".into(), &"3000".into()));
    for absent in ["txId", "commit_scn", "rs_id", "ssn", "redo_thread", "user_name", "row_id"] {
        assert_eq!(source[absent], Value::Null, "{absent}");
        assert!(source.get(absent).is_some(), "{absent}");
    }
    let hw = record.hw.as_ref().unwrap();
    assert_eq!((&hw.lane, hw.position.as_str(), hw.index), (&None, "snapshot.0000000000000bb8", 1));
    let headers: Vec<_> = record.headers.iter().map(|(name, value)| (*name, &value[..])).collect();
    let expected: [(&str, &[u8]); 3] =
        [("cdc.scn", b"3000"), ("cdc.snapshot", b"true"), ("cdc.schema_version", b"1")];
    assert_eq!(headers, expected);
}

#[test]
fn on_a_trail_marks_stand_around_the_rows_of_a_table() {
    let records = snapshot(trail());
    let ops: Vec<String> = records.iter().map(|record| member(record, "op")).collect();
    assert_eq!(ops, [r#""snapshot_begin""#, r#""r""#, r#""snapshot_end""#]);
    assert_eq!(value(&records[0])["point"], "3000");
    assert_eq!(value(&records[2])["source"]["snapshot"], "true");
    let ids: Vec<String> =
        records.iter().map(|it| it.hw.as_ref().unwrap().record_id().to_string()).collect();
    assert_eq!(ids[1], "0000000000000007:snapshot.0000000000000bb8:1:0");
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
}
