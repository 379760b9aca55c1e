"""What is asked of each client, and how its program says what came of it.

A program runs all cells against the broker named in its first argument and writes a line of JSON for
each: {"cell": …, "result": "passed" | "unsupported" | "failed", "reason": …}, and one with its version.
"""

import json
import os
import subprocess
import sys
import tempfile
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


def share(join, poll, partitions, leave):
    """The cell `rejoin`: one member has all, two share, and all goes to the one that stays.

    `join()` gives a member, `poll(member, …)` lets members work, `partitions(member)` is the set that one has,
    `leave(member)` takes it out.
    """
    everything = set(range(PARTITIONS))

    def has_all(member):
        poll(member)
        return partitions(member) == everything

    def halves():
        poll(first, second)
        both = partitions(first), partitions(second)
        return all(len(each) == PARTITIONS // 2 for each in both) and set.union(*both) == everything

    first = join()
    wait_for("one has all", lambda: has_all(first))
    second = join()
    wait_for("two share", halves)
    leave(first)
    wait_for("one has all again", lambda: has_all(second))
    leave(second)


class Member:
    """A program that reads as a member of a group and says in a file what it is given."""

    def __init__(self, command, errors, folder, read):
        told, self.told = tempfile.mkstemp(dir=folder)
        out = {"stderr" if errors else "stdout": told, "stdout" if errors else "stderr": subprocess.DEVNULL}
        self.child = subprocess.Popen(command, **out)
        os.close(told)
        self.read = read

    def partitions(self):
        """What it has by its last word."""
        with open(self.told, encoding="utf-8") as file:
            return self.read(file.read())


def share_between_programs(command, errors, read):
    """As `share`, for a client that is a program; `read` finds the partitions in what it said so far."""
    with tempfile.TemporaryDirectory() as folder:
        running = []

        def join():
            running.append(Member(command, errors, folder, read))
            return running[-1]

        try:
            share(join, lambda *_: time.sleep(0.05), Member.partitions, lambda member: member.child.terminate())
        finally:
            for member in running:
                member.child.kill()
                member.child.wait()


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
