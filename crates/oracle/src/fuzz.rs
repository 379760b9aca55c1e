//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use std::collections::BTreeMap;

use highwater_connector::TableDescription;

use crate::schema::{DdlClass, LayoutVersion, classify, refreshes_objects};
use crate::settings::{Settings, definition, fingerprint};
use crate::statement::{
    Quoting, decode_line, read_ddl, read_lob, read_row, read_string_begin, read_string_write,
    read_xml_begin, read_xml_write,
};

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("oracle-statement", statement),
    ("oracle-lob", lob),
    ("oracle-xml", xml),
    ("oracle-string-32k", string_32k),
    ("oracle-ddl", ddl),
    ("oracle-decode-line", line),
    ("oracle-ddl-class", ddl_class),
    ("oracle-table-version", table_version),
    ("oracle-config", config),
];

/// What one reading accepts, the relaxed one reads alike; a fault lies inside the text.
fn statement(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let relaxed = read_row(&text, Quoting::Relaxed);
    match read_row(&text, Quoting::Strict) {
        Ok(read) => assert_eq!(relaxed.as_ref(), Ok(&read)),
        Err(fault) => assert!(fault.at <= text.len(), "{fault}"),
    }
}

fn lob(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(read) = read_lob(&text) {
        let _ = read.piece.amount_differs();
    }
}

fn xml(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = (read_xml_begin(&text), read_xml_write(&text));
}

fn string_32k(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = (read_string_begin(&text), read_string_write(&text));
}

fn ddl(input: &[u8]) {
    let _ = read_ddl(&String::from_utf8_lossy(input));
}

/// Whatever a line is, the answer is a line of JSON.
fn line(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for quoting in [Quoting::Strict, Quoting::Relaxed] {
        let answer = decode_line(&text, quoting);
        let read = serde_json::from_str::<serde_json::Value>(&answer);
        assert!(read.is_ok_and(|read| read.is_object()) && !answer.contains('\n'), "{answer}");
    }
}

/// A step is cut behind each statement that gives a table other object numbers or another name.
fn ddl_class(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let changes = matches!(
        classify(&text),
        DdlClass::Create | DdlClass::Drop | DdlClass::Rename { .. } | DdlClass::Partition
    );
    assert!(!changes || refreshes_objects(&text));
}

/// What is read from a stored description is written so that it is read again.
fn table_version(input: &[u8]) {
    let Ok(stored) = serde_json::from_slice::<TableDescription>(input) else { return };
    let Ok(version) = LayoutVersion::read(&stored) else { return };
    let again = LayoutVersion::read(&version.description(("", 0), |_| false));
    assert_eq!(again, Ok(version));
}

fn config(input: &[u8]) {
    let Ok(values) = serde_json::from_slice::<BTreeMap<String, String>>(input) else { return };
    if let Ok(config) = definition().parse(&values, &[]) {
        let _ = (Settings::new(&config), fingerprint(&config));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries on every beginning of every case, as text and as a line.
    #[test]
    fn no_beginning_of_a_case_harms() {
        for case in include_str!("../tests/cases/sql_redo.jsonl").lines() {
            let sql = serde_json::from_str::<serde_json::Value>(case).unwrap()["sql"].clone();
            let sql = sql.as_str().unwrap();
            for end in 0..sql.len() {
                ENTRIES.iter().for_each(|(_, run)| run(&sql.as_bytes()[..end]));
            }
            line(&case.as_bytes()[..case.len() / 2]);
        }
    }
}
