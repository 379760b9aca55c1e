"""What a simulated Oracle has committed, from its own books, and whether a record says the same.

The books give every value as the text that SQL*Plus would show, the stream as JSON of the column's type: numbers
are compared as numbers, bytes as bytes, and times by their digits; how each type is written is the business of the
unit tests.
"""

import base64
import json
import re
import subprocess
from dataclasses import dataclass, field

OPERATIONS = {"insert": "INSERT", "update": "UPDATE", "delete": "DELETE"}


@dataclass
class Transaction:
    """A committed transaction: the names that its commit may have in records, and its changes."""

    thread: int
    scn: int
    names: tuple
    changes: list = field(default_factory=list)


def read_history(tool, folder):
    """The committed transactions of each redo thread, in the order in which its commits stand in the redo."""
    threads = {}
    for line in lines_of(tool, "history", folder):
        told = json.loads(line)
        transaction = Transaction(told["thread"], told["scn"], tuple(names(told)), told["changes"])
        threads.setdefault(told["thread"], []).append(transaction)
    return threads


def read_tables(tool, folder, *options):
    """The rows of each table."""
    tables = {}
    for line in lines_of(tool, "tables", folder, *options):
        told = json.loads(line)
        tables.setdefault(told["table"], []).append(told["row"])
    return tables


def lines_of(tool, report, folder, *options):
    """What the simulation prints of the database in a folder."""
    command = [tool, report, "--folder", folder, *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout.splitlines()


def names(told):
    """A commit by its redo byte address, and by its SCN, for rows that came without an address."""
    thread = told["thread"]
    if told["rs_id"]:
        sequence, block, byte = (int(part, 16) for part in told["rs_id"].split("."))
        yield f"{thread}/{sequence:08x}.{block:08x}.{byte:04x}.{told['ssn']:08x}"
    yield f"{thread}/scn.{told['scn']:016x}.{told['xid']}"


def is_right(record, change):
    """Whether a record says what the books say of a change."""
    if record["op_type"] != OPERATIONS[change["verb"]] or table_of(record) != change["table"]:
        return False
    return all(same_image(record.get(image), change[image]) for image in ("before", "after"))


def table_of(record):
    """The table of a record, as the books name it."""
    return record["qual_table"]


def same_image(image, told):
    """Whether an image holds the columns that the books tell of, with their values, and no others."""
    if told is None:
        return not image
    return image is not None and image.keys() == told.keys() and all(same(image[name], told[name]) for name in told)


def same(value, text):
    """Whether a value is what the books show as this text."""
    if value is None or text is None:
        return value is text
    shown = value if isinstance(value, str) else json.dumps(value)
    return shown == text or same_number(shown, text) or same_time(shown, text) or same_bytes(shown, text)


def same_number(value, text):
    """Whether both are the same number."""
    try:
        return float(value) == float(text)
    except ValueError:
        return False


def same_time(value, text):
    """Whether both have the same digits, apart from zeros at the ends of numbers."""
    if not any(sign in text for sign in ":-+"):
        return False
    digits = [[part.strip("0") for part in re.split(r"\D", shown)] for shown in (value, text)]
    return [part for part in digits[0] if part] == [part for part in digits[1] if part]


def same_bytes(value, text):
    """Whether the books show, as hexadecimal digits, the bytes that the stream gives in base 64."""
    try:
        return base64.b64decode(value, validate=True) == bytes.fromhex(text)
    except ValueError:
        return False
