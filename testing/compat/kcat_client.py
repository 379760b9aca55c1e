#!/usr/bin/env python3
"""kcat: one program for each question."""

import re
import subprocess
import time

import cells
from cells import PARTITIONS, RECORDS, SHARE, SOON, check, value, wait_for


class Kcat(cells.Client):
    """See the module's text."""

    name = "kcat"

    def kcat(self, *arguments, sent=None):
        """Runs it to its end; what it printed."""
        command = ["kcat", "-b", self.broker, *arguments]
        done = subprocess.run(command, input=sent, capture_output=True, encoding="utf-8", timeout=SOON)
        if done.returncode:
            raise cells.Failed(f"{' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def version(self):
        told = subprocess.run(["kcat", "-V"], capture_output=True, encoding="utf-8", check=True).stdout
        found = re.search(r"Version ([^ ,]+).*librdkafka ([^ ,]+)", told)
        return f"{found[1]} (librdkafka {found[2]})"

    def lines(self, numbers):
        """Values, a line each."""
        return "".join(f"{value(n)}\n" for n in numbers)

    def produce(self, codec):
        sent = self.lines(range(RECORDS))
        self.kcat("-P", "-t", self.topic(codec), "-p", "0", "-z", codec, "-X", "acks=all", sent=sent)

    def consume(self):
        for codec in cells.CODECS:
            read = self.kcat("-C", "-t", self.topic(codec), "-p", "0", "-e", "-q", "-X", "check.crcs=true")
            check(codec, read, self.lines(range(RECORDS)))
            tail = self.kcat("-C", "-t", self.topic(codec), "-p", "0", "-o", "-3", "-e", "-q")
            check(f"the last three, {codec}", tail, self.lines(range(RECORDS - 3, RECORDS)))

    def group(self):
        topic = self.topic("shared")
        for partition in range(PARTITIONS):
            self.kcat("-P", "-t", topic, "-p", str(partition), sent=self.lines(range(SHARE)))
        config = ["-X", "auto.offset.reset=earliest", "-q", "-e", "-f", "%p %o\n"]
        read = self.kcat(*config, "-G", f"{self.name}-group", topic).split("\n")
        everything = sorted(f"{partition} {n}" for partition in range(PARTITIONS) for n in range(SHARE))
        check("records", sorted(line for line in read if line), everything)
        check("records behind what is committed", self.kcat(*config, "-G", f"{self.name}-group", topic), "")

    def rejoin(self):
        command = ["kcat", "-b", self.broker, "-G", f"{self.name}-rejoin", self.topic("shared")]
        cells.share_between_programs(command, True, assigned)

    def query(self, topic, timestamp):
        """The offset that a time leads to."""
        found = re.fullmatch(rf"{topic} \[0\] offset (-?\d+)\n", self.kcat("-Q", "-t", f"{topic}:0:{timestamp}"))
        return found and int(found[1])

    def earliest(self):
        check("earliest", self.query(self.topic("none"), -2), 0)

    def latest(self):
        check("latest", self.query(self.topic("none"), -1), RECORDS)

    def time(self):
        # It writes with the time of its own clock.
        before = int(time.time() * 1000)
        self.kcat("-P", "-t", self.topic("times"), "-p", "0", sent="now\n")
        check("now", self.query(self.topic("times"), before), 0)
        check("in an hour", self.query(self.topic("times"), before + 3_600_000), -1)

    def max_timestamp(self):
        try:
            found = self.query(self.topic("times"), -3)
        except cells.Failed as error:
            raise cells.Unsupported(str(error)) from error
        raise cells.Failed(f"it asks for the greatest timestamp now, and got {found}")

    def transaction(self):
        topic = self.topic("transaction")
        transactional = ["-P", "-t", topic, "-p", "0", "-X", f"transactional.id={self.name}-1"]
        self.kcat(*transactional, sent="committed\n")
        # One that dies in the middle: the next with its id ends its transaction.
        open_one = subprocess.Popen(
            ["kcat", "-b", self.broker, *transactional, "-X", "linger.ms=0"], stdin=subprocess.PIPE, encoding="utf-8"
        )
        # kcat reads its input in blocks.
        open_one.stdin.write("aborted\n" * 20_000)
        open_one.stdin.flush()
        wait_for("its records are there", lambda: "aborted" in self.said("read_uncommitted"))
        open_one.kill()
        open_one.wait()
        check("read_committed, one open", self.said("read_committed"), ["committed"])
        self.kcat(*transactional, sent="again\n")
        check("read_committed", self.said("read_committed"), ["committed", "again"])
        check("read_uncommitted", self.said("read_uncommitted"), ["committed", "aborted", "again"])

    def said(self, isolation):
        """What stands in the topic of transactions, repetitions left out."""
        level = ["-X", f"isolation.level={isolation}"]
        read = self.kcat("-C", "-t", self.topic("transaction"), "-p", "0", "-e", "-q", *level)
        return list(dict.fromkeys(read.splitlines()))

    def admin(self):
        told = self.kcat("-L", "-t", self.topic("shared"))
        check("brokers", " 1 brokers:" in told and f" at {self.broker} (controller)" in told, True)
        check("partitions", f'topic "{self.topic("shared")}" with {PARTITIONS} partitions' in told, True)
        raise cells.Unsupported("no option of kcat changes topics; -L lists them")


def assigned(told):
    """The partitions of a member, by its last word."""
    said = re.findall(r"rebalanced.*: (assigned|revoked): (.*)", told)
    if not said or said[-1][0] == "revoked":
        return set()
    return {int(number) for number in re.findall(r"\[(\d+)\]", said[-1][1])}


cells.main(Kcat)
