"""Holds two answers to one request against each other: what Kafka Connect's worker says, and what ours does.

Pure: nothing here asks anybody. A difference has a kind, a place in the answer and both sides; what is
different by its nature (whose version, which worker, when) is compared by type alone.
"""

import json
import re
from collections import namedtuple
from urllib.parse import urlsplit

Answer = namedtuple("Answer", "status headers body")
Difference = namedtuple("Difference", "kind at judge ours")

# Members that ours has beside Kafka Connect's: one everywhere, and the parts of an error in errors.
OURS = {"highwater"}
PARTS_OF_AN_ERROR = {"code", "what", "kept", "do"}
# Members whose values say who or when, and those that are prose.
OWN = {"version", "commit", "kafka_cluster_id", "worker_id", "trace", "last_modified", "documentation", "message"}
# How the names of keys end whose values are versions of plugins.
VERSION = ".plugin.version"
# What an element of a list is known by.
KEYS = ("name", "class", "id", "partition", "connector", "definition")


def differences(words, judge, ours):
    """All differences; `words` are the names in the request, which prose about it must not leave out."""
    found = []
    if judge.status != ours.status:
        found.append(Difference("status", "", judge.status, ours.status))
    for name, read in {"content-type": media, "location": place, "allow": methods}.items():
        sides = [read(answer.headers.get(name)) for answer in (judge, ours)]
        # A refusal of ours may name the methods where Kafka Connect's does not.
        if sides[0] != sides[1] and not (name == "allow" and judge.status == 405):
            found.append(Difference(name, "", *sides))
    return found + of_bodies(words, judge, ours)


def media(value):
    """A media type without its parameters."""
    return value and value.split(";")[0].strip().lower()


def place(value):
    """The path of a Location: clients resolve it."""
    return value and urlsplit(value).path


def methods(value):
    """The methods that Allow names."""
    return value and sorted(name.strip() for name in value.split(","))


def of_bodies(words, judge, ours):
    """Differences of two bodies, which are JSON or as they are."""
    sides = [decoded(answer) for answer in (judge, ours)]
    if media(judge.headers.get("content-type")) == "text/plain" and all(isinstance(side, str) for side in sides):
        sides = [methods(side) for side in sides]  # of OPTIONS
    sides = [without_own(side) for side in sides]
    if is_error(sides[0]) and is_error(sides[1]):
        sides[1] = {key: value for key, value in sides[1].items() if key not in PARTS_OF_AN_ERROR}
        prose = of_prose(words, sides[0]["message"], sides[1]["message"])
    else:
        prose = []
    return list(of_values("", *sides)) + prose


def without_own(value):
    """A body in which versions of plugins are one, and what is wrong with a value is one text."""
    if isinstance(value, list):
        return [without_own(each) for each in value]
    if not isinstance(value, dict):
        return value
    value = {key: without_own(each) for key, each in value.items()}
    if value.get("errors"):
        value["errors"] = ["…"]
    if str(value.get("name")).endswith(VERSION):
        value |= {key: "…" for key in ("default_value", "value") if value.get(key) is not None}
        value |= {"recommended_values": ["…"]} if value.get("recommended_values") else {}
    return value


def decoded(answer):
    """A body as JSON, or as text."""
    try:
        return json.loads(answer.body)
    except ValueError:
        return answer.body


def is_error(value):
    return isinstance(value, dict) and {"error_code", "message"} <= set(value)


def of_prose(words, judge, ours):
    """Names of the request that one message has and the other leaves out; a configuration that it quotes is none."""
    judge = re.sub(r"\{[^}]*\}", "", judge)
    has = lambda text, word: re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.]\w)", text)
    lost = sorted(word for word in words if has(judge, word) and not has(ours, word))
    return [Difference("names", "message", judge, lost)] if lost else []


def kind_of(value):
    """The JSON type of a value."""
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")


def of_values(at, judge, ours):
    """Differences of two values, place by place."""
    if kind_of(judge) != kind_of(ours):
        yield Difference("type", at, judge, ours)
    elif isinstance(judge, dict):
        yield from of_objects(at, judge, ours)
    elif isinstance(judge, list):
        yield from of_lists(at, judge, ours)
    elif judge != ours and at.rsplit(".", 1)[-1] not in OWN:
        yield Difference("value", at, judge, ours)


def of_objects(at, judge, ours):
    """Differences of two objects; ours may have members of its own."""
    for key in judge.keys() - ours.keys():
        yield Difference("missing", f"{at}.{key}", judge[key], None)
    for key in ours.keys() - judge.keys() - OURS:
        yield Difference("extra", f"{at}.{key}", None, ours[key])
    for key in judge.keys() & ours.keys():
        yield from of_values(f"{at}.{key}", judge[key], ours[key])


def of_lists(at, judge, ours):
    """Differences of two lists, in any order: elements are known by what they are about."""
    sides = [{known_by(value, number): value for number, value in enumerate(side)} for side in (judge, ours)]
    for key in sides[0].keys() - sides[1].keys():
        yield Difference("missing", f"{at}[{key}]", sides[0][key], None)
    for key in sides[1].keys() - sides[0].keys():
        yield Difference("extra", f"{at}[{key}]", None, sides[1][key])
    for key in sides[0].keys() & sides[1].keys():
        yield from of_values(f"{at}[{key}]", sides[0][key], sides[1][key])
    # What stands twice on one side alone is known once.
    if sides[0].keys() == sides[1].keys() and len(judge) != len(ours):
        yield Difference("value", f"{at}.length", len(judge), len(ours))


def known_by(value, number):
    """What an element of a list is about; its number where nothing says it."""
    if isinstance(value, (str, bool, int, float)):
        return json.dumps(value)
    if isinstance(value, dict):
        for key in KEYS:
            if key in value:
                # Kafka Connect has no definition of a client's setting that it does not know.
                about = (value[key] or value["value"])["name"] if key == "definition" else value[key]
                return " ".join([about if isinstance(about, str) else json.dumps(about), value.get("type", "")]).strip()
    return str(number)
