//! Quality of service: what happens to duplicates and to a position that has gone.

use serde::Serialize;

/// How a connection treats duplicates in the trail and a saved position that has gone; a later
/// variant is stricter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::enum_variant_names, reason = "the field's own names")]
pub(crate) enum QualityOfService {
    /// Duplicates are suppressed; a gap is reported and passed over.
    AtMostOnce,
    /// Duplicates pass; a gap is refused.
    AtLeastOnce,
    /// Duplicates are suppressed; a gap is refused.
    ExactlyOnce,
}

impl QualityOfService {
    pub(crate) const NAMES: [&str; 3] = ["exactlyOnce", "atLeastOnce", "atMostOnce"];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "exactlyOnce" => Some(Self::ExactlyOnce),
            "atLeastOnce" => Some(Self::AtLeastOnce),
            "atMostOnce" => Some(Self::AtMostOnce),
            _ => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ExactlyOnce => "exactlyOnce",
            Self::AtLeastOnce => "atLeastOnce",
            Self::AtMostOnce => "atMostOnce",
        }
    }

    pub(crate) const fn suppresses(self) -> bool {
        !matches!(self, Self::AtLeastOnce)
    }

    /// What a connection that does not say does about a gap.
    pub(crate) const fn on_gone(self) -> OnGone {
        match self {
            Self::AtMostOnce => OnGone::Next,
            Self::AtLeastOnce | Self::ExactlyOnce => OnGone::Fail,
        }
    }
}

/// What to do when the records after a saved position are no longer kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnGone {
    /// Refuse.
    Fail,
    /// Report the gap and begin anew at the oldest record, knowing nothing of what was sent.
    Earliest,
    /// Report the gap and go on with the next record that is kept, still suppressing duplicates of
    /// what was sent.
    Next,
}

impl OnGone {
    pub(crate) const NAMES: [&str; 3] = ["fail", "earliest", "next"];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "fail" => Some(Self::Fail),
            "earliest" => Some(Self::Earliest),
            "next" => Some(Self::Next),
            _ => None,
        }
    }
}
