//! `highwater topic create`, `set`, `delete`, `hold` and `release`.

use highwater_kafka::{ErrorCode, KafkaError, NewTopic, OffsetSpec, SettingChange, TopicSetting};
use highwater_log::HOLD_PREFIX;
use serde_json::json;

use crate::cli::{Output, TopicCreate, TopicDelete, TopicHold};
use crate::failure::{Exit, Failure};
use crate::kafka::{Cluster, failure, topic_missing};
use crate::output;
use crate::topics::{is_internal, owner};

/// A setting that the embedded log alone has.
const OF_THE_EMBEDDED_LOG: &str = "highwater.flush";

/// `topic create`.
pub(crate) async fn create(
    cluster: &Cluster,
    output: Output,
    asked: &TopicCreate,
) -> Result<(), Failure> {
    let TopicCreate { topic: name, partitions, settings } = asked;
    let configs = settings.iter().map(|setting| pair(setting)).collect::<Result<_, _>>()?;
    let new = NewTopic { partitions: *partitions, configs, ..NewTopic::of_one(name) };
    let made = cluster.admin.create_topic(&new).await.map_err(|error| not_made(&error))?;
    if !made {
        let what = format!("topic {name} exists already");
        return Err(Failure::new(Exit::Refused, "LOG_TOPIC_EXISTS", what)
            .kept("nothing was changed")
            .remedy(format!("highwater topic show {name}")));
    }
    let described = cluster.admin.describe_topic(name).await.map_err(|error| failure(&error))?;
    let id = described.map(|described| described.id.to_string());
    let document = json!({ "topic": name, "id": id, "partitions": partitions });
    let text = format!("topic {name}: made, partitions: {partitions}");
    Ok(output::result(output, &document, &text)?)
}

/// What the cluster says of a topic that it does not make, under the code that it has there.
fn not_made(error: &KafkaError) -> Failure {
    let (code, remedy) = match error {
        error if error.is(ErrorCode::INVALID_CONFIG) => (
            "TOPIC_SETTING_REFUSED",
            "highwater topic show TOPIC --output json names every setting",
        ),
        error if error.is(ErrorCode::INVALID_TOPIC_EXCEPTION) => {
            ("LOG_INVALID_TOPIC", "choose another name")
        }
        error if error.is(ErrorCode::INVALID_PARTITIONS) => {
            ("LOG_INVALID_PARTITIONS", "choose another number of --partitions")
        }
        error => return failure(error),
    };
    let what = match error {
        KafkaError::Refused { detail, .. } => detail.trim_start_matches(": "),
        _ => "",
    };
    let what = what.strip_prefix(code).map_or(what, |what| what.trim_start_matches(": "));
    Failure::new(Exit::Refused, code, what).kept("nothing was changed").remedy(remedy)
}

fn pair(setting: &str) -> Result<(String, String), Failure> {
    match setting.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::usage(format!("{setting:?} is not KEY=VALUE"))
            .remedy("write settings as retention.ms=86400000")),
    }
}

/// `topic set`.
pub(crate) async fn set(
    cluster: &Cluster,
    output: Output,
    topic: &str,
    settings: &[String],
    unset: &[String],
) -> Result<(), Failure> {
    let mut changes = Vec::with_capacity(settings.len() + unset.len());
    for setting in settings {
        let (name, value) = pair(setting)?;
        changes.push(SettingChange { name, value: Some(value) });
    }
    changes.extend(unset.iter().map(|name| SettingChange { name: name.clone(), value: None }));
    alter(cluster, topic, &changes).await?;
    let text = format!("topic {topic}: {} settings changed", changes.len());
    done(output, topic, &changes, &text)
}

/// `topic hold`.
pub(crate) async fn hold(
    cluster: &Cluster,
    output: Output,
    asked: &TopicHold,
) -> Result<(), Failure> {
    let TopicHold { topic, name, offset, until } = asked;
    check_holds(cluster, topic).await?;
    let offsets = if offset.is_empty() { starts(cluster, topic).await? } else { offset.clone() };
    let mut text = offsets.join(" ");
    if let Some(until) = until {
        let time: jiff::Timestamp = until.parse().map_err(|_| {
            Failure::usage(format!("--until {until:?} is not a time"))
                .remedy("give a time with its zone, as 2026-12-01T00:00:00Z")
        })?;
        text.push_str(&format!(" until {time}"));
    }
    let key = format!("{HOLD_PREFIX}{name}");
    let change = [SettingChange { name: key, value: Some(text.clone()) }];
    alter(cluster, topic, &change).await?;
    done(output, topic, &change, &format!("topic {topic} is held by {name}: {text}"))
}

/// `topic release`.
pub(crate) async fn release(
    cluster: &Cluster,
    output: Output,
    topic: &str,
    name: &str,
) -> Result<(), Failure> {
    check_holds(cluster, topic).await?;
    let key = format!("{HOLD_PREFIX}{name}");
    let settings = cluster.admin.topic_settings(topic).await.map_err(|error| failure(&error))?;
    if !settings.iter().any(|setting| setting.name == key) {
        let what = format!("topic {topic} has no hold {name}");
        return Err(Failure::new(Exit::NotFound, "HOLD_NOT_FOUND", what)
            .kept("nothing was changed")
            .remedy(format!("highwater topic show {topic}")));
    }
    let change = [SettingChange { name: key, value: None }];
    alter(cluster, topic, &change).await?;
    done(output, topic, &change, &format!("topic {topic} is held by {name} no longer"))
}

