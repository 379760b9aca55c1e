"""The log of a run: the one that Highwater embeds, or an Apache Kafka beside it."""

import os
import subprocess

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "kafka", "kafka.sh")

# What KAFKA can be, and how an Apache Kafka is spoken to by Highwater.
SECURITY = {"embedded": None, "apache": "plaintext", "apache-sasl": "sasl_ssl"}


class Embedded:
    """Highwater's own: nothing to be started."""

    def __init__(self, folder, port):
        self.data = os.path.join(folder, "highwater-data")
        self.address = f"127.0.0.1:{port}"

    def start(self):
        """It comes with the server."""

    def flags(self):
        """How the server is told of it."""
        return ["--data-dir", self.data, "--kafka-listen", self.address]

    def stop(self):
        """It ends with the server."""


class Apache:
    """A node of Apache Kafka. The witnesses speak to it in the clear, whatever Highwater does."""

    def __init__(self, folder, port, security):
        self.folder = os.path.join(folder, "kafka")
        self.port = str(port)
        self.security = security
        self.address = self.bootstrap = None

    def start(self):
        """Makes it and waits until it answers; no topic comes of being asked for."""
        self.run("start", self.folder, self.port, f"security={self.security}", "auto.create.topics.enable=false")
        self.bootstrap, self.address = self.read("bootstrap"), self.read("internal")

    def flags(self):
        """How the server is told of it."""
        return ["--kafka", self.bootstrap, "--kafka-config", os.path.join(self.folder, "client.properties")]

    def kill(self):
        """kill -9, and a start on what the system kept of its writes."""
        self.run("kill", self.folder)
        self.run("resume", self.folder)

    def stop(self):
        """Takes it away."""
        self.run("stop", self.folder)

    def read(self, name):
        """A file that the script left."""
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read().strip()

    @staticmethod
    def run(*arguments):
        """One call of the script."""
        subprocess.run([SCRIPT, *arguments], check=True, timeout=300, stdout=subprocess.DEVNULL)


def make(kind, folder, port):
    """The log of that kind."""
    security = SECURITY[kind]
    return Apache(folder, port, security) if security else Embedded(folder, port)
