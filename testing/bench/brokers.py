"""The brokers that `make bench-log` compares: Highwater's embedded log and Apache Kafka, and a question."""

import os
import socket
import struct
import subprocess
import time

import measure
import processes
from server import REPOSITORY

KAFKA = os.path.join(REPOSITORY, "testing", "kafka", "kafka.sh")
TOPIC_TOOL = os.path.join(REPOSITORY, "testing", "compat", "topic.py")
PATIENCE = 600


def answers(broker):
    """Whether a broker answers ApiVersions."""
    host, port = broker.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
            return bool(connection.recv(4))
    except OSError:
        return False


class Broker:
    """One broker with a data folder of its own."""

    def start(self):
        """Starts it; the seconds until it answers."""
        began = time.monotonic()
        self.spawn()
        processes.wait_until(f"{self.name} answers", PATIENCE, lambda: answers(self.broker), every=0.002)
        return time.monotonic() - began

    def topic(self, name, partitions, *config):
        """Makes a topic."""
        subprocess.run(["python3", TOPIC_TOOL, self.broker, str(partitions), *config, name], check=True)

    def delete(self, topic):
        """Deletes a topic."""
        subprocess.run(["python3", TOPIC_TOOL, self.broker, "delete", topic], check=True)

    def cpu_us(self):
        """What it has used so far."""
        return measure.cpu_us(self.pid())

    def memory(self):
        """(now, most) in MB."""
        return measure.now_mb(self.pid()), measure.peak_mb(self.pid())


class Highwater(Broker):
    """The binary."""

    name = "highwater"

    def __init__(self, binary, folder):
        kafka, http = processes.free_ports(2)
        self.broker = f"127.0.0.1:{kafka}"
        self.data = os.path.join(folder, "highwater")
        self.log = os.path.join(folder, "highwater.log")
        self.command = [
            binary, "server", "--data-dir", self.data, "--kafka-listen", self.broker,
            "--http-listen", f"127.0.0.1:{http}",
        ]  # fmt: skip
        self.child = None

    def spawn(self):
        """Starts the process."""
        self.child = processes.start(self.command, self.log)

    def pid(self):
        """Of the process."""
        return self.child.pid

    def stop(self):
        """In order."""
        processes.stop(self.child, seconds=120)

    def kill(self):
        """kill -9."""
        processes.kill(self.child)


class ApacheKafka(Broker):
    """One KRaft node as Kafka ships: its heap, its threads, its buffers, its collector."""

    name = "kafka"
    JVM = "-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35"
    SHIPPED = (
        "num.network.threads=3", "num.io.threads=8", "log.cleaner.dedupe.buffer.size=134217728",
        "offsets.topic.num.partitions=50", "transaction.state.log.num.partitions=50",
    )  # fmt: skip

    def __init__(self, folder):
        self.folder = os.path.join(folder, "kafka")
        (port,) = processes.free_ports(1)
        self.broker = f"127.0.0.1:{port}"
        self.port = port
        self.made = False

    def spawn(self):
        """Starts the node and waits for it."""
        if self.made:
            self.run("resume")
        else:
            self.run("start", str(self.port), "heap=1g", f"jvm={self.JVM}", *self.SHIPPED)
        self.made = True

    def run(self, what, *options):
        """A command of the script."""
        subprocess.run([KAFKA, what, self.folder, *options], check=True, stdout=subprocess.DEVNULL)

    def pid(self):
        """Of the JVM."""
        with open(os.path.join(self.folder, "pid"), encoding="ascii") as file:
            return int(file.read())

    def stop(self):
        """In order, keeping the data."""
        if self.made:
            self.run("pause")

    def kill(self):
        """kill -9."""
        self.run("kill")


class MaxTimestamp:
    """Asks for the greatest timestamp of a partition, over one connection (ListOffsets 7)."""

    def __init__(self, broker, topic):
        host, port = broker.rsplit(":", 1)
        self.connection = socket.create_connection((host, int(port)), timeout=30)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = topic.encode()
        partition = struct.pack(">iiqB", 0, -1, -3, 0)
        topics = bytes([2, len(name) + 1]) + name + bytes([2]) + partition + bytes([0])
        body = struct.pack(">hhih", 2, 7, 1, -1) + b"\0" + struct.pack(">ib", -1, 0) + topics + b"\0"
        self.request = struct.pack(">i", len(body)) + body

    def ask(self):
        """Seconds until the answer is here."""
        began = time.perf_counter()
        self.connection.sendall(self.request)
        (length,) = struct.unpack(">i", self.read(4))
        answer = self.read(length)
        took = time.perf_counter() - began
        # The last fields: error, timestamp, offset, epoch, and three empty sets of tags.
        error, timestamp, offset = struct.unpack(">hqq", answer[-25:-7])
        if error or offset < 0 or timestamp < 0:
            raise RuntimeError(f"the greatest timestamp: error {error}, offset {offset}, time {timestamp}")
        return took

    def read(self, count):
        """So many bytes."""
        data = b""
        while len(data) < count:
            more = self.connection.recv(count - len(data))
            if not more:
                raise RuntimeError("the broker ended the connection")
            data += more
        return data
