//! The settings of a topic, read once from their texts.

use std::collections::BTreeMap;

use highwater_protocol::records::{Compression, TimestampType};

use crate::LogError;
use crate::hold::{FORM, HOLD_PREFIX, Hold, MAX_HOLDS};
use crate::topic_setting::{self, ConfigKind, TOPIC_SETTINGS};

/// The settings by the names Kafka gives them, as set for one topic.
pub type Overrides = BTreeMap<String, String>;

/// When an append is safe, and when it is seen (rule L1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// Visible and acknowledged once fsynced.
    Durable,
    /// Visible at once, fsynced every second.
    Interval,
    /// Visible at once, fsynced when the operating system likes (Kafka's own way).
    Os,
}

/// What removes old records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cleanup {
    /// Retention by time and size.
    pub delete: bool,
    /// Compaction by key: a record without a key is refused.
    pub compact: bool,
}

/// How batches are stored, where not as they come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredAs {
    /// The codec.
    pub codec: Compression,
    /// Its level; None for the codec's own.
    pub level: Option<i32>,
}

/// When the active segment ends. See the settings of these names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roll {
    /// `segment.bytes`.
    pub bytes: u64,
    /// `segment.ms`, or `max.compaction.lag.ms` where that is less and the topic is compacted.
    pub ms: i64,
    /// `segment.jitter.ms`.
    pub jitter_ms: i64,
    /// `segment.index.bytes`.
    pub index_bytes: u64,
}

/// How a topic is compacted. See the settings of these names.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Compaction {
    /// `min.cleanable.dirty.ratio`.
    pub min_dirty_ratio: f64,
    /// `min.compaction.lag.ms`.
    pub min_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_lag_ms: i64,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
}

/// When a sync begins by itself under a policy other than `durable`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlushBound {
    /// `flush.messages`.
    pub messages: i64,
    /// `flush.ms`.
    pub ms: i64,
}

/// How far the time of a record may lie from now, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimestampBound {
    /// `message.timestamp.before.max.ms`.
    pub before_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub after_ms: i64,
}

/// The settings of a topic, read once from their texts.
#[derive(Clone, PartialEq, Debug)]
pub struct TopicConfig {
    overrides: Overrides,
    /// `cleanup.policy`.
    pub cleanup: Cleanup,
    /// How it is compacted, if it is.
    pub compaction: Compaction,
    /// `retention.ms`; None for -1, for ever.
    pub retention_ms: Option<i64>,
    /// `retention.bytes` of a partition; None for -1, any size.
    pub retention_bytes: Option<u64>,
    /// When the active segment ends.
    pub roll: Roll,
    /// `max.message.bytes`: the largest batch, compressed.
    pub max_message_bytes: usize,
    /// `compression.type`; None for `producer`, as it comes.
    pub stored_as: Option<StoredAs>,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// How far records' times may lie from now.
    pub timestamp_bound: TimestampBound,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u64,
    /// `highwater.flush`.
    pub flush: Flush,
    /// When a sync begins by itself.
    pub flush_bound: FlushBound,
    /// `highwater.archive`; None for `default`, which the server's settings decide.
    pub archive: Option<bool>,
    /// `highwater.hold.NAME`, by name.
    pub holds: Vec<Hold>,
}

/// One setting as it is in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigEntry {
    /// The name.
    pub name: String,
    /// The value in force.
    pub value: String,
    /// The value when nothing is set, if the setting has one.
    pub default: Option<&'static str>,
    /// The type of the value.
    pub kind: ConfigKind,
    /// True if set for this topic.
    pub overridden: bool,
}

