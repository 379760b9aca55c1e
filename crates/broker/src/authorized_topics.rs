//! Who may see, make, change and delete topics, and see the cluster.

use highwater_access::{Operation, Resource};
use highwater_protocol::{
    AlterConfigsRequest, AlterConfigsResourceResponse, ApiVersionsRequest, CreatableTopicResult,
    CreatePartitionsRequest, CreatePartitionsTopicResult, CreateTopicsRequest,
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DescribeClusterRequest,
    DescribeConfigsRequest, DescribeConfigsResult, DescribeLogDirsRequest, DescribeLogDirsResponse,
    ErrorCode, IncrementalAlterConfigsRequest, ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse, MetadataRequest, MetadataRequestTopic,
    MetadataResponseTopic, ReplacedConfigsResourceResponse,
};

use crate::authorized::{Authorized, Verdict, take};
use crate::config::AutoCreate;
use crate::describe_configs::TOPIC as OF_A_TOPIC;
use crate::gate::Gate;

const TOPIC: ErrorCode = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
const CLUSTER: ErrorCode = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
const OWN_NAME: &str = "topics of this name are the server's own: choose another name";

impl Authorized for ApiVersionsRequest {
    fn authorize(self, _: &Gate) -> Verdict<Self> {
        Verdict::all(self)
    }
}

impl Authorized for MetadataRequest {
    /// What may not be described is left out of a list of everything, and an error where it was
    /// named; whether it is there, the answer does not say.
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let named = self.topics.iter().flatten().filter_map(|topic| topic.name.as_deref());
        let creates =
            self.allow_auto_topic_creation && gate.node.config.auto_create == AutoCreate::WhenAsked;
        let may_create = !creates || named.into_iter().all(|name| gate.may_create(name));
        self.allow_auto_topic_creation &= may_create;
        let view = View {
            everything: self.topics.as_ref().is_none_or(Vec::is_empty),
            by_id: self.topics.iter().flatten().any(|topic| topic.name.is_none()),
            creation_refused: !may_create,
            operations: self.include_topic_authorized_operations,
            gate: gate.clone(),
        };
        let cluster = self.include_cluster_authorized_operations;
        Verdict::rest(self, move |answer| {
            answer.topics.retain_mut(|topic| view.show(topic));
            if cluster {
                answer.cluster_authorized_operations = view.gate.cluster_operations();
            }
        })
    }
}

/// What somebody is shown of topics.
struct View {
    everything: bool,
    by_id: bool,
    creation_refused: bool,
    operations: bool,
    gate: Gate,
}

impl View {
    /// Whether a topic is shown, and as what.
    fn show(&self, topic: &mut MetadataResponseTopic) -> bool {
        let Some(name) = topic.name.as_deref() else { return true };
        if self.gate.may_topic(Operation::Describe, name) {
            if self.operations {
                topic.topic_authorized_operations = self.gate.topic_operations(name);
            }
            let missing = topic.error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            if missing && self.creation_refused && !self.gate.may_create(name) {
                topic.error_code = TOPIC;
            }
            return true;
        }
        let asked = MetadataRequestTopic { name: topic.name.take(), topic_id: topic.topic_id };
        *topic = if self.by_id {
            let error_code = ErrorCode::UNKNOWN_TOPIC_ID;
            MetadataResponseTopic { error_code, topic_id: asked.topic_id, ..Default::default() }
        } else {
            MetadataResponseTopic { error_code: TOPIC, name: asked.name, ..Default::default() }
        };
        !self.everything
    }
}

impl Authorized for DescribeClusterRequest {
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        if !self.include_cluster_authorized_operations {
            return Verdict::all(self);
        }
        let operations = gate.cluster_operations();
        Verdict::rest(self, move |answer| {
            if answer.error_code.is_ok() {
                answer.cluster_authorized_operations = operations;
            }
        })
    }
}

impl Authorized for CreateTopicsRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let refused = take(&mut self.topics, |topic| {
            let names = topic.configs.iter().map(|setting| setting.name.as_str());
            gate.may_create(&topic.name) && may_set(gate, &topic.name, names)
        });
        let answer = |topic: highwater_protocol::CreatableTopic| CreatableTopicResult {
            error_message: highwater_access::is_internal(&topic.name).then(|| OWN_NAME.to_owned()),
            name: topic.name,
            error_code: TOPIC,
            ..Default::default()
        };
        let refused: Vec<_> = refused.into_iter().map(answer).collect();
        let gate = gate.clone();
        Verdict::rest(self, move |all| {
            all.topics.iter_mut().for_each(|topic| hide_settings(&gate, topic));
            all.topics.extend(refused);
        })
    }
}

/// Who may make a topic and not see settings learns no default (KIP-525).
fn hide_settings(gate: &Gate, topic: &mut CreatableTopicResult) {
    if topic.error_code.is_ok() && !gate.may_topic(Operation::DescribeConfigs, &topic.name) {
        topic.topic_config_error_code = TOPIC;
        topic.num_partitions = -1;
        topic.replication_factor = -1;
        topic.configs = Some(Vec::new());
    }
}

