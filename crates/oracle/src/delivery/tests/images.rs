//! The row before and after.

use highwater_connector::ColumnStates;

use super::*;
use crate::{Code, LobColumn, LobValue};

const PLAIN: [&str; 4] = ["ID", "NAME", "PAY", "HIRED"];

#[test]
fn an_insert_letter_by_letter() {
    let sql = r#"insert into "HR"."EMP"("ID","NAME","PAY","HIRED") values ('101','O''Brien','-.5',TO_DATE('2024-05-06 07:08:09', 'YYYY-MM-DD HH24:MI:SS'))"#;
    let record = record(&PLAIN, Verb::Insert, sql);
    let text = std::str::from_utf8(record.value.as_deref().unwrap()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        concat!(
            r#"{{"before":null,"after":{{"ID":101,"NAME":"O'Brien","PAY":"-0.5","HIRED":"2024-05-06 07:08:09"}},"#,
            r#""source":{{"version":"{}","connector":"oracle","name":"shop","#,
            r#""ts_ms":1714979289123,"ts_us":1714979289123456,"ts_ns":1714979289123456000,"#,
            r#""snapshot":"false","db":"ORCL","sequence":null,"schema":"HR","table":"EMP","#,
            r#""txId":"5.12.614","scn":"4000","commit_scn":"4000","#,
            r#""rs_id":"0x000007.00000008.0020","ssn":0,"redo_thread":1,"user_name":"HR","#,
            r#""row_id":"AAAR9zAAHAAAACrAAB","pdb":null}},"#,
            r#""transaction":{{"id":"5.12.614","total_order":1,"data_collection_order":1}},"#,
            r#""op":"c","ts_ms":1714979290000}}"#,
        ),
        version
    );
    assert_eq!(text, expected);
    assert_eq!(record.key.as_deref(), Some(&br#"{"ID":101}"#[..]));
    assert!(record.states.is_empty());
}

#[test]
fn an_update_lays_what_was_set_over_what_was() {
    let sql = r#"update "HR"."EMP" set "PAY" = '2', "NAME" = NULL where "ID" = '101' and "NAME" = 'y' and "PAY" = '1.50' and "HIRED" IS NULL"#;
    let record = record(&PLAIN, Verb::Update, sql);
    assert_eq!(member(&record, "op"), r#""u""#);
    assert_eq!(member(&record, "before"), r#"{"ID":101,"NAME":"y","PAY":"1.5","HIRED":null}"#);
    assert_eq!(member(&record, "after"), r#"{"ID":101,"NAME":null,"PAY":"2","HIRED":null}"#);
}

#[test]
fn a_column_that_the_redo_lacks_is_absent() {
    let sql = r#"update "HR"."EMP" set "PAY" = '2' where "ID" = '101' and "PAY" = '1'"#;
    let record = record(&PLAIN, Verb::Update, sql);
    assert_eq!(member(&record, "before"), r#"{"ID":101,"PAY":"1"}"#);
    assert_eq!(member(&record, "after"), r#"{"ID":101,"PAY":"2"}"#);
}

#[test]
fn a_delete_has_the_row_as_it_was() {
    let sql = r#"delete from "HR"."EMP" where "ID" = '101' and "NAME" IS NULL"#;
    let record = record(&PLAIN, Verb::Delete, sql);
    assert_eq!(member(&record, "op"), r#""d""#);
    assert_eq!(member(&record, "before"), r#"{"ID":101,"NAME":null}"#);
    assert_eq!(member(&record, "after"), "null");
    assert_eq!(json(&record.key)["ID"], 101);
}

#[test]
fn columns_stand_in_the_tables_order() {
    let sql = r#"insert into "HR"."EMP"("PAY","ID","NAME") values ('1','2','x')"#;
    let record = record(&PLAIN, Verb::Insert, sql);
    assert_eq!(member(&record, "after"), r#"{"ID":2,"NAME":"x","PAY":"1"}"#);
}

#[test]
fn an_excluded_column_is_never_read() {
    let sql =
        r#"update "HR"."EMP" set "SECRET" = HEXTORAW('00') where "ID" = '1' and "SECRET" = 'x'"#;
    let record = record(&["ID", "SECRET"], Verb::Update, sql);
    assert_eq!(member(&record, "before"), r#"{"ID":1}"#);
    assert_eq!(member(&record, "after"), r#"{"ID":1}"#);
}

#[test]
fn a_column_that_the_version_has_not_stops_even_beside_an_excluded_one() {
    for sql in [
        r#"insert into "HR"."EMP"("ID","COL 2") values ('1',HEXTORAW('c102'))"#,
        r#"insert into "HR"."EMP"("ID","secret") values ('1','hidden')"#,
    ] {
        let error = refusal(&["ID", "SECRET"], Verb::Insert, sql);
        assert_eq!(error.code, Code::Decode);
        assert!(error.what.contains("HR.EMP") && !error.what.contains("c102"), "{error}");
        assert!(!error.what.contains("hidden"), "{error}");
        assert!(error.what.contains("0x000007.00000008.0020/0"), "{error}");
    }
    let version = LayoutVersion { is_exact: false, ..sample::version(&["ID"]) };
    let sql = r#"update "HR"."EMP" set "COL 2" = HEXTORAW('78') where "COL 1" = HEXTORAW('c102')"#;
    let changes = committed(vec![change(Verb::Update, 0x20, sql, Vec::new())]);
    let error = delivered(trail(), &sample::layouts(vec![version]), changes, 0).1.unwrap_err();
    assert_eq!(error.code, Code::DictionaryUnavailable);
}

#[test]
fn a_text_that_does_something_else_stops() {
    let delete = r#"delete from "HR"."EMP" where "ID" = '1'"#;
    let error = refusal(&PLAIN, Verb::Insert, delete);
    assert_eq!(error.code, Code::Decode);
    assert!(error.what.contains("says INSERT") && error.what.contains("DELETE"), "{error}");
    let twice = r#"delete from "HR"."EMP" where "ID" = '1' and "ID" = '2'"#;
    assert!(refusal(&PLAIN, Verb::Delete, twice).what.contains("twice"));
    assert_eq!(refusal(&PLAIN, Verb::Delete, "delete everything").code, Code::Decode);
}

#[test]
fn a_value_of_another_type_names_its_column_and_not_itself() {
    let sql = r#"insert into "HR"."EMP"("ID","HIRED") values ('1','secret')"#;
    let error = refusal(&PLAIN, Verb::Insert, sql);
    assert_eq!(error.code, Code::Decode);
    assert!(error.what.contains("HIRED") && error.what.contains("HR.EMP"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    let place = r#"insert into "HR"."EMP"("ID","PLACE") values ('1',NULL)"#;
    assert!(refusal(&["ID", "PLACE"], Verb::Insert, place).what.contains("PLACE"));
}

const LARGE: [&str; 4] = ["ID", "BODY", "SCAN", "DOC"];

fn lob(column: &str, value: LobValue) -> LobColumn {
    LobColumn { column: column.to_owned(), value, last: sample::at(0x30) }
}

fn with_lobs(output: Output, verb: Verb, sql: &str, lobs: Vec<LobColumn>) -> SourceRecord {
    let changes = vec![change(verb, 0x20, sql, lobs)];
    let mut records = records(output, sample::version(&LARGE), changes);
    records.remove(0)
}

fn states(unchanged: &[&str], unavailable: &[&str]) -> ColumnStates {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ColumnStates { unchanged: names(unchanged), unavailable: names(unavailable) }
}

#[test]
fn a_large_object_has_the_value_that_its_pieces_gave() {
    let sql =
        r#"insert into "HR"."EMP"("ID","BODY","SCAN") values ('1',EMPTY_CLOB(),EMPTY_BLOB())"#;
    let plain = with_lobs(trail(), Verb::Insert, sql, Vec::new());
    assert_eq!(member(&plain, "after"), r#"{"ID":1,"BODY":"","SCAN":"","DOC":"?"}"#);
    assert_eq!(plain.states, states(&[], &["DOC"]));
    let lobs = vec![
        lob("BODY", LobValue::Text("long \"text\"".to_owned())),
        lob("SCAN", LobValue::Bytes(vec![0, 255, 16])),
    ];
    let filled = with_lobs(trail(), Verb::Insert, sql, lobs);
    let expected = r#"{"ID":1,"BODY":"long \"text\"","SCAN":"AP8Q","DOC":"?"}"#;
    assert_eq!(member(&filled, "after"), expected);
    let nulls = vec![lob("BODY", LobValue::Null), lob("SCAN", LobValue::Null)];
    let null = with_lobs(trail(), Verb::Insert, sql, nulls);
    assert_eq!(member(&null, "after"), r#"{"ID":1,"BODY":null,"SCAN":null,"DOC":"?"}"#);
}

#[test]
fn a_large_object_without_a_value_is_named() {
    let sql = r#"update "HR"."EMP" set "BODY" = 'short' where "ID" = '1'"#;
    let record = with_lobs(trail(), Verb::Update, sql, Vec::new());
    assert_eq!(member(&record, "before"), r#"{"ID":1}"#);
    let expected = r#"{"ID":1,"BODY":"short","SCAN":"Pw==","DOC":"?"}"#;
    assert_eq!(member(&record, "after"), expected);
    assert_eq!(record.states, states(&["SCAN"], &["DOC"]));
    let lobs = vec![lob("SCAN", LobValue::Unavailable)];
    let record = with_lobs(trail(), Verb::Update, sql, lobs);
    assert_eq!(record.states, states(&[], &["SCAN", "DOC"]));
}

#[test]
fn large_objects_that_are_left_out_are_named_where_they_changed() {
    let skip = || Output { large: LargeObjects::LeftOut, ..trail() };
    let sql = r#"update "HR"."EMP" set "BODY" = 'short' where "ID" = '1'"#;
    let lobs = vec![lob("SCAN", LobValue::Unavailable)];
    let record = with_lobs(skip(), Verb::Update, sql, lobs);
    assert_eq!(member(&record, "after"), r#"{"ID":1}"#);
    assert_eq!(record.states, states(&[], &["BODY", "SCAN"]));
    let delete =
        with_lobs(skip(), Verb::Delete, r#"delete from "HR"."EMP" where "ID" = '1'"#, vec![]);
    assert_eq!(member(&delete, "before"), r#"{"ID":1}"#);
    assert!(delete.states.is_empty());
}

#[test]
fn a_locator_block_is_an_update_of_its_row() {
    let sql = r#"DECLARE
 loc_c CLOB;
 buf_c VARCHAR2(6162);
BEGIN
 select "BODY" into loc_c from "HR"."EMP" where "ID" = '1' for update;
 buf_c := 'abc';
 dbms_lob.write(loc_c, 3, 1, buf_c);
END;"#;
    let lobs = vec![lob("BODY", LobValue::Text("abc".to_owned()))];
    let mut change = change(Verb::Update, 0x20, sql, lobs);
    change.image = crate::Image::Locator;
    let record = records(trail(), sample::version(&LARGE), vec![change]).remove(0);
    assert_eq!(member(&record, "before"), r#"{"ID":1}"#);
    assert_eq!(member(&record, "after"), r#"{"ID":1,"BODY":"abc","SCAN":"Pw==","DOC":"?"}"#);
}

#[test]
fn an_oversized_or_unknown_large_object_stops_unless_it_may_be_replaced() {
    let sql = r#"update "HR"."EMP" set "BODY" = EMPTY_CLOB() where "ID" = '1'"#;
    let layouts = sample::layouts(vec![sample::version(&LARGE)]);
    let run = |output, value| {
        let change = change(Verb::Update, 0x20, sql, vec![lob("BODY", value)]);
        delivered(output, &layouts, committed(vec![change]), 0)
    };
    assert_eq!(run(trail(), LobValue::TooLarge).1.unwrap_err().code, Code::LobTooLarge);
    let placeholder = Output { oversized: OversizedLob::Placeholder, ..trail() };
    let (records, end) = run(placeholder, LobValue::TooLarge);
    end.unwrap();
    assert_eq!(records[0].states, states(&["SCAN"], &["BODY", "DOC"]));
    for output in [trail(), Output { large: LargeObjects::LeftOut, ..trail() }] {
        let error = run(output, LobValue::Undecodable("no locator".to_owned())).1.unwrap_err();
        assert_eq!(error.code, Code::Decode);
        assert!(error.what.contains("BODY") && error.what.contains("no locator"), "{error}");
    }
}

#[test]
fn a_made_up_row_id_is_not_shown() {
    let sql = r#"insert into "HR"."EMP"("ID") values ('1')"#;
    for (row_id, shown) in [
        (sample::ROW_ID, r#""AAAR9zAAHAAAACrAAB""#),
        ("AAAAAAAAAAAAAAAAAA", "null"),
        ("AAAR9zAAHAAAACrAAB#R1", "null"),
        ("", "null"),
    ] {
        let mut change = change(Verb::Insert, 0x20, sql, Vec::new());
        change.row_id = row_id.into();
        let record = records(trail(), sample::version(&["ID"]), vec![change]).remove(0);
        assert_eq!(value(&record)["source"]["row_id"].to_string(), shown, "{row_id}");
    }
}
