"""Whether the document that ours serves is one of OpenAPI, and whether it is true: each answer of a run must be
one that it has, with a body as its schema says. Runs in an environment of its own (see `check`), as

    openapi.py DOCUMENT RECORD

where RECORD holds a call with its answers on each line (see connect.py).
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
COMPAT = os.path.join(os.path.dirname(HERE), "compat")
# The validator that openapis.org lists for Python; it brings that of JSON schemas.
VALIDATOR = "openapi-spec-validator==0.7.2"
# The server reads no longer line.
LONGEST = 32_000
# More of one kind say no more.
SHOWN = 20


def check(document, record):
    """Runs this file where its validator is; whether everything is right."""
    sys.path.insert(0, COMPAT)
    import clients  # noqa: PLC0415

    def make(folder):
        clients.run("python3", "-m", "venv", "--copies", folder)
        clients.run(os.path.join(folder, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", VALIDATOR)

    folder = clients.prepared(VALIDATOR.replace("==", "-"), make)
    return subprocess.run([os.path.join(folder, "bin", "python"), __file__, document, record], check=False).returncode == 0


def operation_of(document, method, path):
    """The operation that a request asks for, by its path without query and slash at the end; None where there is none."""
    if "//" in path or len(path) > LONGEST:
        return None  # no handler sees these
    asked = path.split("?")[0].rstrip("/") or "/"
    for template, operations in document["paths"].items():
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), asked):
            return operations.get({"HEAD": "get"}.get(method, method.lower()))
    return None


def wrong_with(validator_of, document, call):
    """What an answer has that the document does not; None where it is right, or nothing that the document speaks of."""
    operation = operation_of(document, call["method"], call["path"])
    if operation is None:
        return None  # no path of it, or no method: 404, 405 and OPTIONS say so
    answer = call["ours"]
    status = str(answer["status"])
    response = operation["responses"].get(status)
    if response is None:
        return f"status {status} is not in the document"
    if call["method"] == "HEAD":
        return None
    content = response.get("content")
    if not content:
        return f"a body for {status}, which has none in the document" if answer["body"] else None
    media = answer["headers"].get("content-type", "").split(";")[0]
    if media not in content:
        return f"a body of {media or 'no type'}"
    errors = sorted(validator_of(content[media]["schema"]).iter_errors(json.loads(answer["body"])), key=str)
    return "; ".join(f"at {error.json_path}: {error.message}"[:300] for error in errors[:3]) or None


def main(document_path, record):
    """Says what is wrong; the exit code."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: PLC0415

    with open(document_path, encoding="utf-8") as file:
        document = json.load(file)
    broken = [f"the document: {error.message}" for error in OpenAPIV31SpecValidator(document).iter_errors()]
    validator_of = lambda schema: Draft202012Validator({**schema, "components": document["components"]})
    used, wrong = Counter(), Counter()
    with open(record, encoding="utf-8") as file:
        for call in map(json.loads, file):
            if said := wrong_with(validator_of, document, call):
                wrong[f"{call['method']} {call['path'][:100]}: {said}"] += 1
            elif operation_of(document, call["method"], call["path"]):
                used[call["ours"]["status"]] += 1
    for said in broken + [f"{said} ({times} times)" for said, times in wrong.most_common(SHOWN)]:
        print(f"openapi: {said}")
    print(f"openapi: {used.total()} answers as the document says, {wrong.total()} not", flush=True)
    return 1 if broken or wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
