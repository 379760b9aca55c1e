//! Who speaks over a connection.

use std::net::SocketAddr;
use std::time::Instant;

use highwater_access::Principal;

/// Who speaks over a connection, from the login on.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) principal: Principal,
    pub(crate) peer: SocketAddr,
    /// When the client has to have logged in again, if it has to.
    pub(crate) ends: Option<Instant>,
}

impl Session {
    pub(crate) const fn new(principal: Principal, peer: SocketAddr) -> Self {
        Self { principal, peer, ends: None }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ends.is_some_and(|ends| ends <= Instant::now())
    }
}
