"""Where ours answers otherwise than Kafka Connect's worker, each with its reason. A page of the reference lists
them: HIGHWATER_WRITE_DOCS=1 python3 testing/connect/exceptions.py writes it."""

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


@named("control-characters", "A message does not repeat control characters, which would be those of a terminal.")
def _(call, difference):
    return difference.kind == "names" and all(re.search(r"[\x00-\x1f]", name) for name in difference.ours)


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
