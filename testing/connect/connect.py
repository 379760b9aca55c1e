#!/usr/bin/env python3
"""`make compat-connect`: Kafka Connect's own worker and ours, asked the same, answer by answer.

A distributed worker of Kafka Connect runs on an Apache Kafka, ours on its embedded log (ON=apache: on another
Apache Kafka). Each call of calls.py goes to both; status, headers, shape and values are compared as compare.py
says, and a difference must be one of exceptions.py, which gives the reason. An exception that no call needs
fails, too. Then openapi.py holds all answers of ours against the document that it serves. SCENARIOS=name,name runs
some only; VERBOSE=1 prints every answer; RECORD=file keeps every call with both answers, a line of JSON each.

The last line: {"calls":n,"equal":m,"excepted":k,"different":0}
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor

import calls
import client_settings
import compare
import exceptions
import openapi
import servers

# Seconds until both must be in a state.
SOON = 30

Call = namedtuple("Call", "method path body judge ours is_unreadable")


def is_unreadable(body):
    """Whether a body is no JSON, or none that stands for a request."""
    try:
        return not isinstance(json.loads(body or "null"), dict) or None
    except ValueError:
        return True


class Both:
    """The two, and what came of each call."""

    def __init__(self, folder, judge, ours):
        self.folder = servers.files(folder)
        self.judge, self.ours = judge, ours
        self.counts, self.used = Counter(), Counter()
        self.record = os.environ.get("RECORD") or os.path.join(folder, "record.jsonl")
        self.scenario = ""

    def begin(self, scenario):
        """A scenario of this name, whose sources have a file that none has read."""
        self.scenario = scenario
        with open(self.input(), "w", encoding="utf-8") as file:
            file.write("one\ntwo\n")

    def input(self):
        """The path of the file that sources of the scenario read."""
        return self.file(f"{self.scenario}.txt")

    def listed(self, path, member):
        """This member of each element of the judge's list."""
        return [each[member] for each in json.loads(servers.ask(self.judge.address, "GET", path, None, {}).body)]

    def file(self, name):
        """The path of a file of the scenarios."""
        return os.path.join(self.folder, name)

    def ask(self, method, path, body=None, headers=None):
        """The answers of both to one request."""
        sent = {} if body is None else {"Content-Type": "application/json"}
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        sent.update(headers or {})
        return text, *(self.settled(each.address, method, path, text, sent) for each in (self.judge, self.ours))

    @staticmethod
    def settled(address, *request):
        """The answer to a request, asked again while it is that the workers are about to share out their work anew."""
        deadline = time.monotonic() + SOON
        while True:
            answer = servers.ask(address, *request)
            if answer.status not in (409, 500) or "rebalance" not in answer.body or time.monotonic() > deadline:
                return answer
            time.sleep(0.1)

    def call(self, method, path, body=None, headers=None):
        """Sends a request to both and compares."""
        text, judge, ours = self.ask(method, path, body, headers)
        self.count(Call(method, path, text, judge, ours, text is not None and judge.status == 500))

    def left(self, call):
        """All differences of a call, and those that no exception stands for."""
        found = compare.differences(calls.words_of(call.path, call.body), call.judge, call.ours)
        return found, [each for each in found if not self.is_excused(call, each)]

    def count(self, call):
        """Counts a call by what came of it, and shows what is different."""
        self.counts["calls"] += 1
        found, left = self.left(call)
        verdict = "different" if left else "excepted" if found else "equal"
        self.counts[verdict] += 1
        self.keep(call, verdict)
        if left or os.environ.get("VERBOSE"):
            show(call, verdict, left)

    def keep(self, call, verdict):
        """Adds a call to the record."""
        sides = {side: getattr(call, side)._asdict() for side in ("judge", "ours")}
        line = {"method": call.method, "path": call.path, "body": call.body, "verdict": verdict, **sides}
        with open(self.record, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def is_excused(self, call, difference):
        """Whether an exception stands for a difference; it is then used."""
        for exception in exceptions.ALL:
            if exception.excuses(call, difference):
                self.used[exception.name] += 1
                return True
        return False

    def together(self, requests, wanted=()):
        """Sends requests to each at the same time; the statuses must be alike, in any order, or those `wanted` of ours
        where Kafka Connect lets in what it has not yet read back."""
        with ThreadPoolExecutor(len(requests)) as pool:
            answers = list(pool.map(lambda request: self.ask(*request), requests))
        statuses = [Counter(answer[side].status for answer in answers) for side in (1, 2)]
        for (method, path, _), (text, judge, ours) in zip(requests, answers):
            self.keep(Call(method, path, text, judge, ours, False), "together")
        self.counts["calls"] += 1
        is_right = statuses[1] == Counter(wanted) if wanted else statuses[0] == statuses[1]
        self.counts["equal" if is_right else "different"] += 1
        if not is_right:
            print(f"different: {requests} at once: {statuses[0]} there, {statuses[1]} here", flush=True)

    def until(self, name, holds):
        """Waits until the status of a connector holds at both, and compares it."""
        self.eventually("GET", f"/connectors/{name}/status", holds)

    def eventually(self, method, path, holds):
        """Asks both until each answer holds and they agree: what was asked before may be under way still."""
        deadline = time.monotonic() + SOON
        while True:
            text, judge, ours = self.ask(method, path)
            call = Call(method, path, text, judge, ours, False)
            held = all(holds(body_of(answer)) for answer in (judge, ours))
            if held and not self.left(call)[1]:
                return self.count(call)
            if time.monotonic() > deadline:
                print(f"waited {SOON} s in vain: {method} {path}", flush=True)
                return self.count(call)
            time.sleep(0.1)


def body_of(answer):
    """The object of an answer; an empty one where there is none."""
    body = compare.decoded(answer)
    return body if isinstance(body, dict) else {}


def show(call, verdict, left):
    """A call and what is wrong with its answers."""
    cut = lambda text: f"{text[:300]}…" if len(text) > 300 else text
    print(f"{verdict}: {call.method} {cut(call.path)} {cut(call.body or '')}")
    for each in left:
        print(f"    {each.kind} {each.at}: {cut(repr(each.judge))} there, {cut(repr(each.ours))} here")
    for name, answer in (("there", call.judge), ("here", call.ours)):
        print(f"    {name}: {answer.status} {cut(answer.body)}", flush=True)


def scenarios(ours):
    """Those to be run: those with connectors where ours has the same ones."""
    listed = servers.ask(ours.address, "GET", "/connector-plugins", None, {}).body
    chosen = list(calls.WITHOUT_CONNECTORS)
    if "FileStreamSource" in listed:
        chosen += calls.WITH_CONNECTORS
    else:
        print("ours has no FileStreamSource: what needs connectors is left out", flush=True)
    wanted = [name for name in os.environ.get("SCENARIOS", "").split(",") if name]
    return [each for each in chosen if not wanted or each.__name__ in wanted]


def run(both):
    """All scenarios; whether every exception was needed."""
    chosen = scenarios(both.ours)
    for scenario in chosen:
        started = time.monotonic()
        before = both.counts["calls"]
        both.begin(scenario.__name__)
        scenario(both)
        print(f"{scenario.__name__}: {both.counts['calls'] - before} calls, {time.monotonic() - started:.1f} s", flush=True)
    unneeded = [each.name for each in exceptions.ALL if not both.used[each.name]]
    if unneeded and not os.environ.get("SCENARIOS"):
        print(f"no call needs the exceptions {', '.join(unneeded)}")
        return False
    return True


def is_documented(both, folder):
    """Whether the document that ours serves says all that it has answered."""
    document = os.path.join(folder, "openapi.json")
    with open(document, "w", encoding="utf-8") as file:
        file.write(servers.ask(both.ours.address, "GET", "/openapi.json", None, {}).body)
    return openapi.check(document, both.record)


def main():
    """Everything; returns the exit code."""
    folder = tempfile.mkdtemp(prefix="highwater-connect-")
    judge = servers.Judge(folder)
    ours = servers.Ours(folder)
    try:
        judge.start()
        ours.start()
        both = Both(folder, judge, ours)
        right = run(both)
        right = is_documented(both, folder) and right
        right = client_settings.check() and right
    finally:
        ours.stop()
        judge.stop()
        shutil.rmtree(folder, ignore_errors=True)
    result = {name: both.counts[name] for name in ("calls", "equal", "excepted", "different")}
    print(json.dumps(result, separators=(",", ":")))
    return 0 if right and not result["different"] else 1


if __name__ == "__main__":
    sys.exit(main())
