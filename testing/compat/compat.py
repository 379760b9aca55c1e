#!/usr/bin/env python3
"""`make compat`: other people's Kafka clients against the real server, cell by cell.

Each client's program (NAME_client.*, had as clients.py says) writes what came of its cells; this one starts the server, makes
their topics, looks into the log's files whether the codecs arrived as such, and holds all of it against
the table in docs/reference/clients.md: a cell that changes fails until the table says so.
`HIGHWATER_WRITE_DOCS=1` writes the table. CLIENTS=name,name runs some only. APACHE=1 runs them against
Apache Kafka instead, to see whether a program or the server is wrong; the table stays as it is.

The last line: {"clients":n,"cells":m,"passed":p,"unsupported":u,"skipped":0}
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(REPOSITORY, "testing", "demo"))

import kafka  # noqa: E402
import processes  # noqa: E402
import server as highwater  # noqa: E402
from cells import CELLS, CODECS, PARTITIONS  # noqa: E402
from clients import CLIENTS, run  # noqa: E402

PAGE = os.path.join(REPOSITORY, "docs", "reference", "clients.md")
BEGIN, END = "<!-- the table: begin -->\n", "<!-- the table: end -->\n"
# Nothing that a client does takes longer.
PATIENCE = 600
# Most of the time a client waits for its own clocks.
AT_ONCE = 2

LABELS = {
    "none": "produce", "time": "offset by time", "earliest": "earliest offset", "latest": "latest offset",
    "max_timestamp": "greatest timestamp", **{codec: f"produce, {codec}" for codec in CODECS[1:]},
}  # fmt: skip


class Result:
    """What a client's program said."""

    def __init__(self, name, lines):
        self.name = name
        told = [json.loads(line) for line in lines if line.startswith("{")]
        self.version = next((line["version"] for line in told if "version" in line), "?")
        self.cells = {line["cell"]: line for line in told if "cell" in line}
        for cell in CELLS:
            self.cells.setdefault(cell, {"result": "failed", "reason": "its program said nothing of it"})

    def fail(self, cell, reason):
        """The cell passed by the client's word, and did not."""
        self.cells[cell] = {"result": "failed", "reason": reason}

    def of(self, result):
        """The cells with this result, and their reasons."""
        return {cell: told.get("reason", "") for cell, told in self.cells.items() if told["result"] == result}


def codecs_in(path):
    """The codec of each batch of a log segment, by the lowest bits of its attributes."""
    found = set()
    with open(path, "rb") as file:
        while len(header := file.read(61)) == 61:
            (length,) = struct.unpack_from(">i", header, 8)
            (attributes,) = struct.unpack_from(">h", header, 21)
            found.add(CODECS[attributes & 7] if header[16] == 2 and length > 0 else "?")
            file.seek(length - 49, os.SEEK_CUR)
    return found


def look_at_codecs(result, data):
    """A codec that a client was asked for and did not use is no pass: librdkafka changes it in silence."""
    for codec in CODECS:
        if result.cells[codec]["result"] == "passed":
            found = codecs_in(os.path.join(data, f"{result.name}-{codec}-0", "00000000000000000000.log"))
            if found != {codec}:
                result.fail(codec, f"the log holds batches of {sorted(found)}")


class OurServer:
    """The binary, on a folder of its own."""

    def __init__(self, folder):
        port, http = processes.free_ports(2)
        home = kafka.Embedded(folder, port)
        self.server = highwater.Server(highwater.build(), folder, home, http)
        self.server.start()
        self.broker, self.data = home.address, home.data

    def topic(self, name, partitions):
        """Makes a topic."""
        run(sys.executable, os.path.join(HERE, "topic.py"), self.broker, str(partitions), name)

    def stop(self):
        """Ends it."""
        self.server.stop()


class ApacheKafka(OurServer):
    """The judge of the clients' programs."""

    def __init__(self, folder):
        self.server = kafka.make("apache", folder, *processes.free_ports(1))
        self.server.start()
        self.broker, self.data = self.server.address, os.path.join(self.server.folder, "data")


def run_client(name, command, broker, folder):
    """Runs one client's program and reads what it said."""
    log = os.path.join(folder, f"{name}.log")
    with open(log, "w", encoding="utf-8") as errors:
        child = subprocess.Popen(
            [*command, broker], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8",
            env=os.environ | {"PYTHONPATH": HERE},
        )  # fmt: skip
        try:
            out, _ = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            out, _ = child.communicate()
    result = Result(name, out.splitlines())
    if result.of("failed"):
        print(processes.tail_of(log, 60))
    return result


def ask(name, command, server, folder):
    """All cells of a client, whose program is this command."""
    started = time.monotonic()
    for codec in CODECS:
        server.topic(f"{name}-{codec}", 1)
    for kind, partitions in {"times": 1, "transaction": 1, "shared": PARTITIONS}.items():
        server.topic(f"{name}-{kind}", partitions)
    result = run_client(name, command, server.broker, folder)
    look_at_codecs(result, server.data)
    counts = ", ".join(f"{len(result.of(kind))} {kind}" for kind in ("passed", "unsupported", "failed"))
    print(f"{name} {result.version}: {counts} ({time.monotonic() - started:.0f} s)", flush=True)
    for cell, reason in result.of("failed").items():
        print(f"  FAILED {cell}: {reason}", flush=True)
    return result


def table(results):
    """The table of the reference: a row a cell, a column a client, the clients' own errors below."""
    notes = []

    def mark(result, cell):
        if result.cells[cell]["result"] != "unsupported":
            return "yes"
        notes.append(f"{result.name}, {LABELS.get(cell, cell)}: `{result.cells[cell]['reason']}`")
        return f"no [{len(notes)}]"

    rows = [["", *(f"{result.name} {result.version}" for result in results)], ["---"] * (len(results) + 1)]
    rows += [[LABELS.get(cell, cell), *(mark(result, cell) for result in results)] for cell in CELLS]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", *(f"{number}. {note}" for number, note in enumerate(notes, 1)), ""])


def comparable(found):
    """A table without what depends on the system's packages: kcat comes from there."""
    return re.sub(r"kcat \d[^|]*", "kcat ", found)


def hold_against_page(found):
    """Whether the page has this table; writes it when asked to."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    before, rest = page.split(BEGIN)
    written, after = rest.split(END)
    if comparable(written) == comparable(found):
        return True
    if os.environ.get("HIGHWATER_WRITE_DOCS"):
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(before + BEGIN + found + END + after)
        return True
    print(f"The table is another one than in docs/reference/clients.md:\n{found}")
    return False


def main():
    """Everything; returns the exit code."""
    wanted = [name for name in os.environ.get("CLIENTS", "").split(",") if name] or list(CLIENTS)
    folder = tempfile.mkdtemp(prefix="highwater-compat-")
    server = None
    try:
        commands = [CLIENTS[name](name) for name in wanted]
        server = (ApacheKafka if os.environ.get("APACHE") else OurServer)(folder)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = list(pool.map(lambda name, command: ask(name, command, server, folder), wanted, commands))
    finally:
        if server:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    count = lambda kind: sum(len(result.of(kind)) for result in results)
    right = count("failed") == 0
    if right and wanted == list(CLIENTS) and not os.environ.get("APACHE"):
        right = hold_against_page(table(results))
    print(json.dumps({
        "clients": len(results), "cells": len(results) * len(CELLS), "passed": count("passed"),
        "unsupported": count("unsupported"), "skipped": 0,
    }, separators=(",", ":")))  # fmt: skip
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
