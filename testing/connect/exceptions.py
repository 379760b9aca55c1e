"""Where ours answers otherwise than Kafka Connect's worker, each with its reason. A page of the reference lists
them: HIGHWATER_WRITE_DOCS=1 python3 testing/connect/exceptions.py writes it."""

import json
import os
import re
import sys
from collections import namedtuple

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(REPOSITORY, "docs", "reference", "connect-compatibility.md")
BEGIN, END = "<!-- the exceptions: begin -->\n", "<!-- the exceptions: end -->\n"

# `excuses(call, difference)` says whether a difference of a call is this exception's.
Exception_ = namedtuple("Exception_", "name reason excuses")


def named(name, reason):
    """Makes a function the test of an exception."""
    return lambda excuses: ALL.append(Exception_(name, reason, excuses)) or excuses


ALL = []


@named(
    "unreadable-is-400",
    "A body that cannot be read is the client's mistake: 400. Kafka Connect answers 500, with the text of a Java exception.",
)
def _(call, difference):
    return call.judge.status == 500 and call.ours.status == 400 and call.is_unreadable


@named(
    "errors-are-json",
    "Every refusal is JSON and says so. Kafka Connect's web server answers some without a content type, some as a page of HTML, and some with nothing.",
)
def _(call, difference):
    if difference.kind == "content-type":
        return difference.judge in (None, "text/html") and difference.ours == "application/json"
    html = (call.judge.headers.get("content-type") or "").startswith("text/html")
    return difference.kind == "type" and difference.at == "" and (html or not call.judge.body)


@named(
    "ambiguous-paths",
    "A slash, a backslash, a per cent sign or two dots in a name are taken when they are encoded, and an empty segment is one. Kafka Connect's web server refuses all of them, so that a connector of such a name cannot be deleted there.",
)
def _(call, difference):
    strange = any(part in call.path.lower() for part in ("%2f", "%5c", "%25", "%2e", "//"))
    return strange and call.judge.status == 400 and call.ours.status == 404


@named("long-request-lines", "A request line above 32 KiB is answered with 431, and 414 there above 8 KiB.")
def _(call, difference):
    return call.judge.status == 414 and call.ours.status == 431


@named(
    "no-paths-between-workers",
    "The paths by which Kafka Connect's workers tell each other of tasks are not there; they are no client's.",
)
def _(call, difference):
    return call.method == "OPTIONS" and call.path.endswith("/tasks") and "POST" in repr(difference.judge)


@named(
    "tasks-at-once",
    "Who makes a connector is answered with its tasks, and a connector that begins paused has tasks that are paused. Kafka Connect answers before there are any, and makes none until a paused one is resumed.",
)
def _(call, difference):
    made = call.method in ("POST", "PUT") and call.ours.status == 201
    of_tasks = re.match(r"\.tasks\[|\[\{", difference.at)
    return difference.kind == "extra" and of_tasks and (made or call.path.startswith("/connectors/begins-paused"))


@named(
    "names-stay",
    "A configuration whose name is not the connector's is refused by PATCH as by PUT. Kafka Connect takes it, and the connector has two names from then on.",
)
def _(call, difference):
    return call.method == "PATCH" and call.path.endswith("/config") and call.body == '{"name": "market"}' and call.ours.status == 400


@named(
    "first-offset",
    "A sink's group has an offset as soon as its task has begun to read, be it that of a record on which it fails. Kafka Connect stores none until a record was taken.",
)
def _(call, difference):
    return difference.kind == "extra" and call.path.endswith("/store/offsets") and re.search(r"'kafka_offset': 0\}", repr(difference.ours))


@named(
    "offsets-of-what-exists",
    "An offset of a sink for a topic or partition that does not exist is the client's mistake: 400, and nothing is changed. That there shall be none is done. Kafka Connect answers 500 to both, and has stored the others.",
)
def _(call, difference):
    wanted = 200 if '"offset": null' in (call.body or "") else 400
    is_edit = call.method == "PATCH" and call.path.endswith("/store/offsets")
    return is_edit and (call.judge.status, call.ours.status) == (500, wanted)


