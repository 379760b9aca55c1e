#!/usr/bin/env python3
"""Compares what a stream delivered with what a simulated Oracle committed, and never de-duplicates.

The books of the simulation are read after the run, by its own program. A record belongs to the change whose commit
and ordinal it claims, and counts as right only if table, operation, columns and values are those of the books:

  transactions   committed transactions with captured changes
  events         changes of them
  missing        changes that no right record came for
  duplicates     second and further right records of a change, and records that fit no change
  out_of_order   right records behind one which their redo thread committed later: between threads there is no order
  tables_equal   the first rows of the database, with the right records applied in the order of their commits' SCNs,
                 are its last rows: redo threads change the same rows, and their lines come in no common order
  threads        redo threads that committed something
"""

import json
import sys
from collections import Counter

from oracle_truth import is_right, read_history, read_tables, same, table_of

LEAST_TRANSACTIONS, LEAST_SERVER_KILLS, LEAST_CLIENT_KILLS = 1000, 3, 2
SHOWN = 5
CHANGES = {"INSERT", "UPDATE", "DELETE"}


class Comparison:
    """The counters, and what a person wants to read about them."""

    def __init__(self, threads):
        self.threads = threads
        self.counts = Counter()
        self.arrived = Counter()
        self.last = {}
        self.places = {}
        self.right = []
        for thread, transactions in threads.items():
            self.index(thread, transactions)

    def index(self, thread, transactions):
        """Gives each change its place in its thread, under each name that records may give it."""
        place = 0
        for transaction in transactions:
            for ordinal, change in enumerate(transaction.changes):
                for name in transaction.names:
                    self.places[name, ordinal] = (thread, place, transaction.scn, change)
                place += 1

    def take(self, number, record):
        """Judges one record."""
        claimed = (record["csn"], int(record["record_id"].rsplit(":", 2)[1]))
        thread, place, scn, change = self.places.get(claimed, (None, None, None, None))
        if change is None or not is_right(record, change):
            self.wrong("duplicates", f"line {number} fits no change: {claimed}, {record}, the books: {change}")
            return
        self.arrived[thread, place] += 1
        if self.arrived[thread, place] > 1:
            self.wrong("duplicates", f"line {number} came before: {claimed}")
        if place < self.last.get(thread, -1):
            self.wrong("out_of_order", f"line {number}: {claimed}")
        self.last[thread] = max(place, self.last.get(thread, -1))
        self.right.append((scn, thread, place, number, record))

    def find_missing(self):
        """Counts what did not come."""
        for name, (thread, place, _, change) in self.places.items():
            if "/scn." in name[0] and not self.arrived[thread, place]:
                self.wrong("missing", f"{name}: {change}")

    def wrong(self, counter, what):
        """One more of something that must not be."""
        self.counts[counter] += 1
        if self.counts[counter] <= SHOWN:
            print(f"{counter}: {what}")


def apply(tables, record, keys):
    """Carries a record out, as an application would that keeps the tables."""
    rows, before, after = tables.setdefault(table_of(record), []), record.get("before"), record.get("after")
    key = keys(table_of(record))
    old = next((row for row in rows if before and all(same_cell(row, before, name) for name in key)), None)
    if old is not None:
        rows.remove(old)
    if after:
        rows.append((old or {}) | after)


def same_cell(row, image, name):
    """Whether a row has the value that an image names; one of them may come from the books."""
    value, other = row.get(name), image.get(name)
    return value == other or (isinstance(value, str) and same(other, value))


def are_equal(tables, final):
    """Whether the rows are those of the books."""
    for name in tables.keys() | final.keys():
        rows, expected = list(tables.get(name, [])), final.get(name, [])
        for row in expected:
            found = next((have for have in rows if fits(have, row)), None)
            if found is None:
                print(f"tables: {name} lacks {row}")
                return False
            rows.remove(found)
        if rows:
            print(f"tables: {name} has {rows[0]} too much")
            return False
    return True


def fits(have, row):
    """Whether a row is that of the books, in all columns that both know."""
    known = row.keys() & have.keys()
    return bool(known) and all(have[name] == row[name] or same(have[name], row[name]) for name in known)


def compare(tool, folder, database):
    """The counters as one object."""
    threads = read_history(tool, database)
    comparison = Comparison(threads)
    with open(f"{folder}/client.jsonl", encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            record = json.loads(line)["record"]
            if record["op_type"] in CHANGES:
                comparison.take(number, record)
    comparison.find_missing()
    tables, keys = read_tables(tool, database, "--actions", "0"), key_columns(threads)
    for *_, record in sorted(comparison.right, key=lambda right: right[:4]):
        apply(tables, record, keys)
    kills = [json.loads(line)["killed"] for line in open(f"{folder}/kills.jsonl", encoding="utf-8")]
    committed = [transaction for transactions in threads.values() for transaction in transactions]
    counts = {
        "transactions": len(committed),
        "events": sum(len(transaction.changes) for transaction in committed),
        "missing": comparison.counts["missing"],
        "duplicates": comparison.counts["duplicates"],
        "out_of_order": comparison.counts["out_of_order"],
        "tables_equal": are_equal(tables, read_tables(tool, database)),
        "server_kills": kills.count("server"),
        "client_kills": kills.count("client"),
        "threads": len(threads),
    }
    return counts


def key_columns(threads):
    """The columns of each table's key, as the books name them."""
    changes = (change for transactions in threads.values() for transaction in transactions for change in transaction.changes)
    keys = {change["table"]: list(change["key"]) for change in changes}
    return lambda table: keys.get(table, [])


def is_good(counts):
    """Whether nothing is wrong, and enough happened to say so."""
    return (
        not (counts["missing"] or counts["duplicates"] or counts["out_of_order"])
        and counts["tables_equal"]
        and counts["transactions"] >= LEAST_TRANSACTIONS
        and counts["server_kills"] >= LEAST_SERVER_KILLS
        and counts["client_kills"] >= LEAST_CLIENT_KILLS
        and counts["threads"] >= 2
    )


def main():
    """Command line: oracle_compare.py TOOL FOLDER DATABASE."""
    counts = compare(*sys.argv[1:4])
    print(json.dumps(counts, separators=(",", ":")))
    sys.exit(0 if is_good(counts) else 1)


if __name__ == "__main__":
    main()
