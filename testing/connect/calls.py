"""What is asked, scenario by scenario. Each is a function that is given `both` (see connect.py): `call`
sends a request to both and compares, `until` waits until both are in a state."""

import json
import os

SOURCE, SINK = "FileStreamSource", "FileStreamSink"
PACKAGE = "org.apache.kafka.connect.file."
UNKNOWN = "com.example.NoSuchConnector"

# No topic comes of being asked for at the judge's Kafka: the worker makes it.
MADE = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "-1"}

CONNECTOR_PATHS = ["", "/config", "/status", "/tasks", "/tasks/0/status", "/offsets", "/topics"]


def source(both, topic="lines", **more):
    """A configuration of a source that reads the scenario's file."""
    return {"connector.class": SOURCE, "topic": topic, "file": both.input(), **MADE, **more}


def sink(both, topics="lines", **more):
    """A configuration of a sink that writes the scenario's file."""
    return {"connector.class": SINK, "topics": topics, "file": both.file("out.txt"), **more}


def state(connector, *tasks):
    """A predicate of a status: the connector's state, and those of its tasks."""

    def holds(status):
        found = [task["state"] for task in status.get("tasks", [])]
        return status.get("connector", {}).get("state") == connector and found == list(tasks)

    return holds


def any_of(*predicates):
    """A predicate that holds where one of these does."""
    return lambda body: any(holds(body) for holds in predicates)


def root(both):
    for path in ["/", "/health", "/health/", "/connectors", "/connectors/"]:
        both.call("GET", path)
        both.call("HEAD", path)
    for path in ["/nope", "/connectors/shop/nope", "/admin", "/connector-plugins/nope", "/connectors/shop/tasks-config",
                 "/connectors/shop/tasks/0", "/connectors/shop/tasks/0/nope"]:  # fmt: skip
        both.call("GET", path)
        both.call("OPTIONS", path)


def methods(both):
    """Each path with methods that it does not have, and OPTIONS."""
    for path, wrong in {
        "/": ["POST", "PUT", "DELETE", "PATCH"],
        "/health": ["POST"],
        "/connectors": ["PUT", "DELETE", "PATCH"],
        "/connectors/shop": ["PUT", "POST", "PATCH"],
        "/connectors/shop/config": ["POST", "DELETE"],
        "/connectors/shop/status": ["PUT", "POST", "DELETE"],
        "/connectors/shop/pause": ["GET", "POST"],
        "/connectors/shop/resume": ["GET", "POST"],
        "/connectors/shop/stop": ["GET", "POST"],
        "/connectors/shop/restart": ["GET", "PUT"],
        "/connectors/shop/tasks": ["PUT", "DELETE"],
        "/connectors/shop/tasks/0/status": ["PUT"],
        "/connectors/shop/tasks/0/restart": ["GET", "PUT"],
        "/connectors/shop/offsets": ["PUT", "POST"],
        "/connectors/shop/topics": ["PUT", "DELETE"],
        "/connectors/shop/topics/reset": ["GET", "POST"],
        "/connector-plugins": ["POST", "PUT", "DELETE"],
        "/connector-plugins/x/config": ["PUT", "POST"],
        "/connector-plugins/x/config/validate": ["GET", "POST"],
        "/admin/loggers": ["PUT", "POST"],
        "/admin/loggers/root": ["POST", "DELETE"],
    }.items():
        both.call("OPTIONS", path)
        for method in wrong:
            both.call(method, path, {} if method != "GET" else None)
    both.call("TRACE", "/connectors")


def negotiation(both):
    """What is sent and what is asked for."""
    for accept in ["*/*", "application/*", "application/json", "text/html,application/json;q=0.5", "text/plain",
                   "application/xml", "garbage"]:  # fmt: skip
        both.call("GET", "/connectors", headers={"Accept": accept})
    for path, method in {"/connectors": "POST", "/connectors/shop/config": "PUT", "/connectors/shop/offsets": "PATCH",
                         "/connector-plugins/x/config/validate": "PUT"}.items():  # fmt: skip
        both.call(method, path, "{}", headers={"Content-Type": "text/plain"})
        both.call(method, path, "<a/>", headers={"Content-Type": "application/xml"})


