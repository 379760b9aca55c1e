#!/usr/bin/env python3
"""`make bench-worker`: a file into a topic and the topic into a file, by Kafka Connect's own worker and by ours.

Each run starts a new worker, gives it a FileStreamSource and a FileStreamSink at once, and waits until the second
file is as long as the first; it is then compared line by line, in order. Both workers run on one Apache Kafka, in
turn, at least once and exactly once, with the same connector configurations (workers.py says with which settings).
CPU and rate count from the first record on, so a JVM's start counts in neither, but its warming up; memory is the most
that the process has held. Then each has two workers in one group, of which the first is killed while files grow
(moving.py).

The last line: {"bench":"worker","figures":{...},"targets":{...},"met":true}. Exit code: 0 when all targets are met,
1 when one is missed, 2 when there are no figures.

Environment: RECORDS=n lines (default 10,000,000); HW_RUNS=n runs of each (default 3), whose medians count.
"""

import hashlib
import os
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "demo"))

import measure  # noqa: E402
import moving  # noqa: E402
import workers  # noqa: E402
from brokers import KAFKA, ApacheKafka  # noqa: E402
from server import build  # noqa: E402
from verdict import main, report, say  # noqa: E402

RECORDS = int(os.environ.get("RECORDS", "10_000_000"))
RUNS = int(os.environ.get("HW_RUNS", "3"))
LINE = 100  # bytes of a line, on average
MODES = {"at_least_once": False, "exactly_once": True}
# Nobody is as slow as this, in records a second.
SLOWEST = 2000

TARGETS = {
    "rate_per_cpu_s_of_connect_at_least_once": ("at least", 3.0),
    "rate_per_cpu_s_of_connect_exactly_once": ("at least", 3.0),
    "memory_of_connect": ("at most", 0.1),
    "exactly_once_of_at_least_once": ("at least", 0.85),
}


class Copied:
    """What one run gave."""

    def __init__(self, rate, worker_us, broker_us, peak_mb, first_s):
        """Rate a second, CPU a record, memory, seconds from the start to the first record."""
        self.rate, self.worker_us, self.broker_us = rate, worker_us, broker_us
        self.peak_mb, self.first_s = peak_mb, first_s

    def __str__(self):
        return (
            f"{self.rate / 1000:6.1f} k records/s, CPU {self.worker_us:5.2f} s a million records (the broker's"
            f" {self.broker_us:.2f} s), at most {self.peak_mb:.0f} MB, first record after {self.first_s:.2f} s"
        )


