//! AlterConfigs: replaces the settings of topics as a whole, as it was done before KIP-339.

use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_log::{Overrides, TopicConfig, TopicInfo, check_name};
use highwater_protocol::{
    AlterConfigsRequest, AlterConfigsResponse, ErrorCode, ReplacedConfigsResource,
    ReplacedConfigsResourceResponse,
};

use crate::describe_configs::{TOPIC, unknown_topic};
use crate::fault::Fault;
use crate::internal_topic::check_settings;
use crate::node::Node;

pub(crate) async fn answer(node: &Arc<Node>, request: AlterConfigsRequest) -> AlterConfigsResponse {
    let node = Arc::clone(node);
    let responses = blocking(move || {
        let only_check = request.validate_only;
        request.resources.into_iter().map(|one| altered(&node, one, only_check)).collect()
    });
    AlterConfigsResponse { responses: responses.await, ..Default::default() }
}

fn altered(
    node: &Node,
    asked: ReplacedConfigsResource,
    only_check: bool,
) -> ReplacedConfigsResourceResponse {
    let fault = alter(node, &asked, only_check).err();
    ReplacedConfigsResourceResponse {
        error_code: fault.as_ref().map_or(ErrorCode::NONE, |fault| fault.code),
        error_message: fault.map(|fault| fault.text),
        resource_type: asked.resource_type,
        resource_name: asked.resource_name,
    }
}

fn alter(node: &Node, asked: &ReplacedConfigsResource, only_check: bool) -> Result<(), Fault> {
    check_type(asked.resource_type)?;
    let mut overrides = Overrides::new();
    for entry in &asked.configs {
        overrides.insert(entry.name.clone(), value(&entry.name, entry.value.as_ref())?);
    }
    let name = &asked.resource_name;
    // Kafka looks at the name, then at the settings, then for the topic.
    check_given(name)?;
    check_name(name)?;
    TopicConfig::parse(overrides.clone())?;
    let topic = node.log.topic(name).ok_or_else(|| unknown_topic(name))?;
    set(node, &topic, |current| replaced(name, current, overrides), only_check)
}

/// Settings of topics change while the broker runs, and no others.
pub(crate) fn check_type(kind: i8) -> Result<(), Fault> {
    if kind == TOPIC {
        return Ok(());
    }
    let text = "only the settings of topics can be changed while the broker runs";
    Err(Fault::new(ErrorCode::INVALID_REQUEST, text))
}

/// Brokers have settings for all of their kind, topics have not.
pub(crate) fn check_given(topic: &str) -> Result<(), Fault> {
    if topic.is_empty() {
        return Err(Fault::new(ErrorCode::INVALID_REQUEST, "no topic is named"));
    }
    Ok(())
}

/// The value that a request has to have for a setting.
pub(crate) fn value(name: &str, value: Option<&String>) -> Result<String, Fault> {
    let missing = || Fault::new(ErrorCode::INVALID_REQUEST, format!("setting {name} has no value"));
    value.cloned().ok_or_else(missing)
}

/// Gives a topic the settings that `change` makes of those it has, or only looks whether that can be done.
pub(crate) fn set(
    node: &Node,
    topic: &TopicInfo,
    change: impl FnOnce(&TopicConfig) -> Result<Overrides, Fault>,
    only_check: bool,
) -> Result<(), Fault> {
    if only_check {
        node.log.check_config(&topic.name, change(&topic.config)?)?;
    } else {
        node.log.change_config(&topic.name, change)?;
    }
    Ok(())
}

/// Who replaces Kafka's settings need not know ours: holds, owners and flush policies stay.
fn replaced(name: &str, current: &TopicConfig, mut new: Overrides) -> Result<Overrides, Fault> {
    let own = current.overrides().iter().filter(|(name, _)| name.starts_with("highwater."));
    for (name, value) in own {
        new.entry(name.clone()).or_insert_with(|| value.clone());
    }
    check_settings(name, current, &new)?;
    Ok(new)
}
