//! Topics, keys, parts and positions.

use bytes::Bytes;
use highwater_connector::{OtherKey, RecordKind, TableDescription};

use super::*;
use crate::delivery::{DdlEffect, DdlEvent};
use crate::schema::KeySource;
use crate::{Code, RedoAddress, RedoPoint, TableName};

const INSERT: &str = r#"insert into "HR"."EMP"("ID","NAME") values ('1','a')"#;
const RENAME: &str = r#"update "HR"."EMP" set "NAME" = 'b' where "ID" = '1' and "NAME" = 'a'"#;
const REKEY: &str = r#"update "HR"."EMP" set "ID" = '2' where "ID" = '1' and "NAME" = 'b'"#;
const DELETE: &str = r#"delete from "HR"."EMP" where "ID" = '2' and "NAME" = 'b'"#;

fn history() -> Vec<Change> {
    let texts = [
        (Verb::Insert, INSERT),
        (Verb::Update, RENAME),
        (Verb::Update, REKEY),
        (Verb::Delete, DELETE),
    ];
    let bytes = [0x20, 0x30, 0x40, 0x50];
    texts.iter().zip(bytes).map(|((verb, sql), at)| change(*verb, at, sql, vec![])).collect()
}

fn key(id: u32) -> Bytes {
    Bytes::from(format!(r#"{{"ID":{id}}}"#))
}

/// Of a record: event, part, op, key, other key, position, boundary.
type Seen = (u64, u32, String, Option<Bytes>, Option<OtherKey>, i64, bool);

fn seen(record: &SourceRecord) -> Seen {
    let hw = record.hw.as_ref().unwrap();
    let op = value(record)["op"].as_str().unwrap_or("-").to_owned();
    let (key, other_key) = (record.key.clone(), record.other_key.clone());
    (hw.index, hw.part, op, key, other_key, safe(record), record.boundary)
}

#[test]
fn on_the_topic_of_a_table_a_changed_key_is_three_records_that_are_safe_together() {
    let records = records(per_table(), sample::version(&["ID", "NAME"]), history());
    let (new, old) = (|| Some(OtherKey::New(key(2))), || Some(OtherKey::Old(key(1))));
    let op = |op: &str| op.to_owned();
    let expected: [Seen; 7] = [
        (0, 0, op("c"), Some(key(1)), None, 1, false),
        (1, 0, op("u"), Some(key(1)), None, 2, false),
        (2, 0, op("d"), Some(key(1)), new(), 2, false),
        (2, 1, op("-"), Some(key(1)), new(), 2, false),
        (2, 2, op("c"), Some(key(2)), old(), 3, false),
        (3, 0, op("d"), Some(key(2)), None, 3, false),
        (3, 1, op("-"), Some(key(2)), None, 4, true),
    ];
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), expected);
    assert!(records.iter().all(|record| &*record.topic == "shop.HR.EMP"));
    assert!(records.iter().all(|record| record.partition.is_none()));
    assert!(records.iter().all(|record| record.hw.as_ref().unwrap().count == Some(4)));
    assert_eq!(member(&records[2], "before"), r#"{"ID":1,"NAME":"b"}"#);
    assert_eq!(member(&records[4], "after"), r#"{"ID":2,"NAME":"b"}"#);
}

#[test]
fn without_tombstones_the_parts_keep_their_numbers() {
    let output = Output { has_tombstones: false, ..per_table() };
    let records = records(output, sample::version(&["ID", "NAME"]), history());
    let places: Vec<_> = records.iter().map(seen).map(|it| (it.0, it.1, it.5, it.6)).collect();
    let expected =
        [(0, 0, 1, false), (1, 0, 2, false), (2, 0, 2, false), (2, 2, 3, false), (3, 0, 4, true)];
    assert_eq!(places, expected);
}

#[test]
fn on_a_trail_a_changed_key_is_one_update_and_nothing_has_a_tombstone() {
    let records = records(trail(), sample::version(&["ID", "NAME"]), history());
    let places: Vec<_> =
        records.iter().map(seen).map(|it| (it.2, it.3, it.4, it.5, it.6)).collect();
    let row = |op: &str, id, safe, boundary| (op.to_owned(), Some(key(id)), None, safe, boundary);
    let expected =
        [row("c", 1, 1, false), row("u", 1, 2, false), row("u", 2, 3, false), row("d", 2, 4, true)];
    assert_eq!(places, expected);
    assert_eq!(member(&records[2], "before"), r#"{"ID":1,"NAME":"b"}"#);
    assert_eq!(member(&records[2], "after"), r#"{"ID":2,"NAME":"b"}"#);
    assert!(records.iter().all(|record| record.partition == Some(0)));
}

#[test]
fn a_key_that_is_set_to_itself_does_not_change() {
    let same = r#"update "HR"."EMP" set "ID" = '1.0', "NAME" = 'x' where "ID" = '1'"#;
    let changes = vec![change(Verb::Update, 0x20, same, vec![])];
    let records = records(per_table(), sample::version(&["ID", "NAME"]), changes);
    assert_eq!(records.iter().map(seen).map(|it| it.2).collect::<Vec<_>>(), ["u"]);
}

#[test]
fn what_is_safe_already_is_counted_and_not_repeated() {
    let layouts = sample::layouts(vec![sample::version(&["ID", "NAME"])]);
    let (all, _) = delivered(per_table(), &layouts, committed(history()), 0);
    for (skip, from) in [(0, 0), (1, 1), (2, 2), (3, 5), (4, 7)] {
        let (rest, end) = delivered(per_table(), &layouts, committed(history()), skip);
        end.unwrap();
        let bytes = |records: &[SourceRecord]| -> Vec<_> {
            records.iter().map(|it| (it.key.clone(), it.value.clone(), it.hw.clone())).collect()
        };
        assert_eq!(bytes(&rest), bytes(&all[from..]), "{skip}");
    }
}

#[test]
fn a_key_that_the_redo_lacks_is_no_key_and_stops_where_one_must_be_known() {
    let partial = r#"update "HR"."EMP" set "NAME" = 'x' where "NAME" = 'y'"#;
    let changes = || vec![change(Verb::Update, 0x20, partial, vec![])];
    let version = || sample::version(&["ID", "NAME"]);
    for output in [trail(), per_table()] {
        let record = records(output, version(), changes()).remove(0);
        assert_eq!((&record.key, record.partition), (&None, Some(0)));
    }
    let rekey = r#"update "HR"."EMP" set "ID" = '2' where "NAME" = 'y'"#;
    let changes = || committed(vec![change(Verb::Update, 0x20, rekey, vec![])]);
    let layouts = sample::layouts(vec![version()]);
    let error = delivered(per_table(), &layouts, changes(), 0).1.unwrap_err();
    assert_eq!(error.code, Code::Decode);
    assert!(error.remedy.contains("SUPPLEMENTAL"), "{error}");
    assert!(delivered(trail(), &layouts, changes(), 0).1.is_ok());
    let delete = r#"delete from "HR"."EMP" where "NAME" = 'y'"#;
    let changes = vec![change(Verb::Delete, 0x20, delete, vec![])];
    assert_eq!(records(per_table(), version(), changes).len(), 1, "a tombstone without a key");
}

#[test]
fn keys_of_several_columns_and_of_row_ids() {
    let keyed = |source, columns: &[&str]| LayoutVersion {
        key: sample::key(source, columns),
        ..sample::version(&["ID", "PART", "NAME"])
    };
    let sql = r#"insert into "HR"."EMP"("ID","PART","NAME") values ('1','2','x')"#;
    let key_of = |version| {
        let changes = vec![change(Verb::Insert, 0x20, sql, vec![])];
        let key = records(per_table(), version, changes).remove(0).key;
        key.map(|key| String::from_utf8(key.to_vec()).unwrap())
    };
    let two = keyed(KeySource::Override, &["NAME", "ID"]);
    assert_eq!(key_of(two).as_deref(), Some(r#"{"NAME":"x","ID":1}"#));
    let row_id = keyed(KeySource::RowId, &[]);
    assert_eq!(key_of(row_id).as_deref(), Some(r#"{"ROWID":"AAAR9zAAHAAAACrAAB"}"#));
    assert_eq!(key_of(keyed(KeySource::None, &[])), None);
    let excluded = LayoutVersion {
        key: sample::key(KeySource::Override, &["SECRET"]),
        ..sample::version(&["ID", "SECRET"])
    };
    let changes = committed(vec![change(Verb::Insert, 0x20, sql, vec![])]);
    let error = delivered(trail(), &sample::layouts(vec![excluded]), changes, 0).1.unwrap_err();
    assert_eq!(error.code, Code::Decode);
    assert!(error.what.contains("SECRET"), "{error}");
}

#[test]
fn headers_say_where_a_change_stands() {
    let records = records(per_table(), sample::version(&["ID", "NAME"]), history());
    let headers = |record: &SourceRecord| -> Vec<(&str, String)> {
        let text = |value: &Bytes| String::from_utf8(value.to_vec()).unwrap();
        record.headers.iter().map(|(name, value)| (*name, text(value))).collect()
    };
    let expected = [
        ("cdc.scn", "4000"),
        ("cdc.commit_scn", "4000"),
        ("cdc.xid", "5.12.614"),
        ("cdc.event_index", "2"),
        ("cdc.event_count", "4"),
        ("cdc.schema_version", "1"),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    // All parts of an event, its tombstone too.
    for record in &records[2..5] {
        assert_eq!(headers(record), expected);
    }
    let hw = records[4].hw.as_ref().unwrap();
    assert_eq!(hw.lane.as_deref(), Some("1"));
    assert_eq!(hw.position, "1/00000007.00000008.00f0.00000000");
    assert_eq!((hw.commit_time_us, hw.table_version), (Some(COMMIT_US), Some(1)));
    assert_eq!(hw.xid.as_deref(), Some("5.12.614"));
}

#[test]
fn orders_count_in_the_transaction_and_in_each_table() {
    let other = Arc::new(TableName { table: "DEPT".to_owned(), ..(*sample::table()).clone() });
    let mut changes = vec![
        change(Verb::Insert, 0x20, INSERT, vec![]),
        change(Verb::Insert, 0x30, INSERT, vec![]),
        change(Verb::Insert, 0x40, INSERT, vec![]),
    ];
    changes[1].table = Arc::clone(&other);
    let versions = vec![
        sample::version(&["ID", "NAME"]),
        LayoutVersion { table: (*other).clone(), ..sample::version(&["ID", "NAME"]) },
    ];
    for skip in [0, 2] {
        let layouts = sample::layouts(versions.clone());
        let (records, end) = delivered(per_table(), &layouts, committed(changes.clone()), skip);
        end.unwrap();
        let last = value(records.last().unwrap());
        let expected = r#"{"id":"5.12.614","total_order":3,"data_collection_order":2}"#;
        assert_eq!(last["transaction"].to_string(), expected);
    }
}

#[test]
fn a_version_is_described_once_and_before_its_first_row() {
    let layouts = sample::layouts(vec![sample::version(&["ID", "NAME"])]);
    let run = |stored: &[TableDescription]| {
        let mut delivery = Delivery::new(trail(), stored);
        let mut out = Vec::new();
        for _ in 0..2 {
            let mut emission = delivery.begin(committed(history()), 1, positions());
            while delivery.deliver(&mut emission, &layouts, NOW_MS, &mut out).unwrap()
                == Delivered::Partly
            {}
        }
        out
    };
    let out = run(&[]);
    let kinds: Vec<bool> =
        out.iter().map(|record| record.kind == RecordKind::TableDescription).collect();
    assert_eq!(kinds, [true, false, false, false, false, false, false]);
    assert_eq!((&*out[0].topic, safe(&out[0])), ("shop.schema", 1));
    let description: TableDescription = serde_json::from_value(value(&out[0])).unwrap();
    assert_eq!((description.table.as_str(), description.version), ("HR.EMP", 1));
    assert_eq!(description.from_position, "1/00000007.00000008.00f0.00000000");
    assert_eq!(description.from_index, 1);
    assert_eq!(run(&[description]).len(), 6);
}

#[test]
fn a_commit_without_an_address_has_no_order() {
    let mut committed = committed(history());
    committed.commit.address = None;
    let layouts = sample::layouts(vec![sample::version(&["ID", "NAME"])]);
    let (records, _) = delivered(trail(), &layouts, committed, 0);
    let hw = records[0].hw.as_ref().unwrap();
    assert_eq!((hw.lane.as_deref(), hw.index), (None, 0));
    assert_eq!(hw.position, "1/scn.0000000000000fa0.0:5.12.614");
}

#[test]
fn a_transaction_that_lost_changes_is_damaged() {
    let layouts = sample::layouts(vec![sample::version(&["ID", "NAME"])]);
    for count in [3, 5] {
        let committed = Committed { count, ..committed(history()) };
        let error = delivered(trail(), &layouts, committed, 0).1.unwrap_err();
        assert_eq!(error.code, Code::Corruption, "{count}");
    }
}

fn ddl(output: Output, effect: DdlEffect) -> Vec<SourceRecord> {
    let layouts = sample::layouts(vec![sample::version(&["ID", "NAME"])]);
    let address = RedoAddress { sequence: 7, block: 9, byte: 16, ssn: 1 };
    let ddl = DdlEvent {
        at: RedoPoint { address: Some(address), ..sample::at(0) },
        transaction: KEY,
        time_us: COMMIT_US,
        user: None,
        table: &sample::table(),
        version: 1,
        effect,
        sql: "alter table \"HR\".\"EMP\" add (note varchar2(9))",
    };
    let mut out = Vec::new();
    let mut delivery = Delivery::new(output, &[]);
    delivery.ddl(&ddl, &layouts, &positions()(9), NOW_MS, &mut out).unwrap();
    out.retain(|record| record.kind == RecordKind::Event);
    out
}

#[test]
fn a_ddl_is_a_record_of_a_trail_and_a_truncate_of_both() {
    let defined = ddl(trail(), DdlEffect::Defined).remove(0);
    assert_eq!(member(&defined, "op"), r#""ddl""#);
    assert_eq!(value(&defined)["ddl"], "alter table \"HR\".\"EMP\" add (note varchar2(9))");
    assert_eq!(value(&defined)["before"], Value::Null);
    let hw = defined.hw.as_ref().unwrap();
    assert_eq!(hw.position, "1/00000007.00000009.0010.00000001");
    assert_eq!((hw.lane.as_deref(), hw.index, hw.count), (Some("1"), 0, Some(1)));
    assert!(defined.boundary && defined.key.is_none() && defined.partition == Some(0));
    assert!(ddl(per_table(), DdlEffect::Defined).is_empty());
    for (output, topic) in [(trail(), "shop"), (per_table(), "shop.HR.EMP")] {
        let truncated = ddl(output, DdlEffect::Truncated).remove(0);
        assert_eq!((&*truncated.topic, truncated.partition), (topic, Some(0)));
        assert_eq!(member(&truncated, "op"), r#""t""#);
        assert_eq!((&truncated.key, &value(&truncated)["ddl"]), (&None, &Value::Null));
    }
}