def unreadable(both):
    """Bodies that are no JSON, or of another shape."""
    for method, path in {
        "POST": "/connectors",
        "PUT": "/connectors/shop/config",
        "PATCH": "/connectors/shop/offsets",
    }.items():
        for body in ["{", "", "[]", "null", "5", '"x"', "{]"]:
            both.call(method, path, body)
    for body in ["{", "", "[]", "null", '{"a": {}}', '{"a": []}']:
        both.call("PUT", f"/connector-plugins/{SOURCE}/config/validate", body)
        both.call("PUT", "/admin/loggers/root", body)
    config = {"connector.class": UNKNOWN}
    for wrong in [{"name": "shop", "config": []}, {"name": "shop", "config": "x"}, {"name": {}, "config": config},
                  {"name": "shop", "config": {"x": {}}}, {"name": "shop", "config": {"x": []}}, {"name": "shop"}, {},
                  {"name": "shop", "config": config, "more": 1}, {"name": "shop", "config": config, "initial_state": "ASLEEP"},
                  {"name": "shop", "config": config, "initial_state": ""}]:  # fmt: skip
        both.call("POST", "/connectors", wrong)


def unknown_class(both):
    """A class that neither has."""
    config = {"connector.class": UNKNOWN}
    both.call("POST", "/connectors", {"name": "shop", "config": config})
    both.call("POST", "/connectors", {"name": "shop", "config": {}})
    both.call("POST", "/connectors", {"name": "shop", "config": {"connector.class": 5}})
    both.call("POST", "/connectors", {"name": "shop", "config": {"connector.class": None}})
    both.call("POST", "/connectors", {"name": 5, "config": {"connector.class": UNKNOWN}})
    both.call("PUT", "/connectors/shop/config", config)
    both.call("PUT", "/connectors/shop/config", {})
    both.call("PUT", "/connectors/shop/config", {"connector.class": UNKNOWN, "name": "market"})
    both.call("PUT", f"/connector-plugins/{UNKNOWN}/config/validate", config)
    both.call("PUT", f"/connector-plugins/{UNKNOWN}/config/validate", {"connector.class": SOURCE})
    both.call("PUT", f"/connector-plugins/{UNKNOWN}/config/validate", {})
    both.call("GET", f"/connector-plugins/{UNKNOWN}/config")
    both.call("GET", "/connectors")


def unknown_connector(both):
    """Each path of a connector that is not there."""
    for path in CONNECTOR_PATHS:
        both.call("GET", f"/connectors/nowhere{path}")
        both.call("HEAD", f"/connectors/nowhere{path}")
    for path in ["pause", "resume", "stop", "topics/reset"]:
        both.call("PUT", f"/connectors/nowhere/{path}")
    for path in ["restart", "restart?includeTasks=true", "restart?onlyFailed=true", "tasks/0/restart", "tasks/x/restart"]:
        both.call("POST", f"/connectors/nowhere/{path}")
    both.call("DELETE", "/connectors/nowhere")
    both.call("DELETE", "/connectors/nowhere/offsets")
    both.call("PATCH", "/connectors/nowhere/config", {})
    both.call("PATCH", "/connectors/nowhere/offsets", {})
    both.call("PATCH", "/connectors/nowhere/offsets", {"offsets": []})
    both.call("PATCH", "/connectors/nowhere/offsets", {"offsets": [{"partition": {"filename": "x"}, "offset": None}]})


def unusual_names(both):
    """Names in paths, of connectors that are not there."""
    for name in ["a%20b", "%E2%82%AC", "a+b", "a.b_c-d~e", "a%3Fb%23", "%22", "%FF", "%zz", "a%2Fb", "a%25b", "%2e%2e",
                 "a;b=c", "n" * 300, "n" * 5000, "%5C"]:  # fmt: skip
        both.call("GET", f"/connectors/{name}")
        both.call("PUT", f"/connectors/{name}/pause")
    both.call("GET", "/connectors//")
    both.call("GET", "/connectors/" + "n" * 40_000)


