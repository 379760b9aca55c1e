//! Why users cannot be read or changed.

use std::path::PathBuf;

/// Why users cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The users file, or the folder it lies in, cannot be used.
    #[error("the users file {path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Somebody else may read it, or change it.
    #[error(
        "the users file {path} has mode {mode:03o}: others may not read it and only its owner may write it"
    )]
    Exposed {
        /// Which file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Its text cannot be read. The text itself is not quoted: keys lie in it.
    #[error("the users file {path} line {line}: {why}")]
    Invalid {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A user of that name is there.
    #[error("there is a user {name} already")]
    Exists {
        /// The name.
        name: String,
    },
    /// No user has that name.
    #[error("there is no user {name}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// It cannot be a user's name.
    #[error("{name:?} cannot be a user's name: {why}")]
    Name {
        /// The text.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// It is no grant.
    #[error("the grant {grant:?} {why}")]
    Grant {
        /// The text.
        grant: String,
        /// What is wrong.
        why: String,
    },
    /// It cannot be a token's label.
    #[error("{label:?} cannot be a token's label: it is 1 to 64 letters, digits, '-', '_' or '.'")]
    TokenLabel {
        /// The text.
        label: String,
    },
    /// The user has, or has not, a token of that label.
    #[error("user {name} {why} {label}")]
    Token {
        /// Whose it is.
        name: String,
        /// The label.
        label: String,
        /// What is wrong.
        why: &'static str,
    },
    /// It is no rule for the subjects of certificates.
    #[error("the rule {rule:?} for certificates: {why}")]
    SubjectRule {
        /// The text.
        rule: String,
        /// What is wrong.
        why: String,
    },
    /// It cannot be a password. The password itself is not quoted.
    #[error("the password {why}")]
    Password {
        /// What is wrong.
        why: String,
    },
}

impl AccessError {
    pub(crate) const FILE: &'static str = "USERS_FILE";

    /// A code that stays the same from release to release.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::File { .. } => Self::FILE,
            Self::Exposed { .. } => "USERS_FILE_EXPOSED",
            Self::Invalid { .. } => "USERS_FILE_INVALID",
            Self::Exists { .. } => "USER_EXISTS",
            Self::Unknown { .. } => "USER_NOT_FOUND",
            Self::Name { .. } => "USER_NAME_INVALID",
            Self::Grant { .. } => "GRANT_INVALID",
            Self::SubjectRule { .. } => "SUBJECT_RULE_INVALID",
            Self::TokenLabel { .. } => "TOKEN_LABEL_INVALID",
            Self::Token { .. } => "TOKEN_CONFLICT",
            Self::Password { .. } => "PASSWORD_UNFIT",
        }
    }
}