class Bench:
    """One bench, from the empty folder to the figures."""

    def __init__(self, folder):
        self.folder = folder
        self.files = workers.servers.files(folder)
        self.kafka = ApacheKafka(folder)
        self.worker = None
        self.number = 0

    def run(self):
        """Everything; returns the exit code."""
        workers.Highwater.binary = build()
        self.kafka.start()
        say(f"Writing {RECORDS} lines")
        file = os.path.join(self.files, "in.txt")
        truth = write_lines(file)
        copies = {}
        kinds = [(kind, mode) for mode in MODES for kind in (workers.Connect, workers.Highwater)]
        for run in range(RUNS):
            for kind, mode in kinds[run % len(kinds) :] + kinds[: run % len(kinds)]:
                copied = self.copy(kind, MODES[mode], file, truth)
                say(f"run {run + 1}, {kind.name:9} {mode:13} {copied}")
                copies.setdefault((kind.name, mode), []).append(copied)
        return report("worker", figures(copies) | self.moves(), TARGETS)

    def moves(self):
        """How long lines wait when a worker is killed."""
        took = {}
        for run in range(RUNS):
            for kind in (workers.Connect, workers.Highwater):
                self.number += 1
                after = moving.seconds(kind, self.folder, self.kafka, self.number)
                say(f"run {run + 1}, {kind.name:9} lines move again {after:.2f} s after kill -9")
                took.setdefault(kind.name, []).append(after)
        return {f"moved_after_kill_s_{name}": round(statistics.median(each), 2) for name, each in took.items()}

    def copy(self, kind, once, file, truth):
        """One run."""
        self.number += 1
        topic, copy = f"lines-{self.number}", os.path.join(self.files, f"out-{self.number}.txt")
        self.kafka.topic(topic, 1, "retention.ms=-1")
        pairs = workers.connectors(self.number, topic, file, copy, once)
        began = time.monotonic()
        self.worker = kind(self.folder, self.kafka.broker, self.number)
        self.worker.start(once)
        for name, config in pairs.items():
            self.worker.create(name, config)
        pace, costs = self.watch(copy, os.path.getsize(file), pairs)
        rate = pace.rate(RECORDS, pace.last[1])
        records = rate * (pace.last[0] - pace.first[0])
        copied = Copied(
            rate, *(cost / records for cost in costs), self.worker.peak_mb(), pace.first[0] - began
        )
        self.worker.delete(pairs)
        self.worker.stop()
        if digest(copy) != truth:
            raise RuntimeError(f"{kind.name} copied {digest(copy)}; the file has {truth}")
        os.remove(copy)
        self.kafka.delete(topic)
        return copied

    def watch(self, copy, size, names):
        """Looks at the copy until it is whole; its pace, and the CPU of worker and broker since it began."""
        costs = lambda: (self.worker.cpu_us(), self.kafka.cpu_us())
        before = None
        pace, deadline, checked = measure.Pace(), time.monotonic() + 60 + RECORDS / SLOWEST, time.monotonic()
        while pace.last is None or pace.last[1] < size:
            time.sleep(0.01)
            pace.see(os.path.getsize(copy) if os.path.exists(copy) else 0)
            before = before or (pace.first and costs())
            now = time.monotonic()
            if now > deadline:
                raise RuntimeError(f"{self.worker.name} has not copied everything in time: {pace.last} of {size} bytes")
            if now - checked > 5:
                self.worker.check(names)
                checked = now
        return pace, [now - then for now, then in zip(costs(), before)]

    def stop(self):
        """Ends what still runs."""
        if self.worker:
            self.worker.stop()
        if self.kafka.made:
            subprocess.run([KAFKA, "stop", self.kafka.folder], check=False)


def write_lines(path):
    """Writes the lines, each another one; (how many, their checksum)."""
    random.seed(20)
    words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz ", k=random.randint(60, 114))) for _ in range(997)]
    with open(path, "w", encoding="ascii") as file:
        for start in range(0, RECORDS, 10_000):
            numbers = range(start, min(start + 10_000, RECORDS))
            file.write("".join(f"{number:011d} {words[number % 997]}\n" for number in numbers))
    return digest(path)


def digest(path):
    """How many lines a file has, and the checksum of them all in order."""
    lines, checksum = 0, hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            lines += block.count(b"\n")
            checksum.update(block)
    return lines, checksum.hexdigest()


def figures(copies):
    """What is judged, and the medians of each worker and mode."""
    median = lambda key, field: statistics.median(getattr(each, field) for each in copies[key])
    middle = {
        f"{name} {mode}": {
            "records_per_s": round(median((name, mode), "rate")),
            "cpu_s_per_million": round(median((name, mode), "worker_us"), 3),
            "broker_cpu_s_per_million": round(median((name, mode), "broker_us"), 3),
            "peak_mb": round(median((name, mode), "peak_mb"), 1),
            "first_record_s": round(median((name, mode), "first_s"), 3),
        }
        for name, mode in copies
    }
    of = lambda field, name, mode: middle[f"{name} {mode}"][field]
    judged = {}
    for mode in MODES:
        cpu = lambda name: of("cpu_s_per_million", name, mode)
        judged[f"rate_per_cpu_s_of_connect_{mode}"] = round(cpu("connect") / cpu("highwater"), 2)
        judged[f"rate_of_connect_{mode}"] = round(
            of("records_per_s", "highwater", mode) / of("records_per_s", "connect", mode), 2
        )
    memory = [of("peak_mb", "highwater", mode) / of("peak_mb", "connect", mode) for mode in MODES]
    judged["memory_of_connect"] = round(max(memory), 3)
    rates = [of("records_per_s", "highwater", mode) for mode in ("exactly_once", "at_least_once")]
    judged["exactly_once_of_at_least_once"] = round(rates[0] / rates[1], 3)
    return judged | {"records": RECORDS, "runs": RUNS} | middle


if __name__ == "__main__":
    main(Bench)
