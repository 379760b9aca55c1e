//! The query of a connection: where to begin, and how.

use crate::position::LONGEST;
use crate::qos::{OnGone, QualityOfService};
use crate::refusal::Refusal;

/// Where a connection begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Begin {
    /// The oldest record that is kept.
    Earliest,
    /// Behind the newest record.
    Now,
    /// Behind the record with this token.
    Position(String),
}

impl Begin {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Earliest => "earliest",
            Self::Now => "now",
            Self::Position(_) => "pos",
        }
    }
}

/// What a client asks of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ConnectionRequest {
    pub(crate) begin: Begin,
    pub(crate) quality_of_service: QualityOfService,
    pub(crate) on_gone: OnGone,
}

impl ConnectionRequest {
    /// Reads the decoded pairs of a query. `default` is the stream's quality of service.
    ///
    /// # Errors
    /// A parameter that is unknown, repeated or malformed.
    pub(crate) fn parse(
        pairs: &[(String, String)],
        default: QualityOfService,
    ) -> Result<Self, Refusal> {
        if let Some((name, _)) = pairs.iter().find(|(name, _)| !KNOWN.contains(&name.as_str())) {
            return Err(Refusal::bad_request(
                "parameter_unknown",
                format!("the query parameter {name} is not known"),
                format!("use only {}", KNOWN.join(", ")),
            ));
        }
        let quality_of_service = quality_of_service(one(pairs, "qualityOfService")?, default)?;
        Ok(Self {
            begin: begin(one(pairs, "begin")?)?,
            quality_of_service,
            on_gone: on_gone(one(pairs, "onGone")?, quality_of_service)?,
        })
    }
}

const KNOWN: [&str; 3] = ["begin", "onGone", "qualityOfService"];

/// The value of a parameter that may stand at most once.
fn one<'a>(pairs: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut values = pairs.iter().filter(|(given, _)| given == name).map(|(_, value)| value);
    let first = values.next().map(String::as_str);
    match values.next() {
        None => Ok(first),
        Some(_) => Err(Refusal::bad_request(
            "parameter_repeated",
            format!("the query parameter {name} stands more than once"),
            format!("give {name} once"),
        )),
    }
}

fn begin(value: Option<&str>) -> Result<Begin, Refusal> {
    match value {
        None | Some("earliest") => Ok(Begin::Earliest),
        Some("now") => Ok(Begin::Now),
        Some(value) if looks_like_time(value) => Err(Refusal::bad_request(
            "begin_time_unavailable",
            format!("begin is the time {value}; beginning at a time comes in a later release"),
            "use begin=earliest, begin=now or a saved pos",
        )),
        Some(value) if looks_like_token(value) => Ok(Begin::Position(value.to_owned())),
        Some(_) => Err(Refusal::bad_request(
            "begin_malformed",
            "begin is neither earliest, nor now, nor a pos as it was given out",
            "give the pos back unchanged, percent-encoded at most once, or use begin=earliest",
        )),
    }
}

/// A date at the front: four digits, a dash, two digits, a dash.
fn looks_like_time(value: &str) -> bool {
    let shape: String =
        value.chars().take(8).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-"
}

/// Characters of a token, and more of them than any word has.
fn looks_like_token(value: &str) -> bool {
    (16..=LONGEST).contains(&value.len())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn quality_of_service(
    value: Option<&str>,
    default: QualityOfService,
) -> Result<QualityOfService, Refusal> {
    let Some(value) = value else { return Ok(default) };
    let wanted = QualityOfService::parse(value)
        .ok_or_else(|| one_of("qualityOfService", value, &QualityOfService::NAMES))?;
    if wanted < default {
        return Err(Refusal::bad_request(
            "quality_of_service_weaker",
            format!(
                "qualityOfService={value} promises less than the stream, which is {}",
                default.name()
            ),
            "leave qualityOfService out, or PATCH the stream",
        ));
    }
    Ok(wanted)
}

fn on_gone(value: Option<&str>, qos: QualityOfService) -> Result<OnGone, Refusal> {
    let Some(value) = value else { return Ok(qos.on_gone()) };
    OnGone::parse(value).ok_or_else(|| one_of("onGone", value, &OnGone::NAMES))
}

fn one_of(name: &str, value: &str, names: &[&str]) -> Refusal {
    Refusal::bad_request(
        "parameter_malformed",
        format!("{name} is {value:?}"),
        format!("use one of {}", names.join(", ")),
    )
}
