//! Settings that say how redo is mined.

use std::path::PathBuf;
use std::time::Duration;

use crate::Scn;

/// Which logs are mined (`cdc.capture.mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CaptureMode {
    /// Archived logs and online ones.
    #[default]
    Online,
    /// Archived logs alone.
    ArchiveOnly,
}

/// How logs reach LogMiner (`cdc.mining.mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MiningMode {
    /// As the session allows it: a range inside a pluggable database, else logs.
    #[default]
    Auto,
    /// The engine names the logs.
    Logs,
    /// The engine names a range, and the database finds the logs itself.
    Range,
}

/// Settings that say how redo is mined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MiningSettings {
    /// See [`CaptureMode`].
    pub capture: CaptureMode,
    /// See [`MiningMode`].
    pub mode: MiningMode,
    /// Where a first start begins (`cdc.start.scn`).
    pub start_scn: Option<Scn>,
    /// Name of the archive destination that is read (`cdc.archive.destination`).
    pub archive_destination: Option<String>,
    /// Steps that took less may be followed by larger ones (`cdc.mining.target.latency.ms`).
    pub target_latency: Duration,
    /// Logs that one step reads at most (`cdc.mining.max.logs.per.step`).
    pub max_logs_per_step: u32,
    /// After how long the session is opened anew (`cdc.mining.session.max.age.ms`).
    pub session_max_age: Duration,
    /// For how long a lost database is tried again (`cdc.retry.max.time.ms`).
    pub retry_max_time: Duration,
    /// Whether several redo threads are mined (`cdc.rac.enabled`).
    pub is_rac_enabled: bool,
    /// Users whose changes and transactions are left out (`cdc.users.exclude`).
    pub excluded_users: Vec<String>,
    /// Bytes of memory that the rows of a step take at most; what is above goes to a file.
    pub stage_max_bytes: usize,
    /// Where that file is made (`cdc.buffer.spill.dir`); the system's place without it.
    pub stage_directory: Option<PathBuf>,
}

impl Default for MiningSettings {
    fn default() -> Self {
        Self {
            capture: CaptureMode::default(),
            mode: MiningMode::default(),
            start_scn: None,
            archive_destination: None,
            target_latency: Duration::from_secs(2),
            max_logs_per_step: 8,
            session_max_age: Duration::from_hours(1),
            retry_max_time: Duration::from_hours(24),
            is_rac_enabled: false,
            excluded_users: Vec::new(),
            stage_max_bytes: 64 << 20,
            stage_directory: None,
        }
    }
}
