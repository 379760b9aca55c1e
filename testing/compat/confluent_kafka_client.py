#!/usr/bin/env python3
"""confluent-kafka-python, which stands on librdkafka."""

import itertools

import confluent_kafka
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, OffsetSpec, ResourceType,
)  # fmt: skip

import cells
from cells import PARTITIONS, RECORDS, SHARE, SOON, START, TIMES, check, value


class ConfluentKafka(cells.Client):
    """See the module's text."""

    name = "confluent-kafka-python"

    def __init__(self, broker):
        super().__init__(broker)
        self.admin_client = AdminClient({"bootstrap.servers": broker})

    def version(self):
        return f"{confluent_kafka.version()} (librdkafka {confluent_kafka.libversion()[0]})"

    def send(self, topic, records, **config):
        """Writes (partition, timestamp, value) records; returns their offsets."""
        offsets, errors = [], []

        def delivered(error, message):
            errors.append(error) if error else offsets.append(message.offset())

        producer = Producer({"bootstrap.servers": self.broker, "linger.ms": 20, **config})
        for partition, timestamp, text in records:
            producer.produce(topic, text, key="k", partition=partition, timestamp=timestamp, on_delivery=delivered)
        check(f"left unsent to {topic}", producer.flush(SOON), 0)
        check(f"errors of {topic}", errors, [])
        return offsets

    def produce(self, codec):
        records = [(0, START + n, value(n)) for n in range(RECORDS)]
        # Small batches, so that many are on their way at once.
        config = {"compression.type": codec, "enable.idempotence": True, "linger.ms": 0, "batch.num.messages": 7}
        check("offsets", self.send(self.topic(codec), records, **config), list(range(RECORDS)))

    def consumer(self, group="none", **config):
        """A consumer that begins where nothing is committed at the start."""
        return Consumer({
            "bootstrap.servers": self.broker, "group.id": f"{self.name}-{group}", "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "check.crcs": True, **config,
        })  # fmt: skip

    def read(self, reader, count):
        """The next `count` messages."""
        found = []
        while len(found) < count:
            message = reader.poll(SOON)
            if message is None or message.error():
                raise cells.Failed(f"{len(found)} of {count} messages: {message and message.error()}")
            found.append(message)
        return found

    def consume(self):
        expected = [(n, START + n, value(n)) for n in range(RECORDS)]
        for codec, begin in itertools.product(cells.CODECS, [0, RECORDS - 10]):
            reader = self.consumer()
            reader.assign([TopicPartition(self.topic(codec), 0, begin)])
            found = [
                (message.offset(), message.timestamp()[1], message.value().decode())
                for message in self.read(reader, RECORDS - begin)
            ]
            check(f"{codec} from {begin}", found, expected[begin:])
            reader.close()

    def group(self):
        records = [(partition, START, value(n)) for partition in range(PARTITIONS) for n in range(SHARE)]
        self.send(self.topic("shared"), records)
        reader = self.consumer("group")
        reader.subscribe([self.topic("shared")])
        found = {(message.partition(), message.offset()) for message in self.read(reader, len(records))}
        check("records", len(found), len(records))
        reader.commit(asynchronous=False)
        group = f"{self.name}-group"
        described = self.admin_client.describe_consumer_groups([group])[group].result(SOON)
        check("the group", (described.state.name, len(described.members)), ("STABLE", 1))
        reader.close()
        partitions = [TopicPartition(self.topic("shared"), partition) for partition in range(PARTITIONS)]
        committed = self.consumer("group").committed(partitions, timeout=SOON)
        check("committed", [each.offset for each in committed], [SHARE] * PARTITIONS)

    def rejoin(self):
        def join():
            reader = self.consumer("rejoin")
            reader.subscribe([self.topic("shared")])
            return reader

        cells.share(
            join,
            lambda *readers: [reader.poll(0.1) for reader in readers],
            lambda reader: {part.partition for part in reader.assignment()},
            lambda reader: reader.close(),
        )

    def listed(self, spec, topic):
        partition = TopicPartition(self.topic(topic), 0)
        found = self.admin_client.list_offsets({partition: spec})[partition].result(SOON)
        return found.offset, found.timestamp

    def earliest(self):
        check("earliest", self.listed(OffsetSpec.earliest(), "none"), (0, -1))

    def latest(self):
        check("latest", self.listed(OffsetSpec.latest(), "none"), (RECORDS, -1))
        watermarks = self.consumer().get_watermark_offsets(TopicPartition(self.topic("none"), 0), timeout=SOON)
        check("watermarks", watermarks, (0, RECORDS))

    def time(self):
        check("by time", self.listed(OffsetSpec.for_timestamp(START + 400), "none"), (400, START + 400))
        found = self.consumer().offsets_for_times([TopicPartition(self.topic("none"), 0, START + 400)], timeout=SOON)
        check("offsets_for_times", found[0].offset, 400)

    def max_timestamp(self):
        self.send(self.topic("times"), [(0, timestamp, "t") for timestamp in TIMES])
        check("max timestamp", self.listed(OffsetSpec.max_timestamp(), "times"), (1, TIMES[1]))

    def transaction(self):
        topic = self.topic("transaction")
        source = self.consumer("transaction")
        producer = Producer({"bootstrap.servers": self.broker, "transactional.id": f"{self.name}-1"})
        producer.init_transactions(SOON)
        for n, ends in enumerate([producer.commit_transaction, producer.abort_transaction]):
            producer.begin_transaction()
            producer.produce(topic, value(n), partition=0)
            check("left unsent", producer.flush(SOON), 0)
            offsets = [TopicPartition(self.topic("none"), 0, 100 + n)]
            producer.send_offsets_to_transaction(offsets, source.consumer_group_metadata(), SOON)
            ends(SOON)
        self.fence(producer)
        committed = source.committed([TopicPartition(self.topic("none"), 0)], timeout=SOON)
        check("offset of the transaction", committed[0].offset, 100)
        written = [value(n) for n in range(3)]
        for isolation, expected in [("read_committed", written[:1]), ("read_uncommitted", written)]:
            reader = self.consumer(**{"isolation.level": isolation, "enable.partition.eof": True})
            reader.assign([TopicPartition(topic, 0, 0)])
            messages = iter(lambda: reader.poll(SOON), None)
            found = []
            for message in messages:
                if message.error():
                    break  # the end
                found.append(message.value().decode())
            check(isolation, found, expected)
            reader.close()

    def fence(self, producer):
        """Another with the id of this one, which has a transaction open, aborts that and ends its days."""
        producer.begin_transaction()
        producer.produce(self.topic("transaction"), value(2), partition=0)
        check("left unsent", producer.flush(SOON), 0)
        Producer({"bootstrap.servers": self.broker, "transactional.id": f"{self.name}-1"}).init_transactions(SOON)
        try:
            producer.commit_transaction(SOON)
        except confluent_kafka.KafkaException as fenced:
            check("fenced", fenced.args[0].fatal(), True)
        else:
            raise cells.Failed("it committed, though it is fenced")

    def move_group(self, group):
        """Its offset is where the admin puts it."""
        at = lambda *offset: ConsumerGroupTopicPartitions(group, [TopicPartition(self.topic("shared"), 0, *offset)])
        self.admin_client.alter_consumer_group_offsets([at(17)])[group].result(SOON)
        found = self.admin_client.list_consumer_group_offsets([at()])[group].result(SOON)
        check("moved offset", found.topic_partitions[0].offset, 17)

    def admin(self):
        admin, name = self.admin_client, self.topic("made")
        made = NewTopic(name, num_partitions=3, config={"retention.ms": "60000"})
        admin.create_topics([made])[name].result(SOON)
        check("brokers", len(admin.describe_cluster().result(SOON).nodes), 1)
        described = admin.describe_topics(confluent_kafka.TopicCollection([name]))[name].result(SOON)
        check("partitions", len(described.partitions), 3)
        resource = ConfigResource(ResourceType.TOPIC, name)
        retention = lambda: admin.describe_configs([resource])[resource].result(SOON)["retention.ms"].value
        check("retention.ms", retention(), "60000")
        entry = ConfigEntry("retention.ms", "120000", incremental_operation=AlterConfigOpType.SET)
        change = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        admin.incremental_alter_configs([change])[change].result(SOON)
        check("retention.ms, changed", retention(), "120000")
        group = f"{self.name}-group"
        groups = lambda: [each.group_id for each in admin.list_consumer_groups().result(SOON).valid]
        check("group", group in groups(), True)
        self.move_group(group)
        admin.delete_consumer_groups([group])[group].result(SOON)
        check("group, deleted", group in groups(), False)
        admin.delete_topics([name])[name].result(SOON)
        check("deleted", name in admin.list_topics(timeout=SOON).topics, False)


cells.main(ConfluentKafka)
