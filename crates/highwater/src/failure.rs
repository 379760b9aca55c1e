//! How a command fails: an exit code (rule U2) and the parts of an error (rule U3).

use std::io::Write as _;
use std::process::ExitCode;

use serde::Serialize;

use crate::cli::Output;

/// Exit codes of rule U2; 2 (usage) is clap's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// It was tried and failed.
    Failed = 1,
    /// The command line or configuration is wrong.
    Usage = 2,
    /// The server refused; nothing changed.
    Refused = 3,
    /// Authentication or permission.
    Denied = 4,
    /// Nobody answers there.
    Unreachable = 5,
    /// What was named does not exist.
    NotFound = 6,
}

/// A failed command.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    #[serde(skip)]
    pub(crate) exit: Exit,
    pub(crate) code: String,
    pub(crate) what: String,
    pub(crate) kept: String,
    #[serde(rename = "do")]
    pub(crate) remedy: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, code: &str, what: impl Into<String>) -> Self {
        Self {
            exit,
            code: code.to_owned(),
            what: what.into(),
            kept: String::new(),
            remedy: String::new(),
        }
    }

    pub(crate) fn kept(mut self, kept: impl Into<String>) -> Self {
        self.kept = kept.into();
        self
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "USAGE", what).kept("nothing was changed")
    }

    /// Prints itself on standard error and gives the exit code.
    pub(crate) fn report(&self, output: Output) -> ExitCode {
        let text = match output {
            Output::Json => serde_json::json!({ "error": self }).to_string(),
            Output::Text => self.text(),
        };
        // When nobody reads this either, the exit code still says it.
        let _ = writeln!(std::io::stderr(), "{text}");
        ExitCode::from(self.exit as u8)
    }

    fn text(&self) -> String {
        let mut text = format!("error {}: {}", self.code, self.what);
        for (label, part) in [("kept", &self.kept), ("do", &self.remedy)] {
            if !part.is_empty() {
                text.push_str(&format!("\n  {label:<5} {part}"));
            }
        }
        text
    }
}

/// Code of a failure to print because nobody reads any more.
pub(crate) const OUTPUT_CLOSED: &str = "OUTPUT_CLOSED";

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::BrokenPipe => OUTPUT_CLOSED,
            _ => "IO",
        };
        Self::new(Exit::Failed, code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_parts_that_are_there() {
        let failure = Failure::new(Exit::Refused, "X", "it is so").remedy("run this");
        assert_eq!(failure.text(), "error X: it is so\n  do    run this");
    }
}