def loggers(both):
    """Levels of log lines, at run time."""
    both.call("GET", "/admin/loggers/root")
    both.call("GET", "/admin/loggers/ROOT")
    both.call("GET", "/admin/loggers/nowhere")
    for body in [{}, {"level": None}, {"level": "LOUD"}, {"level": 5}]:
        both.call("PUT", "/admin/loggers/root", body)
        both.call("PUT", "/admin/loggers/root?scope=cluster", body)
    both.call("PUT", "/admin/loggers/nowhere.x", {"level": "INFO"})
    both.call("PUT", "/admin/loggers/nowhere.x", {"level": "DEBUG"})
    both.call("PUT", "/admin/loggers/root?scope=cluster", {"level": "INFO"})
    for scope in ["worker", "WORKER", "galaxy"]:
        both.call("PUT", f"/admin/loggers/root?scope={scope}", {"level": "info"})
    both.call("PUT", "/admin/loggers/root?scope=CLUSTER", {"level": "INFO"})
    both.call("GET", "/admin/loggers/root")


WITHOUT_CONNECTORS = [
    root, methods, negotiation, unreadable, unknown_class, unknown_connector, unusual_names, loggers,
]  # fmt: skip


def plugins(both):
    """The plugins, and what they take."""
    both.call("GET", "/connector-plugins")
    both.call("GET", "/connector-plugins/")
    both.call("GET", "/connector-plugins?connectorsOnly=true")
    both.call("GET", "/connector-plugins?connectorsOnly=false")
    both.call("GET", "/connector-plugins?connectorsOnly=maybe")
    for plugin in [SOURCE, SINK]:
        for name in [plugin, f"{plugin}Connector", f"{PACKAGE}{plugin}Connector"]:
            both.call("GET", f"/connector-plugins/{name}/config")
    for name in both.listed("/connector-plugins?connectorsOnly=false", "class"):
        both.call("GET", f"/connector-plugins/{name}/config")
    both.call("GET", f"/connector-plugins/{SOURCE}/config?version=1")
    both.call("GET", f"/connector-plugins/{SOURCE}")


def validation(both):
    """Good and bad configurations, held against their definitions."""

    def validate(plugin, config):
        both.call("PUT", f"/connector-plugins/{plugin}/config/validate", {"connector.class": plugin, **config})

    named = {"name": "shop", "topic": "lines", "file": both.file("lines.txt")}
    validate(SOURCE, named)
    validate(SOURCE, {"name": "shop", "topic": "lines"})
    validate(SOURCE, {})
    validate(SOURCE, {"name": "shop"})
    validate(SOURCE, {"topic": "lines"})
    validate(f"{PACKAGE}{SOURCE}Connector", named)
    validate(f"{SOURCE}Connector", named)
    for key, value in {"tasks.max": "0", "batch.size": "x", "topic": "", "config.action.reload": "x",
                       "errors.tolerance": "some", "errors.retry.timeout": "x", "key.converter": "Nope",
                       "transforms": "a", "name": "  shop ", "tasks.max.enforce": "maybe"}.items():  # fmt: skip
        validate(SOURCE, {**named, key: value})
    validate(SOURCE, {**named, "topic": "a/b"})
    validate(SOURCE, {**named, "connector.plugin.version": "9"})
    validate(SOURCE, {**named, "tasks.max": 3})
    validate(SOURCE, {**named, "connector.class": SINK})
    read = {"name": "shop", "topics": "lines", "file": both.file("out.txt")}
    validate(SINK, read)
    validate(SINK, {"name": "shop", "topics": "lines"})
    validate(SINK, {"name": "shop", "file": both.file("out.txt")})
    for key, value in {"topics.regex": "b", "topics": "", "errors.deadletterqueue.topic.name": "lines",
                       "errors.deadletterqueue.topic.replication.factor": "x", "errors.tolerance": "all",
                       "errors.deadletterqueue.context.headers.enable": "x"}.items():  # fmt: skip
        validate(SINK, {**read, key: value})
    validate(SINK, {**read, "topics": "lines,a/b"})
    validate(SINK, {**read, "errors.deadletterqueue.topic.name": "a/b"})
    validate(SINK, {"name": "shop", "topics.regex": "*", "file": both.file("out.txt")})
    for key, value in {"acks": "1", "linger.ms": "50", "compression.type": "zstd", "sasl.jaas.config": "x",
                       "bootstrap.servers": "nowhere:9092", "no.such.setting": "x"}.items():  # fmt: skip
        validate(SOURCE, {**named, f"producer.override.{key}": value})
    for key, value in {"isolation.level": "read_uncommitted", "max.poll.records": "7", "group.protocol": "classic"}.items():
        validate(SINK, {**read, f"consumer.override.{key}": value})
    validate(SOURCE, {**named, "tabel.include.list": "a"})
    both.call("PUT", f"/connector-plugins/{SOURCE}/config/validate", {"topic": "lines"})
    both.call("PUT", f"/connector-plugins/{SOURCE}/config/validate/", {"connector.class": SOURCE, **named})


