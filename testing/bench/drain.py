#!/usr/bin/env python3
"""`make bench-postgres`: a million changes drained by pg_recvlogical, Debezium Engine and Highwater.

The rows are loaded before any drain, 1,000 a transaction; each contender has a slot a run that stood
before, so that all read the same WAL. They take turns, in an order that changes with each run. The
last line holds the medians, the targets and whether they are met:
`{"bench":"postgres","figures":{...},"targets":{...},"met":true}`.

Exit code: 0 when all targets are met, 1 when one is missed, 2 when there are no figures because
something failed or two contenders delivered different rows.

Environment:
  HW_RUNS=n          runs of each contender (default 3)
  HW_TRANSACTIONS=n  transactions of 1,000 rows (default 1000)
"""

import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "demo"))

import processes  # noqa: E402
from contenders import Debezium, Highwater, RecvLogical  # noqa: E402
from postgres import DATABASE, Postgres  # noqa: E402
from rows import CREATE, PER_TRANSACTION, SOURCE, Digest, load  # noqa: E402
from server import build  # noqa: E402
from verdict import main, report, say  # noqa: E402

TARGETS = {
    "rate_of_pg_recvlogical": ("at least", 0.9),
    "cpu_of_pg_recvlogical": ("at most", 2.2),
    "rate_of_debezium": ("at least", 4.0),
    "peak_mb": ("below", 100.0),
}


class Bench:
    """One bench, from the empty folder to the figures."""

    def __init__(self, folder):
        self.runs = int(os.environ.get("HW_RUNS", "3"))
        self.transactions = int(os.environ.get("HW_TRANSACTIONS", "1000"))
        self.rows = self.transactions * PER_TRANSACTION
        self.folder = folder
        settings = {"max_replication_slots": 3 * (self.runs + 1), "max_wal_size": "16GB"}
        self.postgres = Postgres(folder, *processes.free_ports(1), synchronous_commit="off", **settings)
        self.contenders = []
        self.end = None

    def run(self):
        """Everything; returns the exit code."""
        say("Building the binary")
        binary = build()
        self.prepare(binary)
        drains = self.drain()
        self.compare()
        judged, middle = figures(drains)
        return report("postgres", judged | {"rows": self.rows, "runs": self.runs} | middle, TARGETS)

    def prepare(self, binary):
        """The server, the slots, the rows."""
        self.postgres.start()
        self.postgres.run(f"CREATE DATABASE {DATABASE};", database="postgres")
        self.contenders = [
            RecvLogical(self.postgres, self.folder),
            Debezium(self.postgres, self.folder),
            Highwater(self.postgres, self.folder, binary),
        ]
        slots = [slot(each, run) for each in self.contenders for run in range(self.runs + 1)]
        self.postgres.run(CREATE)
        for name in slots:
            self.postgres.run(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput');")
        say(f"Loading {self.rows} rows, {PER_TRANSACTION} a transaction")
        self.postgres.run(load(self.transactions))
        self.end = self.postgres.run("CHECKPOINT; SELECT pg_current_wal_flush_lsn();")

    def drain(self):
        """All runs: the drains by contender."""
        drains = {each.name: [] for each in self.contenders}
        for run in range(self.runs):
            turn = run % len(self.contenders)
            for each in self.contenders[turn:] + self.contenders[:turn]:
                drained = each.drain(slot(each, run), self.rows, self.end)
                say(f"run {run + 1}, {each.name:15} {drained}")
                drains[each.name].append(drained)
        return drains

    def compare(self):
        """Drains once more, untimed, and compares what each contender delivers with the table."""
        truth = Digest()
        for line in self.postgres.run(SOURCE).splitlines():
            truth.add(json.loads(line.replace("\\\\", "\\")))
        for each in self.contenders:
            digest = each.digest(slot(each, self.runs), self.rows, self.end)
            say(f"{each.name:15} delivers {digest}")
            if digest != truth:
                raise RuntimeError(f"{each.name} delivers {digest}; the table holds {truth}")

    def stop(self):
        """Ends what still runs."""
        self.postgres.stop()


def slot(contender, run):
    """The slot of a contender's run."""
    return f"{contender.name}_{run}"


def figures(drains):
    """What is judged, and the medians of each contender."""
    middle = {
        name: {
            "rows_per_s": round(median(each, "rate")),
            "cpu_us": round(median(each, "cpu_us"), 2),
            "walsender_cpu_us": round(median(each, "sender_us"), 2),
            "peak_mb": round(median(each, "peak_mb"), 1),
        }
        for name, each in drains.items()
    }
    ours, plain, debezium = (middle[name] for name in ("highwater", "pg_recvlogical", "debezium"))
    judged = {
        "rate_of_pg_recvlogical": round(ours["rows_per_s"] / plain["rows_per_s"], 3),
        "cpu_of_pg_recvlogical": round(ours["cpu_us"] / plain["cpu_us"], 3),
        "rate_of_debezium": round(ours["rows_per_s"] / debezium["rows_per_s"], 2),
        "peak_mb": ours["peak_mb"],
    }
    return judged, middle


def median(drains, field):
    """The median of a field."""
    return statistics.median(getattr(drain, field) for drain in drains)


if __name__ == "__main__":
    main(Bench)
