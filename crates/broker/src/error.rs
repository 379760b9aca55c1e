//! Why a broker does not start.

use std::net::SocketAddr;

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// Another process listens there.
    #[error("the address {address} is taken; choose another one or stop who listens there")]
    AddressTaken {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("the address {address} cannot be listened on: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Clients could not be told where to connect (rule L9).
    #[error(
        "a broker that listens on {address} must be told which host and port its clients connect to"
    )]
    AdvertiseMissing {
        /// The wildcard address asked for.
        address: SocketAddr,
    },
    /// The address lies beyond loopback and nothing guards it (rule A2).
    #[error(
        "the address {address} can be reached from other machines, and there are not both TLS and authentication; give it both, listen on a loopback address, or allow it in so many words"
    )]
    Unguarded {
        /// The address asked for.
        address: SocketAddr,
    },
}

impl BrokerError {
    /// A code that stays the same from release to release.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::AddressTaken { .. } => "KAFKA_ADDRESS_TAKEN",
            Self::Listen { .. } => "KAFKA_LISTEN_FAILED",
            Self::AdvertiseMissing { .. } => "KAFKA_ADVERTISE_MISSING",
            Self::Unguarded { .. } => "KAFKA_LISTENER_UNGUARDED",
        }
    }

    /// Of a system that does not let an address be listened on.
    pub fn listening(address: SocketAddr, source: std::io::Error) -> Self {
        match source.kind() {
            std::io::ErrorKind::AddrInUse => Self::AddressTaken { address },
            _ => Self::Listen { address, source },
        }
    }
}
