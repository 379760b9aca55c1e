#!/usr/bin/env python3
"""`make compat-pipelines`: the same pipelines through Kafka Connect's worker and ours, byte by byte.

Each pipeline of ALL is a file source, a topic and a file sink, with the same converters, transforms and
predicates at both; both workers run on one Apache Kafka. The records of both topics must be equal (key,
value, headers), and so must the files: those of each worker's sink behind each worker's source. PIPELINES=name,name
runs some only.

The last line: {"pipelines":n,"records":m,"different":0}
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import compare  # noqa: F401  before the servers bring another of that name
import servers

import processes  # servers knows where it is

WITHOUT_SCHEMAS = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
STRING = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
TRANSFORM = "org.apache.kafka.connect.transforms."
# Three in a row, of which the last works under a predicate.
CHAIN = {
    "transforms": "hoist,origin,mark",
    "transforms.hoist.type": TRANSFORM + "HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.origin.type": TRANSFORM + "InsertField$Value",
    "transforms.origin.static.field": "origin",
    "transforms.origin.static.value": "a file",
    "transforms.mark.type": TRANSFORM + "InsertHeader",
    "transforms.mark.header": "seen",
    "transforms.mark.value.literal": "[1, 2.5, 300]",
    "transforms.mark.predicate": "full",
    "transforms.mark.negate": "true",
    "predicates": "full",
    "predicates.full.type": TRANSFORM + "predicates.RecordIsTombstone",
}
# Keys of the value, another topic, and what a header says dropped.
ROUTE = {
    "transforms": "hoist,key,route",
    "transforms.hoist.type": TRANSFORM + "HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.key.type": TRANSFORM + "ValueToKey",
    "transforms.key.fields": "line",
    "transforms.route.type": TRANSFORM + "RegexRouter",
    "transforms.route.regex": "(.*)-plain",
    "transforms.route.replacement": "$1",
}
MASK = {
    "transforms": "mask,name,drop",
    "transforms.mask.type": TRANSFORM + "MaskField$Value",
    "transforms.mask.fields": "origin",
    "transforms.name.type": TRANSFORM + "ReplaceField$Value",
    "transforms.name.renames": "line:text",
    "transforms.drop.type": TRANSFORM + "Filter",
    "transforms.drop.predicate": "marked",
    "transforms.drop.negate": "true",
    "predicates": "marked",
    "predicates.marked.type": TRANSFORM + "predicates.HasHeaderKey",
    "predicates.marked.name": "seen",
}
DROP_ALL = {
    "transforms": "drop",
    "transforms.drop.type": TRANSFORM + "Filter",
}
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
TOLERANT = {"errors.tolerance": "all", "errors.retry.timeout": "0"}

# Name: what the source and the sink have beside file and topic, and whether lines arrive.
ALL = {
    "json-with-schemas": ({}, {}, True),
    "json-without-schemas": (WITHOUT_SCHEMAS, WITHOUT_SCHEMAS, True),
    "string": (STRING, STRING, True),
    "bytes-as-keys": (STRING | {"key.converter": BYTES}, STRING | {"key.converter": BYTES}, True),
    "chain": (CHAIN, {}, True),
    "chain-without-schemas": (CHAIN | WITHOUT_SCHEMAS, WITHOUT_SCHEMAS, True),
    "chain-as-text": (CHAIN | STRING, STRING, True),
    "chain-at-both": (CHAIN, MASK, True),
    "routed": (ROUTE | {"topic-of": "-plain"}, {}, True),
    # A line is no bytes: every record fails in the converter, and is left out.
    "bytes-tolerated": (TOLERANT | {"value.converter": BYTES}, STRING, False),
    "dropped": (DROP_ALL, STRING, False),
    # The lines are no JSON: all but those that are are dead letters.
    "dead-letters": (
        STRING,
        WITHOUT_SCHEMAS
        | TOLERANT
        | {
            "errors.deadletterqueue.context.headers.enable": "true",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "dead": "yes",
        },
        True,
    ),
}

LINES = ["plain", "", "ž🐎\u2028", 'quo"te\\ and\ttab', "7", "null", '{"a": [1, 2.50, null], "b": {"c": "d"}}', "end"]
LETTERS = 4  # of those, no JSON


def source(name, who, folder):
    """A source's configuration."""
    more = dict(ALL[name][0])
    topic = f"{who}.{name}{more.pop('topic-of', '')}"
    made = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    own = {"connector.class": "FileStreamSource", "file": os.path.join(folder, "in.txt"), "topic": topic}
    return own | made | more


def sink(name, who, origin, folder):
    """The configuration of a sink behind the source of `origin`."""
    more = dict(ALL[name][1])
    if more.pop("dead", None):
        more["errors.deadletterqueue.topic.name"] = f"dead.{origin}.{who}"
    path = os.path.join(folder, f"{name}.{origin}.{who}.txt")
    return {"connector.class": "FileStreamSink", "file": path, "topics": f"{origin}.{name}"} | more