impl TopicConfig {
    /// Reads settings.
    ///
    /// # Errors
    /// [`LogError::InvalidConfig`] for a name that is not known or a value that does not fit.
    pub fn parse(overrides: Overrides) -> Result<Self, LogError> {
        let holds = check_names(&overrides)?;
        let texts = Texts(&overrides);
        texts.check_without_effect()?;
        let cleanup = texts.choose("cleanup.policy", parse_cleanup)?;
        let compaction = texts.compaction()?;
        Ok(Self {
            cleanup,
            compaction,
            retention_ms: texts.number("retention.ms", -1, i64::MAX)?.into_limit(),
            retention_bytes: texts
                .number("retention.bytes", -1, i64::MAX)?
                .into_limit()
                .map(i64::unsigned_abs),
            roll: texts.roll(cleanup, compaction)?,
            max_message_bytes: size(texts.number("max.message.bytes", 0, INT_MAX)?),
            stored_as: texts.stored_as()?,
            timestamp_type: texts.choose("message.timestamp.type", parse_timestamp_type)?,
            timestamp_bound: TimestampBound {
                before_ms: texts.number("message.timestamp.before.max.ms", 0, i64::MAX)?,
                after_ms: texts.number("message.timestamp.after.max.ms", 0, i64::MAX)?,
            },
            index_interval_bytes: texts.number("index.interval.bytes", 0, INT_MAX)?.unsigned_abs(),
            flush: texts.choose("highwater.flush", parse_flush)?,
            flush_bound: FlushBound {
                messages: texts.number("flush.messages", 1, i64::MAX)?,
                ms: texts.number("flush.ms", 0, i64::MAX)?,
            },
            archive: texts.archive(cleanup)?,
            holds,
            overrides,
        })
    }

    /// What is set for this topic.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// `highwater.owner`: who alone writes the topic.
    pub fn owner(&self) -> Option<&str> {
        self.overrides.get("highwater.owner").map(String::as_str).filter(|owner| !owner.is_empty())
    }

    /// Every setting, as it is in force.
    pub fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |setting: &topic_setting::TopicSetting| {
            let set = self.overrides.get(setting.name);
            ConfigEntry {
                name: setting.name.to_owned(),
                value: set.cloned().unwrap_or_else(|| setting.default.to_owned()),
                default: Some(setting.default),
                kind: setting.kind,
                overridden: set.is_some(),
            }
        };
        let holds = self.overrides.iter().filter(|(name, _)| name.starts_with(HOLD_PREFIX));
        let holds = holds.map(|(name, value)| ConfigEntry {
            name: name.clone(),
            value: value.clone(),
            default: None,
            kind: ConfigKind::String,
            overridden: true,
        });
        TOPIC_SETTINGS.iter().map(entry).chain(holds).collect()
    }
}

impl Default for TopicConfig {
    /// Kafka's defaults, and `highwater.flush=durable`.
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "a test reads the defaults")]
        Self::parse(Overrides::new()).expect("the defaults are values of their settings")
    }
}

/// Refuses names that are not known; answers the holds.
fn check_names(overrides: &Overrides) -> Result<Vec<Hold>, LogError> {
    let mut holds = Vec::new();
    for (name, value) in overrides {
        if let Some(hold) = name.strip_prefix(HOLD_PREFIX) {
            holds.push(Hold::parse(hold, value).ok_or_else(|| refuse(name, value, FORM))?);
            if holds.len() > MAX_HOLDS {
                return Err(refuse(name, value, "a topic has 100 holds at most"));
            }
        } else if topic_setting::find(name).is_none() {
            return Err(refuse(name, value, "this log does not know that setting"));
        }
    }
    Ok(holds)
}

const INT_MAX: i64 = i32::MAX as i64;

struct Texts<'a>(&'a Overrides);

