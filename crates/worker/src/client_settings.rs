//! Settings of Kafka's Java clients, and what becomes of each where a connector overrides it.
//!
//! Kafka Connect hands `producer.override.`, `consumer.override.` and `admin.override.` to its clients. Here they
//! are sorted: what means something is a key of [`crate::worker_keys`] or [`crate::sink_keys`], the rest stands in
//! [`CLIENT_SETTINGS`]. The names are those of Kafka 4.3 (`ProducerConfig`, `ConsumerConfig`, `AdminClientConfig`),
//! and a few that older ones had; testing/connect/client_settings.py holds them against the classes.

use Client::{Admin, Consumer, Producer};
use Fate::{Refused, WithoutEffect};

/// A client of Kafka that Kafka Connect runs for a connector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Client {
    /// Writes what a source yields, and dead letters.
    Producer,
    /// Reads for a sink.
    Consumer,
    /// Makes topics.
    Admin,
}

impl Client {
    pub(crate) const ALL: [Self; 3] = [Producer, Consumer, Admin];

    /// What it is called.
    pub const fn title(self) -> &'static str {
        match self {
            Producer => "producer",
            Consumer => "consumer",
            Admin => "admin client",
        }
    }

    /// Its name in the keys of a connector.
    pub const fn name(self) -> &'static str {
        match self {
            Producer => "producer",
            Consumer => "consumer",
            Admin => "admin",
        }
    }
}

/// What becomes of an override that asks for something else than what is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is taken, and changes nothing.
    WithoutEffect,
    /// The configuration is refused.
    Refused,
}

/// Settings that share their fate.
#[derive(Debug)]
pub struct ClientSettings {
    /// Whose they are.
    pub clients: &'static [Client],
    /// Their names; one that ends with `.*` stands for all that begin so.
    pub names: &'static [&'static str],
    /// Values that ask for what is done anyway.
    pub met: &'static [&'static str],
    /// What becomes of another value.
    pub fate: Fate,
    /// What is done instead, or why it cannot be.
    pub reason: &'static str,
}

impl ClientSettings {
    pub(crate) fn has(&self, client: Client, name: &str) -> bool {
        let is = |own: &&str| match own.strip_suffix('*') {
            Some(head) => name.starts_with(head),
            None => *own == name,
        };
        self.clients.contains(&client) && self.names.iter().any(is)
    }
}

const ALL: &[Client] = &Client::ALL;

const fn settings(
    clients: &'static [Client],
    names: &'static [&'static str],
    met: &'static [&'static str],
    fate: Fate,
    reason: &'static str,
) -> ClientSettings {
    ClientSettings { clients, names, met, fate, reason }
}

const SAFE: &str = "what is written is acknowledged by all replicas in sync, once and in order";
const TUNING: &str = "it tunes the Java client; ours has bounds of its own";
const UNCOMPRESSED: &str = "records are sent uncompressed; the topic's own compression.type compresses them where they lie";
const COMMITS: &str =
    "offsets are committed behind what the sink has taken, each offset.flush.interval.ms";
const BYTES: &str =
    "records are bytes once converters have made them; key.converter and value.converter say how";
const LOGIN: &str = "the server speaks to its cluster with one login, that of --kafka-config";

