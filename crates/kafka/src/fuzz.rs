//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use crate::{Mechanism, Security, jaas, properties, scram};

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("java-properties", java_properties),
    ("client-config", client_config),
    ("jaas-config", jaas_config),
    ("scram-answers", scram_answers),
];

/// What is read, written with every sign escaped, is read as the same.
fn java_properties(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(read) = properties::parse(text) else { return };
    let escaped = |text: &str| -> String {
        text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
    };
    let lines = read.iter().map(|(key, value)| format!("{}={}\n", escaped(key), escaped(value)));
    assert_eq!(properties::parse(&lines.collect::<String>()), Ok(read));
}

fn client_config(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Security::parse(text) {
        Ok(security) => drop(format!("{security:?}")),
        Err(error) => assert!(!error.problems.is_empty()),
    }
}

fn jaas_config(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(login) = jaas::parse(text) {
        assert!(!login.username.is_empty());
        assert_ne!(login.fits(Mechanism::Plain), login.fits(Mechanism::ScramSha512));
    }
}

/// The client's side of RFC 7677's example: the broker's first and last message, a line each.
fn scram_answers(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (first, last) = text.split_once('\n').unwrap_or((text, ""));
    let (begun, _) = scram::begin(Mechanism::ScramSha256, "user", "rOprNGfwEbeRWgbNEkqO");
    // The rounds are bounded; here they would be most of the time.
    if scram::rounds(first).is_some_and(|rounds| rounds > 5_000) {
        return;
    }
    if let Ok((proved, _)) = begun.prove("pencil", first) {
        let _ = proved.check(last);
    }
}