def parts(both):
    """Converters, transforms and predicates in a configuration, good ones and bad ones."""

    def validate(config, plugin=SOURCE):
        named = {"connector.class": plugin, "name": "shop", "topic": "lines", "file": both.file("lines.txt")}
        both.call("PUT", f"/connector-plugins/{plugin}/config/validate", {**named, **config})

    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    for key in ["key", "value"]:
        validate({f"{key}.converter": json_converter, f"{key}.converter.schemas.enable": "false"})
        validate({f"{key}.converter": "org.apache.kafka.connect.storage.StringConverter"})
        validate({f"{key}.converter": json_converter, f"{key}.converter.schemas.enable": "maybe"})
        validate({f"{key}.converter": "JsonConverter"})
        validate({f"{key}.converter": ""})
        validate({f"{key}.converter": json_converter, f"{key}.converter.plugin.version": "9"})
    validate({"header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter"})
    validate({"header.converter": "Nope"})
    transform = "org.apache.kafka.connect.transforms."
    hoist = {"transforms": "a", "transforms.a.type": f"{transform}HoistField$Value", "transforms.a.field": "line"}
    validate(hoist)
    validate({**hoist, "transforms.a.type": "HoistField$Value"})
    validate({**hoist, "transforms.a.type": "Nope"})
    validate({**hoist, "transforms.a.type": ""})
    validate({**hoist, "transforms.a.type": f"{transform}HoistField"})
    validate({**hoist, "transforms.a.field": None})
    validate({**hoist, "transforms": "a,a"})
    validate({**hoist, "transforms": "a,b", "transforms.b.type": f"{transform}RegexRouter", "transforms.b.regex": "(",
              "transforms.b.replacement": "x"})  # fmt: skip
    validate({**hoist, "transforms": "a,b", "transforms.b.type": f"{transform}Cast$Key", "transforms.b.spec": "int8"})
    match = {"predicates": "p", "predicates.p.type": f"{transform}predicates.TopicNameMatches", "predicates.p.pattern": "l.*"}
    validate({**hoist, **match, "transforms.a.predicate": "p", "transforms.a.negate": "true"})
    validate({**hoist, **match, "transforms.a.predicate": "q"})
    validate({**hoist, "transforms.a.negate": "true"})
    validate({**hoist, **match, "transforms.a.predicate": "p", "transforms.a.negate": "maybe"})
    validate({**match, "predicates.p.type": "Nope"})
    validate({**match, "predicates.p.pattern": "("})
    validate({"value.converter": json_converter, "value.converter.schemas.enabl": "false"})
    validate({"key.converter.foo": "x"})
    validate({"value.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter.schemas.enable": "false"})
    validate({**hoist, "transforms.a.fild": "x"})
    validate({**hoist, "transforms.b.type": f"{transform}RegexRouter"})
    validate({**match, "predicates.p.patern": "x"})
    validate({**match, "predicates.q.type": f"{transform}predicates.RecordIsTombstone"})
    validate(match)
    made = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "-1"}
    validate(made)
    validate({**made, "topic.creation.groups": "a", "topic.creation.a.include": "l.*"})
    validate({**made, "topic.creation.groups": "a"})
    validate({**made, "topic.creation.groups": "a", "topic.creation.a.include": "("})
    validate({**made, "topic.creation.groups": "default"})
    validate({"topic.creation.groups": "a", "topic.creation.a.include": "l.*"})
    for key, value in {"partitions": "0", "replication.factor": "0", "retention.ms": "x", "cleanup.policy": "compact"}.items():
        validate({**made, f"topic.creation.default.{key}": value})


