//! Steps of the generator: topics and their settings.

use highwater_protocol::{
    AlterConfigsRequest, AlterConfigsResource, AlterableConfig, CreatableReplicaAssignment,
    CreatableTopic, CreatableTopicConfig, CreatePartitionsAssignment, CreatePartitionsRequest,
    CreatePartitionsTopic, CreateTopicsRequest, DeleteTopicState, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeConfigsResource,
    IncrementalAlterConfigsRequest, ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics, MetadataRequest, MetadataRequestTopic, ReplacedConfig,
    ReplacedConfigsResource,
};
use uuid::Uuid;

use crate::clusters::NODE;
use crate::pair::Pair;
use crate::world::{World, keeps_settings};

/// Settings that a topic may get, and such as it may not.
const SETTINGS: [(&str, &str); 24] = [
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "delete"),
    ("cleanup.policy", "delete,compact"),
    ("cleanup.policy", "shred"),
    ("compression.type", "producer"),
    ("compression.type", "morse"),
    ("index.interval.bytes", "0"),
    ("index.interval.bytes", "-1"),
    ("max.message.bytes", "300"),
    ("max.message.bytes", "1048588"),
    ("max.message.bytes", "-1"),
    ("message.timestamp.type", "CreateTime"),
    ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", "Tomorrow"),
    ("retention.bytes", "-1"),
    ("retention.bytes", "1000000000"),
    ("retention.ms", "9000000000000000"),
    ("retention.ms", "-2"),
    ("retention.ms", "a week"),
    ("segment.bytes", "1048576"),
    ("segment.bytes", "0"),
    ("segment.ms", "0"),
    ("segment.ms", "9000000000000000"),
    ("no.such.setting", "1"),
];

/// Records of 1970 are to stay, and in one segment: a Fetch ends with it, and Kafka ends it by the records'
/// times where we go by the clock.
const KEEP: [(&str, &str); 2] = [("retention.ms", "-1"), ("segment.ms", "9000000000000000")];

pub(crate) fn create_topics(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(2..=7);
    let count = world.random.one_of(&[1, 1, 1, 2]);
    let mut topics: Vec<_> = (0..count).map(|_| creatable(world)).collect();
    // Apache Kafka makes both of two names that collide, if they come together.
    let metric = |topic: &CreatableTopic| topic.name.replace('.', "_");
    topics.dedup_by(|one, other| one.name != other.name && metric(one) == metric(other));
    let validate_only = world.random.percent(10);
    let request = CreateTopicsRequest { topics, timeout_ms: 30_000, validate_only };
    let answer = pair.ask("CreateTopics", version, |_| request.clone());
    for topic in answer.topics.iter().filter(|topic| topic.error_code.is_ok() && !validate_only) {
        let asked = request.topics.iter().find(|asked| asked.name == topic.name).unwrap();
        let partitions = match asked.assignments.len() {
            0 => asked.num_partitions.max(1),
            assigned => i32::try_from(assigned).unwrap(),
        };
        world.made(&topic.name, partitions);
        pair.until_usable(&topic.name, partitions);
    }
}

fn creatable(world: &mut World) -> CreatableTopic {
    let random = &mut world.random;
    let (strange, bad) = (random.percent(8), random.percent(12));
    let name = if strange { world.strange() } else { world.any_name() };
    let random = &mut world.random;
    let mut topic = CreatableTopic {
        num_partitions: random.one_of(&[-1, 1, 2, 2, 3]),
        replication_factor: random.one_of(&[-1, 1]),
        configs: settings([&KEEP[..], World::usual_settings(&name)].concat()),
        name,
        ..Default::default()
    };
    if bad {
        match random.below(5) {
            0 => topic.num_partitions = random.one_of(&[0, -2]),
            1 => topic.replication_factor = random.one_of(&[0, 2, -2]),
            2 => assign(&mut topic, random.one_of(&[&[NODE], &[NODE, NODE], &[7], &[]])),
            3 => topic.assignments = vec![assignment(3, &[NODE])],
            _ if keeps_settings(&topic.name) => {}
            _ => topic.configs.extend(settings(vec![random.one_of(&SETTINGS)])),
        }
    } else if random.percent(10) {
        assign(&mut topic, &[NODE]);
    }
    topic
}

