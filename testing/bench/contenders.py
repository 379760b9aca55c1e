"""The three that drain the rows, each a slot a run that stood before the rows were loaded."""

import http.client
import os
import re
import struct
import subprocess
import time

import measure
import processes
from postgres import ADMIN, ADMIN_PASSWORD, DATABASE
from rows import TABLE, Digest
from server import REPOSITORY, Server

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 900
COUNTER = re.compile(r"^highwater_source_records_total\{[^}]*\} (\d+)", re.M)


class Drain:
    """What one drain gave: rows a second, CPU of the tool and of its walsender, memory."""

    def __init__(self, rate, rows, cpu_us, sender_us, peak_mb):
        self.rate = rate
        self.cpu_us = cpu_us / rows
        self.sender_us = sender_us / rows
        self.peak_mb = peak_mb

    def __str__(self):
        return (
            f"{self.rate / 1000:6.1f} k rows/s, CPU a row {self.cpu_us:5.2f} us"
            f" (its walsender {self.sender_us:.2f} us), peak memory {self.peak_mb:.0f} MB"
        )


class Sender:
    """The CPU of the server process that feeds a slot. It ends with its slot's reader, so the last
    reading counts."""

    def __init__(self, postgres, slot):
        self.session = postgres.session()
        self.query = f"SELECT active_pid FROM pg_replication_slots WHERE slot_name = '{slot}' AND active;"
        self.pid = None
        self.used = 0

    def look(self):
        """Reads it."""
        if self.pid is None:
            answer = self.session.run(self.query)
            self.pid = int(answer[0]) if answer else None
        if self.pid is not None:
            self.used = measure.cpu_us(self.pid) or self.used

    def close(self):
        """Ends the session; the CPU in microseconds."""
        self.session.close()
        return self.used


class RecvLogical:
    """`pg_recvlogical` into the null device: PostgreSQL's own client, which does nothing with rows."""

    name = "pg_recvlogical"

    def __init__(self, postgres, folder):
        self.postgres = postgres
        self.log = os.path.join(folder, "pg_recvlogical.log")

    def drain(self, slot, rows, end):
        """Drains a slot up to `end`; its writes show how far it is."""
        sender = Sender(self.postgres, slot)
        child = self._start(slot, end, "/dev/null")
        pace, cpu, peak = measure.Pace(), 0, 0
        while child.poll() is None:
            pace.see(measure.written(child.pid))
            cpu = measure.cpu_us(child.pid) or cpu
            peak = measure.peak_mb(child.pid) or peak
            sender.look()
            time.sleep(0.005)
        self._check(child)
        return Drain(pace.rate(rows, pace.last[1]), rows, cpu, sender.close(), peak)

    def digest(self, slot, _rows, end):
        """Drains a slot and reads the rows from what comes."""
        child = self._start(slot, end, "-", stdout=subprocess.PIPE)
        digest = Digest()
        for row in inserted(child.stdout.read()):
            digest.add(row)
        child.wait()
        self._check(child)
        return digest

    def _start(self, slot, end, out, **options):
        command = [
            os.path.join(self.postgres.bin, "pg_recvlogical"), "-h", "127.0.0.1",
            "-p", str(self.postgres.port), "-U", ADMIN, "-d", DATABASE, "--slot", slot,
            "--start", "--no-loop", "-f", out, "--endpos", end,
            "-o", "proto_version=1", "-o", "publication_names=bench",
        ]  # fmt: skip
        environment = self.postgres.environment() | {"PGOPTIONS": "-c TimeZone=UTC"}
        return processes.start(command, self.log, env=environment, **options)

    def _check(self, child):
        if child.returncode:
            raise RuntimeError(f"pg_recvlogical failed:\n{processes.tail_of(self.log)}")


def inserted(stream):
    """The rows of pgoutput's Insert messages; pg_recvlogical ends each message with a line feed."""
    at = 0
    while at < len(stream):
        kind, at = stream[at], at + 1
        if kind == ord("I"):
            row, at = insert(stream, at)
            identity, number, *rest = row
            yield (int(identity), int(number), *rest)
        elif kind == ord("R"):
            at = behind_relation(stream, at)
        else:
            at += {ord("B"): 20, ord("C"): 25}[kind]
        at += 1


def insert(stream, at):
    """The values of an Insert message behind its type, and where it ends."""
    (columns,) = struct.unpack_from(">H", stream, at + 5)
    at, values = at + 7, []
    for _ in range(columns):
        (length,) = struct.unpack_from(">I", stream, at + 1)
        values.append(stream[at + 5 : at + 5 + length].decode())
        at += 5 + length
    return values, at


def behind_relation(stream, at):
    """Where a Relation message ends."""
    at = stream.index(0, stream.index(0, at + 4) + 1) + 2
    (columns,) = struct.unpack_from(">H", stream, at)
    at += 2
    for _ in range(columns):
        at = stream.index(0, at + 1) + 9
    return at


