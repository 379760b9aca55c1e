//! Who speaks over a connection.

use std::net::SocketAddr;
use std::time::Instant;

use highwater_access::Principal;

/// Who speaks over a connection, from the login on.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) principal: Principal,
    pub(crate) peer: SocketAddr,
    pub(crate) origin: Origin,
    /// When the client has to have logged in again, if it has to (KIP-368).
    pub(crate) ends: Option<Instant>,
}

/// How it is known who somebody is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// Nobody logs in.
    Unlocked,
    /// By a certificate; a login may still follow.
    Certificate,
    /// By a login.
    Login,
}

impl Session {
    pub(crate) const fn new(principal: Principal, peer: SocketAddr, origin: Origin) -> Self {
        Self { principal, peer, origin, ends: None }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ends.is_some_and(|ends| ends <= Instant::now())
    }
}
