//! AlterConfigs: replaces the settings of topics as a whole, as it was done before KIP-339.

use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_log::{Overrides, TopicConfig, check_name};
use highwater_protocol::{
    AlterConfigsRequest, AlterConfigsResponse, ErrorCode, ReplacedConfigsResource,
    ReplacedConfigsResourceResponse,
};

use crate::describe_configs::{TOPIC, unknown_topic};
use crate::fault::Fault;
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
    if asked.resource_type != TOPIC {
        let text = "only the settings of topics can be changed while the broker runs";
        return Err(Fault::new(ErrorCode::INVALID_REQUEST, text));
    }
    let mut overrides = Overrides::new();
    for entry in &asked.configs {
        let value = entry.value.clone().ok_or_else(|| {
            let text = format!("setting {} has no value", entry.name);
            Fault::new(ErrorCode::INVALID_REQUEST, text)
        })?;
        overrides.insert(entry.name.clone(), value);
    }
    let name = &asked.resource_name;
    // Kafka looks at the name, then at the settings, then for the topic.
    check_name(name)?;
    TopicConfig::parse(overrides.clone())?;
    let topic = node.log.topic(name).ok_or_else(|| unknown_topic(name))?;
    // Who replaces Kafka's settings need not know ours: holds, owners and flush policies stay.
    let own = topic.config.overrides().iter().filter(|(name, _)| name.starts_with("highwater."));
    for (name, value) in own {
        overrides.entry(name.clone()).or_insert_with(|| value.clone());
    }
    if only_check {
        node.log.check_config(name, overrides)?;
    } else {
        node.log.set_config(name, overrides)?;
    }
    Ok(())
}