class Debezium:
    """Debezium Engine: JSON, thrown away. Its settings are the defaults."""

    name = "debezium"

    def __init__(self, postgres, folder):
        self.postgres = postgres
        self.folder = folder
        fetch = os.path.join(REPOSITORY, "testing", "debezium", "fetch.sh")
        answer = subprocess.run([fetch], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
        with open(answer.strip(), encoding="utf-8") as file:
            self.classpath = file.read()

    def drain(self, slot, rows, _end):
        """Drains a slot; the driver says how long it took from the first batch to the last."""
        sender = Sender(self.postgres, slot)
        child = self._start(slot, rows)
        cpu = peak = 0
        while child.poll() is None:
            cpu = measure.cpu_us(child.pid) or cpu
            peak = measure.peak_mb(child.pid) or peak
            sender.look()
            time.sleep(0.02)
        first, count, took = self._said(child)
        return Drain((count - first) / took * 1e9, rows, cpu, sender.close(), peak)

    def digest(self, slot, rows, _end):
        """Drains a slot and reads the rows from its JSON."""
        out = os.path.join(self.folder, "debezium.jsonl")
        child = self._start(slot, rows, out)
        child.wait()
        self._said(child)
        digest = Digest()
        with open(out, encoding="utf-8") as file:
            for line in file:
                digest.add_envelope(line)
        os.remove(out)
        return digest

    def _start(self, slot, rows, *out):
        properties = {
            "name": "bench",
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
            "database.hostname": "127.0.0.1",
            "database.port": self.postgres.port,
            "database.user": ADMIN,
            "database.password": ADMIN_PASSWORD,
            "database.dbname": DATABASE,
            "topic.prefix": "bench",
            "plugin.name": "pgoutput",
            "slot.name": slot,
            "publication.name": "bench",
            "publication.autocreate.mode": "disabled",
            "table.include.list": f"public.{TABLE}",
            "snapshot.mode": "no_data",
            "decimal.handling.mode": "string",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
        }
        path = os.path.join(self.folder, f"{slot}.properties")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in properties.items())
        command = [
            "java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", self.classpath,
            os.path.join(HERE, "Drain.java"), path, str(rows), *out,
        ]  # fmt: skip
        return processes.start(command, self._log(), stdout=subprocess.PIPE, encoding="utf-8")

    def _log(self):
        return os.path.join(self.folder, "debezium.log")

    def _said(self, child):
        said = child.stdout.read().split()
        child.stdout.close()
        if child.returncode:
            raise RuntimeError(f"Debezium Engine failed:\n{processes.tail_of(self._log())}")
        return (int(number) for number in said)


class Highwater:
    """Highwater: the real binary, JSON envelopes into a trail of its embedded log, `flush=durable`."""

    name = "highwater"

    def __init__(self, postgres, folder, binary):
        self.postgres = postgres
        self.folder = folder
        self.binary = binary

    def drain(self, slot, rows, _end):
        """Drains a slot; what the log has acknowledged is on disk, and the metrics count it."""
        server = self._start(slot)
        try:
            return self._drain(server, slot, rows)
        finally:
            server.stop()

    def digest(self, slot, rows, end):
        """Drains a slot and reads the rows from the log with kcat."""
        server = self._start(slot)
        try:
            self._drain(server, slot, rows)
            command = ["kcat", "-C", "-b", server.kafka, "-t", slot, "-p", "0", "-o", "beginning"]
            command += ["-c", str(rows), "-q", "-f", "%s\\n"]
            digest = Digest()
            with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as kcat:
                for line in kcat.stdout:
                    digest.add_envelope(line)
            return digest
        finally:
            server.stop()

    def _start(self, slot):
        folder = os.path.join(self.folder, slot)
        os.makedirs(folder)
        server = Server(self.binary, folder, *processes.free_ports(2))
        server.start()
        return server

    def _drain(self, server, slot, rows):
        sender, pace = Sender(self.postgres, slot), measure.Pace()
        metrics = http.client.HTTPConnection(server.http, timeout=60)
        before = measure.cpu_us(server.child.pid)
        server.rest("POST", "/connectors", {"name": slot, "config": self._connector(slot)})
        deadline = time.monotonic() + PATIENCE
        while (acknowledged := acknowledged_records(metrics)) < rows:
            pace.see(acknowledged)
            sender.look()
            if time.monotonic() > deadline:
                raise TimeoutError(f"highwater: {server.rest('GET', f'/connectors/{slot}/status')}")
            time.sleep(0.05)
        pace.see(acknowledged)
        cpu = measure.cpu_us(server.child.pid) - before
        metrics.close()
        peak = measure.peak_mb(server.child.pid)
        return Drain(pace.rate(rows, rows), rows, cpu, sender.close(), peak)

    def _connector(self, slot):
        return {
            "connector.class": "postgres",
            "database.hostname": "127.0.0.1",
            "database.port": str(self.postgres.port),
            "database.user": ADMIN,
            "database.password": ADMIN_PASSWORD,
            "database.dbname": DATABASE,
            "topic.prefix": slot,
            "slot.name": slot,
            "slot.adopt": "stream",
            "snapshot.mode": "no_data",
            "publication.name": "bench",
            "publication.autocreate.mode": "disabled",
            "table.include.list": f"public\\.{TABLE}",
        }


def acknowledged_records(metrics):
    """Records of sources that the log has acknowledged."""
    metrics.request("GET", "/metrics")
    text = metrics.getresponse().read().decode()
    return sum(int(count) for count in COUNTER.findall(text))
