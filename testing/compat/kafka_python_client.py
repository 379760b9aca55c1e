#!/usr/bin/env python3
"""kafka-python."""

import kafka
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, OffsetSpec, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic

import cells
from cells import PARTITIONS, RECORDS, SHARE, SOON, START, TIMES, check, value, wait_for

# Milliseconds. Not its back-off of 100: a poll of 3.0.12 that ends while the answer to its SyncGroup is on
# the way forgets the partitions in it, and never asks again.
MOMENT = 350


class KafkaPython(cells.Client):
    """See the module's text."""

    name = "kafka-python"

    def __init__(self, broker):
        super().__init__(broker)
        self.admin_client = KafkaAdminClient(bootstrap_servers=broker)

    def version(self):
        return kafka.__version__

    def send(self, topic, records, **config):
        """Writes (partition, timestamp, value) records; returns their offsets."""
        producer = KafkaProducer(bootstrap_servers=self.broker, linger_ms=20, **config)
        sent = [
            producer.send(topic, text.encode(), key=b"k", partition=partition, timestamp_ms=timestamp)
            for partition, timestamp, text in records
        ]
        offsets = [future.get(SOON).offset for future in sent]
        producer.close()
        return offsets

    def produce(self, codec):
        records = [(0, START + n, value(n)) for n in range(RECORDS)]
        config = {"compression_type": None if codec == "none" else codec, "enable_idempotence": True}
        check("offsets", self.send(self.topic(codec), records, **config), list(range(RECORDS)))

    def consumer(self, group=None, **config):
        """A consumer that begins where nothing is committed at the start."""
        return KafkaConsumer(
            bootstrap_servers=self.broker, group_id=group and f"{self.name}-{group}", enable_auto_commit=False,
            auto_offset_reset="earliest", **config,
        )  # fmt: skip

    def read(self, reader, count):
        """The next `count` records."""
        found = []

        def more():
            found.extend(record for batch in reader.poll(MOMENT).values() for record in batch)
            return len(found) >= count

        wait_for(f"{count} records", more)
        return found

    def consume(self):
        for codec in cells.CODECS:
            reader = self.consumer()
            reader.assign([TopicPartition(self.topic(codec), 0)])
            found = [record.value.decode() for record in self.read(reader, RECORDS)]
            check(codec, found, [value(n) for n in range(RECORDS)])
            reader.close()

    def group(self):
        records = [(partition, START, value(n)) for partition in range(PARTITIONS) for n in range(SHARE)]
        self.send(self.topic("shared"), records)
        reader = self.consumer("group")
        reader.subscribe([self.topic("shared")])
        found = {(record.partition, record.offset) for record in self.read(reader, len(records))}
        check("records", len(found), len(records))
        reader.commit()
        reader.close()
        again = self.consumer("group")
        partitions = [TopicPartition(self.topic("shared"), partition) for partition in range(PARTITIONS)]
        check("committed", [again.committed(each) for each in partitions], [SHARE] * PARTITIONS)
        again.close()

    def rejoin(self):
        def join():
            reader = self.consumer("rejoin")
            reader.subscribe([self.topic("shared")])
            return reader

        cells.share(
            join,
            lambda *readers: [reader.poll(MOMENT) for reader in readers],
            lambda reader: {part.partition for part in reader.assignment()},
            lambda reader: reader.close(),
        )

    def listed(self, spec, topic):
        partition = TopicPartition(self.topic(topic), 0)
        found = self.admin_client.list_partition_offsets({partition: spec})[partition]
        return found.offset, found.timestamp

    def earliest(self):
        check("earliest", self.listed(OffsetSpec.EARLIEST, "none"), (0, -1))

    def latest(self):
        check("latest", self.listed(OffsetSpec.LATEST, "none"), (RECORDS, -1))

    def time(self):
        partition = TopicPartition(self.topic("none"), 0)
        found = self.consumer().offsets_for_times({partition: START + 400})[partition]
        check("offsets_for_times", (found.offset, found.timestamp), (400, START + 400))

    def max_timestamp(self):
        self.send(self.topic("times"), [(0, timestamp, "t") for timestamp in TIMES])
        check("max timestamp", self.listed(OffsetSpec.MAX_TIMESTAMP, "times"), (1, TIMES[1]))

    def transaction(self):
        topic, source = self.topic("transaction"), self.consumer("transaction")
        partition = TopicPartition(self.topic("none"), 0)
        producer = KafkaProducer(bootstrap_servers=self.broker, transactional_id=f"{self.name}-1")
        producer.init_transactions()
        for n, ends in enumerate([producer.commit_transaction, producer.abort_transaction]):
            producer.begin_transaction()
            producer.send(topic, value(n).encode(), partition=0).get(SOON)
            offsets = {partition: OffsetAndMetadata(100 + n, "", -1)}
            producer.send_offsets_to_transaction(offsets, source.group_metadata())
            ends()
        producer.close()
        check("offset of the transaction", source.committed(partition), 100)
        for isolation, expected in [("read_committed", [value(0)]), ("read_uncommitted", [value(0), value(1)])]:
            reader = self.consumer(isolation_level=isolation)
            here = TopicPartition(topic, 0)
            reader.assign([here])
            end, found = reader.end_offsets([here])[here], []

            def more():
                found.extend(record.value.decode() for batch in reader.poll(MOMENT).values() for record in batch)
                return reader.position(here) >= end

            wait_for("the end", more)
            check(isolation, found, expected)
            reader.close()

    def admin(self):
        admin, name = self.admin_client, self.topic("made")
        admin.create_topics([NewTopic(name, 3, 1, topic_configs={"retention.ms": "60000"})])
        described = admin.describe_topics([name])
        check("partitions", len(described[0]["partitions"]), 3)
        groups = admin.list_groups()
        check("group", any(f"{self.name}-group" in str(group) for group in groups), True)
        admin.delete_groups([f"{self.name}-group"])
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        check("retention.ms", "60000" in str(admin.describe_configs([resource])), True)
        admin.delete_topics([name])
        check("deleted", name in admin.list_topics(), False)


cells.main(KafkaPython)
