#!/usr/bin/env python3
"""Take-over: a file goes through Kafka Connect's worker, then through ours, then through Kafka Connect's
again, on the same internal topics of one Apache Kafka.

While one of the two lives, the other is refused. Configurations, target states and offsets go on each time:
every line arrives once, in order, and a connector that was paused stays paused. Settings of Kafka's clients that mean
nothing here are taken and told; a connector with a key that is refused fails by name, and keeps its offset.

The last line: {"lines":n,"missing":0,"repeated":0,"in_order":true}
"""

import json
import os
import subprocess
import sys
import tempfile

import servers
from servers import highwater, processes

# Seconds until something must have happened.
SOON = 60
# Lines of each of the three lives.
LINES = 50

# Settings of Kafka's clients that are taken, on the source and on the sink: honoured ones, and those without effect.
OF_PRODUCER = {"producer.override.linger.ms": "20", "producer.override.compression.type": "lz4", "producer.override.acks": "all"}
OF_CONSUMER = {"consumer.override.max.poll.records": "20", "consumer.override.fetch.min.bytes": "10"}
WITHOUT_EFFECT = ("producer.override.compression.type", "consumer.override.fetch.min.bytes")
# Connectors with a key that is refused: the key, its value, and what is said of it.
REFUSED = {
    "misspelt": ("bacth.size", "7", "is not known; did you mean batch.size?"),
    "elsewhere": ("producer.override.security.protocol", "PLAINTEXT", "cannot be overridden"),
}


