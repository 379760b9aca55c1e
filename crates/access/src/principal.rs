//! Who somebody is.

use std::fmt;
use std::sync::Arc;

/// Who a connection speaks for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Principal {
    /// A part of this server.
    Server,
    /// Somebody, where nobody logs in.
    Anonymous,
    /// A user by name.
    User(Arc<str>),
}

impl Principal {
    /// The user of this name.
    pub fn user(name: &str) -> Self {
        Self::User(name.into())
    }
}

/// As Kafka writes principals.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("User:highwater"),
            Self::Anonymous => f.write_str("User:ANONYMOUS"),
            Self::User(name) => write!(f, "User:{name}"),
        }
    }
}