fn assign(topic: &mut CreatableTopic, brokers: &[i32]) {
    (topic.num_partitions, topic.replication_factor) = (-1, -1);
    topic.assignments = vec![assignment(0, brokers), assignment(1, brokers)];
}

fn assignment(partition_index: i32, brokers: &[i32]) -> CreatableReplicaAssignment {
    CreatableReplicaAssignment { partition_index, broker_ids: brokers.to_vec() }
}

fn settings(entries: Vec<(&str, &str)>) -> Vec<CreatableTopicConfig> {
    let mut configs: Vec<CreatableTopicConfig> = Vec::new();
    for (name, value) in entries {
        configs.retain(|before| before.name != name);
        configs.push(CreatableTopicConfig { name: name.to_owned(), value: Some(value.to_owned()) });
    }
    configs
}

pub(crate) fn delete_topics(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(1..=6);
    let name = world.name();
    let by_id = version == 6 && world.random.percent(40);
    let mut state = DeleteTopicState { name: Some(name.clone()), topic_id: Uuid::nil() };
    if by_id {
        let number =
            if world.random.percent(30) { Uuid::from_u128(7 << 100) } else { id_of(pair, &name) };
        state = DeleteTopicState { name: None, topic_id: number };
    }
    let answer = pair.ask("DeleteTopics", version, |names| {
        let state =
            DeleteTopicState { topic_id: names.topic_id(state.topic_id), name: state.name.clone() };
        match version {
            6 => DeleteTopicsRequest {
                topics: vec![state],
                timeout_ms: 30_000,
                ..Default::default()
            },
            _ => DeleteTopicsRequest {
                topic_names: vec![name.clone()],
                timeout_ms: 30_000,
                ..Default::default()
            },
        }
    });
    for topic in answer.responses.iter().filter(|topic| topic.error_code.is_ok()) {
        let name = topic.name.clone().unwrap();
        world.gone(&name);
        pair.until_gone(&name);
    }
}

/// The number of a topic's id, by what Metadata says.
fn id_of(pair: &mut Pair, name: &str) -> Uuid {
    let named = MetadataRequestTopic { name: Some(name.to_owned()), ..Default::default() };
    let request = MetadataRequest {
        topics: Some(vec![named]),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    pair.ask("Metadata", 12, |_| request.clone()).topics[0].topic_id
}

pub(crate) fn create_partitions(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=3);
    let name = world.name();
    let now = world.topics.get(&name).map_or(1, Vec::len);
    let more = world.random.one_of(&[-1, 0, 1, 1]);
    let count = i32::try_from(now).unwrap() + if now < 6 { more } else { more.min(0) };
    let assignments = world.random.percent(30).then(|| {
        let brokers = world.random.one_of::<&[i32]>(&[&[NODE], &[NODE], &[9], &[NODE, NODE]]);
        let of = |_| CreatePartitionsAssignment { broker_ids: brokers.to_vec() };
        (0..world.random.one_of(&[1, 1, 2])).map(of).collect()
    });
    let validate_only = world.random.percent(20);
    let topic = CreatePartitionsTopic { name: name.clone(), count, assignments };
    let topics = if world.random.percent(10) { vec![topic.clone(), topic] } else { vec![topic] };
    let request = CreatePartitionsRequest { topics, timeout_ms: 30_000, validate_only };
    let answer = pair.ask("CreatePartitions", version, |_| request.clone());
    if answer.results[0].error_code.is_ok() && !validate_only {
        world.topics.get_mut(&name).unwrap().resize(usize::try_from(count).unwrap(), 0);
        pair.until_usable(&name, count);
    }
}

