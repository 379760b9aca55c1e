#!/usr/bin/env python3
"""The house rules that a compiler does not know: which crate may use which, how long files and
functions may be, what files may not be called. Prints what breaks one, and the measures."""

import re
import statistics
import sys
import tomllib
from pathlib import Path

from rust_source import functions

REPOSITORY = Path(__file__).resolve().parents[2]
CRATES = REPOSITORY / "crates"

SYSTEMS = {"oracle", "postgres", "mysql", "sqlserver", "servicenow"}
# Arrows point down only: a crate may use those named here (ARCHITECTURE.md, "Crates").
MAY_USE = {
    "protocol": set(),
    "access": set(),
    "config": set(),
    "data": {"config"},
    "connector": {"config", "data", "protocol"},
    "transforms": {"config", "data"},
    "log": {"protocol"},
    "kafka": {"protocol"},
    "coordinator": {"log", "protocol"},
    "broker": {"access", "coordinator", "log", "protocol"},
    "worker": {"access", "connector", "data", "kafka", "transforms"},
    "streams": {"access", "connector", "kafka"},
    "console": {"access", "connector", "kafka"},
    "file": {"connector"},
    **{system: {"connector"} for system in SYSTEMS},
}
TOP = "highwater"
# What a crate's tests alone may use besides: the embedded log stands in for a cluster, and a test for one
# that answers as it says; a simulated database stands in for Oracle.
TESTS_MAY_USE = {"broker", "log", "oracle-sim", "protocol"}

LONGEST_FILE = 900
MEDIAN_FILE = 150
LONGEST_FUNCTION = 100
MEDIAN_FUNCTION = 9
# Names that say nothing about what is inside.
EMPTY_NAMES = {"util", "utils", "common", "types", "helper", "helpers", "manager", "misc"}
REASONLESS = re.compile(r"#!?\[(allow|expect)\((?!.*reason\s*=)[^)]*\)\]")


def graph(crates, top=TOP):
    """Edges that point up or aside. `crates` maps a name to (dependencies, dependencies of tests)."""
    for name, (used, used_by_tests) in sorted(crates.items()):
        if name == top:
            continue
        if name not in MAY_USE:
            yield f"crate {name}: has no place in the graph of testing/house/house.py yet"
            continue
        for other in sorted(used - MAY_USE[name]):
            yield f"crate {name} uses {other}: only {sorted(MAY_USE[name])} are below it"
        for other in sorted(used_by_tests - MAY_USE[name] - TESTS_MAY_USE):
            yield f"the tests of crate {name} use {other}: they may use {sorted(TESTS_MAY_USE)} besides"


def members():
    """Each crate with those of ours that it and its tests use."""
    return {path.parent.name: edges(tomllib.loads(path.read_text())) for path in CRATES.glob("*/Cargo.toml")}


def edges(manifest):
    """The crates of ours in a manifest: (dependencies, dependencies of tests)."""
    sections = "dependencies", "dev-dependencies"
    return tuple({ours(name) for name in manifest.get(section, {}) if ours(name)} for section in sections)


def ours(package):
    """The crate's folder, for a package of this workspace."""
    return package.removeprefix("highwater-") if package.startswith("highwater-") else None


def measure(name, sizes, median, longest):
    """What is too long: `sizes` maps a place to its lines. Prints the measure."""
    middle = statistics.median(sizes.values())
    place = max(sizes, key=sizes.get)
    print(f"{name}: {len(sizes)}, median {middle:g} lines, longest {sizes[place]} ({place})")
    if middle > median:
        yield f"{name}: the median is {middle:g} lines, at most {median} are wanted"
    for place, lines in sorted(sizes.items()):
        if lines > longest:
            yield f"{place}: {lines} lines, at most {longest} are wanted"


def source_files():
    """Rust files of the crates and of what stands beside them, by their path in the repository."""
    for folder in (CRATES, REPOSITORY / "testing"):
        for path in sorted(folder.rglob("*.rs")):
            yield str(path.relative_to(REPOSITORY)), path.read_text()


def names(paths):
    """Files that are named after nothing."""
    for path in paths:
        if Path(path).stem in EMPTY_NAMES:
            yield f"{path}: the name does not say what is inside"


def allowances(path, text):
    """Lints that are switched off without a reason."""
    for number, line in enumerate(text.splitlines(), start=1):
        if REASONLESS.search(line):
            yield f"{path}:{number}: allow or expect without a reason"


def findings():
    """Everything that breaks a rule."""
    sources = dict(source_files())
    yield from graph(members())
    yield from names(sources)
    yield from measure("files", {p: len(t.splitlines()) for p, t in sources.items()}, MEDIAN_FILE, LONGEST_FILE)
    found = {f"{p}:{f.first} {f.name}": f.lines for p, t in sources.items() for f in functions(t)}
    yield from measure("functions", found, MEDIAN_FUNCTION, LONGEST_FUNCTION)
    for path, text in sources.items():
        yield from allowances(path, text)


def main():
    """Prints the findings; 1 when there are any."""
    found = list(findings())
    for finding in found:
        print(f"house: {finding}", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
