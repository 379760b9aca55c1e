//! The settings of compaction.

use highwater_connector::{Config, ConfigKey, Importance, KeyType};
use highwater_log::CompactionConfig;

const INTERVAL: &str = "log.compaction_interval_ms";
const BUFFER: &str = "log.compaction_buffer_bytes";
const RATE: &str = "log.compaction_bytes_per_second";

pub(crate) fn keys() -> Vec<ConfigKey> {
    let number = |min, max| KeyType::Int { min, max };
    vec![
        ConfigKey::new(
            INTERVAL,
            number(100, 86_400_000),
            Some("15000"),
            Importance::Low,
            "How often compacted topics are looked at for what to compact, in milliseconds.",
        ),
        ConfigKey::new(
            BUFFER,
            number(65_536, 1 << 40),
            Some("33554432"),
            Importance::Medium,
            "Memory that a compaction pass may take for the newest offsets of keys, in bytes; a key takes 27. Where a pass meets more keys, it covers less, and the next one goes on from there.",
        ),
        ConfigKey::new(
            RATE,
            number(-1, i64::MAX),
            Some("-1"),
            Importance::Low,
            "The most bytes that compaction reads and writes a second; -1: no bound.",
        ),
    ]
}

pub(crate) fn config(config: &Config) -> CompactionConfig {
    CompactionConfig {
        interval: config.millis(INTERVAL),
        // The definition bounds it.
        buffer_bytes: usize::try_from(config.int(BUFFER)).unwrap_or(usize::MAX),
        bytes_per_second: u64::try_from(config.int(RATE)).ok().filter(|rate| *rate > 0),
    }
}
