#!/usr/bin/env python3
"""The demo: PostgreSQL to the log to a stream, with kills, and the comparison in the end.

Environment:
  ONCE=1           end after the comparison; its JSON is the last line, its verdict the exit code
  KAFKA=what       embedded (the default), apache: Apache Kafka is the log, apache-sasl: over TLS and
                   with a SCRAM login; it is killed once, too
  SEED=n           another workload and other moments of the kills (default 1)
  DEMO_BREAK=what  drop, dup, swap: damage the client's finished file; nosuppress: run the stream as
                   atLeastOnce. Each must make the comparison fail.
  DEMO_EXACTLY_ONCE=1  the source writes records and positions in one transaction; no record may then stand twice
                   in the log, where kills else leave some
  DEMO_KEEP=folder keep the recorded run there, to compare it again
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import farewell
import kafka
import processes
from collect import collect, end_of, list_trail
from compare import count_reappended
from damage import DAMAGES
from killer import Killer
from postgres import CAPTURE, CAPTURE_PASSWORD, DATABASE, Postgres
from server import RestError, Server, build
from watch import Watch

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "shop"
CUSTOMERS, ORDERS, LINES_EACH = 2000, 6000, 40
BIG_TABLE = "order_lines"
RATE = 220
LEAST_TRANSACTIONS = 5000
MOST_SERVER_KILLS = 12


class Client:
    """The application that follows the stream."""

    def __init__(self, server, folder):
        self.url = f"ws://{server.http}/services/v2/stream/{NAME}"
        self.file = os.path.join(folder, "client.jsonl")
        self.log = os.path.join(folder, "client.log")
        self.child = None

    def start(self):
        """Starts it; it goes on where its file ends."""
        command = [sys.executable, os.path.join(HERE, "client.py"), "--url", self.url, "--file", self.file]
        self.child = processes.start(command, self.log)

    def check(self):
        """An error when it ended by itself: the server refused it."""
        if self.child.poll() is not None:
            raise RuntimeError(f"the client ended by itself:\n{processes.tail_of(self.log)}")


class Demo:
    """One run, from the empty folder to the comparison."""

    def __init__(self, folder, broken, log):
        self.folder = folder
        self.name = NAME
        self.broken = broken
        self.exactly_once = os.environ.get("DEMO_EXACTLY_ONCE") == "1"
        self.seed = os.environ.get("SEED", "1")
        self.rng = random.Random(f"kills/{self.seed}")
        postgres_port, kafka_port, http_port = processes.free_ports(3)
        self.postgres = Postgres(folder, postgres_port)
        self.binary = None
        self.kafka = kafka.make(log, folder, kafka_port)
        self.server = Server(None, folder, self.kafka, http_port)
        if self.exactly_once:
            self.server.configure('[worker]\nexactly_once_source_support = "enabled"\n')
        self.client = Client(self.server, folder)
        self.watch = Watch(self.client.file)
        self.workload = None
        self.killer = None

    def run(self):
        """Everything up to the comparison; returns its exit code."""
        self.prepare()
        self.kill_inside_snapshot()
        self.kill_under_load()
        self.finish()
        self.see_doctor()
        return self.judge()

    def prepare(self):
        """The source, the server, the connector, the stream, and all that is to run beside them."""
        say("Building the binary")
        self.server.binary = build()
        say("Starting PostgreSQL and filling the shop")
        self.postgres.start()
        self.postgres.run(f"CREATE DATABASE {DATABASE};", database="postgres")
        with open(os.path.join(HERE, "schema.sql"), encoding="utf-8") as file:
            sizes = f"\\set customers {CUSTOMERS}\n\\set orders {ORDERS}\n\\set lines_each {LINES_EACH}\n"
            self.postgres.run(sizes + file.read())
        detail(f"{CUSTOMERS} customers, {ORDERS} orders, {ORDERS * LINES_EACH} order lines")
        if not isinstance(self.kafka, kafka.Embedded):
            say("Starting Apache Kafka")
            self.kafka.start()
        say("Starting Highwater, the workload and the client")
        self.server.start()
        self.start_workload()
        self.server.rest("POST", "/connectors", {"name": NAME, "config": self.connector()})
        self.create_stream()
        self.client.start()
        self.killer = Killer(self.path("kills.jsonl"), self.postgres, self.server, self.client, self.rng)

    def connector(self):
        """The connector's configuration."""
        # Transactions that are open for long, so that kills fall into them.
        once = {
            "exactly.once.support": "required",
            "transaction.boundary": "interval", "transaction.boundary.interval.ms": "500",
        }  # fmt: skip
        return (once if self.exactly_once else {}) | {
            "connector.class": "postgres",
            "database.hostname": "127.0.0.1",
            "database.port": str(self.postgres.port),
            "database.user": CAPTURE,
            "database.password": CAPTURE_PASSWORD,
            "database.dbname": DATABASE,
            "topic.prefix": NAME,
            "table.include.list": r"public\.(customers|orders|order_lines)",
        }

    def create_stream(self):
        """The stream over the trail, as soon as the connector has made the trail."""
        quality = "atLeastOnce" if self.broken == "nosuppress" else "exactlyOnce"
        body = {"source": {"trail": NAME}, "qualityOfService": quality}

        def created():
            try:
                self.server.rest("POST", f"/services/v2/stream/{NAME}", body)
                return True
            except RestError as refused:
                last.append(refused)
                return False

        last = []
        try:
            processes.wait_until("the stream is made", 30, created, every=0.01)
        except TimeoutError:
            raise RuntimeError(f"the stream was refused for 30 s: {last[-1]}") from None

    def start_workload(self):
        """The two writers."""
        command = [sys.executable, os.path.join(HERE, "workload.py"), "--seed", self.seed]
        sizes = {"port": self.postgres.port, "customers": CUSTOMERS, "orders": ORDERS}
        for name, value in (sizes | {"lines-each": LINES_EACH, "rate": RATE}).items():
            command += [f"--{name}", str(value)]
        self.workload = processes.start(command, self.path("workload.log"))

    def kill_inside_snapshot(self):
        """Kills the server inside the big table's snapshot, and waits for the snapshot's end.

        The tables are read by name, so the big one stands behind the customers and their two marks.
        The client's file shows whether that was so.
        """
        say(f"Snapshot: waiting until it is inside {BIG_TABLE}, then kill -9 of the server")
        least = CUSTOMERS + 3 + self.rng.randrange(20_000)
        processes.wait_until("the trail grows", 60, lambda: self.trail_end() > least, every=0.005)
        self.kill_server(patience=0.2)
        self.wait_for("the snapshot is complete", 180, lambda: len(self.watch.ended) == 3)
        if self.watch.begun[BIG_TABLE] < 2:
            raise RuntimeError(f"{BIG_TABLE} was read whole before it could be killed: it needs more rows")
        detail(
            f"snapshot complete: {self.watch.rows} rows came, {self.again()} times a table was begun again"
        )

    def trail_end(self):
        """The number of records in the trail; none before it is made."""
        try:
            return end_of(self.kafka.address, NAME, "-1")
        except subprocess.CalledProcessError:
            return 0

    def again(self):
        """How many times a table's snapshot was begun after its first."""
        return sum(self.watch.begun.values()) - len(self.watch.begun)

    def kill_under_load(self):
        """Kills server and client at random moments until all that is to be seen was seen."""
        say("Load: kill -9 of server and client at random moments")
        self.killer.wait(1, 2)
        for turn in ("client", "server", "both", "server", "client"):
            self.kill(turn)
        if isinstance(self.kafka, kafka.Apache):
            self.kafka.kill()
            detail(f"Apache Kafka killed and started again ({self.committed()} transactions committed)")
            self.killer.wait(0.7, 2.5)
            self.check()
        while self.killer.server_kills < MOST_SERVER_KILLS and not self.seen_enough():
            self.kill("server")

    def kill(self, what):
        """One round."""
        if what != "server":
            self.killer.kill_client()
            detail(
                f"client killed ({self.committed()} transactions committed, {self.watch.look().changes} changes came)"
            )
        if what != "client":
            self.kill_server()
        if what != "server":
            self.killer.wait(0, 0.5)
            self.client.start()
        self.killer.wait(0.7, 2.5)
        self.check()

    def kill_server(self, patience=2.0):
        """Kills the server and starts it again."""
        in_flight = self.killer.kill_server(patience)
        seen = "commits in flight" if in_flight else "nothing in flight"
        detail(
            f"server killed, {seen} ({self.committed()} transactions committed, {self.watch.look().changes} changes came)"
        )
        self.killer.wait(0, 0.5)
        self.server.start()

    def seen_enough(self):
        """Whether some kill fell on commits in flight, and some record was appended again where that may be."""
        if self.exactly_once:
            return self.killer.in_flight > 0
        list_trail(self.path("trail.txt"), self.kafka.address, NAME)
        return self.killer.in_flight > 0 and count_reappended(self.path("trail.txt")) > 0

    def finish(self):
        """Lets the workload reach its number and end, and the client see its last change."""
        say(f"Letting the workload reach {LEAST_TRANSACTIONS} transactions")
        self.wait_for("enough transactions", 180, lambda: self.committed() > LEAST_TRANSACTIONS, every=0.5)
        if not processes.stop(self.workload, seconds=60) or self.workload.returncode:
            raise RuntimeError(f"the workload failed:\n{processes.tail_of(self.path('workload.log'))}")
        say(f"Waiting until the client has the last of {self.committed()} transactions")
        try:
            self.wait_for("the last change came", 120, lambda: self.watch.finished)
        except TimeoutError as late:
            detail(f"{late}; comparing what came")
        time.sleep(1)  # whatever would still come too much is to be seen
        processes.kill(self.client.child)
        detail(f"{self.watch.look().changes} changes came")

    def see_doctor(self):
        """Lets the doctor look; the comparison comes after it, since its JSON is the last line."""
        say("Asking the doctor")
        command = [self.server.binary, "--url", f"http://{self.server.http}", "doctor"]
        seen = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in seen.stdout.splitlines():
            detail(line)
        if seen.returncode != 0:
            raise RuntimeError("the doctor found something wrong with the demo")

    def judge(self):
        """Damages the file if that is asked for, and compares."""
        say("Asking the witnesses, and comparing")
        record = os.environ.get("DEMO_KEEP") or self.path("record")
        os.makedirs(record, exist_ok=True)
        collect(record, self.postgres, self.kafka.address, NAME)
        for name in ("client.jsonl", "kills.jsonl", "server.log", "client.log"):
            shutil.copyfile(self.path(name), os.path.join(record, name))
        if self.broken in DAMAGES:
            run_script("damage.py", self.broken, os.path.join(record, "client.jsonl"))
        return run_script("compare.py", record, *(["--exactly-once"] if self.exactly_once else []))

    def committed(self):
        """Transactions that stand in the ledger."""
        return int(self.killer.session.run("SELECT count(*) FROM ledger;")[0])

    def wait_for(self, what, seconds, condition, every=0.02):
        """Waits while the client's file grows and everybody lives."""

        def looked():
            self.watch.look()
            self.check()
            return condition()

        processes.wait_until(what, seconds, looked, every)

    def check(self):
        """An error when somebody is gone who should be there."""
        self.client.check()
        if self.workload.poll() not in (None, 0):
            raise RuntimeError(f"the workload failed:\n{processes.tail_of(self.path('workload.log'))}")
        if self.server.child.poll() is not None:
            raise RuntimeError(f"highwater ended by itself:\n{processes.tail_of(self.server.log)}")

    def path(self, name):
        """A file of this run."""
        return os.path.join(self.folder, name)

    def stop(self):
        """Ends everything that was started."""
        for child in (self.client.child, self.workload):
            processes.kill(child)
        if self.killer:
            self.killer.close()
        self.server.stop()
        self.kafka.stop()
        self.postgres.stop()