def creation(both):
    """Connectors made, and refused."""
    both.call("POST", "/connectors", {"name": "shop", "config": source(both)})
    both.until("shop", state("RUNNING", "RUNNING"))
    both.call("POST", "/connectors", {"name": "shop", "config": source(both)})
    both.call("POST", "/connectors", {"name": " shop ", "config": source(both)})
    both.call("POST", "/connectors", {"name": "shop", "config": {"connector.class": SOURCE}})
    both.call("POST", "/connectors", {"name": "market", "config": source(both, name="shop")})
    both.call("POST", "/connectors", {"name": "market", "config": {"connector.class": SOURCE}})
    both.call("POST", "/connectors", {"name": "market", "config": source(both, **{"tasks.max": "x"})})
    both.call("POST", "/connectors", {"name": "market", "config": source(both, **{"tasks.max": "0"})})
    both.call("POST", "/connectors", {"name": "", "config": source(both)})
    both.call("POST", "/connectors", {"name": "   ", "config": source(both)})
    both.call("POST", "/connectors", {"name": "mar\u0001ket", "config": source(both)})
    both.call("POST", "/connectors", {"config": source(both)})
    both.call("POST", "/connectors", {"config": source(both, name="market")})
    both.call("GET", "/connectors")
    for wanted, seen in {"RUNNING": ("RUNNING", "RUNNING"), "paused": ("PAUSED", "PAUSED"), "Stopped": ("STOPPED",)}.items():
        name = f"begins-{wanted.lower()}"
        body = {"name": name, "config": source(both, topic=name), "initial_state": wanted}
        both.call("POST", "/connectors", body)
        both.until(name, any_of(state(*seen), state("PAUSED")))  # there, a paused one has no tasks yet
        both.call("GET", f"/connectors/{name}")
        both.call("GET", f"/connectors/{name}/status")
        both.call("GET", f"/connectors/{name}/tasks")
        both.call("DELETE", f"/connectors/{name}")
    both.call("DELETE", "/connectors/shop")
    both.call("DELETE", "/connectors/shop")


def shown(both):
    """A connector that runs, seen from all sides."""
    both.call("PUT", "/connectors/shop/config", source(both))
    both.until("shop", state("RUNNING", "RUNNING"))
    both.eventually("GET", "/connectors/shop/offsets", lambda body: body.get("offsets"))
    both.eventually("GET", "/connectors/shop/topics", lambda body: body.get("shop", {}).get("topics"))
    for path in CONNECTOR_PATHS:
        both.call("GET", f"/connectors/shop{path}")
        both.call("HEAD", f"/connectors/shop{path}")
        both.call("GET", f"/connectors/shop{path}/")
    for task in ["1", "x", "-1", "99999999999"]:
        both.call("GET", f"/connectors/shop/tasks/{task}/status")
        both.call("POST", f"/connectors/shop/tasks/{task}/restart")
    for query in ["expand=status", "expand=info", "expand=status&expand=info", "expand=x", "expand=status&expand=x", "expand=", "x=y"]:
        both.call("GET", f"/connectors?{query}")
    both.call("PUT", "/connectors/shop/topics/reset")
    both.call("DELETE", "/connectors/shop")
    both.eventually("GET", "/connectors/shop/topics", lambda body: not body["shop"]["topics"])
    both.eventually("GET", "/connectors/shop/status", lambda body: body.get("error_code") == 404)
    for path in CONNECTOR_PATHS:
        both.call("GET", f"/connectors/shop{path}")