impl Texts<'_> {
    fn text(&self, name: &str) -> &str {
        let default = || topic_setting::find(name).map_or("", |setting| setting.default);
        self.0.get(name).map_or_else(default, String::as_str)
    }

    fn number(&self, name: &str, least: i64, most: i64) -> Result<i64, LogError> {
        let text = self.text(name);
        text.trim()
            .parse()
            .ok()
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| refuse(name, text, &format!("give a number from {least} to {most}")))
    }

    fn choose<T>(&self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, LogError> {
        let text = self.text(name);
        parse(text.trim()).ok_or_else(|| refuse(name, text, "this log does not offer that value"))
    }

    fn compaction(&self) -> Result<Compaction, LogError> {
        let compaction = Compaction {
            min_dirty_ratio: self.choose("min.cleanable.dirty.ratio", |text| {
                text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio))
            })?,
            min_lag_ms: self.number("min.compaction.lag.ms", 0, i64::MAX)?,
            max_lag_ms: self.number("max.compaction.lag.ms", 1, i64::MAX)?,
            delete_retention_ms: self.number("delete.retention.ms", 0, i64::MAX)?,
        };
        if compaction.min_lag_ms > compaction.max_lag_ms {
            let (name, text) = ("min.compaction.lag.ms", self.text("min.compaction.lag.ms"));
            return Err(refuse(name, text, "it is above max.compaction.lag.ms"));
        }
        Ok(compaction)
    }

    fn archive(&self, cleanup: Cleanup) -> Result<Option<bool>, LogError> {
        let archive = self.choose("highwater.archive", |text| match text {
            "default" => Some(None),
            "true" => Some(Some(true)),
            "false" => Some(Some(false)),
            _ => None,
        })?;
        if cleanup.compact && archive == Some(true) {
            let reason = "what compaction takes is not archived; set cleanup.policy=delete";
            return Err(refuse("highwater.archive", "true", reason));
        }
        Ok(archive)
    }

    fn roll(&self, cleanup: Cleanup, compaction: Compaction) -> Result<Roll, LogError> {
        let ms = self.number("segment.ms", 1, i64::MAX)?;
        Ok(Roll {
            // A position in a segment is a signed 32-bit number in Kafka's index.
            bytes: self.number("segment.bytes", 1024, INT_MAX)?.unsigned_abs(),
            ms: if cleanup.compact { ms.min(compaction.max_lag_ms) } else { ms },
            jitter_ms: self.number("segment.jitter.ms", 0, i64::MAX)?,
            index_bytes: self.number("segment.index.bytes", 4, INT_MAX)?.unsigned_abs(),
        })
    }

    fn stored_as(&self) -> Result<Option<StoredAs>, LogError> {
        let level = |name: &str, own: i32, least: i32, most: i32| {
            self.choose(name, |text| {
                let level = text.parse().ok();
                level.filter(|level| *level == own || (least..=most).contains(level))
            })
        };
        let gzip = level("compression.gzip.level", -1, 1, 9)?;
        level("compression.lz4.level", 9, 1, 17)?;
        let zstd = level("compression.zstd.level", 3, -131_072, 22)?;
        self.choose("compression.type", |text| {
            let stored = |codec, level| Some(Some(StoredAs { codec, level }));
            match text {
                "producer" => Some(None),
                "uncompressed" => stored(Compression::None, None),
                "gzip" => stored(Compression::Gzip, Some(gzip).filter(|level| *level > 0)),
                "snappy" => stored(Compression::Snappy, None),
                "lz4" => stored(Compression::Lz4, None),
                "zstd" => stored(Compression::Zstd, Some(zstd)),
                _ => None,
            }
        })
    }

    /// Those that are taken and do nothing must have a value that Kafka would take.
    fn check_without_effect(&self) -> Result<(), LogError> {
        self.number("file.delete.delay.ms", 0, i64::MAX)?;
        self.number("min.insync.replicas", 1, INT_MAX)?;
        for name in ["preallocate", "unclean.leader.election.enable"] {
            self.choose(name, |text| matches!(text, "true" | "false").then_some(()))?;
        }
        self.choose("remote.storage.enable", |text| (text == "false").then_some(()))?;
        for side in ["follower", "leader"] {
            let name = format!("{side}.replication.throttled.replicas");
            self.choose(&name, |text| is_replicas(text).then_some(()))?;
        }
        Ok(())
    }
}

/// `*`, or pairs of partition and broker, `0:1,1:1`.
fn is_replicas(text: &str) -> bool {
    let is_pair = |pair: &str| {
        let numbers = pair.trim().split_once(':');
        numbers
            .is_some_and(|(one, other)| one.parse::<u32>().is_ok() && other.parse::<u32>().is_ok())
    };
    text.is_empty() || text == "*" || text.split(',').all(is_pair)
}

/// -1 means without limit.
trait Limit {
    fn into_limit(self) -> Option<i64>;
}

impl Limit for i64 {
    fn into_limit(self) -> Option<i64> {
        (self >= 0).then_some(self)
    }
}

fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn refuse(name: &str, value: &str, reason: &str) -> LogError {
    LogError::InvalidConfig {
        name: name.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
    }
}

fn parse_cleanup(text: &str) -> Option<Cleanup> {
    let mut cleanup = Cleanup { delete: false, compact: false };
    // None: everything stays (KIP-1161).
    let policies = text.split(',').map(str::trim).filter(|_| !text.is_empty());
    for policy in policies {
        match policy {
            "delete" => cleanup.delete = true,
            "compact" => cleanup.compact = true,
            _ => return None,
        }
    }
    Some(cleanup)
}