/// `topic delete`.
pub(crate) async fn delete(
    cluster: &Cluster,
    output: Output,
    asked: &TopicDelete,
) -> Result<(), Failure> {
    let topic = &asked.topic;
    let described = cluster.admin.describe_topic(topic).await.map_err(|error| failure(&error))?;
    let Some(described) = described else {
        return Err(topic_missing(topic, cluster.reader.bootstrap()));
    };
    let refused =
        |code, what: String| Failure::new(Exit::Refused, code, what).kept("nothing was changed");
    if is_internal(&described) {
        let what = format!("topic {topic} is the server's or the cluster's own");
        return Err(refused("TOPIC_INTERNAL", what)
            .remedy("delete the connector, stream or group that it keeps, with its own command"));
    }
    let settings = cluster.admin.topic_settings(topic).await.map_err(|error| failure(&error))?;
    let hold = settings.iter().find_map(|setting| setting.name.strip_prefix(HOLD_PREFIX));
    if let Some(hold) = hold {
        let what = format!("topic {topic} is held by {hold}");
        return Err(
            refused("TOPIC_HELD", what).remedy(format!("highwater topic release {topic} {hold}"))
        );
    }
    if !asked.yes {
        let writer = owner(cluster, topic, &settings).await.map_or_else(String::new, |owner| {
            format!("; connector {owner} writes it, and stops with LOG_BEHIND_OFFSETS without it")
        });
        let what = format!("deleting topic {topic} with all its records was not confirmed{writer}");
        return Err(refused("TOPIC_DELETE_UNCONFIRMED", what)
            .remedy(format!("highwater topic delete {topic} --yes")));
    }
    let deleted = cluster.admin.delete_topic(topic).await.map_err(|error| failure(&error))?;
    if !deleted {
        return Err(topic_missing(topic, cluster.reader.bootstrap()));
    }
    let document = json!({ "topic": topic, "id": described.id.to_string(), "deleted": true });
    Ok(output::result(output, &document, &format!("topic {topic} is deleted"))?)
}

fn done(output: Output, topic: &str, changes: &[SettingChange], text: &str) -> Result<(), Failure> {
    let changed: Vec<_> = changes
        .iter()
        .map(|change| json!({ "name": change.name, "value": change.value }))
        .collect();
    Ok(output::result(output, &json!({ "topic": topic, "changed": changed }), text)?)
}

async fn alter(cluster: &Cluster, topic: &str, changes: &[SettingChange]) -> Result<(), Failure> {
    cluster.admin.alter_topic(topic, changes).await.map_err(|error| match &error {
        KafkaError::Refused { detail, .. } if error.is(ErrorCode::INVALID_CONFIG) => {
            let what = detail.trim_start_matches(": ").to_owned();
            Failure::new(Exit::Refused, "TOPIC_SETTING_REFUSED", what)
                .kept("nothing was changed")
                .remedy(format!("highwater topic show {topic} --output json names every setting"))
        }
        error if error.is(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {
            topic_missing(topic, cluster.reader.bootstrap())
        }
        error => failure(error),
    })
}

/// A hold is refused where the log does not know it (rule L7): it would promise what nobody keeps.
async fn check_holds(cluster: &Cluster, topic: &str) -> Result<(), Failure> {
    let settings = cluster.admin.topic_settings(topic).await.map_err(|error| match &error {
        error if error.is(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {
            topic_missing(topic, cluster.reader.bootstrap())
        }
        error => failure(error),
    })?;
    if knows_holds(&settings) {
        return Ok(());
    }
    let what = format!("the cluster at {} has no holds", cluster.reader.bootstrap());
    Err(Failure::new(Exit::Refused, "HOLD_UNSUPPORTED", what)
        .kept("nothing was changed")
        .remedy("give the topic a retention.ms that is long enough: highwater topic set TOPIC retention.ms=…"))
}

fn knows_holds(settings: &[TopicSetting]) -> bool {
    settings.iter().any(|setting| setting.name == OF_THE_EMBEDDED_LOG)
}

/// Where each partition begins now, as a hold says it.
async fn starts(cluster: &Cluster, topic: &str) -> Result<Vec<String>, Failure> {
    let partitions = cluster.partitions(topic).await?;
    let mut starts = Vec::with_capacity(partitions.len());
    for partition in &partitions {
        let spec = OffsetSpec::Earliest;
        let found = cluster.reader.list_offset(topic, partition.index, spec).await;
        let found = found.map_err(|error| failure(&error))?;
        starts.push((partition.index, found.map_or(0, |found| found.offset)));
    }
    Ok(match starts.as_slice() {
        [(_, start)] => vec![start.to_string()],
        starts => starts.iter().map(|(index, start)| format!("{index}:{start}")).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_log_with_settings_of_ours_has_holds() {
        let setting = |name: &str| TopicSetting {
            name: name.to_owned(),
            value: Some("x".to_owned()),
            own: false,
        };
        assert!(knows_holds(&["cleanup.policy", "highwater.flush"].map(setting)));
        assert!(!knows_holds(&["cleanup.policy", "retention.ms"].map(setting)));
    }
}
