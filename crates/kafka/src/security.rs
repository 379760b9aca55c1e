//! How a cluster is spoken to: in the clear or over TLS, and as whom.

use std::fmt;
use std::path::PathBuf;

use crate::tls;

/// Where a cluster is, and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// Brokers, `host:port`, several separated by commas.
    pub addresses: String,
    /// TLS and authentication.
    pub security: Security,
}

impl Bootstrap {
    /// A cluster that is spoken to in the clear.
    pub fn new(addresses: impl Into<String>) -> Self {
        Self { addresses: addresses.into(), security: Security::default() }
    }

    /// The same cluster, spoken to in another way.
    #[must_use]
    pub fn with(mut self, security: Security) -> Self {
        self.security = security;
        self
    }
}

impl From<&str> for Bootstrap {
    fn from(addresses: &str) -> Self {
        Self::new(addresses)
    }
}

impl From<&Self> for Bootstrap {
    fn from(bootstrap: &Self) -> Self {
        bootstrap.clone()
    }
}

impl From<&String> for Bootstrap {
    fn from(addresses: &String) -> Self {
        Self::new(addresses)
    }
}

impl fmt::Display for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.addresses)
    }
}

/// What Kafka calls a security protocol: neither of both is PLAINTEXT, both are SASL_SSL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    /// TLS; none speaks in the clear.
    pub tls: Option<Tls>,
    /// Who we are; none is whoever the broker takes us for.
    pub sasl: Option<Sasl>,
}

impl Security {
    /// Authentication without TLS, for a connection that does not leave the machine.
    pub const fn sasl(sasl: Sasl) -> Self {
        Self { tls: None, sasl: Some(sasl) }
    }
}

/// A user and how it proves to be that user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sasl {
    /// How the password is shown.
    pub mechanism: Mechanism,
    /// User.
    pub username: String,
    /// Its password.
    pub password: Password,
}

/// A way to prove who one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The password itself is sent (RFC 4616).
    Plain,
    /// Neither side tells the other what it could be used for elsewhere (RFC 5802, 7677).
    ScramSha256,
    /// The same with SHA-512.
    ScramSha512,
}

impl Mechanism {
    /// All, the strongest last.
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::ScramSha256, Self::ScramSha512];

    /// Its name in the protocol and in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Password {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Password {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// Whom TLS trusts, and who we are to it. Files are read at each connection, so one that is renewed
/// counts from the next on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of the authorities that sign the brokers'; none: those that the system trusts.
    pub authorities: Option<Pem>,
    /// Our certificate with its chain, and its key.
    pub identity: Option<(Pem, Pem)>,
    /// Whether a broker's certificate has to name the host that was dialled.
    pub verify_host: bool,
}

impl Tls {
    /// Tries the settings, as a connection would use them.
    ///
    /// # Errors
    /// What is wrong with a file.
    pub fn check(&self) -> Result<(), String> {
        tls::check(self)
    }
}

impl Default for Tls {
    fn default() -> Self {
        Self { authorities: None, identity: None, verify_host: true }
    }
}

/// Something in PEM, and the setting that said where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pem {
    /// Setting, such as `ssl.truststore.location`.
    pub setting: &'static str,
    /// Where it is.
    pub place: PemPlace,
}

/// Where something in PEM is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PemPlace {
    /// In a file.
    File(PathBuf),
    /// In the setting itself.
    Text(Password),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_printed() {
        let sasl = Sasl {
            mechanism: Mechanism::Plain,
            username: "app".to_owned(),
            password: Password::from("s3cret"),
        };
        let bootstrap = Bootstrap::new("a:1").with(Security::sasl(sasl));
        let printed = format!("{bootstrap:?} {bootstrap}");
        assert!(printed.contains("hidden") && !printed.contains("s3cret"), "{printed}");
    }
}
