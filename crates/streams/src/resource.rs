//! A stream's configuration.

use serde::Serialize;
use serde_json::{Value, json};

use crate::contract::ContractHash;
use crate::encoding::Encoding;
use crate::fields::{Fields, Problem};
use crate::qos::QualityOfService;
use crate::trail::TopicPartition;

/// A checked stream configuration, every default spelled out.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    #[serde(rename = "$schema")]
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    source: Source,
    pub(crate) quality_of_service: QualityOfService,
    /// Bytes at which a message is sent though more records are at hand.
    pub(crate) buffer_size: u64,
    /// Seconds that a client may neither answer a ping nor take any data; pings go out three times
    /// as often, or every [`crate::Limits::ping_every`].
    pub(crate) tcp_keep_alive_timeout: u64,
    cloud_events_format: bool,
    encoding: EncodingAttribute,
}

/// What a stream reads.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
enum Source {
    /// A trail, which has one partition (rule R2).
    Trail { trail: String },
    /// One partition of a topic of a table; the only one when none is named.
    Topic {
        topic: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        partition: Option<i32>,
    },
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct EncodingAttribute {
    json: Encoding,
}

impl Resource {
    /// Checks a configuration.
    ///
    /// # Errors
    /// All problems at once.
    pub(crate) fn parse(value: &Value) -> Result<Self, Vec<Problem>> {
        let mut fields = Fields::of("", value);
        fields.constant("$schema", "ogg:dataStream");
        for name in ["cloudEventsFormat", "cloudEventFormat"] {
            fields.later(name, &json!(false), "use false");
        }
        if fields.get("rules").is_some() {
            fields.not_yet("rules", "leave it out to receive everything");
        }
        let resource = Self {
            schema: "ogg:dataStream",
            description: fields.text("description", 0..=4_096),
            source: source(&mut fields),
            quality_of_service: fields.choice(
                "qualityOfService",
                &QualityOfService::NAMES,
                QualityOfService::parse,
                QualityOfService::ExactlyOnce,
            ),
            buffer_size: fields.integer("bufferSize", 131_072..=10_485_760, 1_048_576),
            tcp_keep_alive_timeout: fields.integer("tcpKeepAliveTimeout", 1..=10_800, 120),
            cloud_events_format: false,
            encoding: EncodingAttribute { json: encoding(&mut fields) },
        };
        let problems = fields.finish();
        if problems.is_empty() { Ok(resource) } else { Err(problems) }
    }

    /// Topic and partition that it reads.
    pub(crate) fn source(&self) -> TopicPartition {
        match &self.source {
            Source::Trail { trail } => TopicPartition::first(trail),
            Source::Topic { topic, partition } => {
                TopicPartition { topic: topic.clone(), partition: partition.unwrap_or(0) }
            }
        }
    }

    /// Whether the partition is named, and not taken to be the only one.
    pub(crate) const fn names_partition(&self) -> bool {
        matches!(self.source, Source::Topic { partition: Some(_), .. })
    }

    pub(crate) const fn encoding(&self) -> &Encoding {
        &self.encoding.json
    }

    pub(crate) fn contract(&self) -> ContractHash {
        ContractHash::of(self.encoding())
    }

    /// The configuration as JSON.
    pub(crate) fn to_json(&self) -> Value {
        // A tree of texts, numbers and flags always serialises.
        serde_json::to_value(self).unwrap_or_default()
    }
}

fn encoding(fields: &mut Fields<'_>) -> Encoding {
    let Some(value) = fields.get("encoding") else { return Encoding::default() };
    let (encoding, problems) = Encoding::parse(value);
    fields.absorb(problems);
    encoding
}

fn source(fields: &mut Fields<'_>) -> Source {
    let nothing = || Source::Trail { trail: String::new() };
    let Some(value) = fields.get("source") else {
        let example = "must be given, as {\"trail\": \"NAME OF THE TOPIC\"}";
        fields.wrong("source", example);
        return nothing();
    };
    let mut source = Fields::of("source", value);
    source.later("path", &Value::Null, "a trail is a topic and has no folder, so leave it out");
    let partition = source.optional_integer("partition", 0..=i32::MAX as u64);
    let partition = partition.and_then(|partition| i32::try_from(partition).ok());
    let read = match (topic(&mut source, "trail"), topic(&mut source, "topic")) {
        (Some(trail), None) => {
            if partition.is_some() {
                source.wrong("partition", "goes with source.topic: a trail has one partition");
            }
            Source::Trail { trail }
        }
        (None, Some(topic)) => Source::Topic { topic, partition },
        (Some(_), Some(_)) => {
            source.wrong("topic", "cannot stand beside source.trail; name one of them");
            nothing()
        }
        (None, None) => {
            source.wrong("trail", "must name a topic: letters, digits and _ # $ / - .");
            nothing()
        }
    };
    fields.absorb(source.finish());
    read
}

/// The topic that an attribute names, if it stands there.
fn topic(source: &mut Fields<'_>, attribute: &'static str) -> Option<String> {
    let name = source.text(attribute, 2..=512)?;
    if !name.chars().all(allowed_in_trail) {
        source.wrong(attribute, "must name a topic: letters, digits and _ # $ / - .");
    }
    Some(name)
}

/// The original's alphabet and the dot, which topic names are full of.
fn allowed_in_trail(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_#$/-.".contains(c)
}

/// Whether a stream may have this name.
pub(crate) fn is_stream_name(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Applies a JSON Merge Patch (RFC 7396): `null` brings a default back.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(target) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            target.shift_remove(name);
        } else {
            merge(target.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
