#!/usr/bin/env python3
"""Compares the error codes in the code with the pages in docs/reference/errors, both ways.

A code is found where it is written: SCREAMING_CASE texts in any crate, the codes of commands (also of
one word), the numbered ones of the Oracle source, and the lower-case codes of data streams. What looks like a code and is none stands in
NOT_CODES. Every page must have the parts that an error has.
"""

import os
import re
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CRATES = os.path.join(REPOSITORY, "crates")
PAGES = os.path.join(REPOSITORY, "docs", "reference", "errors")
INDEX = PAGES + ".md"

SCREAMING = re.compile(r'"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"')
NUMBERED = re.compile(r'"(CDC-\d{4})"')
# Codes may be one word where they can be nothing else.
OF_COMMANDS = re.compile(r'(?:Failure|Self)::new\(\s*Exit::\w+,\s*"([A-Z_]+)"')
CONSTANT = re.compile(r'pub(?:\([a-z]+\))? const \w+: &str =\s*"([A-Z][A-Z0-9_]+)"')
OF_AN_IO_ERROR = re.compile(r'^\s*_ => "([A-Z]+)",$', re.M)
SNAKE = re.compile(r'"([a-z]+(?:_[a-z]+)+)"')
TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{.*?^\}", re.M | re.S)
COMMENT = re.compile(r"^\s*//.*$", re.M)

# Only streams have lower-case codes: they are compatible with a surface that had them.
LOWER_CASE_CRATE = "streams"

# Its codes are numbered, as Oracle's own words look like codes (BINARY_FLOAT, TO_DATE).
NUMBERED_CRATE = "oracle"

NOT_CODES = {
    # Environment variables.
    "CARGO_MANIFEST_DIR", "CARGO_PKG_VERSION", "CARGO_BIN_EXE", "NOTIFY_SOCKET",
    # Words of Kafka.
    "SASL_PLAINTEXT", "SASL_SSL", "USER_INFO", "TASK_PUT", "KEY_CONVERTER", "VALUE_CONVERTER",
    "HEADER_CONVERTER",
    # Words of PostgreSQL and of records.
    "POSITIVE_INFINITY", "NEGATIVE_INFINITY",
    "EXPORT_SNAPSHOT", "NOEXPORT_SNAPSHOT", "IDENTIFY_SYSTEM", "SNAPSHOT_BEGIN", "SNAPSHOT_END",
    "OBJECT_METADATA", "STREAM_METADATA", "TOPIC_DESCRIPTION",
    # Names of members, tables and parameters of streams.
    "after_offset", "begin_time", "bytes_sent", "client_left", "close_code", "ddl_inferred",
    "duplicates_suppressed", "high_watermark", "key_change", "last_sent_offset", "last_stable",
    "log_start", "next_offset", "op_ts", "op_type", "qual_table", "record_id", "records_sent",
    "snapshot_begin", "snapshot_end", "source_type", "topic_id", "until_offset",
}  # fmt: skip
NOT_CODE_PREFIXES = ("HIGHWATER_", "highwater_", "HW_")
# Made of a number: HTTP_404 and the like.
FAMILIES = {"HTTP_nnn": 'format!("HTTP_{}"'}
PARTS = ("**What happened.**", "**To what.**", "**Kept.**", "## What to do", "## How it looks")


def sources():
    """Every source file of a crate that is no test, without its tests and comments."""
    for parent, folders, names in os.walk(CRATES):
        folders[:] = [name for name in folders if name not in ("tests", "benches", "examples", "fuzz")]
        for name in sorted(names):
            if name.endswith(".rs") and not re.search(r"(^|_)(tests?|bench)\.rs$", name):
                path = os.path.join(parent, name)
                with open(path, encoding="utf-8") as file:
                    text = COMMENT.sub("", TESTS.sub("", file.read()))
                yield os.path.relpath(path, CRATES), text


def codes_in(path, text):
    """The codes that a source file writes."""
    if path.startswith(NUMBERED_CRATE + os.sep):
        return set(NUMBERED.findall(text))
    found = set(SCREAMING.findall(text)) | set(OF_COMMANDS.findall(text))
    if path.endswith(("error.rs", "code.rs", "codes.rs", "failure.rs")):
        found |= set(CONSTANT.findall(text)) | set(OF_AN_IO_ERROR.findall(text))
    if path.startswith(LOWER_CASE_CRATE + os.sep):
        found |= set(SNAKE.findall(text))
    found |= {family for family, mark in FAMILIES.items() if mark in text}
    return {code for code in found if code not in NOT_CODES and not code.startswith(NOT_CODE_PREFIXES)}


def codes():
    """Each code with the first file that writes it."""
    found = {}
    for path, text in sources():
        for code in codes_in(path, text):
            found.setdefault(code, path)
    return found


def pages():
    """Each page's text by its code."""
    found = {}
    for name in sorted(os.listdir(PAGES)):
        if name.endswith(".md"):
            with open(os.path.join(PAGES, name), encoding="utf-8") as file:
                found[name.removesuffix(".md")] = file.read()
    return found


def problems(codes, pages, index):
    """What does not fit together."""
    for code in sorted(set(codes) - set(pages)):
        yield f"{code} (crates/{codes[code]}) has no page docs/reference/errors/{code}.md"
    for code in sorted(set(pages) - set(codes)):
        yield f"docs/reference/errors/{code}.md: no such code is in the code"
    # Not everywhere can two files differ by case alone.
    for code in sorted({code for code in codes if code.lower() in codes} - {code.lower() for code in codes}):
        yield f"{code} and {code.lower()} differ by case alone"
    for code, text in pages.items():
        if not text.startswith(f"# {code}\n"):
            yield f"docs/reference/errors/{code}.md does not begin with its code"
        for part in PARTS:
            if part not in text:
                yield f"docs/reference/errors/{code}.md lacks {part!r}"
        if f"](errors/{code}.md)" not in index:
            yield f"docs/reference/errors.md does not list {code}"


def main():
    """Prints what is wrong; the exit code says whether anything was."""
    with open(INDEX, encoding="utf-8") as file:
        index = file.read()
    found, written = codes(), pages()
    wrong = list(problems(found, written, index))
    for problem in wrong:
        print(problem)
    print(f"{len(found)} codes, {len(written)} pages, {len(wrong)} problems")
    sys.exit(1 if wrong or not found else 0)


if __name__ == "__main__":
    main()
