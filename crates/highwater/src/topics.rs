//! `highwater topic …`, over any Kafka cluster.

use std::collections::HashMap;

use futures_util::{StreamExt, stream};
use highwater_kafka::{
    KafkaError, ListedOffset, OffsetSpec, PartitionDescription, ReadRecord, TopicDescription,
    TopicSetting, Watermarks,
};
use highwater_log::HOLD_PREFIX;
use serde_json::{Value, json};

use crate::cli::{Cli, Output, TopicArguments, TopicCommand};
use crate::failure::Failure;
use crate::kafka::{Cluster, bootstrap, failure, offset_spec, time_text};
use crate::{copies, output, topic_change, topic_read};

/// Questions that are asked of a cluster at a time.
const AT_ONCE: usize = 16;

const HEADINGS: [&str; 4] = ["NAME", "PARTITIONS", "BYTES", "RECORDS AT MOST"];

/// The setting of a topic of the embedded log that says which connector writes it.
const OWNER: &str = "highwater.owner";

const MAKE_ONE: &str =
    "a connector makes the ones it writes, `highwater topic create NAME` any other";

/// Topic of the connectors' configurations.
const CONFIGS: &str = "highwater.configs";

pub(crate) async fn run(cli: &Cli, arguments: &TopicArguments) -> Result<(), Failure> {
    if let TopicCommand::Restore(asked) = &arguments.command {
        return copies::restore_topic(cli, asked).await;
    }
    let config = arguments.kafka_config.as_deref();
    let bootstrap = bootstrap("--bootstrap", &arguments.bootstrap, config)?;
    let cluster = Cluster::new(&bootstrap);
    match &arguments.command {
        TopicCommand::Create(asked) => topic_change::create(&cluster, cli.output, asked).await,
        TopicCommand::List { internal } => list(&cluster, cli.output, *internal).await,
        TopicCommand::Show { topic } => show(&cluster, cli.output, topic).await,
        TopicCommand::Read(read) => topic_read::run(&cluster, cli.output, read).await,
        TopicCommand::Offsets { topic, spec } => {
            let spec = offset_spec("--spec", spec)?;
            offsets(&cluster, cli.output, topic, spec).await
        }
        TopicCommand::Set { topic, settings, unset } => {
            topic_change::set(&cluster, cli.output, topic, settings, unset).await
        }
        // Not through the protocol of Kafka, which has no such thing.
        TopicCommand::Restore(_) => Ok(()),
        TopicCommand::Delete(asked) => topic_change::delete(&cluster, cli.output, asked).await,
        TopicCommand::Hold(asked) => topic_change::hold(&cluster, cli.output, asked).await,
        TopicCommand::Release { topic, name } => {
            topic_change::release(&cluster, cli.output, topic, name).await
        }
    }
}

async fn list(cluster: &Cluster, output: Output, internal: bool) -> Result<(), Failure> {
    let mut topics = cluster.admin.topics().await.map_err(|error| failure(&error))?;
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    let hidden = topics.iter().filter(|topic| is_internal(topic)).count();
    topics.retain(|topic| internal || !is_internal(topic));
    let kept: Vec<Option<i64>> =
        stream::iter(&topics).map(|topic| kept(cluster, topic)).buffered(AT_ONCE).collect().await;
    // Not every cluster tells, nor everybody: the rest is worth showing.
    let sizes = cluster.admin.topic_sizes().await.ok();
    let size = |name: &str| Some(sizes.as_ref()?.get(name).copied().unwrap_or(0));
    let described = topics.iter().zip(&kept).map(|(topic, kept)| (topic, *kept, size(&topic.name)));
    if output == Output::Json {
        let topics: Vec<Value> =
            described.map(|(topic, kept, bytes)| listed(topic, kept, bytes)).collect();
        return Ok(output::json(&json!(topics))?);
    }
    let rows: Vec<Vec<String>> =
        described.map(|(topic, kept, bytes)| row(topic, kept, bytes)).collect();
    match (rows.is_empty(), hidden) {
        (true, 0) => output::line(&format!("no topics; {MAKE_ONE}"))?,
        (true, hidden) => output::line(&format!(
            "no topics but {hidden} internal ones, which --internal shows; {MAKE_ONE}"
        ))?,
        _ => output::line(&output::columns(&HEADINGS, &rows))?,
    }
    Ok(())
}