@named("control-characters", "A message does not repeat control characters, which would be those of a terminal.")
def _(call, difference):
    return difference.kind == "names" and all(re.search(r"[\x00-\x1f]", name) for name in difference.ours)


# Classes that ours has beside Kafka Connect's.
MORE_PLUGINS = re.compile(r"io\.highwater\.|io\.confluent\.connect\.avro\.AvroConverter")


@named("more-plugins", "Ours comes with more: its PostgreSQL source, and the Avro converter with a schema registry.")
def _(call, difference):
    return difference.kind == "extra" and call.path.startswith("/connector-plugins") and MORE_PLUGINS.search(difference.at)


def is_of_definitions(call):
    """Whether a call is answered with definitions of keys."""
    return call.path.startswith("/connector-plugins/") and "/config" in call.path


@named(
    "more-keys",
    "Ours says of each key that it takes: those of a producer, a consumer and the topics that are made, too, and a few of its own. Kafka Connect takes them unsaid, or has no such key.",
)
def _(call, difference):
    key = re.match(r"(?:\.configs)?\[([\w.]+)", difference.at)
    ours = ("consumer.override.", "producer.override.", "topic.creation.", "trail.", "offset.flush.", "task.shutdown.", "line.max.",
            "field.syntax.")  # fmt: skip
    return difference.kind == "extra" and is_of_definitions(call) and key and key[1].startswith(ours)


@named(
    "no-standard-streams",
    "A server has no standard input and output: the file connectors must be told a file. Kafka Connect's take their worker's streams without one.",
)
def _(call, difference):
    of_file = "[file" in difference.at and ("required" in difference.at or "errors" in difference.at)
    without = call.body is None or '"file"' not in call.body
    return is_of_definitions(call) and (of_file or (difference.at == ".error_count" and without))


@named(
    "retries-by-default",
    "`errors.retry.timeout` is -1: what may pass by itself is tried again for ever, with a growing delay. Kafka Connect's 0 stops the task at the first such error.",
)
def _(call, difference):
    key = "[errors.retry.timeout" in difference.at
    return is_of_definitions(call) and key and difference.judge == "0" and difference.ours == "-1"


@named(
    "replicas-of-the-cluster",
    "The topic of dead letters has as many replicas as the cluster gives a topic, unless `errors.deadletterqueue.topic.replication.factor` says otherwise. Kafka Connect asks for 3, which a cluster of one node refuses.",
)
def _(call, difference):
    key = "[errors.deadletterqueue.topic.replication.factor" in difference.at
    return is_of_definitions(call) and key and difference.judge == "3" and difference.ours == "-1"


def given(call, key):
    """What a configuration that is validated has for a key; empty where it has none."""
    is_text = call.path.endswith("/validate") and call.body
    return (json.loads(call.body).get(key) or "") if is_text else ""


@named(
    "keys-of-another-version",
    "A `connector.plugin.version` that is not there is an error of that key and the class. Kafka Connect shows no keys of the connector then, and no converters.",
)
def _(call, difference):
    return bool(given(call, "connector.plugin.version"))


@named("empty-is-absent", "An empty `key.converter` or `value.converter` is the worker's own. Kafka Connect looks for a class without name.")
def _(call, difference):
    at = re.match(r"\.configs\[(\w+\.converter)\]\.value\.errors|\.error_count", difference.at)
    empty = call.body and re.search(r'"(key|value)\.converter": ""', call.body)
    return call.path.endswith("/validate") and empty and at


@named(
    "short-names",
    "Transforms and predicates may be named by the last part of their class, as connectors and converters. A class that is no transform until `$Key` or `$Value` follows is unknown; Kafka Connect calls it abstract.",
)
def _(call, difference):
    kind = given(call, "transforms.a.type")
    short = kind == "HoistField$Value"
    return (short and (".configs[transforms.a." in difference.at or difference.at == ".error_count")) or (
        kind.endswith(".HoistField") and difference.at == ".configs[transforms.a.type].value.value"
    )