/// See the module's text.
pub const CLIENT_SETTINGS: &[ClientSettings] = &[
    settings(&[Producer], &["acks"], &["all", "-1"], WithoutEffect, SAFE),
    settings(&[Producer], &["enable.idempotence"], &["true"], WithoutEffect, SAFE),
    settings(
        &[Producer],
        &["max.in.flight.requests.per.connection"],
        &["1", "2", "3", "4", "5"],
        WithoutEffect,
        SAFE,
    ),
    settings(&[Producer], &["retries"], &["2147483647"], WithoutEffect, SAFE),
    settings(&[Producer], &["compression.type"], &["none"], WithoutEffect, UNCOMPRESSED),
    settings(
        &[Producer],
        &["compression.gzip.level", "compression.lz4.level", "compression.zstd.level"],
        &[],
        WithoutEffect,
        UNCOMPRESSED,
    ),
    settings(
        &[Producer],
        &[
            "batch.size",
            "buffer.memory",
            "max.block.ms",
            "metadata.max.idle.ms",
            "partitioner.adaptive.partitioning.enable",
            "partitioner.availability.timeout.ms",
        ],
        &[],
        WithoutEffect,
        TUNING,
    ),
    settings(&[Producer, Admin], &["metadata.max.age.ms"], &[], WithoutEffect, TUNING),
    settings(&[Consumer, Admin], &["default.api.timeout.ms"], &[], WithoutEffect, TUNING),
    settings(&[Admin], &["retries"], &[], WithoutEffect, TUNING),
    settings(
        &[Consumer],
        &["check.crcs", "fetch.max.wait.ms", "fetch.min.bytes"],
        &[],
        WithoutEffect,
        TUNING,
    ),
    settings(
        ALL,
        &[
            "client.dns.lookup",
            "connections.max.idle.ms",
            "metadata.recovery.rebootstrap.trigger.ms",
            "metadata.recovery.strategy",
            "receive.buffer.bytes",
            "reconnect.backoff.max.ms",
            "reconnect.backoff.ms",
            "request.timeout.ms",
            "retry.backoff.max.ms",
            "retry.backoff.ms",
            "send.buffer.bytes",
            "socket.connection.setup.timeout.max.ms",
            "socket.connection.setup.timeout.ms",
        ],
        &[],
        WithoutEffect,
        TUNING,
    ),
    settings(
        ALL,
        &[
            "auto.include.jmx.reporter",
            "enable.metrics.push",
            "metric.reporters",
            "metrics.context.*",
            "metrics.num.samples",
            "metrics.recording.level",
            "metrics.sample.window.ms",
        ],
        &[],
        WithoutEffect,
        "the server has metrics of its own",
    ),
    settings(ALL, &["client.id"], &[], WithoutEffect, "the server has a client id of its own"),
    settings(
        ALL,
        &["config.providers", "config.providers.*"],
        &[],
        WithoutEffect,
        "references are resolved by the server's own providers",
    ),
    settings(
        &[Consumer],
        &["client.rack"],
        &[],
        WithoutEffect,
        "records are read from the leader of their partition",
    ),
    settings(&[Consumer], &["enable.auto.commit"], &["false"], WithoutEffect, COMMITS),
    settings(&[Consumer], &["auto.commit.interval.ms"], &[], WithoutEffect, COMMITS),
    settings(
        &[Consumer],
        &["isolation.level"],
        &["read_committed"],
        WithoutEffect,
        "records of open and aborted transactions are never read",
    ),
    settings(
        &[Consumer],
        &["allow.auto.create.topics"],
        &["false"],
        WithoutEffect,
        "no topic is made by being read",
    ),
    settings(
        &[Consumer],
        &["exclude.internal.topics"],
        &["true"],
        WithoutEffect,
        "topics.regex never means the cluster's and the server's own topics",
    ),
    settings(
        &[Consumer],
        &["group.protocol"],
        &["classic", "CLASSIC"],
        WithoutEffect,
        "tasks join their group by the classic protocol",
    ),
    settings(
        &[Consumer],
        &["group.remote.assignor", "partition.assignment.strategy"],
        &[],
        WithoutEffect,
        "tasks share out the partitions in a way of their own",
    ),
    settings(
        &[Consumer],
        &["share.acknowledgement.mode", "share.acquire.mode"],
        &[],
        WithoutEffect,
        "tasks are no members of a share group",
    ),
    settings(
        ALL,
        &["bootstrap.servers"],
        &[],
        Refused,
        "records and offsets are those of the server's own cluster, that of --kafka",
    ),
    settings(
        &[Admin],
        &["bootstrap.controllers"],
        &[],
        Refused,
        "topics are made in the server's own cluster",
    ),
    settings(ALL, &["sasl.*", "security.*", "ssl.*"], &[], Refused, LOGIN),
    settings(
        &[Producer],
        &["key.serializer", "value.serializer"],
        &["org.apache.kafka.common.serialization.ByteArraySerializer"],
        Refused,
        BYTES,
    ),
    settings(
        &[Consumer],
        &["key.deserializer", "value.deserializer"],
        &["org.apache.kafka.common.serialization.ByteArrayDeserializer"],
        Refused,
        BYTES,
    ),
    settings(
        &[Producer, Consumer],
        &["interceptor.classes"],
        &[""],
        Refused,
        "Java classes cannot be run here; transforms may do what they do",
    ),
    settings(
        &[Producer],
        &["partitioner.class"],
        &[""],
        Refused,
        "the key alone chooses the partition, as in Kafka's default partitioner",
    ),
    settings(
        &[Producer],
        &["partitioner.ignore.keys"],
        &["false"],
        Refused,
        "records of one key stay in one partition, or their order is lost",
    ),
    settings(
        &[Producer],
        &["transactional.id"],
        &[],
        Refused,
        "it is made of worker.group_id, the connector's name and the task, so that a task fences its predecessor",
    ),
    settings(
        &[Producer],
        &["transaction.two.phase.commit.enable"],
        &["false"],
        Refused,
        "a transaction that nobody ends would stay open for ever",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_one_place() {
        for client in Client::ALL {
            let own = || CLIENT_SETTINGS.iter().filter(|group| group.clients.contains(&client));
            for name in own().flat_map(|group| group.names) {
                let places = own().filter(|group| group.has(client, name)).count();
                assert_eq!(places, 1, "{} {name}", client.name());
            }
        }
    }
}
