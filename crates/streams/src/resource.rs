//! A stream's configuration.

use serde::Serialize;
use serde_json::{Value, json};

use crate::contract::ContractHash;
use crate::encoding::Encoding;
use crate::fields::{Fields, Problem};
use crate::qos::QualityOfService;

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

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Source {
    trail: String,
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
            source: Source { trail: trail(&mut fields) },
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

    /// Topic that it reads.
    pub(crate) fn trail(&self) -> &str {
        &self.source.trail
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

fn trail(fields: &mut Fields<'_>) -> String {
    let Some(value) = fields.get("source") else {
        fields.wrong("source", "must be given, as {\"trail\": \"NAME OF THE TOPIC\"}");
        return String::new();
    };
    let mut source = Fields::of("source", value);
    source.later("path", &Value::Null, "a trail is a topic and has no folder, so leave it out");
    let trail = source.text("trail", 2..=512).unwrap_or_default();
    if trail.is_empty() || !trail.chars().all(allowed_in_trail) {
        source.wrong("trail", "must name a topic: letters, digits and _ # $ / - .");
    }
    fields.absorb(source.finish());
    trail
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