@named(
    "chains-are-checked",
    "A transform that names a predicate which is not there is refused, and `negate` without one is an error of that key. Kafka Connect finds the first when the task starts, and says the second of the class.",
)
def _(call, difference):
    predicate = given(call, "transforms.a.predicate") == "q" and (
        difference.at == ".error_count" or ".configs[transforms.a.predicate].value.errors" in difference.at
    )
    alone = given(call, "transforms.a.negate") == "true" and not given(call, "transforms.a.predicate")
    return predicate or (alone and re.search(r"transforms\.a\.(negate|type)\]\.value\.errors", difference.at))


@named(
    "topic-creation-is-checked",
    "The `topic.creation.` keys are held against what topics may be. Kafka Connect finds what is wrong with them when the task starts, or when a topic is made.",
)
def _(call, difference):
    return call.path.endswith("/validate") and '"topic.creation.' in (call.body or "") and difference.at == ".error_count"


# How keys begin that are settings of Kafka's clients.
OF_CLIENTS = ("producer.override.", "consumer.override.", "admin.override.")


@named(
    "client-overrides",
    "Settings of Kafka's clients are sorted: those that lead elsewhere, or that no client knows, are errors. Ours describes one that has no effect as text, without a default, and masks what may be a login. Kafka Connect shows the definition of its client, and lets in all.",
)
def _(call, difference):
    has = call.path.endswith("/validate") and call.body and any(key.startswith(OF_CLIENTS) for key in json.loads(call.body))
    key = re.match(r"\.configs\[([\w.]+)", difference.at)
    refused = difference.at == ".error_count" and difference.ours == difference.judge + 1
    return has and (refused or (key and key[1].startswith(OF_CLIENTS)))


# Keys that nobody knows: of a connector, and of its converters, transforms and predicates.
UNKNOWN = (
    "tabel.include.list",
    "value.converter.schemas.enabl",
    "key.converter.foo",
    "transforms.a.fild",
    "transforms.b.type",
    "predicates.p.patern",
    "predicates.q.type",
)


@named("unknown-keys", "A key that nobody knows is an error, be it of a connector, a converter, a transform or a predicate. Kafka Connect ignores it.")
def _(call, difference):
    keys = [key for key in UNKNOWN if given(call, key)]
    return bool(keys) and (difference.at == ".error_count" or difference.at.startswith(tuple(f".configs[{key}]" for key in keys)))


@named(
    "unknown-fields",
    "An offset with a field that the connector does not read is the client's mistake: 400, and nothing is changed. Kafka Connect's file source stores such a field, and a sink's are ignored.",
)
def _(call, difference):
    is_edit = call.method == "PATCH" and call.path.endswith("/offsets")
    return is_edit and '"astray"' in (call.body or "") and (call.judge.status, call.ours.status) == (200, 400)


@named(
    "loggers-that-are",
    "A name that can be no logger's, such as that of a Java class, changes nothing, and the answer is an empty list. Kafka Connect makes a logger of every name.",
)
def _(call, difference):
    return call.method == "PUT" and call.path == "/admin/loggers/nowhere.x" and difference.kind == "missing"


@named(
    "topic-names-are-checked",
    "A topic that no topic can be called is refused under its key, be it of records, of dead letters or of a sink. Kafka Connect finds that when the task runs.",
)
def _(call, difference):
    names = [given(call, key) for key in ("topic", "topics", "errors.deadletterqueue.topic.name")]
    of_name = difference.at == ".error_count" or re.match(r"\.configs\[(topic|topics|errors\.deadletterqueue\.topic\.name)\]", difference.at)
    return any("/" in name for name in names) and of_name


def page_with(listed):
    """The page as it is, and as it should be."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    rows = "".join(f"| `{each.name}` | {each.reason} |\n" for each in listed)
    return page, f"{before}{BEGIN}| name | what, and why |\n|---|---|\n{rows}{END}{after}"


def main():
    """Holds the page against the list; writes it when asked to."""
    page, right = page_with(ALL)
    if page == right:
        return 0
    if os.environ.get("HIGHWATER_WRITE_DOCS"):
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(right)
        return 0
    print(f"{PAGE} does not list the exceptions as they are")
    return 1


if __name__ == "__main__":
    sys.exit(main())
