//! What an operator wants of a connector, as records of the configuration topic say it.

use serde_json::{Value, json};

/// What an operator wants of a connector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum TargetState {
    /// Run it.
    #[default]
    Started,
    /// Keep its task, but do not read.
    Paused,
    /// End its task; its offsets may be changed.
    Stopped,
}

impl TargetState {
    /// Reads a name as the REST API takes it, in any case (KIP-980).
    pub(crate) fn from_initial(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "RUNNING" => Some(Self::Started),
            "PAUSED" => Some(Self::Paused),
            "STOPPED" => Some(Self::Stopped),
            _ => None,
        }
    }

    /// The name that [`Self::from_initial`] reads.
    pub(crate) const fn initial(self) -> &'static str {
        match self {
            Self::Started => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Stopped => "STOPPED",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Started => "STARTED",
            Self::Paused => "PAUSED",
            Self::Stopped => "STOPPED",
        }
    }

    fn from_name(text: &str) -> Option<Self> {
        [Self::Started, Self::Paused, Self::Stopped].into_iter().find(|state| state.name() == text)
    }

    /// Workers before KIP-875 know no STOPPED, so `state` says PAUSED for them.
    pub(crate) fn value(self) -> Value {
        let old = if self == Self::Stopped { Self::Paused } else { self };
        json!({ "state": old.name(), "state.v2": self.name() })
    }

    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        let text = value.get("state.v2").or_else(|| value.get("state"))?;
        Self::from_name(text.as_str()?)
    }
}
