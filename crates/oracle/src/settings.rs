//! The configuration: what the keys of a connector mean.

mod database;
mod engine;
mod fingerprint;
mod keys;
mod parts;
mod problems;
#[cfg(test)]
pub(crate) mod sample;
mod topics;

use std::path::PathBuf;
use std::time::Duration;

use highwater_connector::{Config, Problem, Routing};

use crate::Scn;
use crate::delivery::OwnTopics;
use crate::mining::{CaptureMode, MiningMode, MiningSettings};
use crate::schema::{KeyRules, MissingKey};
use crate::statement::Quoting;
use crate::transaction::age::AgeLimit;
use crate::transaction::buffer::BufferSettings;
use crate::transaction::lob_assembler::{LobMode, LobSettings};
use crate::transaction::orphans::OrphanSettings;

pub use database::{DatabaseSettings, Target};
pub use fingerprint::fingerprint;
pub use keys::definition;
pub use parts::{JournalSettings, RecordSettings, StatementSettings, TableSettings};
pub use problems::problems;
pub use topics::own_topics;

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// See [`DatabaseSettings`].
    pub database: DatabaseSettings,
    /// See [`TableSettings`].
    pub tables: TableSettings,
    /// How keys are chosen.
    pub keys: KeyRules,
    /// See [`MiningSettings`].
    pub mining: MiningSettings,
    /// See [`StatementSettings`].
    pub statements: StatementSettings,
    /// See [`BufferSettings`].
    pub buffer: BufferSettings,
    /// See [`JournalSettings`].
    pub journal: JournalSettings,
    /// See [`AgeLimit`].
    pub age: AgeLimit,
    /// See [`OrphanSettings`].
    pub orphans: OrphanSettings,
    /// See [`LobSettings`].
    pub lobs: LobSettings,
    /// See [`RecordSettings`].
    pub records: RecordSettings,
    /// See [`OwnTopics`].
    pub topics: OwnTopics,
    /// How `SQL_REDO` writes a quote inside of a text.
    pub quoting: Quoting,
    /// After how long without a record a heartbeat stores the position; `None`: only at a start.
    pub heartbeat: Option<Duration>,
    /// Records that one poll yields at most.
    pub poll_max_records: usize,
    /// How long a poll waits for a first record.
    pub poll_linger: Duration,
}

impl Settings {
    /// What a configuration that fits [`definition`] means.
    ///
    /// # Errors
    /// All that does not hold together, by the key that is at fault.
    pub fn new(config: &Config) -> Result<Self, Vec<Problem>> {
        let problems = problems(config);
        if !problems.is_empty() {
            return Err(problems);
        }
        let one = |problem| vec![problem];
        let heartbeat = config.millis("cdc.heartbeat.interval.ms");
        Ok(Self {
            database: DatabaseSettings::read(config).map_err(one)?,
            tables: TableSettings::read(config).map_err(one)?,
            keys: keys_of(config).map_err(one)?,
            mining: mining(config),
            statements: StatementSettings::read(config).map_err(one)?,
            buffer: buffer(config),
            journal: JournalSettings::read(config),
            age: parts::age(config),
            orphans: parts::orphans(config),
            lobs: lobs(config),
            records: RecordSettings::read(config),
            topics: own_topics(config),
            quoting: match config.text("cdc.decode.quoting") {
                "relaxed" => Quoting::Relaxed,
                _ => Quoting::Strict,
            },
            heartbeat: Some(heartbeat).filter(|interval| !interval.is_zero()),
            poll_max_records: size(config, "cdc.poll.max.records"),
            poll_linger: config.millis("cdc.poll.linger.ms"),
        })
    }
}

/// Where the records of a connector with this configuration go.
pub fn routing(config: &Config) -> Routing {
    let prefix = config.text("cdc.topic.prefix").to_owned();
    match config.text("topic.routing") {
        "table" => Routing::Tables(prefix),
        _ => Routing::Trail(prefix),
    }
}

fn keys_of(config: &Config) -> Result<KeyRules, Problem> {
    let missing = match config.text("cdc.key.missing") {
        "rowid" => MissingKey::RowId,
        "none" => MissingKey::None,
        _ => MissingKey::Fail,
    };
    KeyRules::parse(config.text("cdc.key.columns"), missing)
        .map_err(|what| Problem::new("cdc.key.columns", what))
}

