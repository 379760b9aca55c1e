//! Settings of the streams service.

use std::time::Duration;

use highwater_kafka::Bootstrap;

/// What [`crate::Streams::start`] needs to know.
#[derive(Clone, Debug)]
pub struct StreamsConfig {
    /// Where the log is, and how it is spoken to.
    pub bootstrap: Bootstrap,
    /// Compacted topic that keeps the stream resources; made when missing.
    pub state_topic: String,
    /// Bounds and times.
    pub limits: Limits,
}

impl StreamsConfig {
    /// The defaults over the log at `bootstrap`.
    pub fn new(bootstrap: impl Into<Bootstrap>) -> Self {
        Self {
            bootstrap: bootstrap.into(),
            state_topic: "highwater.streams".to_owned(),
            limits: Limits::default(),
        }
    }
}

/// Bounds and times of streams and sessions.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Streams that may exist.
    pub streams: usize,
    /// Connections to all streams together.
    pub sessions: usize,
    /// Connections to one stream.
    pub sessions_per_stream: usize,
    /// How long a position above the end of the log is waited for (rule S2).
    pub hold_ahead: Duration,
    /// Records that `begin=now` reads back to learn the marks of the lanes.
    pub look_back: u64,
    /// How often an open connection is pinged, at most.
    pub ping_every: Duration,
    /// How long a record waits for the description of its table.
    pub table_wait: Duration,
    /// How long a session goes on trying to reach the log.
    pub log_patience: Duration,
    /// Bytes asked of the log at once, at most.
    pub fetch_bytes: u32,
    /// How long a record waits for others to share its message while more are at hand (rule S4).
    pub linger: Duration,
    /// How long a session tries to send its last message and the close frame.
    pub close_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams: 1_000,
            sessions: 1_000,
            sessions_per_stream: 100,
            hold_ahead: Duration::from_secs(5),
            look_back: 20_000,
            ping_every: Duration::from_secs(20),
            table_wait: Duration::from_secs(5),
            log_patience: Duration::from_secs(30),
            fetch_bytes: 1 << 20,
            linger: Duration::from_millis(5),
            close_wait: Duration::from_secs(2),
        }
    }
}
