//! What the trace of a part says that another worker runs: the parts of an error, where that worker is
//! one of ours, and the first line of what Kafka Connect's own worker has left.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Characters of a text that is taken over from a trace, at most.
const LONGEST: usize = 1_000;

/// An error (rule U3) as a trace has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    pub(crate) code: String,
    pub(crate) what: String,
    pub(crate) kept: String,
    pub(crate) remedy: String,
}

impl Told {
    /// Its parts, as those of an error of this worker are shown.
    pub(crate) fn json(&self) -> Value {
        let Self { code, what, kept, remedy } = self;
        json!({ "code": code, "what": what, "kept": kept, "do": remedy })
    }
}

/// Reads `CODE: what. Kept: kept. Do: remedy.`, as an error is written; none where it is no trace of ours.
pub(crate) fn told(trace: &str) -> Option<Told> {
    let (code, rest) = trace.split_once(": ")?;
    let (rest, remedy) = rest.rsplit_once(". Do: ")?;
    let (what, kept) = rest.rsplit_once(". Kept: ")?;
    let remedy = remedy.strip_suffix('.').unwrap_or(remedy);
    let [what, kept, remedy] = [what, kept, remedy].map(bounded);
    is_code(code).then(|| Told { code: code.to_owned(), what, kept, remedy })
}

/// The first line of a trace, such as an exception and its message.
pub(crate) fn headline(trace: &str) -> String {
    bounded(trace.lines().next().unwrap_or_default().trim())
}

fn is_code(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=64).contains(&text.len()) && text.bytes().all(fits)
}

fn bounded(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        // A text takes whatever is written to it.
        let _ = write!(short, "… ({} bytes in all)", text.len());
    }
    short
}

#[cfg(test)]
mod tests {
    use highwater_connector::{ConnectorError, ErrorKind};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_trace_of_an_error_is_read_back() {
        let error = ConnectorError::stop("X_1", ErrorKind::Data, "row 7: a. Kept: x", "mend it")
            .keeping("everything before it");
        let expected = Told {
            code: "X_1".to_owned(),
            what: "row 7: a. Kept: x".to_owned(),
            kept: "everything before it".to_owned(),
            remedy: "mend it".to_owned(),
        };
        assert_eq!(told(&error.to_string()), Some(expected));
    }

    #[test]
    fn an_exception_of_java_is_no_error_of_ours_and_its_first_line_is_told() {
        let java = "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded\n\tat a.B.c(D.java:1)";
        assert_eq!(told(java), None);
        assert_eq!(
            headline(java),
            "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded"
        );
        for odd in ["", ": ", "X_1: a", "x: a. Kept: b. Do: c.", "X 1: a. Kept: b. Do: c."] {
            assert_eq!(told(odd), None, "{odd:?}");
        }
        let long = headline(&"é".repeat(LONGEST + 1));
        assert!(long.ends_with("… (2002 bytes in all)") && long.len() < 2_100, "{long}");
    }

    proptest! {
        #[test]
        fn what_anybody_writes_is_taken(trace in ".{0,200}") {
            let _ = (told(&trace), headline(&trace));
        }
    }
}
