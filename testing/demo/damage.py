#!/usr/bin/env python3
"""Damages a finished client file on purpose, so that one sees the comparator notice.

drop removes a change, dup writes one twice, swap exchanges two neighbours.
"""

import argparse
import json
import os

DAMAGES = ("drop", "dup", "swap")


def is_change(line):
    """Whether a line of the client's file is a change of a row behind the snapshot."""
    record = json.loads(line)["record"]
    return record["op_type"] in ("INSERT", "UPDATE", "DELETE") and not record.get("snapshot")


def damage(lines, kind):
    """Damages the lines of a file in their middle, where two changes stand side by side."""
    changes = [at for at in range(len(lines) - 1) if is_change(lines[at]) and is_change(lines[at + 1])]
    at = changes[len(changes) // 2]
    replacement = {
        "drop": [lines[at + 1]],
        "dup": [lines[at], lines[at], lines[at + 1]],
        "swap": [lines[at + 1], lines[at]],
    }[kind]
    return lines[:at] + replacement + lines[at + 2 :]


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=DAMAGES)
    parser.add_argument("file")
    arguments = parser.parse_args()
    with open(arguments.file, "rb") as file:
        lines = file.readlines()
    with open(arguments.file + ".new", "wb") as file:
        file.writelines(damage(lines, arguments.kind))
    os.replace(arguments.file + ".new", arguments.file)


if __name__ == "__main__":
    main()
