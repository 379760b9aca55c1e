//! What a broker is told when it starts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use highwater_access::{Access, SubjectRules};
use highwater_log::Overrides;

use crate::sasl::SaslSettings;
use crate::tls::Tls;

/// Settings of a broker. [`BrokerConfig::local`] has the defaults.
#[derive(Clone, Debug)]
pub struct BrokerConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What Metadata tells clients to connect to; the address listened on when absent.
    pub advertise: Option<Endpoint>,
    /// Whether an address beyond loopback may be listened on without TLS and authentication.
    pub reach: Reach,
    /// Who may come in, and what each may do.
    pub access: Arc<Access>,
    /// How clients log in, where they have to.
    pub sasl: SaslSettings,
    /// TLS, if there is to be any.
    pub tls: Option<Arc<Tls>>,
    /// Which user a client certificate stands for.
    pub subjects: SubjectRules,
    /// The one broker's id.
    pub node_id: i32,
    /// Bounds on what clients may ask for.
    pub limits: Limits,
    /// Whether topics come into being by being named.
    pub auto_create: AutoCreate,
    /// Partitions of a topic whose creator leaves their number to the broker.
    pub default_partitions: i32,
    /// Settings that a topic gets when its creator leaves them out.
    pub topic_defaults: Overrides,
}

impl BrokerConfig {
    /// The defaults, listening on `listen`: for a log that a program embeds, in which everybody who
    /// connects is the program itself.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            advertise: None,
            reach: Reach::Loopback,
            access: Arc::new(Access::trusted()),
            sasl: SaslSettings::default(),
            tls: None,
            subjects: SubjectRules::default(),
            node_id: 0,
            limits: Limits::default(),
            auto_create: AutoCreate::Never,
            default_partitions: 1,
            topic_defaults: Overrides::new(),
        }
    }

    /// The defaults, on a free port of the loopback address.
    pub fn local() -> Self {
        Self::new(SocketAddr::from(([127, 0, 0, 1], 0)))
    }
}

/// A host and a port that clients can connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// From where a listener without TLS and authentication may be reached (rule A2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Loopback addresses only.
    Loopback,
    /// Any address: whoever can connect may read and write everything.
    Anywhere,
}

/// What happens when a client names a topic that does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AutoCreate {
    /// It gets an error.
    Never,
    /// The topic is made when the request allows it, too.
    WhenAsked,
}

/// Bounds on connections, memory and time.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections open at once. Kafka's `max.connections`; here the oldest one that has not
    /// brought a request yet makes room for a new one.
    pub connections: usize,
    /// Connections of one address open at once. Kafka's `max.connections.per.ip`; here the oldest
    /// one of the address that has not brought a request yet makes room for a new one.
    pub connections_per_address: usize,
    /// Requests of one connection that are begun and not yet answered.
    pub in_flight: usize,
    /// Bytes of a frame whose header names no API and version that we offer.
    pub unknown_frame_bytes: usize,
    /// Bytes of a request that carries no records: 30,000 partitions of a Fetch, or more.
    pub request_bytes: usize,
    /// Bytes of a Produce request. Kafka's `socket.request.max.bytes`.
    pub produce_bytes: usize,
    /// Bytes of records in a Fetch response. Kafka's `fetch.max.bytes` of a broker.
    pub fetch_bytes: usize,
    /// Bytes that all large requests and responses together may hold.
    pub memory_bytes: usize,
    /// Partitions that a topic may be made with.
    pub partitions_per_topic: i32,
    /// How long a connection may be silent between requests. Kafka's `connections.max.idle.ms`.
    pub idle: Duration,
    /// How long TLS and the login of a connection may take together.
    pub login: Duration,
    /// How long a peer may send or take no byte in the middle of a request or a response.
    pub stall: Duration,
    /// Bytes a second at which, beyond the time of one stall, a request must come and a response
    /// be taken.
    pub bytes_per_second: usize,
    /// How long a Fetch may wait for data, whatever it asks for.
    pub fetch_wait: Duration,
    /// How long a shutdown waits for answers that are under way.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_address: usize::MAX,
            in_flight: 64,
            unknown_frame_bytes: 16 << 10,
            request_bytes: 1 << 20,
            produce_bytes: 100 << 20,
            fetch_bytes: 55 << 20,
            memory_bytes: 512 << 20,
            partitions_per_topic: highwater_log::MAX_PARTITIONS,
            idle: Duration::from_secs(600),
            login: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            bytes_per_second: 4 << 10,
            fetch_wait: Duration::from_secs(300),
            shutdown: Duration::from_secs(5),
        }
    }
}
