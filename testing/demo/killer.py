"""Kills the server and the client with -9, and writes down what it saw just before."""

import json
import time

import processes

# A kill is "in flight" when the source was seen ahead of its confirmed position this shortly before.
FRESH_SECONDS = 0.1
IN_FLIGHT = """
SELECT s.confirmed_flush_lsn <= l.wal, s.confirmed_flush_lsn, l.wal
FROM pg_replication_slots s, (SELECT max(wal) AS wal FROM ledger) l
WHERE s.slot_name <> 'truth' AND NOT s.temporary AND s.confirmed_flush_lsn IS NOT NULL;
"""


class Killer:
    """Kills, and counts."""

    def __init__(self, path, postgres, server, client, rng):
        self.path = path
        self.session = postgres.session()
        self.server = server
        self.client = client
        self.rng = rng
        self.server_kills = self.client_kills = self.in_flight = 0

    def kill_server(self, patience):
        """Kills the server as soon as the source is seen ahead of its confirmed position, or when
        `patience` seconds are over.

        A ledger line's `wal` lies below its transaction's commit record, so that a slot confirmed up
        to there at most has not confirmed that commit.
        """
        deadline = time.monotonic() + patience
        while True:
            seen = time.monotonic()
            rows = [row.split("|") for row in self.session.run(IN_FLIGHT)]
            behind = bool(rows) and rows[0][0] == "t"
            fresh = time.monotonic() - seen < FRESH_SECONDS
            if (behind and fresh) or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        processes.kill(self.server.child)
        age = time.monotonic() - seen
        in_flight = behind and age < FRESH_SECONDS
        self.server_kills += 1
        self.in_flight += in_flight
        confirmed, committed = rows[0][1:] if rows else ("none", "none")
        self.note(
            "server", in_flight=in_flight, confirmed=confirmed, committed=committed, age_ms=round(age * 1000)
        )
        return in_flight

    def kill_client(self):
        """Kills the client wherever it is."""
        processes.kill(self.client.child)
        self.client_kills += 1
        self.note("client")

    def note(self, killed, **seen):
        """One line a kill, for the comparator."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"killed": killed, **seen}) + "\n")

    def wait(self, least, most):
        """A moment that nobody chose."""
        time.sleep(self.rng.uniform(least, most))

    def close(self):
        """Ends the session."""
        self.session.close()
