#!/usr/bin/env python3
"""confluent-kafka-python against a broker: admin, every codec, idempotence, transactions, offsets by time, groups."""

import sys

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

BROKER = sys.argv[1]
SOON = 15
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: expected {expected!r}, found {found!r}")


def admin_client():
    return AdminClient({"bootstrap.servers": BROKER})


def make_topics(admin):
    topics = [NewTopic(name, num_partitions=1, replication_factor=1) for name in CODECS]
    topics.append(NewTopic("t", num_partitions=3, config={"retention.ms": "60000"}))
    for made in admin.create_topics(topics).values():
        made.result(SOON)
    check("topics", set(admin.list_topics(timeout=SOON).topics), {*CODECS, "t"})
    described = admin.describe_topics(confluent_kafka.TopicCollection(["t"]))["t"].result(SOON)
    check("partitions", len(described.partitions), 3)
    cluster = admin.describe_cluster().result(SOON)
    check("brokers", [node.id for node in cluster.nodes], [0])


def settings(admin):
    resource = ConfigResource(ResourceType.TOPIC, "t")
    read = lambda: admin.describe_configs([resource])[resource].result(SOON)
    check("retention.ms", read()["retention.ms"].value, "60000")
    check("highwater.flush", read()["highwater.flush"].value, "durable")
    operation = AlterConfigOpType.SET
    entry = ConfigEntry("retention.ms", "120000", incremental_operation=operation)
    change = ConfigResource(ResourceType.TOPIC, "t", incremental_configs=[entry])
    admin.incremental_alter_configs([change])[change].result(SOON)
    check("retention.ms, changed", read()["retention.ms"].value, "120000")


def produce(topic, records, **config):
    """Sends (timestamp, value) pairs; returns their offsets."""
    offsets, errors = [], []

    def delivered(error, message):
        errors.append(error) if error else offsets.append(message.offset())

    producer = Producer({"bootstrap.servers": BROKER, **config})
    for timestamp, value in records:
        producer.produce(
            topic, value, key="k", partition=0, timestamp=timestamp, on_delivery=delivered
        )
    check(f"left unsent to {topic}", producer.flush(SOON), 0)
    check(f"errors of {topic}", errors, [])
    return offsets


def consumer():
    return Consumer(
        {
            "bootstrap.servers": BROKER,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
        }
    )


def consume(topic, offset, count):
    reader = consumer()
    reader.assign([TopicPartition(topic, 0, offset)])
    found = []
    while len(found) < count:
        message = reader.poll(SOON)
        if message is None or message.error():
            sys.exit(f"reading {topic}: {message and message.error()}")
        found.append((message.offset(), message.timestamp()[1], message.value().decode()))
    reader.close()
    return found


def codecs():
    records = [(1000 + n, f"a line worth compressing, number {n}") for n in range(500)]
    expected = [(offset, *record) for offset, record in enumerate(records)]
    for codec in CODECS:
        config = {"compression.type": codec, "linger.ms": 20}
        check(f"offsets of {codec}", produce(codec, records, **config), list(range(500)))
        check(f"records of {codec}", consume(codec, 0, 500), expected)
        check(f"tail of {codec}", consume(codec, 490, 10), expected[490:])


def idempotence():
    records = [(n, str(n)) for n in range(1000)]
    config = {"enable.idempotence": True, "linger.ms": 0, "batch.num.messages": 7}
    check("idempotent offsets", produce("t", records, **config), list(range(1000)))


def offsets(admin):
    produce("none", [(100, "a"), (9999, "b"), (200, "c")])
    partition = TopicPartition("none", 0)

    def listed(spec):
        result = admin.list_offsets({partition: spec})[partition].result(SOON)
        return result.offset, result.timestamp

    check("earliest", listed(OffsetSpec.earliest()), (0, -1))
    check("latest", listed(OffsetSpec.latest()), (503, -1))
    check("max timestamp", listed(OffsetSpec.max_timestamp()), (501, 9999))
    check("by time", listed(OffsetSpec.for_timestamp(1400)), (400, 1400))
    reader = consumer()
    check("watermarks", reader.get_watermark_offsets(partition, timeout=SOON), (0, 503))
    by_time = reader.offsets_for_times([TopicPartition("none", 0, 5000)], timeout=SOON)
    check("offsets_for_times", by_time[0].offset, 501)
    reader.close()