pub(crate) fn incremental_alter_configs(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=1);
    let change = |(name, value): (&str, &str), config_operation: i8| AlterableConfig {
        name: name.to_owned(),
        value: (config_operation != 1).then(|| value.to_owned()),
        config_operation,
    };
    let mut changes = vec![change(world.random.one_of(&SETTINGS), 0)];
    match world.random.below(8) {
        0 => changes.push(change(("cleanup.policy", "compact"), world.random.one_of(&[2, 3]))),
        1 => changes = vec![change(world.random.one_of(&SETTINGS[..16]), 1)],
        2 => changes = vec![change(("segment.ms", "5"), world.random.one_of(&[2, 3]))],
        3 => changes[0].value = None,
        _ => {}
    }
    let validate_only = world.random.percent(20);
    let resource = AlterConfigsResource {
        resource_type: world.random.one_of(&[2, 2, 2, 2, 2, 2, 2, 2, 2, 99]),
        resource_name: world.alterable(),
        configs: changes,
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only };
    pair.ask("IncrementalAlterConfigs", version, |_| request.clone());
    pair.until_taken_in();
}

pub(crate) fn alter_configs(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=2);
    let resource_name = world.alterable();
    let mut entries = [&KEEP[..], World::usual_settings(&resource_name)].concat();
    if world.random.percent(50) {
        entries.push(world.random.one_of(&SETTINGS));
    }
    let entry =
        |entry: CreatableTopicConfig| ReplacedConfig { name: entry.name, value: entry.value };
    let mut configs: Vec<_> = settings(entries).into_iter().map(entry).collect();
    if world.random.percent(10) {
        configs[0].value = None;
    }
    let validate_only = world.random.percent(20);
    let resource = ReplacedConfigsResource { resource_type: 2, resource_name, configs };
    let request = AlterConfigsRequest { resources: vec![resource], validate_only };
    pair.ask("AlterConfigs", version, |_| request.clone());
    pair.until_taken_in();
}

pub(crate) fn describe_configs(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(1..=4);
    let keys = world.random.percent(30).then(|| {
        vec!["cleanup.policy".to_owned(), "segment.bytes".to_owned(), "no.such".to_owned()]
    });
    let (resource_type, resource_name) = match world.random.below(12) {
        0 => (4, world.random.one_of(&["1", "1", "7", "x"]).to_owned()),
        1 => (99, "x".to_owned()),
        _ => (2, world.name()),
    };
    let resource =
        DescribeConfigsResource { resource_type, resource_name, configuration_keys: keys };
    let request = DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: world.random.percent(50),
        include_documentation: world.random.percent(10),
    };
    pair.ask("DescribeConfigs", version, |_| request.clone());
}

pub(crate) fn metadata(pair: &mut Pair, world: &mut World) {
    let version = world.random.version(0..=12);
    let mut topics: Vec<_> = (0..world.random.one_of(&[1, 1, 2]))
        .map(|_| MetadataRequestTopic { name: Some(world.name()), ..Default::default() })
        .collect();
    if version == 12 && world.random.percent(50) {
        let known = world.standing();
        let topic_id = match known {
            Some(name) if world.random.percent(70) => id_of(pair, &name),
            _ => Uuid::from_u128(9 << 100),
        };
        topics = vec![MetadataRequestTopic { name: None, topic_id }];
    }
    topics.dedup_by(|one, other| one.name == other.name);
    let request = MetadataRequest {
        topics: Some(topics),
        allow_auto_topic_creation: world.random.percent(50),
        include_cluster_authorized_operations: world.random.percent(30),
        include_topic_authorized_operations: world.random.percent(30),
    };
    pair.ask("Metadata", version, |names| {
        let mut request = request.clone();
        for topic in request.topics.iter_mut().flatten() {
            topic.topic_id = names.topic_id(topic.topic_id);
        }
        request
    });
}

pub(crate) fn describe_cluster(pair: &mut Pair, world: &mut World) {
    let request = DescribeClusterRequest {
        include_cluster_authorized_operations: world.random.percent(50),
        endpoint_type: world.random.one_of(&[1, 1, 2, 3]),
    };
    pair.ask("DescribeCluster", world.random.version(0..=1), |_| request.clone());
}

pub(crate) fn list_partition_reassignments(pair: &mut Pair, world: &mut World) {
    let topics = world.random.percent(50).then(|| {
        let (name, index) = world.partition();
        vec![ListPartitionReassignmentsTopics { name, partition_indexes: vec![index] }]
    });
    let request = ListPartitionReassignmentsRequest { timeout_ms: 30_000, topics };
    pair.ask("ListPartitionReassignments", 0, |_| request.clone());
}
