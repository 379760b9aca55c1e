"""Highwater's process, and its REST interface."""

import http.client
import json
import os
import signal
import subprocess

import processes

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build():
    """Builds the binary with the profile that the tests use, unless they built it; returns its path."""
    if built := os.environ.get("HIGHWATER_BUILT"):
        return os.path.relpath(os.path.join(built, "highwater"))
    subprocess.run(["cargo", "build", "--locked", "-p", "highwater"], cwd=REPOSITORY, check=True)
    described = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"],
        cwd=REPOSITORY, check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    return os.path.relpath(
        os.path.join(json.loads(described.stdout)["target_directory"], "debug", "highwater")
    )


class RestError(RuntimeError):
    """An answer that is no success."""

    def __init__(self, what, status, body):
        super().__init__(f"{what}: HTTP {status}: {body}")
        self.status = status


class Server:
    """One Highwater server that can be killed and started again on the same data and ports."""

    def __init__(self, binary, folder, home, http_port):
        self.binary = binary
        self.log = os.path.join(folder, "server.log")
        self.config = os.path.join(folder, "highwater.toml")
        self.home = home
        self.http = f"127.0.0.1:{http_port}"
        self.child = None

    def configure(self, text):
        """What it reads when it starts."""
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)

    def start(self):
        """Starts it and waits until REST answers."""
        with open(self.config, "a", encoding="utf-8"):
            pass  # the defaults do
        self.child = processes.start(
            [self.binary, "server", "--config", self.config, "--http-listen", self.http, *self.home.flags()],
            self.log,
            death_signal=signal.SIGTERM,
        )
        processes.wait_until("Highwater answers", 90, self.answers)

    @property
    def kafka(self):
        """Where Kafka clients find the log."""
        return self.home.address

    def answers(self):
        """Whether REST answers; an error when the process is gone."""
        if self.child.poll() is not None:
            raise RuntimeError(
                f"highwater ended by itself with {self.child.returncode}:\n{processes.tail_of(self.log)}"
            )
        try:
            self.rest("GET", "/")
            return True
        except (OSError, RestError, http.client.HTTPException):
            return False

    def rest(self, method, path, body=None):
        """One request; the answer's JSON."""
        connection = http.client.HTTPConnection(self.http, timeout=60)
        try:
            text = None if body is None else json.dumps(body)
            headers = {} if body is None else {"Content-Type": "application/json"}
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            content = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status >= 300:
            raise RestError(f"{method} {path}", answer.status, content)
        return json.loads(content) if content else {}

    def kill(self):
        """kill -9."""
        processes.kill(self.child)

    def stop(self):
        """Asks it to end."""
        return processes.stop(self.child)
