//! DeleteTopics, by name or by id.

use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_protocol::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse, ErrorCode,
};

use crate::fault::Fault;
use crate::internal_topic::check_not_internal;
use crate::node::Node;

pub(crate) async fn answer(node: &Arc<Node>, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
    let (coordinator, node) = (node.coordinator.clone(), Arc::clone(node));
    let by_name = |name| DeleteTopicState { name: Some(name), ..Default::default() };
    let states = request.topic_names.into_iter().map(by_name).chain(request.topics);
    let states: Vec<_> = states.collect();
    let responses =
        blocking(move || states.into_iter().map(|state| delete(&node, state)).collect());
    let responses: Vec<DeletableTopicResult> = responses.await;
    for deleted in responses.iter().filter(|response| response.error_code.is_ok()) {
        coordinator.groups().topic_deleted(deleted.name.as_deref().unwrap_or_default()).await;
    }
    DeleteTopicsResponse { responses, ..Default::default() }
}

fn delete(node: &Node, state: DeleteTopicState) -> DeletableTopicResult {
    match deleted(node, &state) {
        Ok(deleted) => deleted,
        Err(fault) => DeletableTopicResult {
            name: state.name,
            topic_id: state.topic_id,
            error_code: fault.code,
            error_message: Some(fault.text),
        },
    }
}

fn deleted(node: &Node, state: &DeleteTopicState) -> Result<DeletableTopicResult, Fault> {
    let topic = match (&state.name, state.topic_id.is_nil()) {
        (Some(name), true) => node.log.topic(name),
        (None, false) => node.log.topic_by_id(state.topic_id),
        _ => {
            return Err(Fault::new(
                ErrorCode::INVALID_REQUEST,
                "name a topic or its id: one of them",
            ));
        }
    };
    let topic = topic.ok_or_else(|| unknown(state))?;
    check_not_internal(&topic.name)?;
    node.log.delete_topic(&topic.name)?;
    Ok(DeletableTopicResult { name: Some(topic.name), topic_id: topic.id, ..Default::default() })
}

fn unknown(state: &DeleteTopicState) -> Fault {
    match &state.name {
        Some(name) => {
            Fault::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, format!("there is no topic {name}"))
        }
        None => Fault::new(
            ErrorCode::UNKNOWN_TOPIC_ID,
            format!("there is no topic with the id {}", state.topic_id),
        ),
    }
}