def configuration(both):
    """Configurations replaced and patched."""
    path = "/connectors/shop/config"
    both.call("PUT", path, source(both))
    both.until("shop", state("RUNNING", "RUNNING"))
    both.call("PUT", path, source(both, **{"batch.size": "10"}))
    both.until("shop", state("RUNNING", "RUNNING"))
    both.call("PATCH", path, {"batch.size": "20"})
    both.call("PATCH", path, {"batch.size": 30})
    both.call("GET", path)
    both.call("PATCH", path, {"batch.size": None})
    both.call("GET", path)
    both.call("PATCH", path, {})
    both.call("PATCH", path, {"topic": None})
    both.call("PATCH", path, {"batch.size": "x"})
    both.call("PATCH", path, "[]")
    both.call("PATCH", path, "")
    both.call("PUT", path, {})
    both.call("PUT", path, source(both, name="market"))
    both.call("PUT", path, source(both, extra=None))
    both.call("GET", "/connectors/shop")
    both.call("PATCH", path, {"name": "market"})
    both.call("DELETE", "/connectors/shop")
    for name in ["a%20b", "%20a%20", "%E2%82%AC%22", "a+b", "a.b_c-d~e", "a%3Fb%23", "a!$&'()*,=:@b"]:
        both.call("PUT", f"/connectors/{name}/config", source(both, topic="lines"))
        both.call("GET", f"/connectors/{name}/config")
        both.call("DELETE", f"/connectors/{name}")


def life(both):
    """Create, pause, resume, stop, change offsets, restart, delete."""
    offsets = "/connectors/shop/offsets"
    partition = {"filename": both.input()}
    both.call("POST", "/connectors", {"name": "shop", "config": source(both)})
    both.until("shop", state("RUNNING", "RUNNING"))
    both.eventually("GET", offsets, lambda body: body.get("offsets"))
    both.call("PATCH", offsets, {"offsets": [{"partition": partition, "offset": {"position": 0}}]})
    both.call("DELETE", offsets)
    for path, seen in {"pause": ("PAUSED", "PAUSED"), "resume": ("RUNNING", "RUNNING"), "stop": ("STOPPED",)}.items():
        both.call("PUT", f"/connectors/shop/{path}")
        both.until("shop", state(*seen))
        both.call("PUT", f"/connectors/shop/{path}")
        both.call("GET", "/connectors/shop/status")
        both.call("GET", "/connectors/shop/tasks/0/status")
        both.call("GET", "/connectors/shop/tasks")
        if path == "pause":
            both.call("PATCH", offsets, {"offsets": [{"partition": partition, "offset": {"position": 0}}]})
            both.call("DELETE", offsets)
    change_offsets(both, offsets, partition)
    both.call("PUT", "/connectors/shop/resume")
    both.until("shop", state("RUNNING", "RUNNING"))
    for query in ["", "?includeTasks=true", "?onlyFailed=true", "?includeTasks=true&onlyFailed=true", "?includeTasks=maybe"]:
        both.call("POST", f"/connectors/shop/restart{query}")
        both.until("shop", state("RUNNING", "RUNNING"))
    both.call("POST", "/connectors/shop/tasks/0/restart")
    both.until("shop", state("RUNNING", "RUNNING"))
    both.call("PUT", "/connectors/shop/pause", {})
    both.call("PUT", "/connectors/shop/pause", "x", headers={"Content-Type": "text/plain"})
    both.call("DELETE", "/connectors/shop/")
    both.call("GET", "/connectors")


