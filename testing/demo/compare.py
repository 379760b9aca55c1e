#!/usr/bin/env python3
"""Compares what a stream delivered with what its source committed, and never de-duplicates.

What is right comes from the source alone: an independent `test_decoding` slot gives every committed
change in the order of the commits, the ledger says which transactions committed and how many
changes each made, the final tables are read from the database. What is judged is the client's file.

A table's snapshot point comes from its last SNAPSHOT_BEGIN. It is a claim, and tested: the rows
behind it must be the table as the source's history has it at that point, and the changes that must
follow are exactly those of the transactions that committed behind it.

Every record is matched by the transaction and the ordinal that it claims (its place among those
changes of the transaction that had to arrive), and then counts as right only if table, operation,
columns, values, old keys and old rows are the source's. With expected(e) being 1 for each change
that had to arrive (and each row of a table at its point) and arrived(e) the number of right records
for it:

  transactions   committed transactions, by ledger and slot
  events         changes that had to arrive behind the snapshot points
  missing        sum over e of expected(e) - arrived(e), where positive
  duplicates     records too many: second and further right ones of the same change or row, and
                 records that the source has no counterpart for (rolled back, below the table's
                 snapshot point, outside a snapshot, or with wrong content)
  out_of_order   right records that stand behind one which the source committed later
  tables_equal   applying the file line by line gives the source's final tables
  server_kills, client_kills, kills_in_flight
                 as the killing script wrote them down; in flight: no more than 100 ms before the
                 kill it saw the slot's confirmed position below the last committed transaction
  reappended     identities (generation, position, index, part: rule P4) that stand more than once
                 in the trail, as kcat reads it from the log
  rolled_back    as many stand more than once only where transactions that were rolled back are read, too
  reread         snapshot rows that a later SNAPSHOT_BEGIN of their table voided; no duplicates
"""

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import delivered
import source
from tables import read_catalog, read_final

LEAST_TRANSACTIONS, LEAST_SERVER_KILLS, LEAST_CLIENT_KILLS = 5000, 3, 2
SHOWN = 5


@dataclass
class Expected:
    """One change that must arrive, whole rows beside what the WAL holds of it."""

    table: str
    op: str
    before: dict
    after: dict
    true_row: dict
    whole_before: bool


@dataclass
class Truth:
    """What had to arrive: changes by (xid, ordinal) in commit order, rows by table."""

    changes: dict = field(default_factory=dict)
    snapshots: dict = field(default_factory=dict)
    tables: dict = field(default_factory=dict)


def tell_truth(history, catalog, points):
    """Replays the source's history; `points` are the snapshot points of the tables."""
    truth = Truth(tables={name: {} for name in catalog})
    waiting = dict(points)
    for transaction in history:
        for name in [name for name, point in waiting.items() if transaction.end > point]:
            truth.snapshots[name] = dict(truth.tables[name])
            del waiting[name]
        ordinals = count()
        for change in transaction.changes:
            expected = tell_change(change, catalog[change.table], truth.tables[change.table])
            if transaction.end > points.get(change.table, 0):
                truth.changes[(transaction.xid, next(ordinals))] = expected
    for name in waiting:
        truth.snapshots[name] = dict(truth.tables[name])
    return truth


def tell_change(change, table, rows):
    """What a record of this change must hold."""
    old, new = source.apply(change, table, rows)
    if change.op == "INSERT":
        before = {}
    elif table.full_identity:
        before = dict.fromkeys(change.new or ()) | old
    else:
        before = {column: change.old[column] for column in table.key} if change.old else {}
    return Expected(table.name, change.op, before, change.new, new, table.full_identity)


def is_right(record, expected):
    """Whether a record says what the source did."""
    return (
        (record.table, record.op) == (expected.table, expected.op)
        and same_before(record.before, expected)
        and same_after(record, expected)
    )


def same_before(image, expected):
    """The old row or key: the same columns and values.

    A column added since the row was written is NULL in a whole old row, and the witness does not
    name it. What an old key leaves out is not known, and must not be shown as NULL.
    """
    if expected.whole_before:
        image = {c: v for c, v in image.items() if v is not None or c in expected.before}
    return image == expected.before


