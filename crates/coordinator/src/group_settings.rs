//! What groups may ask for, and how long is waited for them.

/// The settings of all groups, by Kafka's names where Kafka has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// `group.min.session.timeout.ms`.
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`.
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`: how long the first members of an empty group wait for others.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`: members of a group.
    pub max_size: usize,
    /// Groups there may be.
    pub max_groups: usize,
    /// Bytes of metadata and assignments that the members of a group may have together.
    pub max_group_bytes: usize,
    /// Bytes that all groups may take together, with their offsets.
    pub max_total_bytes: usize,
    /// Offsets a group may have.
    pub max_offsets: usize,
    /// `offset.metadata.max.bytes`.
    pub offset_metadata_max_bytes: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`.
    pub retention_check_interval_ms: i64,
}

impl Default for GroupSettings {
    /// Kafka's defaults, save that an empty group does not wait for more members and that everything has
    /// a bound.
    fn default() -> Self {
        Self {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            initial_rebalance_delay_ms: 0,
            max_size: 10_000,
            max_groups: 100_000,
            max_group_bytes: 8 << 20,
            max_total_bytes: 256 << 20,
            max_offsets: 100_000,
            offset_metadata_max_bytes: 4096,
            offsets_retention_ms: 10_080 * 60_000,
            retention_check_interval_ms: 600_000,
        }
    }
}