/// Whether a topic belongs to a server or to the cluster rather than to people.
pub(crate) fn is_internal(topic: &TopicDescription) -> bool {
    topic.internal || topic.name.starts_with("highwater.") || topic.name.starts_with("__")
}

/// Offsets between start and end of all partitions: as many records, unless compaction or aborted
/// transactions have left gaps. `None` where a partition cannot be asked now.
async fn kept(cluster: &Cluster, topic: &TopicDescription) -> Option<i64> {
    let mut kept = 0_i64;
    for partition in 0..topic.partitions {
        let edge = |spec| cluster.reader.list_offset(&topic.name, partition, spec);
        let (start, end) = (edge(OffsetSpec::Earliest).await, edge(OffsetSpec::Latest).await);
        let (start, end) = (start.ok().flatten()?, end.ok().flatten()?);
        kept = kept.saturating_add(end.offset - start.offset);
    }
    Some(kept)
}

fn listed(topic: &TopicDescription, kept: Option<i64>, bytes: Option<u64>) -> Value {
    json!({
        "name": topic.name,
        "id": topic.id.to_string(),
        "partitions": topic.partitions,
        "internal": is_internal(topic),
        "bytes": bytes.map(|bytes| bytes.to_string()),
        "records_at_most": kept.map(|kept| kept.to_string()),
    })
}

fn row(topic: &TopicDescription, kept: Option<i64>, bytes: Option<u64>) -> Vec<String> {
    let known = |number: Option<String>| number.unwrap_or_else(|| "unknown".to_owned());
    let (bytes, kept) = (bytes.map(|bytes| bytes.to_string()), kept.map(|kept| kept.to_string()));
    vec![topic.name.clone(), topic.partitions.to_string(), known(bytes), known(kept)]
}

/// Where a partition stands; `None` while it cannot be asked.
async fn edges(
    cluster: &Cluster,
    topic: &str,
    partition: i32,
) -> Result<Option<Watermarks>, KafkaError> {
    let reader = &cluster.reader;
    let Some(latest) = reader.list_offset(topic, partition, OffsetSpec::Latest).await? else {
        return Ok(None);
    };
    let fetched = reader.fetch(topic, partition, latest.offset, 1).await?;
    Ok(Some(fetched.watermarks))
}

/// What there is to show of a topic.
struct Shown<'a> {
    topic: &'a str,
    id: String,
    owner: Option<String>,
    settings: Vec<TopicSetting>,
    partitions: Vec<(PartitionDescription, Option<Watermarks>)>,
}

async fn show(cluster: &Cluster, output: Output, topic: &str) -> Result<(), Failure> {
    let partitions = cluster.partitions(topic).await?;
    let settings = cluster.admin.topic_settings(topic).await.map_err(|error| failure(&error))?;
    let described = cluster.admin.describe_topic(topic).await.map_err(|error| failure(&error))?;
    let edges: Vec<Option<Watermarks>> = stream::iter(&partitions)
        .map(|partition| edges(cluster, topic, partition.index))
        .buffered(AT_ONCE)
        .map(|edges| edges.ok().flatten())
        .collect()
        .await;
    let shown = Shown {
        topic,
        id: described.map(|topic| topic.id.to_string()).unwrap_or_default(),
        owner: owner(cluster, topic, &settings).await,
        settings,
        partitions: partitions.into_iter().zip(edges).collect(),
    };
    Ok(output::result(output, &shown.json(), &shown.text())?)
}

