//! Transforms and predicates: the same records of the same records, under good configurations and bad.

use std::collections::BTreeMap;

use highwater_data::{DataError, SchemaAndValue, Value};
use highwater_transforms::{Predicate, Record, new_transform};

use crate::judge::{Refusal, ask};
use crate::records::{all, of_json, to_json};

const PACKAGE: &str = "org.apache.kafka.connect.transforms.";

/// Lines of a class and its options: `Cast$Value spec=id:string`. A `␣` stands for a space.
fn cases(text: &'static str) -> impl Iterator<Item = (String, Vec<(&'static str, String)>)> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let mut words = line.split(' ');
        let class = format!("{PACKAGE}{}", words.next().unwrap());
        let option = |word: &'static str| {
            let (key, value) = word.split_once('=').unwrap();
            (key, value.replace('␣', " "))
        };
        (class, words.map(option).collect())
    })
}

#[derive(Debug)]
enum Ours {
    Configuration,
    Data(#[expect(dead_code, reason = "for the message of a failure")] DataError),
}

fn options(config: &[(&str, String)]) -> BTreeMap<String, String> {
    config.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

fn borrowed<'a>(config: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    config.iter().map(|(key, value)| (*key, value.as_str())).collect()
}

fn ours(class: &str, config: &[(&str, String)], record: &Record) -> Result<Option<Record>, Ours> {
    let transform = new_transform(class, &options(config)).map_err(|_| Ours::Configuration)?;
    transform.apply(record.clone()).map_err(Ours::Data)
}

/// How the answers differ: another record, or another kind of refusal.
fn differs(class: &str, config: &[(&str, String)], record: &Record) -> Option<String> {
    let borrowed: Vec<_> = config.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let theirs =
        ask("transform", class, &borrowed, &to_json(record)).map(|answer| of_json(&answer));
    let ours = ours(class, config, record);
    let same = match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (Err(Ours::Configuration), Err(Refusal::Configuration(_))) => true,
        (Err(Ours::Data(_)), Err(Refusal::Data(_))) => true,
        // Connect can name the schema of a struct alone, for no reason.
        (Ok(_), Err(Refusal::Data(text))) => {
            class.contains("SetSchemaMetadata") && text.contains("Cannot list fields on non-struct")
        }
        _ => false,
    };
    (!same).then(|| {
        let shown =
            |record: &Record| format!("{:?} {:?} {:?}", record.topic, record.value, record.headers);
        format!(
            "{class} {config:?} on {}\n  ours:    {:?}\n  Connect: {:?}",
            shown(record),
            ours.map(|record| record.as_ref().map(shown)),
            theirs.map(|record| record.as_ref().map(shown)),
        )
    })
}

fn none(told: Vec<String>) {
    assert!(told.is_empty(), "{} differences:\n{}", told.len(), told.join("\n"));
}

#[test]
fn records_become_what_connect_makes_of_them() {
    let records = all();
    let mut told = Vec::new();
    let mut asked = 0;
    for (class, config) in cases(include_str!("transforms.txt")) {
        for record in &records {
            asked += 1;
            told.extend(differs(&class, &config, record));
        }
    }
    assert!(asked > 1000, "{asked}");
    none(told);
}

#[test]
fn configurations_that_connect_refuses_are_refused() {
    for (class, config) in cases(include_str!("refused.txt")) {
        // Some are met by Connect only in what it calls an illegal argument.
        let theirs = ask("transform", &class, &borrowed(&config), &to_json(&all()[1]));
        assert!(theirs.is_err(), "{class} {config:?}: {theirs:?}");
        let problems = new_transform(&class, &options(&config)).map(drop).unwrap_err();
        assert!(problems.iter().all(|problem| !problem.message.is_empty()), "{class} {config:?}");
    }
}

/// A number beyond the type that it is cast to, and time beyond the text that it should be.
#[test]
fn what_connect_changes_silently_is_refused() {
    let record = |value: Value| Record {
        value: SchemaAndValue::schemaless(value),
        ..Record::new("shop.orders")
    };
    for (value, class, config) in [
        (Value::Int64(300), "Cast$Value", vec![("spec", "int8")]),
        (Value::Float64(1e300), "Cast$Value", vec![("spec", "int64")]),
        (Value::Float64(f64::NAN), "Cast$Value", vec![("spec", "int32")]),
        (Value::Float64(1e300), "Cast$Value", vec![("spec", "float32")]),
        (
            Value::text("2024-02-30"),
            "TimestampConverter$Value",
            vec![("target.type", "unix"), ("format", "yyyy-MM-dd")],
        ),
        (
            Value::text("2024-02-29 and more"),
            "TimestampConverter$Value",
            vec![("target.type", "unix"), ("format", "yyyy-MM-dd")],
        ),
    ] {
        let (class, record) = (format!("{PACKAGE}{class}"), record(value));
        assert!(ask("transform", &class, &config, &to_json(&record)).is_ok(), "Connect: {class}");
        let config: Vec<_> =
            config.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
        assert!(matches!(ours(&class, &config, &record), Err(Ours::Data(_))), "{class} {config:?}");
    }
}

#[test]
fn predicates_hold_where_those_of_connect_hold() {
    let mut records = all();
    records.push(Record::new("shop.orders2"));
    records.push(Record::new("x"));
    for (class, config) in cases(include_str!("predicates.txt")) {
        let predicate = Predicate::new(&class, &options(&config));
        for record in &records {
            match (&predicate, ask("predicate", &class, &borrowed(&config), &to_json(record))) {
                (Ok(ours), Ok(theirs)) => {
                    assert_eq!(Some(ours.holds(record)), theirs.as_bool(), "{class} {config:?}");
                }
                (Err(_), Err(Refusal::Configuration(_))) => {}
                (ours, theirs) => panic!("{class} {config:?}: {ours:?}, Connect {theirs:?}"),
            }
        }
    }
}
