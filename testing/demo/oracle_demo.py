#!/usr/bin/env python3
"""The demo of the Oracle source: a SIMULATED Oracle to the log to a stream, with kills, and the comparison in the end.

No Oracle takes part. The simulated database commits, rolls back and switches its logs by the clock, in two redo
threads, with the quirks of real ones; it outlives every kill of the server, as it lives in a folder.

Environment:
  ONCE=1   end after the comparison; its JSON is the last line, its verdict the exit code
  SEED=n   another history and other moments of the kills (default 1)
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import kafka
import processes
from demo import Client, detail, run_script, say
from oracle_truth import read_history
from server import REPOSITORY, RestError, Server

NAME = "shop"
THREADS, PDBS = 2, 2
ACTIONS, RATE = 24_000, 400
# How long the server has to store its first position before the database does anything.
HEAD_START = 6.0
QUIRKS = [
    "LateStrands", "ZeroAddress", "PartialXid", "SplitStatements", "ArrayDeletes", "SamePdbXids", "ZeroXid",
    "Orphans", "ReusedXid", "MissingStart", "IndexOrganised", "TimedOut",
]  # fmt: skip
FAULTS_ONE_IN = 40


def build():
    """The server with the simulated database, and the program that reads its books."""
    built = os.environ.get("HIGHWATER_BUILT")
    if not built:
        packages = ["-p", "highwater", "--example", "simulated_oracle", "-p", "highwater-oracle-sim", "--bin", "oracle-sim"]
        subprocess.run(["cargo", "build", "--locked", *packages], cwd=REPOSITORY, check=True)
        built = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(REPOSITORY, "target")), "debug")
    return os.path.join(built, "examples", "simulated_oracle"), os.path.join(built, "oracle-sim")


class OracleDemo:
    """One run, from the empty folder to the comparison."""

    def __init__(self, folder):
        self.folder = folder
        self.database = os.path.join(folder, "oracle")
        self.rng = random.Random(f"kills/{os.environ.get('SEED', '1')}")
        kafka_port, http_port = processes.free_ports(2)
        self.kafka = kafka.make("embedded", folder, kafka_port)
        self.server = Server(None, folder, self.kafka, http_port)
        self.server.configure('[worker]\nexactly_once_source_support = "enabled"\n')
        self.client = Client(self.server, folder)
        self.tool = None

    def run(self):
        """Everything up to the comparison; returns its exit code."""
        self.prepare()
        self.kill_under_load()
        self.finish()
        say("Asking the books of the simulated database, and comparing")
        return run_script("oracle_compare.py", self.tool, self.folder, self.database)

    def prepare(self):
        """The server, its connector, its stream, and the database behind it."""
        say("Building the binary")
        self.server.binary, self.tool = build()
        say(f"Making a SIMULATED Oracle of {THREADS} redo threads and {PDBS} pluggable databases; no Oracle takes part")
        self.make_database(time.time() + HEAD_START)
        detail("quirks: " + ", ".join(QUIRKS))
        say("Starting Highwater and the client")
        self.server.start()
        self.server.rest("POST", "/connectors", {"name": NAME, "config": self.connector()})
        processes.wait_until("the connector runs", HEAD_START, self.is_running)
        body = {"source": {"trail": NAME}, "qualityOfService": "exactlyOnce"}
        processes.wait_until("the stream is made", 30, lambda: self.is_made(body))
        self.client.start()

    def make_database(self, began):
        """The folder that the database lives in."""
        os.makedirs(self.database)
        settings = {
            "seed": int(os.environ.get("SEED", "1")), "threads": THREADS, "pdbs": PDBS, "quirks": QUIRKS,
            "began_ms": int(began * 1000), "actions_per_second": RATE, "actions": ACTIONS, "faults_one_in": FAULTS_ONE_IN,
        }  # fmt: skip
        with open(os.path.join(self.database, "simulation.json"), "w", encoding="utf-8") as file:
            json.dump(settings, file)

    def connector(self):
        """The connector's configuration."""
        pdbs = ",".join(f"PDB{number}" for number in range(1, PDBS + 1))
        return {
            "connector.class": "oracle",
            "cdc.database.url": f"simulated:{self.database}",
            "cdc.database.user": "C##HIGHWATER",
            "cdc.database.password": "simulated",
            "cdc.database.pdbs": pdbs,
            "cdc.tables.include": r"(.*\.)?SHOP\..*",
            "cdc.users.exclude": "BATCH",
            "cdc.topic.prefix": NAME,
            "cdc.rac.enabled": "true",
            "cdc.buffer.spill.dir": os.path.join(self.folder, "spill"),
            "cdc.heartbeat.interval.ms": "1000",
            # A commit without an address is in no order by which a stream could suppress its second delivery.
            "exactly.once.support": "required",
            "transaction.boundary": "connector",
        }

    def is_running(self):
        """Whether the task runs: its first position is stored then."""
        status = self.server.rest("GET", f"/connectors/{NAME}/status")
        for task in status["tasks"]:
            if task["state"] == "FAILED":
                raise RuntimeError(f"the task failed: {task.get('trace')}")
        return bool(status["tasks"]) and all(task["state"] == "RUNNING" for task in status["tasks"])

    def is_made(self, body):
        """Whether the stream could be made; the trail must be there."""
        try:
            self.server.rest("POST", f"/services/v2/stream/{NAME}", body)
            return True
        except RestError:
            return False

    def kill_under_load(self):
        """Kills server and client at random moments."""
        say("Load: kill -9 of server and client at random moments")
        for turn in ("server", "client", "both", "server", "client", "server", "both"):
            time.sleep(self.rng.uniform(2, 5))
            self.check()
            if turn != "server":
                self.kill_client()
            if turn != "client":
                self.kill_server()
        detail(f"{self.actions()} of {ACTIONS} actions done")

    def kill_client(self):
        """Kills the client, and starts it again."""
        processes.kill(self.client.child)
        self.note("client")
        self.client.start()

    def kill_server(self):
        """Kills the server, and starts it again; the database goes on meanwhile."""
        processes.kill(self.server.child)
        self.note("server")
        time.sleep(self.rng.uniform(0, 0.5))
        self.server.start()

    def note(self, killed):
        """One line a kill."""
        with open(os.path.join(self.folder, "kills.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps({"killed": killed}) + "\n")
        detail(f"{killed} killed ({self.actions()} actions done, {self.lines()} records came)")

    def actions(self):
        """How far the database is."""
        try:
            with open(os.path.join(self.database, "actions"), encoding="utf-8") as file:
                return int(file.read() or 0)
        except FileNotFoundError:
            return 0

    def lines(self):
        """How many records the client has."""
        try:
            with open(self.client.file, "rb") as file:
                return sum(1 for _ in file)
        except FileNotFoundError:
            return 0

    def finish(self):
        """Lets the database come to rest, and everything arrive."""
        say(f"Letting the database do its {ACTIONS} actions")
        processes.wait_until("the database rests", 180, self.is_at_rest, every=0.5)
        threads = read_history(self.tool, self.database).values()
        events = sum(len(transaction.changes) for transactions in threads for transaction in transactions)
        say(f"Waiting until the client has as many records as the books have changes, {events}")
        try:
            processes.wait_until("all came", 120, lambda: self.check() or self.lines() >= events, every=0.5)
        except TimeoutError as late:
            detail(f"{late}; comparing what came")
        time.sleep(2)  # whatever would still come too much is to be seen
        processes.kill(self.client.child)
        detail(f"{self.lines()} records came")

    def is_at_rest(self):
        """Whether the database has done all."""
        self.check()
        return self.actions() >= ACTIONS

    def check(self):
        """An error when somebody is gone who should be there."""
        self.client.check()
        if self.server.child.poll() is not None:
            raise RuntimeError(f"highwater ended by itself:\n{processes.tail_of(self.server.log)}")
        self.is_running()

    def stop(self):
        """Ends everything that was started."""
        processes.kill(self.client.child)
        self.server.stop()


def main():
    """One run; exits with the comparator's verdict."""
    folder = tempfile.mkdtemp(prefix="highwater-oracle-demo-")
    say(f"Working in {folder}, which is kept if the demo fails")
    demo, code = OracleDemo(folder), 1
    try:
        code = demo.run()
        if os.environ.get("ONCE") != "1":
            print(f"Everything is up until Ctrl-C: http://{demo.server.http}, Kafka {demo.kafka.address}", flush=True)
            while True:
                time.sleep(60)
    except KeyboardInterrupt:
        print("Interrupted.", flush=True)
    except (RuntimeError, TimeoutError, RestError, OSError, subprocess.SubprocessError) as failure:
        print(f"The demo failed: {failure}", file=sys.stderr, flush=True)
    finally:
        demo.stop()
        if code == 0:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
