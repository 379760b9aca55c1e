"""The source's own history, from an independent `test_decoding` slot and the ledger."""

import re
import sys
from dataclasses import dataclass, field

from tables import cell, copy_rows

COLUMN = re.compile(
    r"""("(?:[^"]|"")+"|[^\s\["]+)\[((?:[^\[\]]|\[\])+)\]:(?:'((?:[^']|'')*)'|(\S+))(?:\ |$)""", re.S
)
CHANGE = re.compile(r"table public\.(\w+): (INSERT|UPDATE|DELETE): ")


class Unchanged:
    """The value of an out-of-line column that a statement did not touch and the WAL does not hold."""

    def __repr__(self):
        return "<unchanged>"


UNCHANGED = Unchanged()


@dataclass
class Change:
    """One row change. `old` is the old key or row where the WAL holds one, `new` the new row."""

    table: str
    op: str
    old: dict
    new: dict


@dataclass
class Transaction:
    """One committed transaction; `end` is the WAL position behind its commit record."""

    xid: str
    end: int = 0
    changes: list = field(default_factory=list)
    ledger: list = field(default_factory=list)


def lsn(text):
    """A WAL position as a number."""
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def read_history(path):
    """All committed transactions, in the order of their commits."""
    transactions, current = [], None
    for position, xid, data in copy_rows(path):
        if data.startswith("BEGIN"):
            current = Transaction(xid)
        elif data.startswith("COMMIT"):
            current.end = lsn(position)
            transactions.append(current)
        elif change := read_change(data):
            if change.table == "ledger":
                current.ledger.append((change.new["writer"], change.new["n"], int(change.new["events"])))
            else:
                current.changes.append(change)
    return transactions


def read_change(data):
    """One line of test_decoding; None for a line that is no row change."""
    head = CHANGE.match(data)
    if not head:
        return None
    old, new = {}, {}
    into = old if head[2] == "DELETE" else new
    at = head.end()
    while at < len(data):
        if data.startswith("old-key: ", at):
            into, at = old, at + len("old-key: ")
        elif data.startswith("new-tuple: ", at):
            into, at = new, at + len("new-tuple: ")
        elif data.startswith("(no-tuple-data)", at):
            break
        else:
            found = COLUMN.match(data, at)
            if not found:
                raise ValueError(f"test_decoding says what is not understood: {data[at : at + 200]!r}")
            into[sys.intern(found[1].strip('"'))] = value_of(found)
            at = found.end()
    return Change(head[1], head[2], old, new)


def value_of(found):
    """The cell behind a match of COLUMN."""
    if found[3] is not None:
        return cell(found[3].replace("''", "'"), found[2])
    if found[4] == "unchanged-toast-datum":
        return UNCHANGED
    return None if found[4] == "null" else cell(found[4], found[2])


def apply(change, table, rows):
    """Carries a change into a table's rows; returns the old row and the new one, both whole."""
    if change.op == "INSERT":
        rows[table.key_of(change.new)] = change.new
        return None, change.new
    key = table.key_of(change.old or change.new)
    old = rows.pop(key)
    if change.op == "DELETE":
        return old, None
    new = {c: old.get(c) if v is UNCHANGED else v for c, v in change.new.items()}
    rows[table.key_of(new)] = new
    return old, new


def read_ledger(path):
    """The ledger's lines: (writer, number) to the number of row changes."""
    return {(writer, number): int(events) for writer, number, events in copy_rows(path)}


def contradictions(history, ledger):
    """Where the slot and the ledger tell different stories; both must agree before either counts."""
    found = []
    seen = {}
    for transaction in history:
        for writer, number, events in transaction.ledger:
            seen[(writer, number)] = events
            if len(transaction.changes) != events:
                found.append(
                    f"transaction {writer}/{number} made {events} changes by the ledger, "
                    f"{len(transaction.changes)} by the slot"
                )
    found += [f"transaction {key} stands in the ledger alone" for key in ledger.keys() - seen.keys()]
    found += [f"transaction {key} stands in the slot alone" for key in seen.keys() - ledger.keys()]
    return found
