"""Follows the client's file while it grows, to know where a run stands."""

import json

from workload import LAST_CUSTOMER


class Watch:
    """What has arrived so far."""

    def __init__(self, path):
        self.path = path
        self.at = 0
        self.rows = 0
        self.changes = 0
        self.begun = {}
        self.ended = set()
        self.finished = False

    def look(self):
        """Reads what is new, in whole lines."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.at)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self.at += len(line)
                    self.take(line)
        except FileNotFoundError:
            pass
        return self

    def take(self, line):
        """Counts one record."""
        record = json.loads(line)["record"]
        op, table = record["op_type"], record.get("qual_table", "").split(".")[-1]
        if op == "SNAPSHOT_BEGIN":
            self.begun[table] = self.begun.get(table, 0) + 1
            self.ended.discard(table)
        elif op == "SNAPSHOT_END":
            self.ended.add(table)
        elif record.get("snapshot"):
            self.rows += 1
        else:
            self.changes += 1
            if op == "INSERT" and record.get("after", {}).get("id") == LAST_CUSTOMER:
                self.finished = True
