#!/usr/bin/env python3
"""The settings of Kafka's clients that the reference lists, held against those of the Java classes: each of theirs
has one of the three fates, and each of the listed ones is theirs. A part of `make compat-connect`."""

import os
import re
import subprocess
import sys

import servers

PAGE = os.path.join(servers.REPOSITORY, "docs", "reference", "client-overrides.md")
# Listed for the sake of configurations that were written for an older Kafka.
OLDER = {"auto.include.jmx.reporter"}
# Names that are made by whoever sets them, behind these.
OPEN = {"config.providers.*", "metrics.context.*"}


def real():
    """Pairs of a client and a setting, as the classes have them."""
    command = ["java", *servers.BRIEF, "-cp", f"{servers.fetch()}/*", os.path.join(servers.HERE, "ClientSettings.java")]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    return {tuple(line.split()) for line in printed.splitlines()}


def listed(page):
    """Pairs of a client and a setting, as the tables of the page have them."""
    honoured = re.findall(r"^\| `(\w+)\.override\.([\w.]+)` \|", page, re.M)
    sorted_ = re.findall(r"^\| ((?:`[\w.*]+`(?:, )?)+) \| ((?:producer|consumer|admin)[\w, ]*) \|", page, re.M)
    groups = [(client, name) for names, clients in sorted_ for client in clients.split(", ") for name in re.findall(r"`([^`]+)`", names)]
    return set(honoured) | set(groups)


def stands_for(pair, other):
    """Whether a listed pair is another one, or all that begin like that."""
    (client, name), (of, wanted) = pair, other
    return client == of and (wanted.startswith(name[:-1]) if name.endswith("*") else name == wanted)


def differences(theirs, ours):
    """What the reference lacks, and what it has that the classes have not."""
    lacking = [pair for pair in theirs if not any(stands_for(each, pair) for each in ours)]
    known = lambda pair: pair[1] in OLDER | OPEN or any(stands_for(pair, each) for each in theirs)
    return [*(f"lacks {' '.join(pair)}" for pair in sorted(lacking)), *(f"has {' '.join(pair)}, which is none" for pair in sorted(ours) if not known(pair))]


def check():
    """Whether both are the same; prints how they differ."""
    with open(PAGE, encoding="utf-8") as file:
        ours = listed(file.read())
    theirs = real()
    found = differences(theirs, ours)
    for difference in found:
        print(f"client-overrides.md {difference}")
    print(f"client settings: {len(theirs)} of Kafka's clients, {len(found)} differences")
    return bool(theirs) and not found


if __name__ == "__main__":
    sys.exit(0 if check() else 1)
