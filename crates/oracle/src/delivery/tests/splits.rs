//! Transactions that are split, and changes that go to the dead letters.

use super::*;
use crate::Code;

fn inserts(count: u32) -> Vec<Change> {
    let insert = |id| {
        let sql = format!(r#"insert into "HR"."EMP"("ID") values ('{id}')"#);
        change(Verb::Insert, 0x20 + id, &sql, vec![])
    };
    (0..count).map(insert).collect()
}

fn limited(records: u64, bytes: u64) -> Output {
    Output { split: SplitLimits { records, bytes }, ..trail() }
}

/// Of each record: topic, boundary, whether it says that it is split, and what is safe with it.
fn seen(records: &[SourceRecord]) -> Vec<(&str, bool, bool, i64)> {
    let is_split = |record: &SourceRecord| {
        record.headers.iter().any(|(name, value)| *name == "cdc.split" && &value[..] == b"true")
    };
    let mut seen = Vec::new();
    for record in records {
        seen.push((&*record.topic, record.boundary, is_split(record), safe(record)));
    }
    seen
}

#[test]
fn a_large_transaction_is_cut_behind_whole_changes_and_says_so() {
    let records = records(limited(2, u64::MAX), sample::version(&["ID"]), inserts(5));
    let ops = "shop.cdc.ops";
    let expected = [
        ("shop", false, true, 1),
        ("shop", false, true, 2),
        // The first cut is told, and the cut stands behind that.
        (ops, true, false, 2),
        ("shop", false, true, 3),
        ("shop", true, true, 4),
        ("shop", true, true, 5),
    ];
    assert_eq!(seen(&records), expected);
    let event = value(&records[2]);
    assert_eq!(
        (&event["type"], &event["details"]["first_cut"]),
        (&"transaction-split".into(), &"2".into())
    );
}

#[test]
fn one_of_its_limits_exactly_is_not_split() {
    let records = records(limited(5, u64::MAX), sample::version(&["ID"]), inserts(5));
    let boundaries: Vec<bool> = records.iter().map(|record| record.boundary).collect();
    assert_eq!(boundaries, [false, false, false, false, true]);
    assert!(seen(&records).iter().all(|it| !it.2));
}

#[test]
fn a_cut_for_its_bytes_is_known_from_the_cut_on() {
    let records = records(limited(100, 1), sample::version(&["ID"]), inserts(3));
    let split: Vec<_> = seen(&records).into_iter().map(|it| (it.1, it.2)).collect();
    assert_eq!(split, [(false, false), (true, false), (true, true), (true, true)]);
}

const BAD: &str = r#"insert into "HR"."EMP"("ID","GONE") values ('1','secret')"#;

fn with_a_bad_one(at: usize) -> Committed {
    let mut changes = inserts(3);
    changes[at] = change(Verb::Insert, 0x21, BAD, vec![]);
    committed(changes)
}

#[test]
fn what_cannot_be_decoded_stops_behind_what_was_before_it() {
    let layouts = sample::layouts(vec![sample::version(&["ID"])]);
    let (records, end) = delivered(trail(), &layouts, with_a_bad_one(1), 0);
    assert_eq!(end.unwrap_err().code, Code::Decode);
    assert_eq!(seen(&records), [("shop", false, false, 1)]);
}

#[test]
fn what_was_decoded_wrongly_before_and_is_safe_is_not_looked_at_again() {
    let layouts = sample::layouts(vec![sample::version(&["ID"])]);
    let (records, end) = delivered(trail(), &layouts, with_a_bad_one(1), 2);
    assert_eq!((end, records.len()), (Ok(()), 1));
}

#[test]
fn a_dead_letter_stands_in_the_place_of_its_change() {
    let layouts = sample::layouts(vec![sample::version(&["ID"])]);
    let output = || Output { on_decode_error: OnDecodeError::DeadLetter, ..trail() };
    let (records, end) = delivered(output(), &layouts, with_a_bad_one(1), 0);
    end.unwrap();
    let expected = [
        ("shop", false, false, 1),
        ("shop.cdc.dlq", false, false, 2),
        ("shop.cdc.ops", false, false, 2),
        ("shop", true, false, 3),
    ];
    assert_eq!(seen(&records), expected);
    let letter = value(&records[1]);
    assert_eq!(letter["kind"], "decode-error");
    assert_eq!((&letter["schema"], &letter["table"]), (&"HR".into(), &"EMP".into()));
    assert_eq!((&letter["xid"], &letter["con_id"]), (&"5.12.614".into(), &0.into()));
    assert_eq!((&letter["scn"], &letter["ssn"]), (&"4000".into(), &"0".into()));
    assert_eq!(letter["rs_id"], "0x000007.00000008.0021");
    assert_eq!((&letter["sql_redo"], &letter["operation"]), (&BAD.into(), &"INSERT".into()));
    assert_eq!((&letter["exception"], &letter["user"]), (&"CDC-3001".into(), &"HR".into()));
    assert_eq!(json(&records[1].key).to_string(), r#"{"server":"shop","xid":"5.12.614"}"#);
    assert!(!value(&records[2]).to_string().contains("secret"));
    // The last change of a transaction makes all of it safe, delivered or not.
    let (records, _) = delivered(output(), &layouts, with_a_bad_one(2), 0);
    assert_eq!(
        seen(&records)[2..],
        [("shop.cdc.dlq", false, false, 3), ("shop.cdc.ops", true, false, 3)]
    );
}

#[test]
fn a_dead_letter_withholds_what_is_excluded() {
    let layouts = sample::layouts(vec![sample::version(&["ID", "SECRET"])]);
    let output = Output { on_decode_error: OnDecodeError::DeadLetter, ..trail() };
    let (records, _) = delivered(output, &layouts, with_a_bad_one(0), 0);
    assert!(value(&records[0])["sql_redo"].as_str().unwrap().starts_with("(withheld"));
    assert!(records.iter().all(|record| !value(record).to_string().contains("secret")));
}

#[test]
fn only_what_cannot_be_decoded_goes_to_the_dead_letters() {
    let version = LayoutVersion { is_exact: false, ..sample::version(&["ID"]) };
    let output = Output { on_decode_error: OnDecodeError::DeadLetter, ..trail() };
    let (_, end) = delivered(output, &sample::layouts(vec![version]), with_a_bad_one(0), 0);
    assert_eq!(end.unwrap_err().code, Code::DictionaryUnavailable);
}
