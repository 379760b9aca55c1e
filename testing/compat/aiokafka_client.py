#!/usr/bin/env python3
"""aiokafka."""

import asyncio

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

import cells
from cells import PARTITIONS, RECORDS, SHARE, SOON, START, TIMES, check, value


async def wait_for(what, look):
    """Looks until the answer is true, and gives it."""
    deadline = asyncio.get_running_loop().time() + SOON
    while asyncio.get_running_loop().time() < deadline:
        if found := look():
            return found
        await asyncio.sleep(0.05)
    raise cells.Failed(f"waited {SOON} s in vain: {what}")


def whole(cell):
    """A cell that is a coroutine, as a plain method with a bound in time."""
    return lambda self, *given: asyncio.run(asyncio.wait_for(cell(self, *given), 3 * SOON))


class Aiokafka(cells.Client):
    """See the module's text."""

    name = "aiokafka"

    def version(self):
        return aiokafka.__version__

    async def send(self, topic, records, **config):
        """Writes (partition, timestamp, value) records; returns their offsets."""
        async with AIOKafkaProducer(bootstrap_servers=self.broker, linger_ms=20, **config) as producer:
            sent = [
                await producer.send(topic, text.encode(), key=b"k", partition=partition, timestamp_ms=timestamp)
                for partition, timestamp, text in records
            ]
            return [(await future).offset for future in sent]

    @whole
    async def produce(self, codec):
        records = [(0, START + n, value(n)) for n in range(RECORDS)]
        config = {"compression_type": None if codec == "none" else codec, "enable_idempotence": True}
        check("offsets", await self.send(self.topic(codec), records, **config), list(range(RECORDS)))

    def consumer(self, *topics, group=None, **config):
        """A consumer that begins where nothing is committed at the start."""
        return AIOKafkaConsumer(
            *topics, bootstrap_servers=self.broker, group_id=group and f"{self.name}-{group}",
            enable_auto_commit=False, auto_offset_reset="earliest", metadata_max_age_ms=2000, **config,
        )  # fmt: skip

    async def read(self, reader, count):
        """The next `count` records."""
        return [await asyncio.wait_for(reader.getone(), SOON) for _ in range(count)]

    @whole
    async def consume(self):
        for codec in cells.CODECS:
            async with self.consumer() as reader:
                reader.assign([TopicPartition(self.topic(codec), 0)])
                found = [record.value.decode() for record in await self.read(reader, RECORDS)]
                check(codec, found, [value(n) for n in range(RECORDS)])

    @whole
    async def group(self):
        records = [(partition, START, value(n)) for partition in range(PARTITIONS) for n in range(SHARE)]
        await self.send(self.topic("shared"), records)
        async with self.consumer(self.topic("shared"), group="group") as reader:
            found = {(record.partition, record.offset) for record in await self.read(reader, len(records))}
            check("records", len(found), len(records))
            await reader.commit()
        async with self.consumer(group="group") as again:
            partitions = [TopicPartition(self.topic("shared"), partition) for partition in range(PARTITIONS)]
            check("committed", [await again.committed(each) for each in partitions], [SHARE] * PARTITIONS)

    @whole
    async def rejoin(self):
        first, second = (self.consumer(self.topic("shared"), group="rejoin") for _ in range(2))
        parts = lambda reader: {part.partition for part in reader.assignment()}
        everything = set(range(PARTITIONS))
        await first.start()
        await wait_for("one has all", lambda: parts(first) == everything)
        await second.start()
        halves = lambda: len(parts(first)) == len(parts(second)) == PARTITIONS // 2
        await wait_for("two share", lambda: halves() and parts(first) | parts(second) == everything)
        await first.stop()
        await wait_for("one has all again", lambda: parts(second) == everything)
        await second.stop()

    @whole
    async def earliest(self):
        partition = TopicPartition(self.topic("none"), 0)
        async with self.consumer() as reader:
            check("earliest", await reader.beginning_offsets([partition]), {partition: 0})

    @whole
    async def latest(self):
        partition = TopicPartition(self.topic("none"), 0)
        async with self.consumer() as reader:
            check("latest", await reader.end_offsets([partition]), {partition: RECORDS})

    @whole
    async def time(self):
        partition = TopicPartition(self.topic("none"), 0)
        async with self.consumer() as reader:
            found = (await reader.offsets_for_times({partition: START + 400}))[partition]
            check("offsets_for_times", (found.offset, found.timestamp), (400, START + 400))

    @whole
    async def max_timestamp(self):
        await self.send(self.topic("times"), [(0, timestamp, "t") for timestamp in TIMES])
        async with self.consumer() as reader:
            await reader.topics()  # it cannot end well before it has begun
            try:
                await reader.offsets_for_times({TopicPartition(self.topic("times"), 0): -3})
            except ValueError as error:
                raise cells.Unsupported(f"ValueError: {error}") from error
        raise cells.Failed("it asks for a negative timestamp now: look at the answer here")

    @whole
    async def transaction(self):
        topic, partition = self.topic("transaction"), TopicPartition(self.topic("none"), 0)
        group = f"{self.name}-transaction"
        async with AIOKafkaProducer(bootstrap_servers=self.broker, transactional_id=f"{self.name}-1") as producer:
            for n, ends in enumerate([producer.commit_transaction, producer.abort_transaction]):
                await producer.begin_transaction()
                await producer.send_and_wait(topic, value(n).encode(), partition=0)
                await producer.send_offsets_to_transaction({partition: 100 + n}, group)
                await ends()
        async with self.consumer(group="transaction") as source:
            check("offset of the transaction", await source.committed(partition), 100)
        for isolation, expected in [("read_committed", [value(0)]), ("read_uncommitted", [value(0), value(1)])]:
            async with self.consumer(isolation_level=isolation) as reader:
                here, found = TopicPartition(topic, 0), []
                reader.assign([here])
                end = (await reader.end_offsets([here]))[here]
                while await reader.position(here) < end:
                    for batch in (await asyncio.wait_for(reader.getmany(timeout_ms=100), SOON)).values():
                        found.extend(record.value.decode() for record in batch)
                check(isolation, found, expected)

    @whole
    async def admin(self):
        name = self.topic("made")
        admin = AIOKafkaAdminClient(bootstrap_servers=self.broker)
        await admin.start()
        await admin.create_topics([NewTopic(name, 3, 1, topic_configs={"retention.ms": "60000"})])
        described = await admin.describe_topics([name])
        check("partitions", len(described[0]["partitions"]), 3)
        settings = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
        check("retention.ms", "60000" in str(settings), True)
        groups = [group for group, *_ in await admin.list_consumer_groups()]
        check("group", f"{self.name}-group" in groups, True)
        await admin.delete_topics([name])
        deadline = asyncio.get_running_loop().time() + SOON
        while name in await admin.list_topics():  # which it keeps for a while
            check("in time", asyncio.get_running_loop().time() < deadline, True)
            await asyncio.sleep(0.1)
        await admin.close()


cells.main(Aiokafka)