impl Authorized for DeleteTopicsRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let names = take(&mut self.topic_names, |name| gate.may_topic(Operation::Delete, name));
        let states = take(&mut self.topics, |state| {
            name_of(gate, state).is_none_or(|name| gate.may_topic(Operation::Delete, &name))
        });
        let by_name = names.into_iter().map(|name| DeletableTopicResult {
            name: Some(name),
            error_code: TOPIC,
            ..Default::default()
        });
        let by_state = states.into_iter().map(|state| refused_state(gate, state));
        let refused: Vec<_> = by_name.chain(by_state).collect();
        Verdict::beside(self, refused, |all| &mut all.responses)
    }
}

fn name_of(gate: &Gate, state: &DeleteTopicState) -> Option<String> {
    let by_id = || gate.node.log.topic_by_id(state.topic_id).map(|topic| topic.name);
    state.name.clone().or_else(by_id)
}

/// Who names an id and may not see the topic does not learn its name, nor that it is there.
fn refused_state(gate: &Gate, state: DeleteTopicState) -> DeletableTopicResult {
    let sees = name_of(gate, &state).is_some_and(|name| gate.may_topic(Operation::Describe, &name));
    let error_code = if sees || state.name.is_some() { TOPIC } else { ErrorCode::UNKNOWN_TOPIC_ID };
    DeletableTopicResult {
        name: state.name,
        topic_id: state.topic_id,
        error_code,
        ..Default::default()
    }
}

impl Authorized for DescribeConfigsRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let operation = Operation::DescribeConfigs;
        let refused = take(&mut self.resources, |asked| {
            may_configure(gate, operation, asked.resource_type, &asked.resource_name)
        });
        let answers = refused.into_iter().map(|asked| DescribeConfigsResult {
            error_code: refusal(asked.resource_type),
            resource_type: asked.resource_type,
            resource_name: asked.resource_name,
            ..Default::default()
        });
        Verdict::beside(self, answers, |all| &mut all.results)
    }
}

impl Authorized for DescribeLogDirsRequest {
    /// Before version 3 the answer has no code for the whole: who may not ask is told of no folder.
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        let may = gate.may(Operation::Describe, Resource::Cluster);
        Verdict::whole(self, may, |_| DescribeLogDirsResponse {
            error_code: CLUSTER,
            ..Default::default()
        })
    }
}

impl Authorized for CreatePartitionsRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let operation = Operation::Alter;
        let refused = take(&mut self.topics, |topic| gate.may_topic(operation, &topic.name));
        let answers = refused.into_iter().map(|topic| CreatePartitionsTopicResult {
            name: topic.name,
            error_code: TOPIC,
            error_message: None,
        });
        Verdict::beside(self, answers, |all| &mut all.results)
    }
}

impl Authorized for ListPartitionReassignmentsRequest {
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        let allowed = gate.may(Operation::Describe, Resource::Cluster);
        Verdict::whole(self, allowed, |_| ListPartitionReassignmentsResponse {
            error_code: CLUSTER,
            ..Default::default()
        })
    }
}

impl Authorized for AlterConfigsRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let operation = Operation::AlterConfigs;
        let refused = take(&mut self.resources, |asked| {
            let names = asked.configs.iter().map(|setting| setting.name.as_str());
            may_configure(gate, operation, asked.resource_type, &asked.resource_name)
                && may_set(gate, &asked.resource_name, names)
        });
        let answers = refused.into_iter().map(|asked| ReplacedConfigsResourceResponse {
            error_code: refusal(asked.resource_type),
            error_message: None,
            resource_type: asked.resource_type,
            resource_name: asked.resource_name,
        });
        Verdict::beside(self, answers, |all| &mut all.responses)
    }
}

impl Authorized for IncrementalAlterConfigsRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let operation = Operation::AlterConfigs;
        let refused = take(&mut self.resources, |asked| {
            let names = asked.configs.iter().map(|change| change.name.as_str());
            may_configure(gate, operation, asked.resource_type, &asked.resource_name)
                && may_set(gate, &asked.resource_name, names)
        });
        let answers = refused.into_iter().map(|asked| AlterConfigsResourceResponse {
            error_code: refusal(asked.resource_type),
            error_message: None,
            resource_type: asked.resource_type,
            resource_name: asked.resource_name,
        });
        Verdict::beside(self, answers, |all| &mut all.responses)
    }
}

/// Settings of a topic are the topic's, all others the cluster's.
fn may_configure(gate: &Gate, operation: Operation, kind: i8, name: &str) -> bool {
    match kind {
        OF_A_TOPIC => gate.may_topic(operation, name),
        _ => gate.may(operation, Resource::Cluster),
    }
}

/// Who alone writes a topic is not for everybody to say who may change its other settings.
fn may_set<'a>(gate: &Gate, topic: &str, mut names: impl Iterator<Item = &'a str>) -> bool {
    names.all(|name| name != "highwater.owner") || gate.may_own(topic)
}

fn refusal(kind: i8) -> ErrorCode {
    if kind == OF_A_TOPIC { TOPIC } else { CLUSTER }
}