def change_offsets(both, path, partition):
    """Edits of a stopped source's offsets: good ones, then each way to be wrong."""
    at = lambda position: {"partition": partition, "offset": {"position": position}}
    both.call("PATCH", path, {"offsets": [at(4)]})
    both.call("GET", path)
    both.call("PATCH", path, {"offsets": [{"partition": partition, "offset": None}]})
    both.call("GET", path)
    both.call("PATCH", path, {"offsets": [at(8)]})
    for wrong in [
        {}, {"offsets": []}, {"offsets": None}, {"offsets": {}}, {"offsets": "x"}, {"offsets": [1]}, [], "{", "",
        {"offsets": [{"partition": {"x": 1}, "offset": {"position": 1}}]},
        {"offsets": [{"partition": partition, "offset": {"x": 1}}]},
        {"offsets": [at("x")]}, {"offsets": [at(-1)]}, {"offsets": [at(1.5)]},
        {"offsets": [{"partition": {"filename": {"a": 1}}, "offset": {"position": 1}}]},
        {"offsets": [{"partition": {}, "offset": {}}]},
    ]:  # fmt: skip
        both.call("PATCH", path, wrong)
    both.call("PATCH", path, {"offsets": [{"partition": partition, "offset": {"position": 8, "astray": 1}}]})
    both.call("PATCH", path, {"offsets": [at(8)]})
    both.call("GET", path)
    both.call("DELETE", path)
    both.call("GET", path)
    both.call("DELETE", path)


def sinks(both):
    """A sink, its offsets, and the ways to be wrong about them."""
    both.call("PUT", "/connectors/shop/config", source(both, topic="goods"))
    both.call("PUT", "/connectors/store/config", sink(both, topics="goods"))
    both.until("store", state("RUNNING", "RUNNING"))
    path = "/connectors/store/offsets"
    both.eventually("GET", path, lambda body: body.get("offsets"))
    for each in CONNECTOR_PATHS:
        both.call("GET", f"/connectors/store{each}")
    both.call("GET", "/connectors?expand=info")
    both.call("DELETE", path)
    both.call("PUT", "/connectors/store/stop")
    both.until("store", state("STOPPED"))
    at = lambda partition, offset: {"offsets": [{"partition": partition, "offset": offset}]}
    goods = {"kafka_topic": "goods", "kafka_partition": 0}
    for body in [
        at(goods, {"kafka_offset": 1}), at(goods, {"kafka_offset": 1, "astray": 1}), at({**goods, "astray": 1}, {"kafka_offset": 1}),
        at({"kafka_topic": "goods", "kafka_partition": "0"}, {"kafka_offset": "1"}),
        at(None, {"kafka_offset": 1}), at({"kafka_topic": "goods"}, {"kafka_offset": 1}),
        at({"kafka_partition": 0}, {"kafka_offset": 1}), at({"kafka_topic": None, "kafka_partition": 0}, None),
        at({"kafka_topic": "goods", "kafka_partition": "x"}, None), at(goods, {}), at(goods, {"kafka_offset": "x"}),
        at(goods, {"kafka_offset": None}), at(goods, None), at({**goods, "kafka_topic": "nowhere"}, {"kafka_offset": 1}),
        at({**goods, "kafka_partition": 7}, {"kafka_offset": 1}), at({**goods, "kafka_topic": "nowhere"}, None),
    ]:  # fmt: skip
        both.call("PATCH", path, body)
        both.call("GET", path)
    both.call("DELETE", path)
    both.call("DELETE", path)
    both.call("DELETE", "/connectors/store")
    both.call("DELETE", "/connectors/shop")


