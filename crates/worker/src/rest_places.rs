//! Where keys stand in a form: Kafka Connect's groups, orders, widths and titles of its own keys.

/// A key's place.
pub(crate) struct Place {
    key: &'static str,
    pub(crate) group: Option<&'static str>,
    pub(crate) order: i32,
    pub(crate) width: &'static str,
    pub(crate) title: &'static str,
}

const fn place(
    key: &'static str,
    group: &'static str,
    order: i32,
    width: &'static str,
    title: &'static str,
) -> Place {
    Place { key, group: Some(group), order, width, title }
}

const COMMON: &str = "Common";
const ERRORS: &str = "Error Handling";
const TOPICS: &str = "Topic Creation";
const ONCE: &str = "Exactly Once Support";

/// Keys of connectors that are the worker's.
const OF_CONNECTORS: &[Place] = &[
    place("name", COMMON, 1, "MEDIUM", "Connector name"),
    place("connector.class", COMMON, 2, "LONG", "Connector class"),
    place("connector.plugin.version", COMMON, 3, "MEDIUM", "Connector version"),
    place("tasks.max", COMMON, 4, "SHORT", "Tasks max"),
    place("topics", COMMON, 4, "LONG", "Topics"),
    place("topics.regex", COMMON, 4, "LONG", "Topics regex"),
    place("tasks.max.enforce", COMMON, 5, "SHORT", "Enforce tasks max"),
    place("key.converter", COMMON, 6, "SHORT", "Key converter class"),
    place("key.converter.plugin.version", COMMON, 7, "SHORT", "Key converter version"),
    place("value.converter", COMMON, 8, "SHORT", "Value converter class"),
    place("value.converter.plugin.version", COMMON, 9, "SHORT", "Value converter version"),
    place("header.converter", COMMON, 10, "SHORT", "Header converter class"),
    place("header.converter.plugin.version", COMMON, 11, "SHORT", "Header converter version"),
    place("transforms", "Transforms", 12, "LONG", "Transforms"),
    place("predicates", "Predicates", 13, "LONG", "Predicates"),
    place("config.action.reload", COMMON, 14, "MEDIUM", "Reload Action"),
    place("errors.retry.timeout", ERRORS, 1, "MEDIUM", "Retry Timeout for Errors"),
    place(
        "errors.retry.delay.max.ms",
        ERRORS,
        2,
        "MEDIUM",
        "Maximum Delay Between Retries for Errors",
    ),
    place("errors.tolerance", ERRORS, 3, "SHORT", "Error Tolerance"),
    place("errors.log.enable", ERRORS, 4, "SHORT", "Log Errors"),
    place("errors.log.include.messages", ERRORS, 5, "SHORT", "Log Error Details"),
    place("errors.deadletterqueue.topic.name", ERRORS, 6, "MEDIUM", "Dead Letter Queue Topic Name"),
    place(
        "errors.deadletterqueue.topic.replication.factor",
        ERRORS,
        7,
        "MEDIUM",
        "Dead Letter Queue Topic Replication Factor",
    ),
    place(
        "errors.deadletterqueue.context.headers.enable",
        ERRORS,
        8,
        "MEDIUM",
        "Enable Error Context Headers",
    ),
    place("topic.creation.groups", TOPICS, 1, "LONG", "Topic Creation Groups"),
    place("exactly.once.support", ONCE, 2, "SHORT", "Exactly once support"),
    place("transaction.boundary", ONCE, 3, "SHORT", "Transaction Boundary"),
    place("transaction.boundary.interval.ms", ONCE, 4, "SHORT", "Transaction boundary interval"),
    place("offsets.storage.topic", "offsets.topic", 1, "LONG", "Offsets topic"),
];

const SCHEMAS: &str = "Schemas";
const SERIALISATION: &str = "Serialization";

/// Keys of converters; transforms and predicates have no places.
const OF_CONVERTERS: &[Place] = &[
    place("schemas.enable", SCHEMAS, 0, "MEDIUM", "Enable Schemas"),
    place("schemas.cache.size", SCHEMAS, 1, "MEDIUM", "Schema Cache Size"),
    place("schema.content", SCHEMAS, 2, "MEDIUM", "Schema Content"),
    place("decimal.format", SERIALISATION, 0, "MEDIUM", "Decimal Format"),
    place("replace.null.with.default", SERIALISATION, 1, "MEDIUM", "Replace null with default"),
    Place { key: "converter.encoding", group: None, order: -1, width: "MEDIUM", title: "Encoding" },
];

/// Keys whose default is none with Kafka Connect, where ours is empty or depends on another key.
const WITHOUT_DEFAULT: &[&str] = &[
    "key.converter",
    "value.converter",
    "header.converter",
    "key.converter.plugin.version",
    "value.converter.plugin.version",
    "header.converter.plugin.version",
    "transaction.boundary.interval.ms",
    "offsets.storage.topic",
    "schema.content",
    "topic.field",
    "partition.field",
    "offset.field",
    "timestamp.field",
    "static.field",
    "static.value",
    "replacement",
    "schema.name",
    "schema.version",
    "predicate",
];

/// The place of a key of connectors, if it has one.
pub(crate) fn of_connectors(key: &str) -> Option<&'static Place> {
    OF_CONNECTORS.iter().find(|place| place.key == key)
}

/// The place of a key of converters, without its prefix.
pub(crate) fn of_converters(key: &str) -> Option<&'static Place> {
    OF_CONVERTERS.iter().find(|place| place.key == key)
}

/// Whether Kafka Connect shows no default of a key.
pub(crate) fn is_without_default(key: &str) -> bool {
    WITHOUT_DEFAULT.contains(&key)
}
