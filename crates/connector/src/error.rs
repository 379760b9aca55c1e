//! The error of a connector: what happened, to what, what is kept, what to do (rule U3).

use std::fmt;

/// Who has to act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The configuration is wrong.
    Configuration,
    /// The source refuses or cannot be reached.
    Source,
    /// The stored position and the source do not fit each other.
    Position,
    /// Something came that cannot be delivered (rule R5).
    Data,
    /// The log refuses or cannot be reached.
    Log,
    /// What a sink writes to refuses or cannot be reached.
    Sink,
}

/// Whether trying again by itself can help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// Restart with backoff.
    Backoff,
    /// Stop until a person has acted.
    Never,
}

/// Stands for the connector's name in the remedies of a source, which does not know it.
pub const CONNECTOR_NAME: &str = "<connector>";

/// What to do about an error that is tried again.
pub const BY_ITSELF: &str = "nothing yet: the task tries again by itself";

/// An error of a connector, in the five parts of rule U3.
#[derive(Clone, Debug)]
pub struct ConnectorError {
    /// Stable code, such as `PG_SLOT_MISSING`.
    pub code: &'static str,
    /// See [`ErrorKind`].
    pub kind: ErrorKind,
    /// See [`Retry`].
    pub retry: Retry,
    /// What happened, and to what.
    pub what: String,
    /// What is safe.
    pub kept: String,
    /// What to do: a command that works when pasted, where there is one. [`CONNECTOR_NAME`] in it
    /// is replaced by [`ConnectorError::of`].
    pub remedy: String,
}

impl ConnectorError {
    /// An error that a person has to act on.
    pub fn stop(
        code: &'static str,
        kind: ErrorKind,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            code,
            kind,
            retry: Retry::Never,
            what: what.into(),
            kept: "the stored position and everything already in the log".to_owned(),
            remedy: remedy.into(),
        }
    }

    /// An error that trying again may cure.
    pub fn again(code: &'static str, kind: ErrorKind, what: impl Into<String>) -> Self {
        Self {
            code,
            kind,
            retry: Retry::Backoff,
            what: what.into(),
            kept: "the stored position and everything already in the log".to_owned(),
            remedy: BY_ITSELF.to_owned(),
        }
    }

    /// The same error as it concerns the connector of this name.
    #[must_use]
    pub fn of(mut self, connector: &str) -> Self {
        self.remedy = self.remedy.replace(CONNECTOR_NAME, connector);
        self
    }

    /// The same error with another text of what is kept.
    #[must_use]
    pub fn keeping(mut self, kept: impl Into<String>) -> Self {
        self.kept = kept.into();
        self
    }
}

impl fmt::Display for ConnectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, what, kept, remedy, .. } = self;
        write!(f, "{code}: {what}. Kept: {kept}. Do: {remedy}.")
    }
}

impl std::error::Error for ConnectorError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_five_parts() {
        let error =
            ConnectorError::stop("X_1", ErrorKind::Data, "row 7 of table t is odd", "mend it")
                .keeping("everything before it");
        assert_eq!(
            error.to_string(),
            "X_1: row 7 of table t is odd. Kept: everything before it. Do: mend it."
        );
    }
}
