"""What is asked of each client, and how its program says what came of it.

A program runs all cells against the broker named in its first argument and writes a line of JSON for
each: {"cell": …, "result": "passed" | "unsupported" | "failed", "reason": …}, and one with its version.
"""

import json
import sys
import time
import traceback

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
CELLS = [
    *CODECS, "consume", "group", "rejoin", "earliest", "latest", "time", "max_timestamp", "transaction", "admin",
]  # fmt: skip

# Seconds that any single answer may take.
SOON = 20
RECORDS = 500
PARTITIONS = 4
# Records in each partition of the topic that groups read.
SHARE = 25
# Timestamps, in milliseconds: young enough for retention. The record of number n bears START + n; those of
# the topic with the greatest timestamp in the middle bear TIMES.
START = int(time.time() * 1000) - 3_600_000
TIMES = [START + 100, START + 999, START + 200]


def value(number):
    """What the record of this number says."""
    return f"a line worth compressing, number {number}"


class Unsupported(Exception):
    """The client cannot do it; bears the client's own words."""


class Failed(Exception):
    """The client can do it, and what came of it is wrong."""


def check(what, found, expected):
    """Fails the cell unless both are equal."""
    if found != expected:
        raise Failed(f"{what}: expected {expected!r}, found {found!r}")


def wait_for(what, look):
    """Looks until the answer is true, and gives it."""
    deadline = time.monotonic() + SOON
    while time.monotonic() < deadline:
        if found := look():
            return found
    raise Failed(f"waited {SOON} s in vain: {what}")


def say(**line):
    """One line of the report."""
    print(json.dumps(line), flush=True)


class Client:
    """A client in Python: a method for each cell, by its name; `produce` stands for all codecs.

    The topics are there before it runs: NAME-CODEC, NAME-times, NAME-transaction with one
    partition each, NAME-shared with `PARTITIONS`.
    """

    name = ""

    def __init__(self, broker):
        self.broker = broker

    def topic(self, kind):
        """The client's own topic of a kind."""
        return f"{self.name}-{kind}"

    def version(self):
        """Of the client."""
        raise NotImplementedError

    def produce(self, codec):
        """Writes `RECORDS` values to NAME-CODEC, acknowledged by all."""
        raise NotImplementedError

    def run(self):
        """All cells."""
        say(version=self.version())
        for cell in CELLS:
            try:
                self.produce(cell) if cell in CODECS else getattr(self, cell)()
                say(cell=cell, result="passed")
            except Unsupported as error:
                say(cell=cell, result="unsupported", reason=str(error))
            except Exception as error:  # noqa: BLE001: whatever a client raises is the cell's result
                traceback.print_exc()
                say(cell=cell, result="failed", reason=f"{type(error).__name__}: {error}")


def main(client):
    """Runs a client against the broker of the command line."""
    client(sys.argv[1]).run()