impl Shown<'_> {
    fn json(&self) -> Value {
        let settings = self.settings.iter().map(|TopicSetting { name, value, own }| {
            json!({"name": name, "value": value, "set_on_topic": own})
        });
        let partitions = self.partitions.iter().map(|(partition, edges)| {
            json!({
                "partition": partition.index,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "replicas": partition.replicas,
                "in_sync": partition.in_sync,
                "log_start": edges.map(|edges| edges.log_start.to_string()),
                "high_watermark": edges.map(|edges| edges.high_watermark.to_string()),
                "last_stable": edges.map(|edges| edges.last_stable.to_string()),
            })
        });
        json!({
            "topic": self.topic,
            "id": self.id,
            "connector": self.owner,
            "settings": settings.collect::<Vec<_>>(),
            "partitions": partitions.collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let mut facts = vec![("topic", self.topic.to_owned()), ("id", self.id.clone())];
        facts.extend(self.owner.as_ref().map(|owner| ("written by", format!("connector {owner}"))));
        for TopicSetting { name, value, .. } in self.settings.iter().filter(|setting| setting.own) {
            let value = value.as_deref().unwrap_or("(hidden)");
            match name.strip_prefix(HOLD_PREFIX) {
                Some(hold) => facts.push(("hold", format!("{hold}: {value}"))),
                None => facts.push(("setting", format!("{name} = {value}"))),
            }
        }
        let others = self.settings.iter().filter(|setting| !setting.own).count();
        facts.push(("defaults", format!("{others} more settings; --output json shows them")));
        let headings = ["PARTITION", "LEADER", "EPOCH", "START", "END", "LAST STABLE", "IN SYNC"];
        let rows: Vec<Vec<String>> =
            self.partitions.iter().map(|(partition, edges)| stand(partition, *edges)).collect();
        format!("{}\n{}", output::facts(&facts), output::columns(&headings, &rows))
    }
}

fn stand(partition: &PartitionDescription, edges: Option<Watermarks>) -> Vec<String> {
    let number = |number: Option<i64>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
    vec![
        partition.index.to_string(),
        number(partition.leader.map(i64::from)),
        number(partition.leader_epoch.map(i64::from)),
        number(edges.map(|edges| edges.log_start)),
        number(edges.map(|edges| edges.high_watermark)),
        number(edges.map(|edges| edges.last_stable)),
        format!("{} of {}", partition.in_sync.len(), partition.replicas.len()),
    ]
}

/// The connector that writes a topic: its trail, or a topic of one of its tables. As the topic's own
/// setting says it; else, as on Apache Kafka, the connectors' configurations in the same cluster.
pub(crate) async fn owner(
    cluster: &Cluster,
    topic: &str,
    settings: &[TopicSetting],
) -> Option<String> {
    if let Some(owner) = stated_owner(settings) {
        return Some(owner);
    }
    cluster.admin.describe_topic(CONFIGS).await.ok()??;
    let mut prefixes = HashMap::new();
    let mut note = |record: ReadRecord| {
        if let Some((name, prefix)) = prefix(&record) {
            match prefix {
                Some(prefix) => drop(prefixes.insert(name, prefix)),
                None => drop(prefixes.remove(&name)),
            }
        }
    };
    cluster.reader.read_all(CONFIGS, 0, &mut note).await.ok()?;
    let writers = prefixes.into_iter().filter(|(_, prefix)| writes(prefix, topic));
    writers.max_by_key(|(_, prefix)| prefix.len()).map(|(name, _)| name)
}

fn stated_owner(settings: &[TopicSetting]) -> Option<String> {
    let stated = settings.iter().find(|setting| setting.name == OWNER)?;
    stated.value.clone().filter(|owner| !owner.is_empty())
}

/// The connector and the topic prefix in a record of configurations; no prefix for one deleted.
fn prefix(record: &ReadRecord) -> Option<(String, Option<String>)> {
    let key = std::str::from_utf8(record.key.as_deref()?).ok()?;
    let name = key.strip_prefix("connector-")?.to_owned();
    let value = record.value.as_deref().unwrap_or_default();
    let value: Value = serde_json::from_slice(value).unwrap_or_default();
    Some((name, value["properties"]["topic.prefix"].as_str().map(str::to_owned)))
}

fn writes(prefix: &str, topic: &str) -> bool {
    topic == prefix || topic.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
}

async fn offsets(
    cluster: &Cluster,
    output: Output,
    topic: &str,
    spec: OffsetSpec,
) -> Result<(), Failure> {
    let partitions = cluster.partitions(topic).await?;
    let found: Vec<Found> = stream::iter(&partitions)
        .map(async |partition| {
            let found = cluster.reader.list_offset(topic, partition.index, spec).await;
            (partition.index, found)
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let document = found.iter().map(found_json).collect();
    let rows: Vec<Vec<String>> = found.iter().filter_map(found_row).collect();
    let text = output::columns(&["PARTITION", "OFFSET", "TIMESTAMP"], &rows);
    output::result(output, &document, &text)?;
    unanswered(&found)
}

/// A partition, and what its leader answers.
type Found = (i32, Result<Option<ListedOffset>, KafkaError>);

/// Names the partitions whose leaders could not answer; the others were printed (KIP-734).
fn unanswered(found: &[Found]) -> Result<(), Failure> {
    let failed = |(partition, found): &Found| Some((*partition, found.as_ref().err()?.clone()));
    let failed: Vec<(i32, KafkaError)> = found.iter().filter_map(failed).collect();
    let Some((_, first)) = failed.first() else { return Ok(()) };
    let partitions: Vec<String> = failed.iter().map(|(index, _)| index.to_string()).collect();
    let mut failure = failure(first);
    if found.len() > 1 {
        failure.what = format!("partition {}: {first}", partitions.join(", "));
    }
    Err(failure)
}

/// Earliest and latest have no time.
fn time_of(found: Option<ListedOffset>) -> Option<String> {
    found.map(|found| found.timestamp).filter(|time| *time >= 0).map(time_text)
}

fn found_json((partition, found): &Found) -> Value {
    let listed = found.as_ref().ok().copied().flatten();
    let mut document = json!({
        "partition": partition,
        "offset": listed.map(|found| found.offset.to_string()),
        "timestamp": time_of(listed),
        "leader_epoch": listed.and_then(|found| found.leader_epoch),
    });
    if let Err(error) = found {
        document["error"] = json!({"code": crate::kafka::code(error), "what": error.to_string()});
    }
    document
}

fn found_row((partition, found): &Found) -> Option<Vec<String>> {
    let found = found.as_ref().ok().copied()?;
    let offset = found.map_or_else(|| "no record".to_owned(), |found| found.offset.to_string());
    Some(vec![partition.to_string(), offset, time_of(found).unwrap_or_else(|| "-".to_owned())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_who_the_topic_says() {
        let setting = |name: &str, value: &str| TopicSetting {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            own: true,
        };
        let others = setting("cleanup.policy", "delete");
        let stated = |owner| stated_owner(&[others.clone(), setting("highwater.owner", owner)]);
        assert_eq!(stated("shop"), Some("shop".to_owned()));
        assert_eq!(stated(""), None);
        assert_eq!(stated_owner(std::slice::from_ref(&others)), None);
    }

    #[test]
    fn a_leader_that_is_too_old_is_named_and_the_others_answers_stand() {
        let listed = ListedOffset { offset: 7, timestamp: 5, leader_epoch: Some(0) };
        let old = KafkaError::Unsupported { what: "it".to_owned() };
        let found = [(0, Err(old.clone())), (1, Ok(Some(listed))), (2, Err(old))];
        let rows: Vec<_> = found.iter().filter_map(found_row).collect();
        assert_eq!(rows, [["1", "7", "1970-01-01T00:00:00.005Z"]]);
        assert_eq!(found_json(&found[0])["error"]["code"], "BROKER_TOO_OLD");
        let failure = unanswered(&found).unwrap_err();
        assert!(failure.what.starts_with("partition 0, 2: the broker"), "{}", failure.what);
        assert!(unanswered(&found[1..2]).is_ok());
    }
}
