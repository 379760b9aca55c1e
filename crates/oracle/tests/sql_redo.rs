//! Every case of `cases/sql_redo.jsonl`: a text, and what must be read of it.

#![allow(clippy::unwrap_used, reason = "tests")]

use highwater_oracle::statement::{Quoting, decode_line};
use serde_json::Value;

const CASES: &str = include_str!("cases/sql_redo.jsonl");

fn cases() -> impl Iterator<Item = (&'static str, Value)> {
    CASES.lines().map(|line| (line, serde_json::from_str(line).unwrap()))
}

fn decoded(line: &str, quoting: Quoting) -> Value {
    serde_json::from_str(&decode_line(line, quoting)).unwrap()
}

/// The answer of a case as text, so that the order of the members counts too.
fn answer(case: &Value, read: &str) -> String {
    let mut answer = serde_json::Map::from_iter([("id".to_owned(), case["id"].clone())]);
    answer.extend(case[read].as_object().unwrap().clone());
    answer.extend(case.get("check").map(|check| ("check".to_owned(), check.clone())));
    Value::Object(answer).to_string()
}

#[test]
fn every_text_is_read_as_the_case_says() {
    let mut number = 0;
    for (line, case) in cases().filter(|(_, case)| case.get("expected").is_some()) {
        number += 1;
        for quoting in [Quoting::Strict, Quoting::Relaxed] {
            assert_eq!(decode_line(line, quoting), answer(&case, "expected"), "{line}");
        }
    }
    assert_eq!(number, 116);
}

#[test]
fn every_fault_has_the_code_that_the_case_says() {
    let mut number = 0;
    for (line, case) in cases().filter(|(_, case)| case.get("expected_error").is_some()) {
        number += 1;
        let answer = decoded(line, Quoting::Strict);
        assert_eq!(answer["error"]["code"], case["expected_error"], "{line}");
        assert!(answer.get("op").is_none(), "{answer}");
        let sql = case["sql"].as_str().unwrap();
        assert!(answer["error"]["at"].as_u64().unwrap() <= sql.len() as u64, "{answer}");
    }
    assert_eq!(number, 15);
}

#[test]
fn the_relaxed_reading_takes_quotes_that_stand_alone() {
    let mut number = 0;
    for (line, case) in cases().filter(|(_, case)| case.get("relaxed_expected").is_some()) {
        number += 1;
        assert_eq!(
            decode_line(line, Quoting::Relaxed),
            answer(&case, "relaxed_expected"),
            "{line}"
        );
    }
    assert_eq!(number, 2);
}

#[test]
fn the_relaxed_reading_forgives_nothing_else() {
    // Where only quotes could be at fault, the relaxed reading finds a literal that goes on.
    let taken = ["R178", "R179", "R194", "R196"];
    for (line, case) in cases().filter(|(_, case)| case.get("expected_error").is_some()) {
        if !taken.contains(&case["id"].as_str().unwrap()) {
            let answer = decoded(line, Quoting::Relaxed);
            assert_eq!(answer["error"]["code"], case["expected_error"], "{line}");
        }
    }
}

#[test]
fn no_fault_quotes_the_text() {
    for (line, case) in cases() {
        let sql = case["sql"].as_str().unwrap();
        for end in (0..sql.len()).filter(|end| sql.is_char_boundary(*end)) {
            let mut cut = case.clone();
            cut.as_object_mut().unwrap().remove("csf_parts");
            cut["sql"] = sql[..end].into();
            let answer = decoded(&cut.to_string(), Quoting::Relaxed);
            let Some(message) = answer.get("error").map(|error| error["message"].as_str()) else {
                continue;
            };
            let known = message.unwrap().strip_prefix("expected ").unwrap();
            assert!(
                known.bytes().all(|byte| byte.is_ascii_alphabetic() || b" ,_".contains(&byte)),
                "{line}"
            );
        }
    }
}
