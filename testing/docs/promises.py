#!/usr/bin/env python3
"""Sees that each test that the documentation names as a proof exists, and that each promise names one.

A proof is written `path/of/a/file.rs::name_of_the_test`.
"""

import os
import re
import sys

from links import DOCS, REPOSITORY, files_below, read

PAGE = os.path.join("explanation", "guarantees.md")
PROOF = re.compile(r"`([\w/.-]+\.rs)::(\w+)`")
RULE = re.compile(r"\b[PLRSAUT]\d\b")
TEST = r"#\[(?:tokio::)?test[^\n]*\](?:\s*#\[[^\n]*\])*\s*(?:async )?fn {}\("
PROPERTY = r"proptest! \{{.*?^\s+fn {}\("


def is_test(text, name):
    """Whether a Rust file has a test of this name."""
    return any(re.search(form.format(name), text, re.S | re.M) for form in (TEST, PROPERTY))


def missing(page, text, files):
    """Proofs that do not exist. `files` gives a file's text, None where there is none."""
    for path, name in PROOF.findall(text):
        source = files(path)
        if source is None:
            yield f"{page}: {path} does not exist"
        elif not is_test(source, name):
            yield f"{page}: {path} has no test {name}"


def promises(text):
    """The cells of each row that promises something."""
    inside = False
    for line in text.splitlines():
        inside = line.startswith("| promise") or (inside and line.startswith("|"))
        if inside and not line.startswith(("| promise", "|---")):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def unproved(text):
    """Promises without a rule or without a test."""
    for promise, rule, proofs in promises(text):
        if not RULE.search(rule):
            yield f"{PAGE}: {promise!r} names no rule"
        if not PROOF.search(proofs):
            yield f"{PAGE}: {promise!r} names no test"


def source_of(path):
    """The text of a file of the repository."""
    path = os.path.join(REPOSITORY, path)
    return read(path) if os.path.isfile(path) else None


def main():
    """Prints what is wrong; the exit code says whether anything was."""
    pages = {path: read(os.path.join(DOCS, path)) for path in files_below(DOCS, ".md")}
    wrong = [problem for page, text in pages.items() for problem in missing(page, text, source_of)]
    wrong += unproved(pages[PAGE])
    for problem in wrong:
        print(problem)
    number = len(list(promises(pages[PAGE])))
    print(f"{number} promises, {sum(len(PROOF.findall(t)) for t in pages.values())} proofs, {len(wrong)} problems")
    sys.exit(1 if wrong or not number else 0)


if __name__ == "__main__":
    main()
