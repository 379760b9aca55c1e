"""Cells, rows and tables as the comparator sees them, whoever tells of them.

A cell is the source's own text, or None for NULL. Booleans are 'true' and 'false', and floats are
brought to one spelling, since the witnesses spell them differently.
"""

import re
from dataclasses import dataclass, field

INTEGERS = {"smallint", "integer", "bigint", "oid"}
FLOATS = {"real", "double precision"}
COPY_ESCAPE = re.compile(r"\\(.)", re.S)
COPY_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Number(str):
    """A JSON number, kept as the digits that were sent."""


class Wrong:
    """A JSON value that its column's type does not allow; equal to no cell."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"<not a value of the column: {self.value!r}>"


@dataclass
class Table:
    """What the source's catalog says of one table."""

    name: str
    types: dict = field(default_factory=dict)
    key: list = field(default_factory=list)
    full_identity: bool = False

    def key_of(self, row):
        """A row's key."""
        return tuple(row.get(column) for column in self.key)


def cell(text, type_name):
    """A cell from the source's text as COPY or test_decoding give it."""
    if text is None:
        return None
    if type_name == "boolean":
        return {"t": "true", "f": "false"}.get(text, text)
    return repr(float(text)) if type_name in FLOATS else text


def json_cell(value, type_name):
    """A cell from a stream's JSON value; rule R1 says which type has which form."""
    if value is None:
        return None
    if type_name == "boolean":
        return {True: "true", False: "false"}[value] if isinstance(value, bool) else Wrong(value)
    number = isinstance(value, Number)
    if type_name in FLOATS:
        finite = number or value in ("NaN", "Infinity", "-Infinity")
        return repr(float(value)) if finite else Wrong(value)
    if not isinstance(value, str) or number != (type_name in INTEGERS):
        return Wrong(value)
    return str(value)


def copy_rows(path):
    """The rows of a file in COPY's text format."""
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            yield [copy_text(part) for part in line.rstrip("\n").split("\t")]


def copy_text(part):
    """One field of COPY's text format."""
    if part == "\\N":
        return None
    if "\\" not in part:
        return part
    return COPY_ESCAPE.sub(lambda found: COPY_LETTERS.get(found[1], found[1]), part)


def read_catalog(path):
    """The captured tables, by name."""
    tables = {}
    for name, column, type_name, key_position, identity in copy_rows(path):
        table = tables.setdefault(name, Table(name))
        table.types[column] = type_name
        table.full_identity = identity == "f"
        if key_position != "0":
            table.key.append((int(key_position), column))
    for table in tables.values():
        table.key = [column for _, column in sorted(table.key)]
    return tables


def read_final(path, table):
    """The source's final rows of a table, by key."""
    rows = {}
    for parts in copy_rows(path):
        row = {column: cell(text, type_name) for (column, type_name), text in zip(table.types.items(), parts)}
        rows[table.key_of(row)] = row
    return rows
