//! Why somebody is not logged in.

/// Why a login failed. Whether the user exists it does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The user, or the password, is wrong.
    #[error("user or password is wrong")]
    Credentials,
    /// The message is none of the mechanism.
    #[error("the message cannot be read: {0}")]
    Malformed(&'static str),
}
