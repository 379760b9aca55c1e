//! IncrementalAlterConfigs: changes single settings of topics (KIP-339).

use std::collections::HashSet;
use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_log::{ConfigEntry, ConfigKind, Overrides, TopicConfig, check_name};
use highwater_protocol::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig, ErrorCode,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};

use crate::alter_configs::{check_given, check_type, set, value};
use crate::describe_configs::unknown_topic;
use crate::fault::Fault;
use crate::internal_topic::check_settings;
use crate::node::Node;

pub(crate) async fn answer(
    node: &Arc<Node>,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let node = Arc::clone(node);
    let responses = blocking(move || {
        let only_check = request.validate_only;
        request.resources.into_iter().map(|one| altered(&node, one, only_check)).collect()
    });
    IncrementalAlterConfigsResponse { responses: responses.await, ..Default::default() }
}

fn altered(
    node: &Node,
    asked: AlterConfigsResource,
    only_check: bool,
) -> AlterConfigsResourceResponse {
    let fault = alter(node, &asked, only_check).err();
    AlterConfigsResourceResponse {
        error_code: fault.as_ref().map_or(ErrorCode::NONE, |fault| fault.code),
        error_message: fault.map(|fault| fault.text),
        resource_type: asked.resource_type,
        resource_name: asked.resource_name,
    }
}

fn alter(node: &Node, asked: &AlterConfigsResource, only_check: bool) -> Result<(), Fault> {
    check_type(asked.resource_type)?;
    let name = &asked.resource_name;
    let mut named = HashSet::new();
    if let Some(twice) = asked.configs.iter().find(|change| !named.insert(&change.name)) {
        let text = format!("setting {} is named twice", twice.name);
        return Err(Fault::new(ErrorCode::INVALID_REQUEST, text));
    }
    // Kafka looks at the operations, then at the name, then at the settings, then for the topic.
    asked.configs.iter().try_for_each(check_operation)?;
    check_given(name)?;
    let Some(topic) = node.log.topic(name) else {
        changed(asked, &TopicConfig::default())?;
        return Err(unknown_topic(name));
    };
    set(node, &topic, |current| changed(asked, current), only_check)
}

/// The settings after all changes.
fn changed(asked: &AlterConfigsResource, current: &TopicConfig) -> Result<Overrides, Fault> {
    let mut overrides = current.overrides().clone();
    for change in &asked.configs {
        apply(change, &mut overrides, current)?;
    }
    check_name(&asked.resource_name)?;
    TopicConfig::parse(overrides.clone())?;
    check_settings(&asked.resource_name, current, &overrides)?;
    Ok(overrides)
}

/// Does one change to `overrides`; `current` has the value in force of a list that is not set.
fn apply(
    change: &AlterableConfig,
    overrides: &mut Overrides,
    current: &TopicConfig,
) -> Result<(), Fault> {
    let name = &change.name;
    let value = || value(name, change.value.as_ref());
    match change.config_operation {
        0 => {
            overrides.insert(name.clone(), value()?);
        }
        1 => {
            overrides.remove(name);
        }
        operation @ (2 | 3) => {
            let changed = value()?;
            let mut list = list(name, overrides, current);
            for item in changed.split(',').map(str::trim) {
                match list.iter().position(|known| known == item) {
                    // What is there stays where it stands.
                    None if operation == 2 => list.push(item.to_owned()),
                    Some(at) if operation == 3 => drop(list.remove(at)),
                    _ => {}
                }
            }
            overrides.insert(name.clone(), list.join(","));
        }
        other => return Err(invalid(format!("{other} is no operation on a setting"))),
    }
    Ok(())
}

/// Only to a list something can be added, or taken from it.
fn check_operation(change: &AlterableConfig) -> Result<(), Fault> {
    let AlterableConfig { name, value, config_operation } = change;
    let is_list = |entry: ConfigEntry| entry.name == *name && entry.kind == ConfigKind::List;
    let is_of_list = matches!(config_operation, 2 | 3) && value.is_some();
    if is_of_list && !TopicConfig::default().entries().into_iter().any(is_list) {
        return Err(invalid(format!("setting {name} is no list")));
    }
    Ok(())
}

/// The items of a setting that is a list.
fn list(name: &str, overrides: &Overrides, current: &TopicConfig) -> Vec<String> {
    let in_force = current.entries().into_iter().find(|entry| entry.name == name);
    let in_force = in_force.map(|entry| entry.value).unwrap_or_default();
    let items = overrides.get(name).unwrap_or(&in_force).split(',');
    items.map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

fn invalid(text: String) -> Fault {
    Fault::new(ErrorCode::INVALID_CONFIG, text)
}
