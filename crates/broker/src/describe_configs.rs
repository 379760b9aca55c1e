//! DescribeConfigs: the settings of topics and of the broker.

use std::sync::Arc;

use highwater_log::{ConfigEntry, ConfigKind, check_name};
use highwater_protocol::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult,
    DescribeConfigsResponse, DescribeConfigsResult, DescribeConfigsSynonym, ErrorCode,
};

use crate::broker_settings;
use crate::config_source;
use crate::fault::Fault;
use crate::node::Node;
use crate::once::once;

/// Kafka's number for a topic.
pub(crate) const TOPIC: i8 = 2;
/// Kafka's number for a broker.
pub(crate) const BROKER: i8 = 4;

/// Kafka's number for a setting that is a text.
const STRING: i8 = 2;

pub(crate) fn answer(node: &Arc<Node>, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
    let synonyms = request.include_synonyms;
    let mut resources = request.resources;
    once(&mut resources, |asked| (asked.resource_type, asked.resource_name.clone()));
    let results = resources.into_iter().map(|asked| described(node, asked, synonyms));
    DescribeConfigsResponse { results: results.collect(), ..Default::default() }
}

fn described(node: &Node, asked: DescribeConfigsResource, synonyms: bool) -> DescribeConfigsResult {
    let (error_code, error_message, mut configs) = match settings(node, &asked) {
        Ok(settings) => (ErrorCode::NONE, None, settings),
        Err(fault) => (fault.code, Some(fault.text), Vec::new()),
    };
    if let Some(keys) = &asked.configuration_keys {
        configs.retain(|setting| keys.contains(&setting.name));
    }
    if !synonyms {
        configs.iter_mut().for_each(|setting| setting.synonyms.clear());
    }
    DescribeConfigsResult {
        error_code,
        error_message,
        resource_type: asked.resource_type,
        resource_name: asked.resource_name,
        configs,
    }
}

fn settings(
    node: &Node,
    asked: &DescribeConfigsResource,
) -> Result<Vec<DescribeConfigsResourceResult>, Fault> {
    match asked.resource_type {
        TOPIC => {
            let name = &asked.resource_name;
            let topic = node.log.topic(name).ok_or_else(|| unknown_topic(name))?;
            Ok(topic.config.entries().into_iter().map(of_topic).collect())
        }
        BROKER => {
            check_broker(node, &asked.resource_name)?;
            Ok(broker_settings::all(node).into_iter().map(of_broker).collect())
        }
        other => {
            let text = format!("resources of type {other} have no settings here");
            Err(Fault::new(ErrorCode::INVALID_REQUEST, text))
        }
    }
}

/// The name is looked at first, as Kafka does where settings are asked for or changed.
pub(crate) fn unknown_topic(name: &str) -> Fault {
    let text = || format!("there is no topic {name}");
    let unknown = || Fault::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, text());
    check_name(name).map_or_else(Fault::from, |()| unknown())
}

/// An empty name means the defaults of all brokers, which are those of the one.
fn check_broker(node: &Node, name: &str) -> Result<(), Fault> {
    if name.is_empty() || name == node.config.node_id.to_string() {
        return Ok(());
    }
    let text = format!("there is no broker {name}, only broker {}", node.config.node_id);
    Err(Fault::new(ErrorCode::INVALID_REQUEST, text))
}

fn of_topic(entry: ConfigEntry) -> DescribeConfigsResourceResult {
    let synonym = |value: &str, source| DescribeConfigsSynonym {
        name: entry.name.clone(),
        value: Some(value.to_owned()),
        source,
    };
    let set = entry.overridden.then(|| synonym(&entry.value, config_source::TOPIC));
    let default = entry.default.map(|value| synonym(value, config_source::DEFAULT));
    DescribeConfigsResourceResult {
        read_only: false,
        config_source: config_source::of_topic(&entry),
        is_sensitive: false,
        synonyms: set.into_iter().chain(default).collect(),
        config_type: type_of(entry.kind),
        documentation: None,
        value: Some(entry.value),
        name: entry.name,
    }
}

fn of_broker((name, value, source): (&str, String, i8)) -> DescribeConfigsResourceResult {
    DescribeConfigsResourceResult {
        name: name.to_owned(),
        read_only: true,
        config_source: source,
        synonyms: vec![DescribeConfigsSynonym {
            name: name.to_owned(),
            value: Some(value.clone()),
            source,
        }],
        config_type: STRING,
        value: Some(value),
        ..Default::default()
    }
}

/// Kafka's numbers for the types of settings.
fn type_of(kind: ConfigKind) -> i8 {
    match kind {
        ConfigKind::Boolean => 1,
        ConfigKind::String => STRING,
        ConfigKind::Int => 3,
        ConfigKind::Long => 5,
        ConfigKind::Double => 6,
        ConfigKind::List => 7,
    }
}
