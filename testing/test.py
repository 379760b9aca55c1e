#!/usr/bin/env python3
"""Everything that continuous integration runs, part by part; prints the slowest ten at the end.

The demo runs four times: once whole, its recorded run compared again with the client's file damaged
in three ways, once with the suppression of duplicates off, once exactly once, and once on Apache Kafka. PARTS=name,name
runs some parts only.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEMO = os.path.join(REPOSITORY, "testing", "demo")
HOSTILE = os.path.join(REPOSITORY, "testing", "hostile")
DOCS = os.path.join(REPOSITORY, "testing", "docs")
HOUSE = os.path.join(REPOSITORY, "testing", "house")
COMPAT = os.path.join(REPOSITORY, "testing", "compat", "compat.py")
CONNECT = os.path.join(REPOSITORY, "testing", "connect")
MUTANTS_LOG = os.path.join(REPOSITORY, "testing", "mutants_log.py")
RUNNING = re.compile(r"^\s+(?:Running (?:unittests )?(\S+) \(\S*/([^/]+)-[0-9a-f]+\)|Doc-tests (\S+))")
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;.* finished in ([0-9.]+)s")

# Which counter of the comparison each break of the demo must move.
MUST_MOVE = {"drop": "missing", "dup": "duplicates", "swap": "out_of_order", "nosuppress": "duplicates"}
OTHERS_STAY = {"drop", "dup", "swap"}


class Report:
    """What ran, how long it took, what failed."""

    def __init__(self):
        self.passed = self.failed = 0
        self.times = []

    def count(self, name, seconds, passed, failed):
        """Notes a part, or one program of it, with its number of tests."""
        self.times.append((seconds, name))
        self.passed += passed
        self.failed += failed

    def close(self):
        """Prints the slowest ten and the sum; returns the exit code."""
        print("\nSlowest ten parts:")
        for seconds, name in sorted(self.times, reverse=True)[:10]:
            print(f"{seconds:8.1f} s  {name}")
        print(f"\n{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed else 0


def lines_of(command, **environment):
    """Runs a command in the repository, shows its output and returns (exit code, its lines)."""
    child = subprocess.Popen(
        command, cwd=REPOSITORY, env=os.environ | environment, encoding="utf-8", errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    lines = []
    for line in child.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return child.wait(), lines


def command_part(name, command):
    """A part that is one command: it passes when the command does."""

    def run(report):
        started = time.monotonic()
        code, _ = lines_of(command)
        report.count(name, time.monotonic() - started, code == 0, code != 0)

    return run


def cargo_tests(report):
    """Every test of the workspace; each test program is a part of its own in the list of times."""
    started = time.monotonic()
    command = ["cargo", "test", "--workspace", "--locked", "--no-run"]
    code, _ = lines_of(command)
    report.count("building the tests", time.monotonic() - started, 0, code != 0)
    if code:
        return
    # Its binary and its examples are what the other parts run, which would build them with other features.
    os.environ["HIGHWATER_BUILT"] = os.path.join(
        os.environ.get("CARGO_TARGET_DIR", os.path.join(REPOSITORY, "target")), "debug"
    )
    code, lines = lines_of(["cargo", "test", "--workspace", "--locked", "--no-fail-fast"])
    program, failures = "?", 0
    for line in lines:
        if found := RUNNING.match(line):
            program = f"doc tests of {found[3]}" if found[3] else f"{found[2]} {found[1]}"
        elif found := RESULT.match(line):
            failures += int(found[2])
            report.count(f"tests: {program}", float(found[3]), int(found[1]), int(found[2]))
    if code and not failures:  # a test program that died without a result line
        report.failed += 1


def python_tests(name, folder):
    """A part that is the unit tests of a folder of scripts."""

    def run(report):
        started = time.monotonic()
        code, lines = lines_of([sys.executable, "-m", "unittest", "discover", "-s", folder, "-t", folder])
        ran = re.search(r"^Ran (\d+) test", "".join(lines), re.M)
        total = int(ran[1]) if ran else 0
        failed = int(code != 0 or total == 0)
        report.count(f"{name} tests", time.monotonic() - started, max(total - failed, 0), failed)

    return run


def documentation(report):
    """The book: it can be built, no link is broken, error codes have their pages and promises their proofs."""
    for name, command in {
        "docs: book": [os.path.join(DOCS, "book.sh")],
        "docs: links": [sys.executable, os.path.join(DOCS, "links.py")],
        "docs: codes": [sys.executable, os.path.join(DOCS, "codes.py")],
        "docs: promises": [sys.executable, os.path.join(DOCS, "promises.py")],
    }.items():
        command_part(name, command)(report)


def demo_whole(report):
    """The demo, and its recorded run with the client's file damaged: drop, dup, swap."""
    record = tempfile.mkdtemp(prefix="highwater-record-")
    try:
        code, result = demo(report, "demo", DEMO_KEEP=record)
        verdict(report, "demo", code == 0, result)
        for kind in ("drop", "dup", "swap"):
            started = time.monotonic()
            code, broken = damaged(record, kind) if result else (0, None)
            report.count(f"demo, DEMO_BREAK={kind}", time.monotonic() - started, 0, 0)
            verdict(report, f"DEMO_BREAK={kind}", code == 1 and moved(kind, result, broken), broken)
    finally:
        shutil.rmtree(record, ignore_errors=True)