def same_after(record, expected):
    """The new row. An unchanged out-of-line value may be left out, be marked as unchanged, or be
    given, but then truly; it is never NULL or anything else."""
    for column, value in expected.after.items():
        if value is not source.UNCHANGED:
            if column in record.unchanged or record.after.get(column, missing) != value:
                return False
        elif column not in record.unchanged:
            if record.after.get(column, expected.true_row[column]) != expected.true_row[column]:
                return False
    return record.after.keys() <= expected.after.keys()


missing = object()


@dataclass
class Verdict:
    """The counters, and what a person wants to read about them."""

    counts: dict = field(default_factory=Counter)
    remarks: list = field(default_factory=list)

    def add(self, counter, what):
        """One more of something that must not be."""
        self.counts[counter] += 1
        if self.counts[counter] <= SHOWN:
            self.remarks.append(f"{counter}: {what}")


def judge_changes(delivery, truth, verdict):
    """Changes: content, number and order."""
    order = {identity: place for place, identity in enumerate(truth.changes)}
    arrived, furthest = Counter(), -1
    for record in delivery.changes:
        identity = (record.xid, ordinal_of(record, delivery.ddl))
        expected = truth.changes.get(identity)
        if expected is None:
            verdict.add("duplicates", f"the source has no such change: {record}")
        elif not is_right(record, expected):
            verdict.add(
                "duplicates", f"not what the source committed: {record}: {difference(record, expected)}"
            )
        else:
            arrived[identity] += 1
            if arrived[identity] > 1:
                verdict.add("duplicates", f"arrived {arrived[identity]} times: {record}")
            elif order[identity] < furthest:
                verdict.add("out_of_order", f"{record}")
            furthest = max(furthest, order[identity])
    for identity, expected in truth.changes.items():
        if not arrived[identity]:
            xid, ordinal = identity
            verdict.add("missing", f"{expected.op} {expected.table}, transaction {xid}, change {ordinal}")


def ordinal_of(record, ddl):
    """The record's ordinal among the row changes of its transaction: table changes count there too."""
    return record.index - sum(index < record.index for index in ddl.get(record.xid, ()))


def difference(record, expected):
    """For a person: what was expected, what came."""
    sides = [(e, r) for e, r in ((expected.before, record.before), (expected.after, record.after)) if e != r]
    shown = [
        f"{column}: {shorten(wanted.get(column, 'absent'))} expected, {shorten(got.get(column, 'absent'))} came"
        for wanted, got in sides
        for column in wanted.keys() | got.keys()
        if wanted.get(column, "absent") != got.get(column, "absent")
    ]
    return f"{expected.op} {expected.table} expected; " + "; ".join(shown[:4])


def shorten(value, most=60):
    """A value that fits on a line."""
    text = repr(value)
    return text if len(text) <= most else text[:most] + "…"


def judge_snapshots(delivery, truth, catalog, verdict):
    """Snapshots: each row of the table at its point, once."""
    for name, snapshot in delivery.snapshots.items():
        if name not in catalog:
            verdict.add("duplicates", f"a snapshot of a table that is not captured: {name}")
            continue
        rows, arrived = truth.snapshots[name], Counter()
        for record in snapshot.rows:
            key = catalog[name].key_of(record.after)
            if dict.fromkeys(record.after) | rows.get(key, {}) != record.after or key not in rows:
                verdict.add("duplicates", f"not a row of {name} at {snapshot.point}: {record}")
                continue
            arrived[key] += 1
            if arrived[key] > 1:
                verdict.add("duplicates", f"arrived {arrived[key]} times: {record}")
        for key in rows.keys() - arrived.keys():
            verdict.add("missing", f"row {key} of {name}'s snapshot at {snapshot.point}")
    for record in delivery.misplaced:
        verdict.add("duplicates", f"no place for it here: {record}")


def count_reappended(path):
    """Identities that stand more than once in kcat's listing of the trail's headers."""
    identities, decoder = Counter(), json.JSONDecoder()
    with open(path, encoding="utf-8") as file:
        for line in file:
            at = line.find("hw={")
            if at >= 0:
                hw, _ = decoder.raw_decode(line, at + len("hw="))
                identities[(hw["g"], hw["pos"], hw["i"], hw.get("part", 0))] += 1
    return sum(1 for count in identities.values() if count > 1)