fn mining(config: &Config) -> MiningSettings {
    let destination = config.text("cdc.archive.destination").to_owned();
    let users = config.list("cdc.users.exclude").into_iter();
    let start = config.int("cdc.start.scn").unsigned_abs();
    MiningSettings {
        capture: match config.text("cdc.capture.mode") {
            "archive_only" => CaptureMode::ArchiveOnly,
            _ => CaptureMode::Online,
        },
        mode: match config.text("cdc.mining.mode") {
            "logs" => MiningMode::Logs,
            "range" => MiningMode::Range,
            _ => MiningMode::Auto,
        },
        start_scn: (start > 0).then_some(Scn(start)),
        archive_destination: Some(destination).filter(|name| !name.is_empty()),
        target_latency: config.millis("cdc.mining.target.latency.ms"),
        max_logs_per_step: u32::try_from(config.int("cdc.mining.max.logs.per.step")).unwrap_or(1),
        session_max_age: config.millis("cdc.mining.session.max.age.ms"),
        retry_max_time: config.millis("cdc.retry.max.time.ms"),
        is_rac_enabled: config.flag("cdc.rac.enabled"),
        excluded_users: users.map(str::to_owned).collect(),
        stage_max_bytes: size(config, "cdc.mining.stage.max.bytes"),
        stage_directory: Some(spill_directory(config)),
    }
}

fn buffer(config: &Config) -> BufferSettings {
    BufferSettings {
        memory_max_bytes: config.int("cdc.buffer.memory.max.bytes").unsigned_abs(),
        spill_dir: spill_directory(config),
        spill_max_bytes: config.int("cdc.buffer.spill.max.bytes").unsigned_abs(),
    }
}

fn spill_directory(config: &Config) -> PathBuf {
    match config.text("cdc.buffer.spill.dir") {
        "" => std::env::temp_dir().join(format!("highwater-{}", config.text("cdc.topic.prefix"))),
        path => PathBuf::from(path),
    }
}

fn lobs(config: &Config) -> LobSettings {
    let mode = match config.text("cdc.lob.mode") {
        "inline" => LobMode::Inline,
        "reselect" => LobMode::Reselect,
        _ => LobMode::Skip,
    };
    LobSettings { mode, max_bytes: config.int("cdc.lob.max.bytes").unsigned_abs() }
}

fn size(config: &Config, name: &str) -> usize {
    usize::try_from(config.int(name)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::sample::config;

    #[test]
    fn the_least_configuration_holds_together() {
        let settings = Settings::new(&config(&[])).unwrap();
        assert_eq!(settings.lobs, LobSettings { mode: LobMode::Skip, max_bytes: 1 << 20 });
        assert_eq!(settings.heartbeat, Some(Duration::from_secs(10)));
        assert_eq!(settings.keys, KeyRules::default());
        assert_eq!(settings.poll_max_records, 2000);
        let spilled = std::env::temp_dir().join("highwater-shop");
        assert_eq!(settings.buffer.spill_dir, spilled);
        let mining = MiningSettings { stage_directory: Some(spilled), ..MiningSettings::default() };
        assert_eq!(settings.mining, mining);
        assert_eq!(routing(&config(&[])), Routing::Trail("shop".to_owned()));
    }

    #[test]
    fn values_mean_what_they_say() {
        let config = config(&[
            ("cdc.lob.mode", "reselect"),
            ("cdc.heartbeat.interval.ms", "0"),
            ("cdc.decode.quoting", "relaxed"),
            ("cdc.key.missing", "rowid"),
            ("cdc.key.columns", "HR.EMP:ID"),
            ("topic.routing", "table"),
            ("cdc.capture.mode", "archive_only"),
            ("cdc.mining.mode", "logs"),
            ("cdc.start.scn", "4711"),
            ("cdc.archive.destination", "LOG_ARCHIVE_DEST_2"),
            ("cdc.users.exclude", "LOADER, BATCH"),
            ("cdc.rac.enabled", "true"),
            ("cdc.buffer.spill.dir", "/var/spill"),
            ("cdc.buffer.memory.max.bytes", "20000000"),
        ]);
        let settings = Settings::new(&config).unwrap();
        let mining = &settings.mining;
        assert_eq!((mining.capture, mining.mode), (CaptureMode::ArchiveOnly, MiningMode::Logs));
        assert_eq!((mining.start_scn, mining.is_rac_enabled), (Some(Scn(4711)), true));
        assert_eq!(mining.archive_destination.as_deref(), Some("LOG_ARCHIVE_DEST_2"));
        assert_eq!(mining.excluded_users, ["LOADER", "BATCH"]);
        assert_eq!(settings.buffer.memory_max_bytes, 20_000_000);
        assert_eq!(settings.buffer.spill_dir, PathBuf::from("/var/spill"));
        assert_eq!(settings.lobs.mode, LobMode::Reselect);
        assert_eq!((settings.heartbeat, settings.quoting), (None, Quoting::Relaxed));
        assert_eq!(settings.keys, KeyRules::parse("HR.EMP:ID", MissingKey::RowId).unwrap());
        assert_eq!(routing(&config), Routing::Tables("shop".to_owned()));
    }
}