def demo_nosuppress(report):
    """The demo over a stream that passes duplicates through."""
    code, result = demo(report, "demo, DEMO_BREAK=nosuppress", DEMO_BREAK="nosuppress")
    verdict(report, "DEMO_BREAK=nosuppress", code == 1 and moved("nosuppress", None, result), result)


def demo_exactly_once(report):
    """The demo with records and positions in one transaction."""
    code, result = demo(report, "demo, DEMO_EXACTLY_ONCE=1", DEMO_EXACTLY_ONCE="1")
    verdict(report, "demo, DEMO_EXACTLY_ONCE=1", code == 0, result)


def demo_apache(report):
    """The demo with Apache Kafka as its log, over TLS and with a login."""
    code, result = demo(report, "demo, KAFKA=apache-sasl", KAFKA="apache-sasl")
    verdict(report, "demo, KAFKA=apache-sasl", code == 0, result)


def demo(report, name, **environment):
    """One run of the demo: (exit code, the object of its last line)."""
    started = time.monotonic()
    command = [sys.executable, os.path.join(DEMO, "demo.py")]
    code, lines = lines_of(command, ONCE="1", **environment)
    report.count(name, time.monotonic() - started, 0, 0)
    return code, last_object(lines)


def damaged(record, kind):
    """Compares a damaged copy of a recorded run."""
    folder = tempfile.mkdtemp(prefix="highwater-damaged-")
    try:
        copy = shutil.copytree(record, os.path.join(folder, "record"))
        damage = [sys.executable, os.path.join(DEMO, "damage.py"), kind, os.path.join(copy, "client.jsonl")]
        subprocess.run(damage, check=True)
        code, lines = lines_of([sys.executable, os.path.join(DEMO, "compare.py"), copy])
        return code, last_object(lines)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def last_object(lines):
    """The JSON object on the last line, None when there is none."""
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError):
        return None


def moved(kind, whole, broken):
    """Whether a break moved its counter, and a damaged file that one alone."""
    if not broken or not broken[MUST_MOVE[kind]]:
        return False
    others = set(MUST_MOVE.values()) - {MUST_MOVE[kind]}
    return kind not in OTHERS_STAY or all(broken[name] == whole[name] for name in others)


def verdict(report, name, good, result):
    """Counts one test of the demo, and says what was wrong."""
    report.passed += good
    report.failed += not good
    print(f"{'ok' if good else 'FAILED'}: {name}{'' if good else f': {result}'}", flush=True)


PARTS = {
    "format": command_part("format", ["cargo", "fmt", "--all", "--check"]),
    "clippy": command_part(
        "clippy",
        ["cargo", "clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
    ),
    "house": command_part("house", [sys.executable, os.path.join(HOUSE, "house.py")]),
    "house-twins": python_tests("house", HOUSE),
    "comparator": python_tests("comparator", DEMO),
    "docs": documentation,
    "docs-twins": python_tests("docs", DOCS),
    "cargo": cargo_tests,
    "mutants-log": command_part("mutants of the log", [sys.executable, MUTANTS_LOG]),
    "compat": command_part("compat", [sys.executable, COMPAT]),
    "connect-twins": python_tests("connect", CONNECT),
    "connect": command_part("connect", [sys.executable, os.path.join(CONNECT, "connect.py")]),
    "takeover": command_part("take-over", [sys.executable, os.path.join(CONNECT, "takeover.py")]),
    "tutorial": command_part("tutorial", [sys.executable, os.path.join(DOCS, "tutorial.py")]),
    "hostile": command_part("hostile", [sys.executable, os.path.join(HOSTILE, "hostile.py")]),
    "demo": demo_whole,
    "nosuppress": demo_nosuppress,
    "demo-exactly-once": demo_exactly_once,
    "demo-apache": demo_apache,
}


def main():
    """Runs the parts, all of them even when one fails."""
    chosen = os.environ.get("PARTS", ",".join(PARTS)).split(",")
    report = Report()
    for name in chosen:
        print(f"\n== {name}", flush=True)
        PARTS[name](report)
    sys.exit(report.close())


if __name__ == "__main__":
    main()
