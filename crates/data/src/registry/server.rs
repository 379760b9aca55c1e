//! The address of a registry, and the login to it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;

/// A login, as it is sent.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login(String);

impl Login {
    /// `user:password`.
    pub(crate) fn new(user_info: &str) -> Self {
        Self(format!("Basic {}", STANDARD.encode(user_info)))
    }

    pub(super) fn header(&self) -> &str {
        &self.0
    }
}

/// Nothing of it is shown.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// Where a server of a registry is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Server {
    secure: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// What stands before each path.
    pub(super) base: String,
    pub(super) login: Option<Login>,
}

impl Server {
    /// Reads an address; a login in it counts where none is given.
    pub(crate) fn new(url: &str, login: Option<Login>) -> Result<Self, String> {
        let wrong = || "must be http://host:port or https://host:port".to_owned();
        let uri: Uri = url.trim().parse().map_err(|_| wrong())?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        let within = authority.as_str().rsplit_once('@').map(|(login, _)| Login::new(login));
        Ok(Self {
            secure,
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            base: uri.path().trim_end_matches('/').to_owned(),
            login: login.or(within),
        })
    }

    pub(crate) const fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host without the brackets of an address.
    pub(super) fn bare_host(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }
}

/// Without the login.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}{}", self.host, self.port, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_shown_without_its_login() {
        let server = Server::new("https://ann:s3cret@registry.example/api/", None).unwrap();
        assert_eq!(server.to_string(), "https://registry.example:443/api");
        assert_eq!(server.login, Some(Login::new("ann:s3cret")));
        assert!(!format!("{server:?}").contains("s3cret"));
        assert_eq!(Server::new("http://[::1]:8081", None).unwrap().bare_host(), "::1");
        for wrong in ["registry:8081", "ftp://a", "http://", ""] {
            assert!(Server::new(wrong, None).is_err(), "{wrong}");
        }
    }
}
