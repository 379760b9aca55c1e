"""The two workers that `make bench-worker` compares, each a process of its own on one Apache Kafka."""

import http.client
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "connect"))

import measure  # noqa: E402
import processes  # noqa: E402
import servers  # noqa: E402
from server import REPOSITORY  # noqa: E402

# What both are told alike.
FLUSH_MS = 1000
LINES = 2000  # that a source reads at once
POLL = 2000  # records that a sink is given at once
STRING = "org.apache.kafka.connect.storage.StringConverter"
SESSION_MS = 10_000  # of a sink in its group, as both workers have it in theirs
PATIENCE = 120


class Worker:
    """One worker, new for each run, alone in its group or with others."""

    def __init__(self, folder, kafka, run, group=None):
        (port,) = processes.free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self.folder, self.kafka, self.run = folder, kafka, run
        self.group = f"{self.name}-{group or run}"
        self.log = os.path.join(folder, f"{self.name}-{run}.log")
        self.child = None

    def start(self, once):
        """Starts it, with exactly-once sources or without, and waits until it takes connectors."""
        self.child = processes.start(self.command(once), self.log)
        processes.wait_until(f"{self.name} answers", PATIENCE, self.answers, every=0.005)

    def answers(self):
        """Whether it takes connectors."""
        if self.child.poll() is not None:
            raise RuntimeError(f"{self.name} ended:\n{processes.tail_of(self.log)}")
        try:
            return servers.ask(self.address, "GET", "/health", None, {}).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def create(self, name, config):
        """Makes a connector."""
        body = json.dumps({"name": name, "config": config})
        answer = servers.ask(self.address, "POST", "/connectors", body, {"Content-Type": "application/json"})
        if answer.status != 201:
            raise RuntimeError(f"{self.name} refuses {name}: {answer.status} {answer.body}")

    def check(self, names):
        """Sees that nothing of these connectors has failed."""
        for name in names:
            answer = servers.ask(self.address, "GET", f"/connectors/{name}/status", None, {})
            if '"FAILED"' in answer.body:
                raise RuntimeError(f"{self.name}: {answer.body}")

    def delete(self, names):
        """Deletes connectors: the next run is another's."""
        for name in names:
            servers.ask(self.address, "DELETE", f"/connectors/{name}", None, {})

    def cpu_us(self):
        """What it has used since it was started."""
        return measure.cpu_us(self.child.pid)

    def peak_mb(self):
        """The most memory that it has held."""
        return measure.peak_mb(self.child.pid)

    def stop(self):
        """Ends it."""
        processes.stop(self.child, seconds=30)


class Highwater(Worker):
    """The binary, with `--kafka`."""

    name = "highwater"
    binary = None

    def command(self, once):
        """How it is started."""
        config = os.path.join(self.folder, f"highwater-{self.run}.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(
                "[worker]\n"
                f'group_id = "{self.group}"\n'
                + "".join(f'{topic}_topic = "{self.group}-{topic}"\n' for topic in ("configs", "offsets", "status"))
                + f'allowed_paths = ["{servers.files(self.folder)}"]\n'
                f"offset_flush_interval_ms = {FLUSH_MS}\n"
                f'exactly_once_source_support = "{"enabled" if once else "disabled"}"\n'
            )
        return [self.binary, "server", "--config", config, "--http-listen", self.address, "--kafka", self.kafka]


class Connect(Worker):
    """Kafka Connect's distributed worker: heap and collector as its start script has them, batches of its producers
    as large as ours."""

    name = "connect"
    JVM = (
        "-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
        "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
    )  # fmt: skip

    def command(self, once):
        """How it is started."""
        lib = servers.fetch()
        settings = os.path.join(self.folder, f"connect-{self.run}.properties")
        with open(settings, "w", encoding="utf-8") as file:
            file.writelines(f"{key}={value}\n" for key, value in self.settings(once).items())
        logging = os.path.join(REPOSITORY, "testing", "kafka", "log4j2.properties")
        return [
            "java", *self.JVM, "-cp", f"{lib}/*", f"-Dlog4j2.configurationFile=file:{logging}", "-Dlog.level=WARN",
            "org.apache.kafka.connect.cli.ConnectDistributed", settings,
        ]  # fmt: skip

    def settings(self, once):
        """One worker, which waits for no others."""
        topics = ("config", "offset", "status")
        return {
            "bootstrap.servers": self.kafka, "group.id": self.group, "listeners": f"http://{self.address}",
            **{f"{topic}.storage.topic": f"{self.group}-{topic}" for topic in topics},
            **{f"{topic}.storage.replication.factor": 1 for topic in topics},
            "offset.storage.partitions": 1, "status.storage.partitions": 1, "scheduled.rebalance.max.delay.ms": 0,
            "plugin.discovery": "hybrid_warn", "key.converter": STRING, "value.converter": STRING,
            "offset.flush.interval.ms": FLUSH_MS, "producer.batch.size": 512 << 10, "producer.linger.ms": 5,
            "exactly.once.source.support": "enabled" if once else "disabled",
        }  # fmt: skip


def connectors(run, topic, file, copy, once):
    """Names and configurations of the two connectors, the same for both workers."""
    converters = {"key.converter": STRING, "value.converter": STRING}
    # Positions are stored as often as at least once.
    boundary = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": str(FLUSH_MS)} if once else {}
    isolation = {"consumer.override.isolation.level": "read_committed"} if once else {}
    source = {
        "connector.class": "FileStreamSource", "file": file, "topic": topic, "batch.size": str(LINES),
        **boundary, **converters,
    }  # fmt: skip
    sink = {
        "connector.class": "FileStreamSink", "file": copy, "topics": topic,
        "consumer.override.auto.offset.reset": "earliest", "consumer.override.max.poll.records": str(POLL),
        "consumer.override.session.timeout.ms": str(SESSION_MS),
        **isolation, **converters,
    }  # fmt: skip
    return {f"source-{run}": source, f"sink-{run}": sink}
