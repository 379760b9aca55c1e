//! Debezium's forms of values, for a pipeline that is taken over from it (rule R6).
//!
//! Without them a value is the source's own text (rule R1). With them key and value are what
//! Kafka Connect's `JsonConverter` writes of Debezium's records under the stated modes.

use highwater_connector::Config;

/// The one converter that is known.
pub(crate) const JSON_CONVERTER: &str = "org.apache.kafka.connect.json.JsonConverter";

/// `decimal.handling.mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decimals {
    /// Connect's Decimal: the unscaled number's bytes.
    Precise,
    /// The digits.
    Text,
    /// A floating-point number.
    Double,
}

/// `time.precision.mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Times {
    /// Milliseconds or microseconds, as the column's precision asks for.
    Adaptive,
    /// The same, but times of day are microseconds.
    AdaptiveMicros,
    /// Connect's own types: milliseconds.
    Connect,
    /// ISO 8601 in UTC.
    Iso,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

/// `binary.handling.mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Binaries {
    /// Bytes, which JSON shows as base64.
    Bytes,
    /// A base64 text.
    Base64,
    /// The same in the alphabet for URLs.
    Base64Url,
    /// Hexadecimal digits.
    Hex,
}

/// `interval.handling.mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Intervals {
    /// Microseconds, a month being 30.4375 days.
    Micros,
    /// ISO 8601.
    Iso,
}

/// The forms that a configuration states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Forms {
    pub(crate) decimals: Decimals,
    pub(crate) times: Times,
    pub(crate) binaries: Binaries,
    pub(crate) intervals: Intervals,
    /// Whether keys bear their schema.
    pub(crate) key_schema: bool,
    /// Whether values bear their schema.
    pub(crate) value_schema: bool,
}

/// What a pipeline that is taken over has to state, each with Debezium's or Connect's default.
const STATED: [(&str, &str); 5] = [
    ("key.converter", JSON_CONVERTER),
    ("value.converter", JSON_CONVERTER),
    ("decimal.handling.mode", "precise"),
    ("time.precision.mode", "adaptive"),
    ("binary.handling.mode", "bytes"),
];

/// The modes that say what a value is without converters: the source's text.
const TEXT: [(&str, &str); 4] = [
    ("decimal.handling.mode", "string"),
    ("time.precision.mode", "isostring"),
    ("binary.handling.mode", "hex"),
    ("interval.handling.mode", ""),
];

impl Forms {
    /// The forms that a configuration states, if it states any.
    ///
    /// # Errors
    /// When it states them in part, or on a trail.
    pub(crate) fn read(config: &Config) -> Result<Option<Self>, String> {
        let converters = ["key.converter", "value.converter"];
        if converters.iter().all(|key| config.text(key).is_empty()) {
            return text_alone(config).map(|()| None);
        }
        let missing: Vec<String> = STATED
            .iter()
            .filter(|(key, _)| config.text(key).is_empty())
            .map(|(key, default)| format!("{key} (Debezium's default: {default})"))
            .collect();
        if !missing.is_empty() {
            return Err(format!(
                "a pipeline taken over from Debezium states all of its forms; missing: {}",
                missing.join(", ")
            ));
        }
        if config.text("topic.routing") != "table" {
            return Err("key.converter and value.converter need topic.routing=table".to_owned());
        }
        Ok(Some(Self::of(config)))
    }

    fn of(config: &Config) -> Self {
        Self {
            decimals: match config.text("decimal.handling.mode") {
                "string" => Decimals::Text,
                "double" => Decimals::Double,
                _ => Decimals::Precise,
            },
            times: match config.text("time.precision.mode") {
                "adaptive_time_microseconds" => Times::AdaptiveMicros,
                "connect" => Times::Connect,
                "isostring" => Times::Iso,
                "microseconds" => Times::Micros,
                "nanoseconds" => Times::Nanos,
                _ => Times::Adaptive,
            },
            binaries: match config.text("binary.handling.mode") {
                "base64" => Binaries::Base64,
                "base64-url-safe" => Binaries::Base64Url,
                "hex" => Binaries::Hex,
                _ => Binaries::Bytes,
            },
            intervals: match config.text("interval.handling.mode") {
                "string" => Intervals::Iso,
                _ => Intervals::Micros,
            },
            key_schema: config.flag("key.converter.schemas.enable"),
            value_schema: config.flag("value.converter.schemas.enable"),
        }
    }
}

fn text_alone(config: &Config) -> Result<(), String> {
    let other = TEXT.iter().find(|(key, text)| !["", text].contains(&config.text(key)));
    match other {
        None => Ok(()),
        Some((key, _)) => Err(format!(
            "{key}={} is a form of Debezium's: it needs key.converter and value.converter",
            config.text(key)
        )),
    }
}
