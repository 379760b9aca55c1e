#!/usr/bin/env python3
"""Compares the metrics in the code with docs/reference/metrics.md, both ways."""

import os
import re
import sys

from codes import CRATES, REPOSITORY, sources

PAGE = os.path.join(REPOSITORY, "docs", "reference", "metrics.md")
WRITTEN = re.compile(r'"(highwater_[a-z_]+)"')
DOCUMENTED = re.compile(r"^\| `(highwater_[a-z_]+)` \|", re.M)


def metrics_in(text, crates):
    """The metrics that a source file names; the name of a crate is none."""
    return set(WRITTEN.findall(text)) - {f"highwater_{crate}" for crate in crates}


def problems(written, documented):
    """What does not fit together."""
    for name in sorted(written - documented):
        yield f"{name} is not in docs/reference/metrics.md"
    for name in sorted(documented - written):
        yield f"docs/reference/metrics.md: no such metric is in the code: {name}"


def main():
    """Prints what is wrong; the exit code says whether anything was."""
    crates = os.listdir(CRATES)
    written = set().union(*(metrics_in(text, crates) for _, text in sources()))
    with open(PAGE, encoding="utf-8") as file:
        documented = set(DOCUMENTED.findall(file.read()))
    wrong = list(problems(written, documented))
    for problem in wrong:
        print(problem)
    print(f"{len(written)} metrics, {len(wrong)} problems")
    sys.exit(1 if wrong or not written else 0)


if __name__ == "__main__":
    main()
