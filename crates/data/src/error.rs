//! What goes wrong with data.

/// Why a value cannot be converted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DataError {
    /// Bytes or a value that do not fit what they should be.
    #[error("{0}")]
    Unfit(String),
    /// The schema registry gave no answer.
    #[error("{0}")]
    RegistryUnreachable(String),
    /// The schema registry said no.
    #[error("{0}")]
    RegistryRefused(String),
}

impl DataError {
    /// What does not fit.
    pub fn unfit(what: impl Into<String>) -> Self {
        Self::Unfit(what.into())
    }

    /// Its stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unfit(_) => "RECORD_UNCONVERTIBLE",
            Self::RegistryUnreachable(_) => "SCHEMA_REGISTRY_UNREACHABLE",
            Self::RegistryRefused(_) => "SCHEMA_REGISTRY_REFUSED",
        }
    }

    /// Whether trying again by itself can help.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::RegistryUnreachable(_))
    }
}