fn parse_timestamp_type(text: &str) -> Option<TimestampType> {
    match text {
        "CreateTime" => Some(TimestampType::CreateTime),
        "LogAppendTime" => Some(TimestampType::LogAppendTime),
        _ => None,
    }
}

fn parse_flush(text: &str) -> Option<Flush> {
    match text {
        "durable" => Some(Flush::Durable),
        "interval" => Some(Flush::Interval),
        "os" => Some(Flush::Os),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(set: &[(&str, &str)]) -> Result<TopicConfig, LogError> {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        TopicConfig::parse(set.iter().map(text).collect())
    }

    #[test]
    fn the_defaults_are_kafkas_and_durable() {
        let config = TopicConfig::default();
        let week = 604_800_000;
        assert_eq!(config.cleanup, Cleanup { delete: true, compact: false });
        let neither = parse(&[("cleanup.policy", "")]).unwrap().cleanup;
        assert_eq!(neither, Cleanup { delete: false, compact: false });
        assert!(parse(&[("cleanup.policy", "delete,")]).is_err());
        assert_eq!((config.retention_ms, config.retention_bytes), (Some(week), None));
        let roll = Roll { bytes: 1 << 30, ms: week, jitter_ms: 0, index_bytes: 10 << 20 };
        assert_eq!((config.roll, config.index_interval_bytes), (roll, 4096));
        assert_eq!((config.max_message_bytes, config.stored_as), (1_048_588, None));
        let bound = TimestampBound { before_ms: i64::MAX, after_ms: 3_600_000 };
        assert_eq!(config.timestamp_bound, bound);
        assert_eq!(config.timestamp_type, TimestampType::CreateTime);
        assert_eq!(config.compaction.delete_retention_ms, 86_400_000);
        assert_eq!((config.flush, config.archive), (Flush::Durable, None));
        assert!(config.overrides().is_empty() && config.holds.is_empty());
    }

    #[test]
    fn every_default_can_be_set() {
        for setting in TOPIC_SETTINGS {
            let set = parse(&[(setting.name, setting.default)]).unwrap();
            assert_eq!(set.retention_ms, TopicConfig::default().retention_ms, "{}", setting.name);
        }
    }

    #[test]
    fn what_one_node_has_no_use_for_is_taken_and_shown() {
        let set = [
            ("min.insync.replicas", "2"),
            ("unclean.leader.election.enable", "true"),
            ("preallocate", "true"),
            ("file.delete.delay.ms", "60000"),
            ("leader.replication.throttled.replicas", "0:1,1:1"),
            ("follower.replication.throttled.replicas", "*"),
            ("remote.storage.enable", "false"),
        ];
        let entries = parse(&set).unwrap().entries();
        for (name, value) in set {
            let entry = entries.iter().find(|entry| entry.name == name).unwrap();
            assert_eq!((entry.value.as_str(), entry.overridden), (value, true), "{name}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        for (name, value) in [
            ("remote.storage.enable", "true"),
            ("local.retention.ms", "1"),
            ("message.downconversion.enable", "true"),
            ("message.format.version", "3.0"),
            ("min.cleanable.dirty.ratio", "1.1"),
            ("min.cleanable.dirty.ratio", "NaN"),
            ("max.compaction.lag.ms", "0"),
            ("min.insync.replicas", "0"),
            ("preallocate", "yes"),
            ("compression.type", "brotli"),
            ("compression.gzip.level", "0"),
            ("compression.zstd.level", "23"),
            ("leader.replication.throttled.replicas", "0-1"),
            ("segment.index.bytes", "3"),
            ("segment.jitter.ms", "-1"),
            ("delete.retention.ms", "-1"),
        ] {
            let error = parse(&[(name, value)]).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        assert!(parse(&[("min.compaction.lag.ms", "5"), ("max.compaction.lag.ms", "4")]).is_err());
    }

    #[test]
    fn a_compacted_topic_ends_its_segments_in_time_for_the_greatest_lag() {
        let lag = ("max.compaction.lag.ms", "1000");
        assert_eq!(parse(&[lag]).unwrap().roll.ms, 604_800_000);
        assert_eq!(parse(&[lag, ("cleanup.policy", "compact")]).unwrap().roll.ms, 1000);
    }
}
