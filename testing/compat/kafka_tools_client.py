#!/usr/bin/env python3
"""Apache Kafka's own command-line tools."""

import json
import os
import subprocess

import cells
from cells import PARTITIONS, RECORDS, SHARE, SOON, check, value

KAFKA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "kafka", "kafka.sh")
# A tool is a JVM of its own.
PATIENCE = 3 * SOON


class KafkaTools(cells.Client):
    """See the module's text."""

    name = "kafka-tools"

    def tool(self, name, *arguments, sent=None, to="--bootstrap-server"):
        """Runs a tool to its end; what it printed."""
        command = [KAFKA, "tool", name, to, self.broker, *arguments]
        done = subprocess.run(command, input=sent, capture_output=True, encoding="utf-8", timeout=PATIENCE)
        if done.returncode:
            raise cells.Failed(f"{name} {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def version(self):
        return self.tool("kafka-topics", "--version").split()[0]

    def produce(self, codec):
        lines = "".join(f"{value(n)}\n" for n in range(RECORDS))
        self.tool("kafka-console-producer", "--topic", self.topic(codec), "--compression-codec", codec, sent=lines)

    def read(self, topic, *arguments):
        """The lines of a topic's first partition."""
        end = ["--timeout-ms", "4000"] if "--max-messages" not in arguments else []
        return self.tool("kafka-console-consumer", "--topic", topic, *arguments, *end).splitlines()

    def consume(self):
        expected = [value(n) for n in range(RECORDS)]
        for codec in cells.CODECS:
            begin = ["--partition", "0", "--offset", "earliest", "--max-messages", str(RECORDS)]
            check(codec, self.read(self.topic(codec), *begin), expected)

    def group(self):
        lines = "".join(f"{n}:{value(n)}\n" for n in range(PARTITIONS * SHARE))
        keyed = ["--property", "parse.key=true", "--property", "key.separator=:"]
        self.tool("kafka-console-producer", "--topic", self.topic("shared"), *keyed, sent=lines)
        group = f"{self.name}-group"
        count = PARTITIONS * SHARE
        begin = ["--group", group, "--from-beginning", "--max-messages", str(count)]
        found = self.read(self.topic("shared"), *begin)
        check("records", sorted(found), sorted(value(n) for n in range(count)))
        told = self.tool("kafka-consumer-groups", "--describe", "--group", group)
        rows = [line.split() for line in told.splitlines() if line.startswith(group)]
        check("committed and end", sum(int(row[3]) for row in rows), count)
        check("lag", {row[5] for row in rows}, {"0"})

    def rejoin(self):
        """By kafka-verifiable-consumer, which says in JSON which partitions it is given."""
        command = [
            KAFKA, "tool", "kafka-verifiable-consumer", "--bootstrap-server", self.broker,
            "--topic", self.topic("shared"), "--group-id", f"{self.name}-rejoin", "--reset-policy", "earliest",
        ]  # fmt: skip
        cells.share_between_programs(command, False, assigned)

    def listed(self, kind, time):
        """What kafka-get-offsets says of a topic's only partition."""
        topic = self.topic(kind)
        told = self.tool("kafka-get-offsets", "--topic", topic, "--time", str(time)).strip()
        return told.removeprefix(f"{topic}:0:")

    def earliest(self):
        check("earliest", self.listed("none", "earliest"), "0")

    def latest(self):
        check("latest", self.listed("none", "latest"), str(RECORDS))

    def time(self):
        check("by time", self.listed("none", 1), "0")
        check("in the far future", self.listed("none", 1 << 60), "")

    def max_timestamp(self):
        # The tools write with the time of their own clock: the last record is the newest.
        for n in range(2):
            self.tool("kafka-console-producer", "--topic", self.topic("times"), sent=f"{n}\n")
        check("max timestamp", self.listed("times", "max-timestamp"), "1")

    def transaction(self):
        topic, name = self.topic("transaction"), f"{self.name}-1"
        load = ["--num-records", "200", "--record-size", "10", "--throughput", "-1"]
        ids = ["--transactional-id", name, "--transaction-duration-ms", "50"]
        self.tool("kafka-producer-perf-test", "--topic", topic, *load, *ids)
        begin = ["--partition", "0", "--offset", "earliest", "--isolation-level", "read_committed"]
        check("read_committed", len(self.read(topic, *begin, "--max-messages", "200")), 200)
        told = self.tool("kafka-transactions", "list")
        check("its state", "CompleteCommit" in told and name in told, True)
        check("described", name in self.tool("kafka-transactions", "describe", "--transactional-id", name), True)

    def admin(self):
        name = self.topic("made")
        config = ["--config", "retention.ms=60000"]
        self.tool("kafka-topics", "--create", "--topic", name, "--partitions", "3", *config)
        told = self.tool("kafka-topics", "--describe", "--topic", name)
        check("described", "PartitionCount: 3" in told and "retention.ms=60000" in told, True)
        entity = ["--entity-type", "topics", "--entity-name", name]
        self.tool("kafka-configs", "--alter", *entity, "--add-config", "retention.ms=120000")
        check("changed", "retention.ms=120000" in self.tool("kafka-configs", "--describe", *entity), True)
        check("sizes", name in self.tool("kafka-log-dirs", "--describe", "--topic-list", name), True)
        group = f"{self.name}-group"
        check("group", group in self.tool("kafka-consumer-groups", "--list").split(), True)
        self.tool("kafka-consumer-groups", "--delete", "--group", group)
        self.tool("kafka-topics", "--delete", "--topic", name)
        check("deleted", name in self.tool("kafka-topics", "--list").split(), False)


def assigned(told):
    """The partitions of a member, by the events that it told whole."""
    owned = set()
    for line in told.splitlines():
        event = json.loads(line) if line.endswith("}") else {}
        numbers = {each["partition"] for each in event.get("partitions", []) if "partition" in each}
        if event.get("name") == "partitions_assigned":
            owned = numbers
        elif event.get("name") == "partitions_revoked":
            owned -= numbers
    return owned


cells.main(KafkaTools)
