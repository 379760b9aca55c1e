//! Takes secrets out of texts that others see.

use std::sync::Arc;

use highwater_connector::{ConnectorError, Problem};

use crate::pipeline::Properties;
use crate::references::has_reference;
use crate::secrets::MASK;

/// A secret as short as this is taken out where it is a word of its own: else every text would be
/// full of holes.
const SHORT: usize = 3;

/// A line of a secret that is shorter, such as a bracket, tells nothing.
const LINE: usize = 8;

/// What the references of a configuration lead to, to be taken out of texts. It is not printed for
/// debugging.
#[derive(Clone, Default)]
pub(crate) struct Scrub {
    /// Longest first, so that a part of one does not hide the rest of it.
    secrets: Arc<[String]>,
}

impl Scrub {
    /// Takes out these values, their lines, and both as they look in quotes.
    pub(crate) fn of(values: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = values.into_iter().flat_map(|value| forms(&value)).collect();
        secrets.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        secrets.dedup();
        Self { secrets: secrets.into() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// A text without them.
    pub(crate) fn text(&self, text: &str) -> String {
        let scrubbed = |text: String, secret: &String| match secret.len() {
            ..=SHORT => without_word(&text, secret),
            _ => text.replace(secret.as_str(), MASK),
        };
        self.secrets.iter().fold(text.to_owned(), scrubbed)
    }

    /// An error without them.
    pub(crate) fn error(&self, error: ConnectorError) -> ConnectorError {
        if self.is_empty() {
            return error;
        }
        let ConnectorError { what, kept, remedy, .. } = &error;
        let [what, kept, remedy] = [what, kept, remedy].map(|text| self.text(text));
        ConnectorError { what, kept, remedy, ..error }
    }

    /// What is wrong with a configuration that was `given` with references, without what they lead to.
    pub(crate) fn problems(&self, problems: Vec<Problem>, given: &Properties) -> Vec<Problem> {
        let scrubbed = |Problem { key, message }: Problem| {
            let by_reference = given.get(&key).is_some_and(|value| has_reference(value));
            let message = if by_reference { unquoted(&message) } else { message };
            Problem { message: self.text(&message), key }
        };
        if self.is_empty() { problems } else { problems.into_iter().map(scrubbed).collect() }
    }
}

/// A refused value may be quoted in part, which is not found again by its whole.
fn unquoted(message: &str) -> String {
    let wanted = message.rsplit_once("; it must be ").map(|(_, wanted)| wanted);
    match wanted {
        Some(wanted) => {
            format!("is given by reference, to a value that does not fit; it must be {wanted}")
        }
        None => message.to_owned(),
    }
}

/// A value, its lines, and both as they look in quotes.
fn forms(value: &str) -> Vec<String> {
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= LINE);
    let plain = std::iter::once(value.trim()).chain(lines);
    let quoted = |text: &str| {
        let json = serde_json::Value::from(text).to_string();
        let inner = |text: String| text.get(1..text.len() - 1).map(str::to_owned);
        [Some(text.to_owned()), inner(json), inner(format!("{text:?}"))]
    };
    let told = |text: &String| text.contains(|char| char != '*');
    plain.flat_map(quoted).flatten().filter(told).collect()
}

fn without_word(text: &str, word: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut before: Option<char> = None;
    while let Some(at) = rest.find(word) {
        let (head, tail) = rest.split_at(at);
        let tail = &tail[word.len()..];
        let joined = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
        let apart = !joined(head.chars().next_back().or(before)) && !joined(tail.chars().next());
        plain.push_str(head);
        plain.push_str(if apart { MASK } else { word });
        before = word.chars().next_back();
        rest = tail;
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scrub(secrets: &[&str]) -> Scrub {
        Scrub::of(secrets.iter().map(|secret| (*secret).to_owned()))
    }

    #[test]
    fn a_secret_is_taken_out_of_all_parts_of_an_error() {
        let error = ConnectorError::stop(
            "X_1",
            highwater_connector::ErrorKind::Source,
            "login of u:s3cret failed",
            "try s3cret again",
        )
        .keeping("s3cret");
        let error = scrub(&["s3cret"]).error(error);
        assert_eq!(error.what, format!("login of u:{MASK} failed"));
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[test]
    fn a_secret_is_found_in_quotes_and_line_by_line() {
        let scrub = scrub(&["line \"one\"\nline two\n", "tab\there"]);
        for text in ["line \"one\"\nline two", r#"is "line \"one\"\nline two""#, "at line two!"] {
            assert!(!scrub.text(text).contains("line"), "{text}: {}", scrub.text(text));
        }
        assert_eq!(scrub.text(r"of tab\there."), format!("of {MASK}."));
    }

    #[test]
    fn a_short_secret_goes_where_it_is_a_word() {
        let scrub = scrub(&["a", "42"]);
        assert_eq!(
            scrub.text("a map of a, 42 and 420"),
            format!("{MASK} map of {MASK}, {MASK} and 420")
        );
    }

    #[test]
    fn the_longer_of_two_goes_whole() {
        assert_eq!(scrub(&["pass", "password"]).text("is password"), format!("is {MASK}"));
    }

    #[test]
    fn a_refused_value_is_not_quoted_in_part() {
        let long = "0123456789".repeat(9);
        let given = Properties::from([("port".to_owned(), "${env:P}".to_owned())]);
        let message =
            highwater_connector::KeyType::Int { min: 1, max: 9 }.check(&long).unwrap_err();
        assert!(message.contains("0123"), "{message}");
        let problem = Problem { key: "port".to_owned(), message };
        let told = scrub(&[&long]).problems(vec![problem], &given);
        assert_eq!(
            told[0].message,
            "is given by reference, to a value that does not fit; it must be a whole number from 1 to 9"
        );
    }

    proptest! {
        #[test]
        fn no_secret_is_left(
            secrets in prop::collection::vec("[ab\"\\\\\n]{4,8}", 1..4),
            between in prop::collection::vec("[abx]{0,3}", 4),
        ) {
            let text: String = between
                .iter()
                .enumerate()
                .map(|(at, between)| format!("{between}{}", secrets[at % secrets.len()]))
                .collect();
            let left = Scrub::of(secrets.clone()).text(&text);
            for secret in secrets.iter().map(|secret| secret.trim()) {
                prop_assert!(secret.len() <= SHORT || !left.contains(secret), "{left}");
            }
        }
    }
}