def count_kills(path):
    """What the killing script wrote down."""
    with open(path, encoding="utf-8") as file:
        kills = [json.loads(line) for line in file]
    servers = [kill for kill in kills if kill["killed"] == "server"]
    return {
        "server_kills": len(servers),
        "client_kills": len(kills) - len(servers),
        "kills_in_flight": sum(1 for kill in servers if kill["in_flight"]),
    }


def compare(folder):
    """Compares one recorded run; returns the last line's object and the remarks."""
    catalog = read_catalog(os.path.join(folder, "columns.txt"))
    history = source.read_history(os.path.join(folder, "truth.txt"))
    contradictions = source.contradictions(history, source.read_ledger(os.path.join(folder, "ledger.txt")))
    if contradictions:
        raise ValueError(f"the witnesses contradict each other: {contradictions[:SHOWN]}")
    delivery = delivered.read_delivery(os.path.join(folder, "client.jsonl"), catalog)
    points = {name: source.lsn(s.point) for name, s in delivery.snapshots.items() if name in catalog}
    truth = tell_truth(history, catalog, points)
    reappended = count_reappended(os.path.join(folder, "trail.txt"))
    verdict = Verdict()
    judge_snapshots(delivery, truth, catalog, verdict)
    judge_changes(delivery, truth, verdict)
    result = {
        "transactions": len(history),
        "events": len(truth.changes),
        "missing": verdict.counts["missing"],
        "duplicates": verdict.counts["duplicates"],
        "out_of_order": verdict.counts["out_of_order"],
        "tables_equal": tables_equal(folder, catalog, truth, delivery, verdict),
        **count_kills(os.path.join(folder, "kills.jsonl")),
        "reappended": reappended,
        "rolled_back": count_reappended(os.path.join(folder, "trail-all.txt")) - reappended,
        "reread": delivery.reread,
    }
    return result, verdict.remarks


def tables_equal(folder, catalog, truth, delivery, verdict):
    """Whether the source's final tables, its history and the client's file all end in the same."""
    equal = True
    for name, table in catalog.items():
        final = read_final(os.path.join(folder, f"table-{name}.txt"), table)
        empty = dict.fromkeys(table.types)
        if {key: empty | row for key, row in truth.tables[name].items()} != final:
            raise ValueError(f"the witnesses contradict each other: slot and final table {name}")
        if delivery.tables[name] != final:
            equal = False
            differing = [
                k
                for k in final.keys() | delivery.tables[name].keys()
                if final.get(k) != delivery.tables[name].get(k)
            ]
            verdict.remarks.append(
                f"tables_equal: {name} differs in {len(differing)} rows, as in {differing[:3]}"
            )
    return equal


def is_good(result, exactly_once=False):
    """Whether a run shows what the demo is there to show: that kills repeated records, and the stream took them out; or,
    exactly once, that what they repeated was rolled back and nobody sees it."""
    repeated = ("rolled_back" if exactly_once else "reappended", "reread")
    return (
        result["missing"] == result["duplicates"] == result["out_of_order"] == 0
        and result["tables_equal"]
        and result["transactions"] >= LEAST_TRANSACTIONS
        and result["server_kills"] >= LEAST_SERVER_KILLS
        and result["client_kills"] >= LEAST_CLIENT_KILLS
        and min(result["kills_in_flight"], *(result[name] for name in repeated)) > 0
        and not (exactly_once and result["reappended"])
    )


def main():
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", help="a recorded run, as collect.py and the client leave it")
    parser.add_argument("--exactly-once", action="store_true", help="no record may stand twice in the log")
    arguments = parser.parse_args()
    result, remarks = compare(arguments.folder)
    for remark in remarks:
        print(f"  {remark}")
    print(json.dumps(result, separators=(",", ":")), flush=True)
    sys.exit(0 if is_good(result, arguments.exactly_once) else 1)


if __name__ == "__main__":
    main()