def run_script(name, *arguments):
    """Runs a script of this folder for its output and exit code."""
    sys.stdout.flush()
    return subprocess.run([sys.executable, os.path.join(HERE, name), *arguments], check=False).returncode


def say(what):
    """What happens now."""
    print(f"{what} ...", flush=True)


def detail(what):
    """What came of it."""
    print(f"  {what}", flush=True)


def interrupted(*_):
    """Every signal ends the demo as Ctrl-C does, through all that cleans up."""
    raise KeyboardInterrupt


def main():
    """One run; exits with the comparator's verdict."""
    broken = os.environ.get("DEMO_BREAK", "")
    if broken not in ("", "nosuppress", *DAMAGES):
        sys.exit(f"DEMO_BREAK is {broken!r}; it can be nosuppress, {', '.join(DAMAGES)}")
    log = os.environ.get("KAFKA", "embedded")
    if log not in kafka.SECURITY:
        sys.exit(f"KAFKA is {log!r}; it can be {', '.join(kafka.SECURITY)}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    folder = tempfile.mkdtemp(prefix="highwater-demo-")
    os.chmod(folder, 0o755)  # PostgreSQL may run as another user
    say(f"Working in {folder}, which is kept if the demo fails")
    demo, code = Demo(folder, broken, log), None
    try:
        code = demo.run()
        if os.environ.get("ONCE") != "1":
            farewell.stay(demo)
    except KeyboardInterrupt:
        print("Interrupted.", flush=True)
        code = 130 if code is None else code
    except (RuntimeError, TimeoutError, RestError, OSError, subprocess.SubprocessError) as failure:
        print(f"The demo failed: {failure}", file=sys.stderr, flush=True)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        demo.stop()
        code = 1 if code is None else code
        if code in (0, 130) or broken:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
