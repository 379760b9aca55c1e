//! What a topic is: name, id, partitions and settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_protocol::records::TimestampType;
use uuid::Uuid;

use crate::LogError;

/// The settings by the names Kafka gives them, as set for one topic.
pub type Overrides = BTreeMap<String, String>;

/// The most partitions one topic may have.
pub const MAX_PARTITIONS: i32 = 10_000;

/// A topic as it is now.
#[derive(Clone, Debug)]
pub struct TopicInfo {
    /// The name.
    pub name: String,
    /// The id that tells it from an earlier topic of the same name.
    pub id: Uuid,
    /// The number of partitions.
    pub partitions: i32,
    /// The settings.
    pub config: Arc<TopicConfig>,
}

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

/// The settings of a topic, read once from their texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicConfig {
    overrides: Overrides,
    /// `cleanup.policy`.
    pub cleanup: Cleanup,
    /// `retention.ms`; None for -1, for ever.
    pub retention_ms: Option<i64>,
    /// `retention.bytes` of a partition; None for -1, any size.
    pub retention_bytes: Option<u64>,
    /// `segment.bytes`.
    pub segment_bytes: u64,
    /// `segment.ms`.
    pub segment_ms: i64,
    /// `max.message.bytes`: the largest batch as it arrives, compressed.
    pub max_message_bytes: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u64,
    /// `highwater.flush`.
    pub flush: Flush,
}

/// One setting as it is in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigEntry {
    /// The name.
    pub name: &'static str,
    /// The value in force.
    pub value: String,
    /// The value when nothing is set.
    pub default: &'static str,
    /// True if set for this topic.
    pub overridden: bool,
}

/// Names and defaults: Kafka's own, and ours with the prefix `highwater.`.
const KNOWN: [(&str, &str); 10] = [
    ("cleanup.policy", "delete"),
    ("compression.type", "producer"),
    ("highwater.flush", "durable"),
    ("index.interval.bytes", "4096"),
    ("max.message.bytes", "1048588"),
    ("message.timestamp.type", "CreateTime"),
    ("retention.bytes", "-1"),
    ("retention.ms", "604800000"),
    ("segment.bytes", "1073741824"),
    ("segment.ms", "604800000"),
];

impl TopicConfig {
    /// Reads settings.
    ///
    /// # Errors
    /// [`LogError::InvalidConfig`] for a name that is not known or a value that does not fit.
    pub fn parse(overrides: Overrides) -> Result<Self, LogError> {
        for (name, value) in &overrides {
            if !KNOWN.iter().any(|(known, _)| known == name) {
                return Err(refuse(name, value, "this log does not know that setting"));
            }
        }
        let texts = Texts(&overrides);
        texts.choose("compression.type", |text| (text == "producer").then_some(()))?;
        Ok(Self {
            cleanup: texts.choose("cleanup.policy", parse_cleanup)?,
            retention_ms: texts.number("retention.ms", -1, i64::MAX)?.into_limit(),
            retention_bytes: texts
                .number("retention.bytes", -1, i64::MAX)?
                .into_limit()
                .map(i64::unsigned_abs),
            // A position in a segment is a signed 32-bit number in Kafka's index.
            segment_bytes: texts.number("segment.bytes", 1024, i64::from(i32::MAX))?.unsigned_abs(),
            segment_ms: texts.number("segment.ms", 1, i64::MAX)?,
            max_message_bytes: size(texts.number("max.message.bytes", 0, i64::from(i32::MAX))?),
            timestamp_type: texts.choose("message.timestamp.type", parse_timestamp_type)?,
            index_interval_bytes: texts
                .number("index.interval.bytes", 0, i64::from(i32::MAX))?
                .unsigned_abs(),
            flush: texts.choose("highwater.flush", parse_flush)?,
            overrides,
        })
    }

    /// What is set for this topic.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Every setting, as it is in force.
    pub fn entries(&self) -> Vec<ConfigEntry> {
        KNOWN
            .iter()
            .map(|&(name, default)| {
                let set = self.overrides.get(name);
                let value = set.cloned().unwrap_or_else(|| default.to_owned());
                ConfigEntry { name, value, default, overridden: set.is_some() }
            })
            .collect()
    }
}

impl Default for TopicConfig {
    /// Kafka's defaults, and `highwater.flush=durable`.
    fn default() -> Self {
        Self {
            overrides: Overrides::new(),
            cleanup: Cleanup { delete: true, compact: false },
            retention_ms: Some(604_800_000),
            retention_bytes: None,
            segment_bytes: 1 << 30,
            segment_ms: 604_800_000,
            max_message_bytes: 1_048_588,
            timestamp_type: TimestampType::CreateTime,
            index_interval_bytes: 4096,
            flush: Flush::Durable,
        }
    }
}

struct Texts<'a>(&'a Overrides);

impl Texts<'_> {
    fn text(&self, name: &str) -> &str {
        let default =
            || KNOWN.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
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
    for policy in text.split(',').map(str::trim) {
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

/// Kafka's rule for names of topics.
///
/// # Errors
/// [`LogError::InvalidTopic`].
pub fn check_name(name: &str) -> Result<(), LogError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = (1..=249).contains(&name.len()) && name.chars().all(legal);
    if fits && name != "." && name != ".." {
        return Ok(());
    }
    Err(LogError::InvalidTopic { name: name.to_owned() })
}
