//! IncrementalAlterConfigs: changes single settings of topics (KIP-339).

use std::collections::HashSet;
use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_log::{ConfigKind, Overrides, TopicConfig, check_name};
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
            let mut list = list(name, overrides, current)?;
            list.retain(|item| changed.split(',').all(|other| other.trim() != item));
            if operation == 2 {
                list.extend(changed.split(',').map(|item| item.trim().to_owned()));
            }
            overrides.insert(name.clone(), list.join(","));
        }
        other => return Err(invalid(format!("{other} is no operation on a setting"))),
    }
    Ok(())
}

/// The items of a setting that is a list.
fn list(name: &str, overrides: &Overrides, current: &TopicConfig) -> Result<Vec<String>, Fault> {
    let in_force = current.entries().into_iter().find(|entry| entry.name == name);
    let Some(in_force) = in_force.filter(|entry| entry.kind == ConfigKind::List) else {
        return Err(invalid(format!("setting {name} is no list")));
    };
    let text = overrides.get(name).unwrap_or(&in_force.value);
    let items = text.split(',').map(|item| item.trim().to_owned());
    Ok(items.filter(|item| !item.is_empty()).collect())
}

fn invalid(text: String) -> Fault {
    Fault::new(ErrorCode::INVALID_CONFIG, text)
}