class Takeover:
    """The two kinds of workers, the files, and what was written."""

    def __init__(self, folder):
        self.folder = servers.files(folder)
        self.judge = servers.Judge(folder)
        self.binary = highwater.build()
        home = os.path.join(folder, "ours")
        os.makedirs(home)
        (port,) = processes.free_ports(1)
        self.ours = highwater.Server(self.binary, home, self.judge.node, port)
        with open(self.ours.config, "w", encoding="utf-8") as file:
            file.write(
                f'[worker]\nallowed_paths = ["{self.folder}"]\ngroup_id = "judge"\nsession_timeout_ms = 6000\n'
                'configs_topic = "judge.config"\noffsets_topic = "judge.offset"\nstatus_topic = "judge.status"\n'
            )
        self.written = 0

    def file(self, name):
        """The path of a file."""
        return os.path.join(self.folder, name)

    def append(self):
        """The next lines of the input."""
        with open(self.file("in.txt"), "a", encoding="utf-8") as file:
            file.writelines(f"line {self.written + line}\n" for line in range(LINES))
        self.written += LINES

    def arrived(self):
        """The lines that the sink has written."""
        if not os.path.exists(self.file("out.txt")):
            return []
        with open(self.file("out.txt"), encoding="utf-8") as file:
            return file.read().splitlines()

    def wait_for_all(self, who):
        """Waits until the last line has arrived."""
        last = f"line {self.written - 1}"
        processes.wait_until(f"{who} brings the last line", SOON, lambda: last in self.arrived()[-1:])

    def ask(self, address, method, path, body=None):
        """The JSON that a worker answers."""
        text = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if text else {}
        answer = servers.ask(address, method, path, text, headers)
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.body}")
        return json.loads(answer.body) if answer.body else None

    def state(self, address, name):
        """The state of a connector and of its first task."""
        try:
            status = self.ask(address, "GET", f"/connectors/{name}/status")
        except (OSError, RuntimeError):
            return None
        return status["connector"]["state"], [task["state"] for task in status["tasks"]]

    def wait_for(self, address, name, state):
        """Waits until a connector and its task are in a state."""
        processes.wait_until(f"{name} is {state}", SOON, lambda: self.state(address, name) == (state, [state]))

    def create(self):
        """Makes the connectors at Kafka Connect's worker."""
        text = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
        source = text | {
            "connector.class": "FileStreamSource", "file": self.file("in.txt"), "topic": "lines",
            "topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1",
        }  # fmt: skip
        idle = source | {"topic": "idle", "file": self.file("idle.txt")}
        sink = text | {"connector.class": "FileStreamSink", "file": self.file("out.txt"), "topics": "lines"}
        others = {name: source | {"topic": name, key: value} for name, (key, value, _) in REFUSED.items()}
        for name, config in {"source": source | OF_PRODUCER, "idle": idle, "sink": sink | OF_CONSUMER, **others}.items():
            self.ask(self.judge.address, "POST", "/connectors", {"name": name, "config": config})
        self.ask(self.judge.address, "PUT", "/connectors/idle/pause")

    def look(self, address, who):
        """What each of the two must say of the connectors."""
        for name in ("source", "sink"):
            self.wait_for(address, name, "RUNNING")
        self.wait_for(address, "idle", "PAUSED")
        self.wait_for_all(who)
        config = self.ask(address, "GET", "/connectors/source/config")
        assert config["file"] == self.file("in.txt") and OF_PRODUCER.items() <= config.items(), config
        size = os.path.getsize(self.file("in.txt"))
        self.wait_for_offset(address, "source", size)

    def wait_for_offset(self, address, name, position):
        """Waits until a source's offset is stored."""
        stored = lambda: self.ask(address, "GET", f"/connectors/{name}/offsets")["offsets"]  # noqa: E731
        processes.wait_until("the offset is stored", SOON, lambda: stored() and stored()[0]["offset"]["position"] == position)

    def look_at_refused(self, address):
        """All others run at Kafka Connect, and bring what is there."""
        for name in REFUSED:
            self.wait_for(address, name, "RUNNING")
            self.wait_for_offset(address, name, os.path.getsize(self.file("in.txt")))

    def ours_refuses(self, position):
        """Ours says which key is refused, keeps the offset, and tells which keys change nothing."""
        for name, (key, _, said) in REFUSED.items():
            processes.wait_until(f"{name} fails", SOON, lambda name=name: (self.state(self.ours.http, name) or ("", []))[0] == "FAILED")
            status = self.ask(self.ours.http, "GET", f"/connectors/{name}/status")
            assert f"{key} {said}" in status["connector"]["trace"] and not status["tasks"], status
            self.wait_for_offset(self.ours.http, name, position)
        command = [self.binary, "doctor", "--url", f"http://{self.ours.http}", "--output", "json"]
        doctor = subprocess.run(command, capture_output=True, text=True, timeout=SOON, check=False).stdout
        with open(self.ours.log, encoding="utf-8") as file:
            warned = [line for line in file if "have no effect" in line]
        for key in WITHOUT_EFFECT:
            assert key in doctor and "CONNECTOR_KEY_WITHOUT_EFFECT" in doctor, doctor
            assert len([line for line in warned if key in line]) == 1, warned
        assert "producer.override.acks" not in doctor, doctor
        self.mend_one()

    def mend_one(self):
        """Without the key that nobody knows, a connector goes on where it was."""
        key, _, _ = REFUSED["misspelt"]
        self.ask(self.ours.http, "PATCH", "/connectors/misspelt/config", {key: None})
        self.wait_for(self.ours.http, "misspelt", "RUNNING")
        self.wait_for_offset(self.ours.http, "misspelt", os.path.getsize(self.file("in.txt")))

    def ours_is_refused(self):
        """Ours does not start while Kafka Connect's worker lives."""
        command = [self.binary, "server", "--config", self.ours.config, "--http-listen", self.ours.http]
        ended = subprocess.run(
            [*command, *self.ours.home.flags()], capture_output=True, text=True, timeout=SOON, check=False
        )
        assert ended.returncode == 3 and "WORKER_GROUP_TAKEN" in ended.stderr, ended

    def theirs_is_refused(self):
        """Kafka Connect's worker does not come in while ours lives."""
        self.judge.start_worker()
        said = lambda: "InconsistentGroupProtocol" in self.judge.log()  # noqa: E731
        processes.wait_until("Kafka Connect's worker is refused", SOON, said)
        processes.kill(self.judge.child)

    def run(self):
        """There and back."""
        self.append()
        self.judge.start()
        try:
            self.create()
            self.look(self.judge.address, "Kafka Connect")
            self.look_at_refused(self.judge.address)
            self.ours_is_refused()
            processes.stop(self.judge.child)
            position = os.path.getsize(self.file("in.txt"))
            self.append()
            self.ours.start()
            self.look(self.ours.http, "Highwater")
            self.ours_refuses(position)
            self.theirs_is_refused()
            self.ours.stop()
            self.append()
            self.judge.start_worker()
            self.look(self.judge.address, "Kafka Connect once more")
            self.look_at_refused(self.judge.address)
        finally:
            if self.ours.child is not None:
                self.ours.stop()
            self.judge.stop()

    def verdict(self):
        """What was missing, and what came twice."""
        wanted, arrived = [f"line {line}" for line in range(self.written)], self.arrived()
        missing = len(set(wanted) - set(arrived))
        repeated = len(arrived) - len(set(arrived))
        return {"lines": len(wanted), "missing": missing, "repeated": repeated, "in_order": arrived == wanted}


def main():
    """Runs it in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="hw-takeover-") as folder:
        takeover = Takeover(folder)
        takeover.run()
        verdict = takeover.verdict()
    print(json.dumps(verdict))
    return 0 if verdict["in_order"] else 1


if __name__ == "__main__":
    sys.exit(main())
