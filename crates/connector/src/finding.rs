//! What `highwater doctor` finds: something that is wrong, or will be.

use std::borrow::Cow;

use serde::Serialize;

use crate::{CONNECTOR_NAME, ConnectorError};

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Note,
    /// It works, and may not for long or not for everybody.
    Warning,
    /// It does not work.
    Error,
}

/// One finding, in the parts that an error has (rule U3), with the reason in place of what is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Stable code, with a page in the documentation.
    pub code: Cow<'static, str>,
    /// See [`Severity`].
    pub severity: Severity,
    /// What it is about, such as `connector shop`.
    pub subject: String,
    /// What was found, with the numbers.
    pub what: String,
    /// Why it matters.
    pub reason: String,
    /// What to do: a command that works when pasted, where there is one.
    #[serde(rename = "do")]
    pub remedy: String,
}

impl Finding {
    /// A finding about what [`Finding::about`] says.
    pub fn new(
        severity: Severity,
        code: impl Into<Cow<'static, str>>,
        what: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
            severity,
            subject: String::new(),
            what: what.into(),
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }

    /// What stops a connector, or would.
    pub fn from_error(error: &ConnectorError) -> Self {
        let reason = format!("nothing is captured until it is mended; kept: {}", error.kept);
        Self::new(Severity::Error, error.code, error.what.as_str(), reason, error.remedy.as_str())
    }

    /// The same finding, about `subject`.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// The same finding about the connector of this name, whose name is put into the remedy.
    #[must_use]
    pub fn of(mut self, connector: &str) -> Self {
        self.remedy = self.remedy.replace(CONNECTOR_NAME, connector);
        self.about(format!("connector {connector}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn an_error_is_a_finding_about_its_connector() {
        let remedy = format!("highwater connector restart {CONNECTOR_NAME}");
        let error = ConnectorError::stop("X_1", ErrorKind::Source, "it is gone", remedy);
        let finding = Finding::from_error(&error).of("shop");
        assert_eq!((&*finding.code, finding.severity), ("X_1", Severity::Error));
        assert_eq!(finding.subject, "connector shop");
        assert_eq!(finding.remedy, "highwater connector restart shop");
        let json = serde_json::to_value(&finding).unwrap();
        assert_eq!((&json["severity"], &json["do"]), (&"error".into(), &finding.remedy.into()));
    }
}
