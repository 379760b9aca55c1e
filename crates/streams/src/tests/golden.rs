//! The JSON of each kind of record, letter by letter.

use highwater_connector::{ColumnStates, Hw};
use highwater_kafka::{ReadRecord, TopicDescription};
use serde_json::{Value, json};
use uuid::Uuid;

use super::trails::{envelope, hw, insert, orders, record, snapshot, with_states};
use crate::batch::Batch;
use crate::closing::Ending;
use crate::encoding::Encoding;
use crate::feed::{Feed, Outcome, View};
use crate::gap::Gap;
use crate::marks::Marks;
use crate::metadata::{self, Beginning};
use crate::qos::QualityOfService;
use crate::resource::Resource;
use crate::schema;

fn encoding(json: Value) -> Encoding {
    let body = json!({"source": {"trail": "shop"}, "encoding": {"json": json}});
    Resource::parse(&body).unwrap().encoding().clone()
}

fn view(encoding: Encoding) -> View {
    let (name, id) = ("shop".to_owned(), Uuid::nil());
    View::new("orders", &TopicDescription { name, id, partitions: 1, internal: false }, 0, encoding)
}

/// The record's JSON under an encoding, its `pos` replaced by three dots.
fn shown(encoding: &Encoding, record: &ReadRecord) -> String {
    let view = view(encoding.clone());
    let mut feed = Feed::new(view, QualityOfService::ExactlyOnce, Marks::default());
    feed.describe(&orders(1), &mut Batch::default());
    let mut batch = Batch::default();
    assert_eq!(feed.take(record, &mut batch), Ok(Outcome::Sent));
    let message = batch.take().unwrap();
    let text = String::from_utf8(message.text.to_vec()).unwrap();
    let text = text.strip_prefix('[').unwrap().strip_suffix(']').unwrap();
    text.replace(&message.last.unwrap().pos, "...")
}

fn plain(record: &ReadRecord) -> String {
    shown(&Encoding::default(), record)
}

const META: &str = r#""qual_table":"public.orders","op_ts":"2026-10-26T07:33:20.123456Z","pos":"...","xid":"702","csn":"00000000/00000002","#;

