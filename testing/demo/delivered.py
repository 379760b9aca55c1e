"""What the client wrote: the stream's records, as they arrived, all of them."""

import json
import sys
from dataclasses import dataclass, field

from tables import Number, json_cell

CHANGES = {"INSERT", "UPDATE", "DELETE"}


@dataclass
class Record:
    """One record that is a change of a row, or one that fits nowhere."""

    line: int
    op: str
    table: str
    xid: str
    index: int
    before: dict
    after: dict
    unchanged: list

    def __str__(self):
        return f"line {self.line}: {self.op} {self.table}, transaction {self.xid}, event {self.index}"


@dataclass
class Snapshot:
    """A table's rows since its last SNAPSHOT_BEGIN."""

    point: str
    rows: list = field(default_factory=list)
    ended: bool = False


@dataclass
class Delivery:
    """The whole file, sorted into kinds but otherwise untouched, and the tables it leads to: those
    of an application that applies it line by line."""

    tables: dict
    changes: list = field(default_factory=list)
    snapshots: dict = field(default_factory=dict)
    reread: int = 0
    ddl: dict = field(default_factory=dict)
    misplaced: list = field(default_factory=list)


def read_delivery(path, catalog):
    """Reads the client's file."""
    delivery = Delivery({name: {} for name in catalog})
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                raise ValueError(f"the client's file ends in a torn line, {number}")
            record = json.loads(line, parse_int=Number, parse_float=Number)["record"]
            sort_in(delivery, number, record, catalog)
    return delivery


def sort_in(delivery, number, record, catalog):
    """Puts one record where it belongs."""
    op, table = record["op_type"], record.get("qual_table", "").split(".")[-1]
    if op == "SNAPSHOT_BEGIN":
        if table in delivery.snapshots:
            delivery.reread += len(delivery.snapshots[table].rows)
        delivery.snapshots[table] = Snapshot(record["point"])
        delivery.tables[table] = {}
    elif op == "SNAPSHOT_END" and table in delivery.snapshots:
        delivery.snapshots[table].ended = True
    elif op == "DDL":
        delivery.ddl.setdefault(record["xid"], set()).add(event_index(record))
    elif op in CHANGES and table in catalog:
        read = read_record(number, record, catalog[table])
        carry(read, catalog[table], delivery.tables[table])
        if not record.get("snapshot"):
            delivery.changes.append(read)
        elif table in delivery.snapshots and not delivery.snapshots[table].ended:
            delivery.snapshots[table].rows.append(read)
        else:
            delivery.misplaced.append(read)
    else:
        delivery.misplaced.append(Record(number, op, table, record.get("xid"), 0, {}, {}, []))


def read_record(number, record, table):
    """One change of a row, its images as cells."""
    images = [
        {
            sys.intern(name): json_cell(value, table.types.get(name))
            for name, value in (record.get(image) or {}).items()
        }
        for image in ("before", "after")
    ]
    return Record(
        number, record["op_type"], table.name, record.get("xid"), event_index(record), *images,
        record.get("unchanged", []),
    )  # fmt: skip


def event_index(record):
    """The record's ordinal in its transaction: the third part of its identity (rule P4)."""
    return int(record["record_id"].split(":")[2])


def carry(record, table, rows):
    """Applies one record, as a consumer would: the old key from `before`, else from `after`."""
    key = table.key_of(record.before if has_key(record.before, table) else record.after)
    old = rows.pop(key, {}) if record.op != "INSERT" else {}
    if record.op == "DELETE":
        return
    new = {name: value for name, value in record.after.items() if name not in record.unchanged}
    row = dict.fromkeys(table.types) | old | new
    rows[table.key_of(row)] = row


def has_key(image, table):
    """Whether an image names the row."""
    return all(column in image for column in table.key)