def create(server, name, config):
    """Makes a connector, or says why not."""
    body = json.dumps(config)
    answer = servers.ask(
        server.address, "PUT", f"/connectors/{name}/config", body, {"Content-Type": "application/json"}
    )
    if answer.status not in (200, 201):
        raise RuntimeError(f"{name}: {answer.status} {answer.body}")


def records(bootstrap, topic):
    """Key, value and headers of all records of a topic, as bytes."""
    told = subprocess.run(
        ["kcat", "-b", bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%K|%k|%S|%s|%h\\x1e"],
        check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
    )  # fmt: skip
    if b"Unknown topic" in told.stderr:
        return []
    return [without_traces(record) for record in told.stdout.split(b"\x1e") if record]


def without_traces(record):
    """A record without what a dead letter says in each worker's own words, and where it came from."""
    own = ("exception.message", "exception.stacktrace", "exception.class.name", "connector.name", "topic")
    headers = record.split(b",__connect.errors.")
    kept = [each for each in headers if not each.startswith(tuple(f"{name}=".encode() for name in own))]
    return b",__connect.errors.".join(kept).replace(b"|__connect.errors.topic=", b"|")


def content(path):
    """The bytes of a file; none where it is not there."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


class Pipeline:
    """One of ALL, at both."""

    def __init__(self, name, folder, judge, ours):
        self.name, self.folder = name, folder
        self.both = {"judge": judge, "ours": ours}
        self.bootstrap = judge.node.bootstrap

    def start(self):
        """Makes a source at each, and at each a sink behind either."""
        for who, server in self.both.items():
            create(server, f"{who}-{self.name}", source(self.name, who, self.folder))
        arrives = ALL[self.name][2]
        if arrives:
            processes.wait_until(f"{self.name}: the topics", 60, lambda: all(self.read(who) for who in self.both))
        for origin in self.both if arrives else ():
            for who, server in self.both.items():
                create(server, f"{who}-{self.name}-of-{origin}", sink(self.name, who, origin, self.folder))

    def read(self, who):
        """The records behind the source of one."""
        return records(self.bootstrap, f"{who}.{self.name}")

    def files(self):
        """The files, by source and sink."""
        return {
            (origin, who): content(sink(self.name, who, origin, self.folder)["file"])
            for origin in self.both
            for who in self.both
        }

    def is_done(self):
        """Whether the last line is in all files. Of a source that sends nothing ours stores the offset all the same."""
        if ALL[self.name][2]:
            ends = self.expected_lines()
            return all(text.count(b"\n") >= ends for text in self.files().values())
        return self.offset("ours")

    def expected_lines(self):
        """How many lines a sink writes."""
        return len(LINES) - (LETTERS if "dead" in ALL[self.name][1] else 0)

    def offset(self, who):
        """Whether a source has a stored offset."""
        answer = servers.ask(self.both[who].address, "GET", f"/connectors/{who}-{self.name}/offsets", None, {})
        return '"position"' in answer.body

    def judge(self):
        """How many records were compared, and what is different."""
        processes.wait_until(f"{self.name}: the lines", 90, self.is_done)
        theirs, ours = self.read("judge"), self.read("ours")
        different = [] if theirs == ours else [f"topics: {theirs} there, {ours} here"]
        files = self.files()
        wanted = files["judge", "judge"]
        different += [f"file of {at}: {text} in place of {wanted}" for at, text in files.items() if text != wanted]
        if "dead" in ALL[self.name][1]:
            letters = {who: records(self.bootstrap, f"dead.judge.{who}") for who in self.both}
            if letters["judge"] != letters["ours"] or len(letters["ours"]) != LETTERS:
                different.append(f"dead letters: {letters}")
        return len(theirs), different


def run(folder, judge, ours):
    """All pipelines; the result."""
    chosen = [name for name in os.environ.get("PIPELINES", "").split(",") if name] or list(ALL)
    with open(os.path.join(folder, "in.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in LINES)
    result = {"pipelines": 0, "records": 0, "different": 0}
    pipelines = [Pipeline(name, folder, judge, ours) for name in chosen]
    for pipeline in pipelines:
        pipeline.start()
    for pipeline in pipelines:
        count, different = pipeline.judge()
        print(f"{pipeline.name}: {count} records, {'different' if different else 'equal'}", flush=True)
        for each in different:
            print(f"    {each}", flush=True)
        result["pipelines"] += 1
        result["records"] += count
        result["different"] += bool(different)
    return result


def main():
    """Everything; returns the exit code."""
    folder = tempfile.mkdtemp(prefix="highwater-pipelines-")
    judge = servers.Judge(folder)
    ours = servers.Ours(folder, judge.node)
    try:
        judge.start()
        ours.start()
        result = run(servers.files(folder), judge, ours)
    finally:
        ours.stop()
        judge.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(result, separators=(",", ":")))
    return 1 if result["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
