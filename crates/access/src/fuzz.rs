//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use std::num::NonZeroU32;
use std::sync::LazyLock;

use crate::authorization::Authorization;
use crate::certificate::{Certificate, SubjectRules};
use crate::grant::Grant;
use crate::mechanism::Hash;
use crate::password::Password;
use crate::plain;
use crate::principal::Principal;
use crate::scram::ClientFirst;
use crate::token::Token;
use crate::users_file::UsersFile;
use crate::verifier::Verifier;

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("users-file", users),
    ("grant", grant),
    ("verifier", verifier),
    ("plain-login", plain_login),
    ("authorization-header", authorization),
    ("token", token),
    ("scram-login", scram_login),
    ("client-certificate", certificate),
    ("subject-rules", subject_rules),
];

/// What is read is written so that it is read as the same.
fn users(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let file = UsersFile::new("users.toml");
    let Ok(contents) = file.parse(text) else { return };
    let written = contents.to_text();
    let again = file.parse(&written).map(|again| again.to_text());
    assert!(matches!(&again, Ok(again) if *again == written), "{written}: {again:?}");
}

fn grant(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(grant) = text.parse::<Grant>() else { return };
    assert!(matches!(grant.to_string().parse(), Ok(again) if grant == again), "{grant}");
}

fn authorization(input: &[u8]) {
    let _ = Authorization::parse(input);
}

fn token(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some(token) = Token::parse(text) else { return };
    assert_eq!(Token::parse(&token.to_text()), Some(token));
}

fn verifier(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some(verifier) = Verifier::parse(text) else { return };
    assert_eq!(Verifier::parse(&verifier.to_text()), Some(verifier));
}

fn plain_login(input: &[u8]) {
    if let Ok((user, _)) = plain::parse(input) {
        assert!(!user.is_empty());
    }
}

/// The user of RFC 7677's example, so that its exchange is in the corpus.
static PENCIL: LazyLock<Verifier> = LazyLock::new(|| {
    let salt = [
        0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa,
        0x81,
    ];
    Verifier::with_salt(Hash::Sha256, &Password::new(b"pencil"), salt.to_vec(), ROUNDS)
});
const ROUNDS: NonZeroU32 = NonZeroU32::new(4_096).unwrap();
const NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

/// The client's first and last message, a line each.
fn scram_login(input: &[u8]) {
    let mut messages = input.splitn(2, |byte| *byte == b'\n');
    let Ok(first) = ClientFirst::parse(messages.next().unwrap_or_default()) else { return };
    let principal = Principal::user(&first.user);
    let challenge = first.challenge(PENCIL.clone(), Some(principal.clone()), NONCE);
    let asked = String::from_utf8(challenge.message());
    assert!(asked.is_ok_and(|asked| asked.starts_with("r=")));
    if let Ok((who, _)) = challenge.answer(messages.next().unwrap_or_default()) {
        assert_eq!(who, principal);
    }
}

fn certificate(input: &[u8]) {
    if let Some(certificate) = Certificate::read(input) {
        let _ = SubjectRules::default().user(&certificate.subject);
    }
}

/// Rules, and behind a line feed a subject.
fn subject_rules(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (rules, subject) = text.split_once('\n').unwrap_or((text, "CN=ann,O=shop"));
    let Ok(rules) = SubjectRules::parse(rules) else { return };
    assert!(rules.user(subject).is_none_or(|user| !user.is_empty()));
}
