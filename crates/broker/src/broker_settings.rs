//! The broker's settings by Kafka's names, for those who ask.

use std::time::Duration;

use highwater_coordinator::CoordinatorConfig;

use crate::config::AutoCreate;
use crate::config_source::{BROKER, DEFAULT};
use crate::node::Node;

/// Name, value and source of every setting.
pub(crate) fn all(node: &Node) -> Vec<(&'static str, String, i8)> {
    let config = &node.config;
    let limits = &config.limits;
    let auto_create = config.auto_create == AutoCreate::WhenAsked;
    let protocol = protocol(node);
    let groups = node.coordinator.groups().settings().clone();
    let transactions = node.coordinator.transactions().config().clone();
    let advertised = format!("{protocol}://{}:{}", node.advertised.host, node.advertised.port);
    let mechanisms: Vec<&str> = config.sasl.mechanisms.iter().map(|one| one.name()).collect();
    let mut settings = vec![
        ("node.id", config.node_id.to_string(), BROKER),
        ("listeners", format!("{protocol}://{}", config.listen), BROKER),
        ("advertised.listeners", advertised, BROKER),
        ("auto.create.topics.enable", auto_create.to_string(), BROKER),
        ("num.partitions", config.default_partitions.to_string(), BROKER),
        ("default.replication.factor", "1".to_owned(), DEFAULT),
        ("delete.topic.enable", "true".to_owned(), DEFAULT),
        ("max.connections", limits.connections.to_string(), DEFAULT),
        ("max.connections.per.ip", limits.connections_per_address.to_string(), DEFAULT),
        ("connections.max.idle.ms", millis(limits.idle), DEFAULT),
        ("connections.max.reauth.ms", millis(config.sasl.lifetime.unwrap_or_default()), DEFAULT),
        ("sasl.enabled.mechanisms", mechanisms.join(","), BROKER),
        ("socket.request.max.bytes", limits.produce_bytes.to_string(), DEFAULT),
        ("fetch.max.bytes", limits.fetch_bytes.to_string(), DEFAULT),
        ("offsets.topic.num.partitions", "1".to_owned(), DEFAULT),
    ];
    let defaults = of_coordinators(&CoordinatorConfig::default());
    let ours = of_coordinators(&CoordinatorConfig { groups, transactions });
    settings.extend(ours.into_iter().zip(defaults).map(|((name, value), (_, default))| {
        let source = if value == default { DEFAULT } else { BROKER };
        (name, value, source)
    }));
    settings
}

/// Those of the coordinators, by name.
fn of_coordinators(config: &CoordinatorConfig) -> [(&'static str, String); 8] {
    let CoordinatorConfig { groups, transactions } = config;
    let retention_minutes = groups.offsets_retention_ms / 60_000;
    [
        ("group.min.session.timeout.ms", groups.min_session_timeout_ms.to_string()),
        ("group.max.session.timeout.ms", groups.max_session_timeout_ms.to_string()),
        ("group.initial.rebalance.delay.ms", groups.initial_rebalance_delay_ms.to_string()),
        ("group.max.size", groups.max_size.to_string()),
        ("offset.metadata.max.bytes", groups.offset_metadata_max_bytes.to_string()),
        ("offsets.retention.minutes", retention_minutes.to_string()),
        ("transaction.max.timeout.ms", millis(transactions.max_timeout)),
        ("transactional.id.expiration.ms", millis(transactions.id_expiration)),
    ]
}

/// The name that Kafka has for how the listener is guarded.
fn protocol(node: &Node) -> &'static str {
    let logs_in = node.config.access.everybody().is_none();
    match (node.config.tls.is_some(), logs_in) {
        (false, false) => "PLAINTEXT",
        (false, true) => "SASL_PLAINTEXT",
        (true, false) => "SSL",
        (true, true) => "SASL_SSL",
    }
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}