#[test]
fn insert_update_delete() {
    let only = Hw { count: Some(1), ..hw(2, 0) };
    assert_eq!(
        plain(&record(&only, &insert(5))),
        format!(
            r#"{{"op_type":"INSERT",{META}"opSeqno":0,"transInd":"W","record_id":"0000000000000007:00000000/00000002:0:0","after":{{"id":5,"total":"12.50"}}}}"#
        )
    );
    let update = envelope(
        r#""op":"u","before":{"id":5,"total":"1"},"after":{"id":5,"total":"2","note":null}"#,
    );
    assert_eq!(
        plain(&record(&hw(2, 0), &update)),
        format!(
            r#"{{"op_type":"UPDATE",{META}"opSeqno":0,"transInd":"B","record_id":"0000000000000007:00000000/00000002:0:0","before":{{"id":5,"total":"1"}},"after":{{"id":5,"total":"2","note":null}}}}"#
        )
    );
    let delete = envelope(r#""op":"d","before":{"id":5},"after":null"#);
    let last = Hw { count: Some(4), ..hw(2, 3) };
    assert_eq!(
        plain(&record(&last, &delete)),
        format!(
            r#"{{"op_type":"DELETE",{META}"opSeqno":3,"transInd":"E","record_id":"0000000000000007:00000000/00000002:3:0","before":{{"id":5}}}}"#
        )
    );
}

#[test]
fn a_key_change_is_an_update_with_both_keys() {
    let update = envelope(r#""op":"u","before":{"id":5},"after":{"id":6,"total":"2"}"#);
    assert_eq!(
        plain(&record(&hw(2, 1), &update)),
        format!(
            r#"{{"op_type":"UPDATE",{META}"opSeqno":1,"transInd":"M","record_id":"0000000000000007:00000000/00000002:1:0","before":{{"id":5}},"after":{{"id":6,"total":"2"}}}}"#
        )
    );
}

#[test]
fn truncate_and_ddl() {
    let mark = Hw { table_version: None, ..hw(2, 1) };
    assert_eq!(
        plain(&record(&mark, &envelope(r#""op":"t""#))),
        format!(
            r#"{{"op_type":"TRUNCATE",{META}"opSeqno":1,"transInd":"M","record_id":"0000000000000007:00000000/00000002:1:0"}}"#
        )
    );
    let ddl = r#""op":"ddl","ddl":"ALTER TABLE \"orders\" ADD note text","ddl_inferred":true"#;
    assert_eq!(
        plain(&record(&mark, &envelope(ddl))),
        format!(
            r#"{{"op_type":"DDL",{META}"opSeqno":1,"transInd":"M","record_id":"0000000000000007:00000000/00000002:1:0","ddl":"ALTER TABLE \"orders\" ADD note text","ddl_inferred":true}}"#
        )
    );
}

#[test]
fn a_table_of_a_pluggable_database_is_named_with_it() {
    let mark = Hw { table_version: None, ..hw(2, 1) };
    let truncate = envelope(r#""op":"t""#).replace(r#""xmin":null"#, r#""pdb":"PDB1""#);
    let shown = plain(&record(&mark, &truncate));
    assert!(shown.contains(r#""qual_table":"PDB1.public.orders""#), "{shown}");
}

#[test]
fn a_snapshot_begins_has_rows_and_ends() {
    const META: &str = r#""qual_table":"public.orders","op_ts":"2026-10-26T07:33:20.123456Z","pos":"...","csn":"00000000/00000001","#;
    let mark = |index| Hw { table_version: None, ..snapshot(index) };
    let begin = envelope(r#""op":"snapshot_begin","point":"00000000/00000001""#);
    assert_eq!(
        plain(&record(&mark(0), &begin)),
        format!(
            r#"{{"op_type":"SNAPSHOT_BEGIN",{META}"opSeqno":0,"record_id":"0000000000000007:00000000/00000001:0:0","point":"00000000/00000001"}}"#
        )
    );
    let row = envelope(r#""op":"r","before":null,"after":{"id":5}"#);
    assert_eq!(
        plain(&record(&snapshot(1), &row)),
        format!(
            r#"{{"op_type":"INSERT",{META}"opSeqno":1,"record_id":"0000000000000007:00000000/00000001:1:0","snapshot":true,"after":{{"id":5}}}}"#
        )
    );
    let end = envelope(r#""op":"snapshot_end","point":"00000000/00000001""#);
    assert_eq!(
        plain(&record(&mark(2), &end)),
        format!(
            r#"{{"op_type":"SNAPSHOT_END",{META}"opSeqno":2,"record_id":"0000000000000007:00000000/00000001:2:0","point":"00000000/00000001"}}"#
        )
    );
}

#[test]
fn columns_without_a_value_leave_the_image_and_are_listed() {
    let states = ColumnStates {
        unchanged: vec!["note".to_owned()],
        unavailable: vec!["doc".to_owned(), "pic".to_owned()],
    };
    let update = envelope(
        r#""op":"u","before":{"id":5,"note":"old","doc":"__gone"},"after":{"id":5,"note":"__gone","doc":"__gone","pic":"__gone","total":null}"#,
    );
    let shown = plain(&with_states(record(&hw(2, 1), &update), &states));
    let images = &shown[shown.find(r#""before""#).unwrap()..];
    assert_eq!(
        images,
        r#""before":{"id":5,"note":"old"},"after":{"id":5,"total":null},"unchanged":["note"],"unavailable":["doc","pic"]}"#
    );
    let delete = envelope(r#""op":"d","before":{"id":5,"doc":"__gone"},"after":null"#);
    let shown = plain(&with_states(record(&hw(2, 1), &delete), &states));
    assert!(shown.contains(r#""before":{"id":5},"#), "{shown}");
}

#[test]
fn numbers_keep_their_text() {
    let row = envelope(
        r#""op":"c","before":null,"after":{"a":0.10,"b":1e400,"c":123456789012345678901234567890.000000000000000000001,"d":-0}"#,
    );
    let image = r#""after":{"a":0.10,"b":1e400,"c":123456789012345678901234567890.000000000000000000001,"d":-0}"#;
    assert!(plain(&record(&hw(2, 0), &row)).contains(image));
    let omitting = encoding(json!({"omitNullColumnValues": true}));
    assert!(shown(&omitting, &record(&hw(2, 0), &row)).contains(image));
}

#[test]
fn nulls_can_be_left_out_and_values_be_texts() {
    let row = envelope(
        r#""op":"c","before":null,"after":{"a":1.50,"b":null,"c":"x\"y","d":true,"e":{"f":[1]}}"#,
    );
    let row = record(&hw(2, 0), &row);
    let strings = encoding(json!({"treatAllColumnsAsStrings": true}));
    let image = r#""after":{"a":"1.50","b":null,"c":"x\"y","d":"true","e":"{\"f\":[1]}"}"#;
    assert!(shown(&strings, &row).contains(image));
    let omitting = encoding(json!({"omitNullColumnValues": true}));
    let image = r#""after":{"a":1.50,"c":"x\"y","d":true,"e":{"f":[1]}}"#;
    assert!(shown(&omitting, &row).contains(image));
}

#[test]
fn names_labels_and_constants_are_the_streams_own() {
    let own = encoding(json!({
        "beforeImageName": "old",
        "afterImageName": "new",
        "operationStrings": {"INSERT": "I"},
        "staticFields": {"env": "test", "n": 1.0},
        "metaFields": {
            "opType": "op", "qualifiedTable": {"name": "table"}, "opTs": false, "xid": false,
            "csn": false, "opSeqno": false, "transInd": false, "recordId": false,
        },
    }));
    assert_eq!(
        shown(&own, &record(&hw(2, 0), &insert(5))),
        r#"{"op":"I","table":"public.orders","pos":"...","new":{"id":5,"total":"12.50"},"env":"test","n":1.0}"#
    );
}

#[test]
fn metadata_and_schema_records() {
    let encoding = Encoding::default();
    let begin = Beginning { requested: "earliest", offset: 3 };
    assert_eq!(
        metadata::stream(&view(encoding.clone()), &begin),
        json!({
            "op_type": "STREAM_METADATA",
            "producer": {"name": "highwater", "version": env!("CARGO_PKG_VERSION")},
            "source": {"file": "shop", "topic_id": "00000000-0000-0000-0000-000000000000"},
            "begin": {"requested": "earliest", "offset": "3"},
        })
    );
    assert_eq!(
        metadata::object(&encoding, &orders(1)).to_string(),
        r#"{"op_type":"OBJECT_METADATA","qual_table":"public.orders","version":1,"columns":{"id":{"type":"number","null":false,"key":true,"ordinal":1,"source_type":"integer"},"total":{"type":"string","null":true,"key":false,"ordinal":2,"source_type":"numeric(10,2)"}}}"#
    );
    let schema = schema::table("orders", &encoding, &orders(1));
    assert_eq!(schema["id"], "/services/v2/stream/orders/table/public.orders/1");
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-04/schema#");
    assert_eq!(schema["type"], "object");
    assert!(schema.get("op_type").is_none(), "a schema record must not look like data");
    assert_eq!(schema["properties"]["before"], json!({"$ref": "#/definitions/row"}));
    assert_eq!(
        schema["definitions"]["row"]["properties"],
        json!({
            "id": {"type": ["number", "string", "null"]},
            "total": {"type": ["string", "null"]},
        })
    );
}

#[test]
fn every_member_of_a_record_is_in_its_schema() {
    let states = ColumnStates { unchanged: vec!["total".to_owned()], unavailable: vec![] };
    let update = envelope(r#""op":"u","before":{"id":5},"after":{"id":5,"total":"__gone"}"#);
    let encoding = encoding(json!({"staticFields": {"env": "test"}, "metaFields": {"pos": "at"}}));
    let shown = shown(&encoding, &with_states(record(&hw(2, 0), &update), &states));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let schema = schema::table("orders", &encoding, &orders(1));
    for member in shown.as_object().unwrap().keys() {
        assert!(schema["properties"].get(member).is_some(), "{member}");
    }
    for member in schema["required"].as_array().unwrap() {
        assert!(shown.get(member.as_str().unwrap()).is_some(), "{member}");
    }
}

#[test]
fn gap_and_error() {
    let encoding = Encoding::default();
    assert_eq!(
        Gap { after: 4, until: 9 }.record(&encoding),
        json!({
            "op_type": "GAP",
            "code": "records_purged",
            "what": "records between offset 4 and offset 9 are no longer kept and are not delivered",
            "after_offset": "4",
            "until_offset": "9",
        })
    );
    assert_eq!(
        Ending::shutdown().record(&encoding),
        Some(json!({
            "op_type": "ERROR",
            "code": "server_stopping",
            "what": "the server is stopping",
            "kept": "your saved position and everything in the log",
            "do": "reconnect with the pos of the last record that you processed",
            "close_code": 1001,
            "retry": "later",
        }))
    );
}

#[test]
fn what_is_no_record_of_a_trail_is_told() {
    let good = record(&hw(2, 0), &insert(5));
    let mut bad = vec![ReadRecord { headers: Vec::new(), ..good.clone() }];
    bad.push(ReadRecord { value: None, ..good.clone() });
    for value in ["", "[]", r#"{"op":"c"}"#, "\u{0}", &envelope(r#""op":"x""#), "{\"op\":1}"] {
        bad.push(record(&hw(2, 0), value));
    }
    let mut later = good;
    later.headers[0].1 = bytes::Bytes::from_static(br#"{"v":9,"g":"1","pos":"","i":0}"#);
    bad.push(later);
    for record in bad {
        assert!(crate::change::Change::decode(&record).is_err(), "{record:?}");
    }
}