def failures(both):
    """A task that fails, restarted in each way, and mended."""
    converter = lambda name: {"value.converter": f"org.apache.kafka.connect.{name}"}
    text, number = converter("storage.StringConverter"), converter("converters.IntegerConverter")
    both.call("PUT", "/connectors/shop/config", source(both, topic="texts", **text))
    both.call("PUT", "/connectors/store/config", sink(both, topics="texts", **number))
    fails = state("RUNNING", "FAILED")
    both.until("store", fails)
    for path in ["/status", "/tasks/0/status", "/tasks", "/offsets", ""]:
        both.call("GET", f"/connectors/store{path}")
    both.call("GET", "/connectors?expand=status")
    for query in ["", "?onlyFailed=true", "?includeTasks=true", "?includeTasks=true&onlyFailed=true"]:
        both.call("POST", f"/connectors/store/restart{query}")
        both.until("store", fails)
    both.call("POST", "/connectors/store/tasks/0/restart")
    both.until("store", fails)
    both.call("PUT", "/connectors/store/pause")
    both.until("store", state("PAUSED", "FAILED"))
    both.call("POST", "/connectors/store/tasks/0/restart")
    both.until("store", state("PAUSED", "PAUSED"))
    both.call("PUT", "/connectors/store/resume")
    both.until("store", fails)
    both.call("PUT", "/connectors/store/pause")
    both.until("store", state("PAUSED", "FAILED"))
    both.call("PUT", "/connectors/store/resume")
    both.until("store", fails)
    both.call("PATCH", "/connectors/store/config", text)
    both.until("store", state("RUNNING", "RUNNING"))
    both.call("PUT", "/connectors/store/pause")
    both.until("store", state("PAUSED", "PAUSED"))
    for query in ["?includeTasks=true", ""]:
        both.call("POST", f"/connectors/store/restart{query}")
        both.until("store", state("PAUSED", "PAUSED"))
    both.call("POST", "/connectors/store/tasks/0/restart")
    both.until("store", state("PAUSED", "PAUSED"))
    for name in ["store", "shop"]:
        both.call("DELETE", f"/connectors/{name}")


def at_once(both):
    """Several requests for one connector at the same time: each is done before the next."""
    config = source(both, topic="at-once")
    both.together([("PUT", "/connectors/shop/config", config)] * 2, wanted=[200, 201])
    both.until("shop", state("RUNNING", "RUNNING"))
    both.together([("PUT", "/connectors/shop/config", {**config, "batch.size": str(size)}) for size in range(1, 5)])
    both.until("shop", state("RUNNING", "RUNNING"))
    both.together([("PUT", "/connectors/shop/stop", None), ("PUT", "/connectors/shop/stop", None), ("GET", "/connectors", None)])
    both.until("shop", state("STOPPED"))
    both.together([("DELETE", "/connectors/shop", None)] * 2, wanted=[204, 404])
    both.together([("POST", "/connectors", {"name": "shop", "config": config})] * 3, wanted=[201, 409, 409])
    both.until("shop", state("RUNNING", "RUNNING"))
    both.call("DELETE", "/connectors/shop")


def big(both):
    """Bodies of a megabyte, of many levels, and of many keys."""
    for size in [100_000, 1_000_000]:
        config = source(both, name="shop", **{"tasks.max": " " * size + "1"})
        both.call("PUT", f"/connector-plugins/{SOURCE}/config/validate", config)
    both.call("PUT", "/connectors/shop/config", "[" * 400)
    both.call("PUT", "/connectors/shop/config", {"connector.class": UNKNOWN, **{f"key.{number}": "x" for number in range(5_000)}})


WITH_CONNECTORS = [plugins, validation, parts, big, creation, shown, configuration, life, sinks, failures, at_once]


def words_of(path, body):
    """The names in a request: what a message about it may have to mention."""
    words = {part for part in path.split("?")[0].split("/")[2:3] if "%" not in part}
    try:
        body = json.loads(body or "null")
    except ValueError:
        return words
    if isinstance(body, dict):
        config = body.get("config", body)
        words |= set(config) if isinstance(config, dict) else set()
        words |= {body["name"].strip()} if isinstance(body.get("name"), str) else set()
    return {word for word in words if len(word) > 2 and word not in ("config", "name", "offsets", "level")}
