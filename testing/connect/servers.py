"""The two that are asked: Kafka Connect's worker on an Apache Kafka, and Highwater."""

import fcntl
import filecmp
import http.client
import os
import shutil
import subprocess
import sys

from compare import Answer  # before the demo's own comes into the path

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(REPOSITORY, "testing", "demo"))

import kafka  # noqa: E402
import processes  # noqa: E402
import server as highwater  # noqa: E402

HOME = os.path.join(REPOSITORY, "target", "connect")
POM = os.path.join(HERE, "pom.xml")
# Options that make a short life cheap.
BRIEF = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
# No answer takes longer: the bound of Kafka Connect's own.
PATIENCE = 95


def fetch():
    """Gets the worker with Maven; returns the folder of its jars."""
    os.makedirs(HOME, exist_ok=True)
    lib, got = os.path.join(HOME, "lib"), os.path.join(HOME, "pom.xml")
    with open(os.path.join(HOME, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two tests may come here at once
        if not (os.path.exists(got) and filecmp.cmp(POM, got, shallow=False)):
            shutil.rmtree(lib, ignore_errors=True)
            subprocess.run(
                ["mvn", "-B", "-ntp", "-q", "-f", POM, "dependency:copy-dependencies",
                 f"-DoutputDirectory={lib}", "-DincludeScope=runtime"],
                check=True, timeout=600,
            )  # fmt: skip
            shutil.copy(POM, got)
    return lib


def ask(address, method, path, body, headers):
    """One request; the answer as it comes."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, headers, answer.read().decode(errors="replace"))
    finally:
        connection.close()


def files(folder):
    """Where the connectors' files lie, apart from the folders of the servers."""
    path = os.path.join(folder, "files")
    os.makedirs(path, exist_ok=True)
    return path


class Judge:
    """A distributed worker of Kafka Connect, on a node of Apache Kafka."""

    def __init__(self, folder):
        port, self.port = processes.free_ports(2)
        self.folder = folder
        self.node = kafka.make("apache", folder, port)
        self.address = f"127.0.0.1:{self.port}"
        self.child = None

    def start(self):
        """Starts both and waits until the worker is well."""
        self.node.start()
        self.start_worker()
        processes.wait_until("Kafka Connect's worker answers", 90, self.is_well)

    def start_worker(self):
        """Starts the worker."""
        lib = fetch()
        settings = os.path.join(self.folder, "worker.properties")
        with open(settings, "w", encoding="utf-8") as file:
            file.writelines(f"{key}={value}\n" for key, value in self.settings().items())
        logging = os.path.join(REPOSITORY, "testing", "kafka", "log4j2.properties")
        self.child = processes.start(
            ["java", *BRIEF, "-cp", f"{lib}/*", f"-Dlog4j2.configurationFile=file:{logging}", "-Dlog.level=INFO",
             "org.apache.kafka.connect.cli.ConnectDistributed", settings],
            os.path.join(self.folder, "worker.log"),
        )  # fmt: skip

    def settings(self):
        """One worker, and no waiting for others."""
        replicas = {f"{topic}.storage.replication.factor": 1 for topic in ("config", "offset", "status")}
        topics = {f"{topic}.storage.topic": f"judge.{topic}" for topic in ("config", "offset", "status")}
        converter = "org.apache.kafka.connect.json.JsonConverter"
        return {
            "bootstrap.servers": self.node.bootstrap, "group.id": "judge", **topics, **replicas,
            "offset.storage.partitions": 1, "status.storage.partitions": 1,
            "key.converter": converter, "value.converter": converter,
            "offset.flush.interval.ms": 1000, "scheduled.rebalance.max.delay.ms": 0,
            "listeners": f"http://{self.address}", "plugin.discovery": "hybrid_warn",
        }  # fmt: skip

    def is_well(self):
        """Whether it has joined its group."""
        if self.child.poll() is not None:
            raise RuntimeError("Kafka Connect's worker ended:\n" + self.log())
        try:
            return ask(self.address, "GET", "/health", None, {}).status == 200
        except OSError:
            return False

    def log(self):
        """Its last words."""
        return processes.tail_of(os.path.join(self.folder, "worker.log"))

    def stop(self):
        """Ends the worker, then its Kafka."""
        processes.stop(self.child)
        self.node.stop()


class Ours:
    """The binary, on a log of its own (with ON=apache an Apache Kafka) unless another's is given."""

    def __init__(self, folder, log=None):
        home = os.path.join(folder, "ours")
        os.makedirs(home)
        port, http_port = processes.free_ports(2)
        self.own = None if log else kafka.make(os.environ.get("ON") or "embedded", home, port)
        self.server = highwater.Server(highwater.build(), home, log or self.own, http_port)
        with open(self.server.config, "w", encoding="utf-8") as file:
            file.write(f'[worker]\nallowed_paths = ["{files(folder)}"]\n')
        self.address = self.server.http

    def start(self):
        """Starts it and waits until it answers."""
        if self.own:
            self.own.start()
        self.server.start()

    def log(self):
        """Its last words."""
        return processes.tail_of(self.server.log)

    def stop(self):
        """Ends it, then its log."""
        self.server.stop()
        if self.own:
            self.own.stop()