def transactions():
    """A committed, an aborted and a fenced one, and what a reader at read_committed is shown."""
    config = {"bootstrap.servers": BROKER, "transactional.id": "x"}
    producer = Producer(config)
    producer.init_transactions(SOON)
    for value, end in [
        ("kept", producer.commit_transaction),
        ("dropped", producer.abort_transaction),
        ("kept too", producer.commit_transaction),
    ]:
        producer.begin_transaction()
        producer.produce("t", value, partition=1)
        producer.flush(SOON)
        end(SOON)
    producer.begin_transaction()
    producer.produce("t", "unfinished", partition=1)
    producer.flush(SOON)
    second = Producer(config)
    second.init_transactions(SOON)
    try:
        producer.commit_transaction(SOON)
        sys.exit("the first instance committed, though it is fenced")
    except confluent_kafka.KafkaException as fenced:
        check("fenced", fenced.args[0].fatal(), True)
    second.begin_transaction()
    second.produce("t", "last", partition=1)
    second.commit_transaction(SOON)
    reader = consumer()
    reader.assign([TopicPartition("t", 1, 0)])
    found = [reader.poll(SOON).value().decode() for _ in range(3)]
    check("committed", found, ["kept", "kept too", "last"])
    reader.close()


def groups(admin):
    """Two members share three partitions; what they committed is seen, moved and deleted by the admin."""
    config = {
        "bootstrap.servers": BROKER,
        "group.id": "readers",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    members = [Consumer(config), Consumer(config)]
    for member in members:
        member.subscribe(["t"])
    held = lambda: sorted(len(member.assignment()) for member in members)
    read = 0
    for _ in range(SOON * 50):
        read += sum(member.poll(0.02) is not None for member in members)
        if held() == [1, 2] and read >= 1000:
            break
    check("partitions of two members", held(), [1, 2])
    described = admin.describe_consumer_groups(["readers"])["readers"].result(SOON)
    check("members", (described.state.name, len(described.members)), ("STABLE", 2))
    for member in members:
        if any(position.offset >= 0 for position in member.position(member.assignment())):
            member.commit(asynchronous=False)
        member.close()
    listed = admin.list_consumer_groups().result(SOON).valid
    check("groups", [group.group_id for group in listed if group.group_id == "readers"], ["readers"])
    partition = TopicPartition("t", 0, 17)
    move = confluent_kafka.ConsumerGroupTopicPartitions("readers", [partition])
    admin.alter_consumer_group_offsets([move])["readers"].result(SOON)
    asked = confluent_kafka.ConsumerGroupTopicPartitions("readers", [TopicPartition("t", 0)])
    found = admin.list_consumer_group_offsets([asked])["readers"].result(SOON)
    check("moved offset", found.topic_partitions[0].offset, 17)
    admin.delete_consumer_groups(["readers"])["readers"].result(SOON)
    left = admin.list_consumer_groups().result(SOON).valid
    check("groups left", [group for group in left if group.group_id == "readers"], [])


def delete(admin):
    admin.delete_topics(["t"])["t"].result(SOON)
    check("topics in the end", "t" in admin.list_topics(timeout=SOON).topics, False)


def main():
    admin = admin_client()
    make_topics(admin)
    settings(admin)
    codecs()
    idempotence()
    offsets(admin)
    transactions()
    groups(admin)
    delete(admin)
    print("confluent-kafka-python:", confluent_kafka.version(), confluent_kafka.libversion()[0])


main()
