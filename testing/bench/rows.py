"""The rows that all contenders drain, and one form of them in which deliveries can be compared.

`(bigint, int, 96 characters, timestamptz, numeric(12,2), jsonb)`, about 186 bytes in the table. The
values come from the row's number and a fixed seed.
"""

import hashlib
import json
import struct

SEED = "highwater"
TABLE = "rows"
PER_TRANSACTION = 1000

CREATE = f"""
CREATE TABLE {TABLE} (
    id bigint PRIMARY KEY,
    number integer NOT NULL,
    body text NOT NULL,
    at timestamptz NOT NULL,
    amount numeric(12, 2) NOT NULL,
    doc jsonb NOT NULL
) WITH (autovacuum_enabled = off);
CREATE PUBLICATION bench FOR TABLE {TABLE};
"""


def load(transactions):
    """The statements that insert the rows, each transaction for itself."""
    return f"""
DO $$
BEGIN
    FOR t IN 0..{transactions - 1} LOOP
        INSERT INTO {TABLE}
        SELECT id,
               (id * 7919 % 2147483647)::integer,
               md5('{SEED}' || id) || md5(id || '{SEED}') || md5(id::text),
               timestamptz '2024-01-01 00:00:00+00' + id * interval '1234567 microseconds',
               (id * 104729 % 1000000000)::numeric / 100,
               jsonb_build_object('k', id % 1000, 'tag', left(md5(id::text), 8))
        FROM generate_series(t::bigint * {PER_TRANSACTION} + 1, (t + 1)::bigint * {PER_TRANSACTION}) id;
        COMMIT;
    END LOOP;
END $$;
"""


SOURCE = f"COPY (SELECT json_build_array(id, number, body, at, amount::text, doc::text) FROM {TABLE}) TO STDOUT"


class Digest:
    """Number of rows and a hash of keys and values that does not depend on the order."""

    def __init__(self):
        self.count = self.sum = 0

    def add(self, row):
        """Takes one row: its six values as JSON has them."""
        identity, number, body, at, amount, doc = row
        text = f"{identity}|{number}|{body}|{instant(at)}|{amount}|{doc}"
        (value,) = struct.unpack("<Q", hashlib.blake2b(text.encode(), digest_size=8).digest())
        self.count += 1
        self.sum = (self.sum + value) & 0xFFFFFFFFFFFFFFFF

    def add_envelope(self, text):
        """Takes one create event of Debezium's envelope."""
        event = json.loads(text)
        if event.get("op") == "c":
            self.add(event["after"][name] for name in ("id", "number", "body", "at", "amount", "doc"))

    def __eq__(self, other):
        return (self.count, self.sum) == (other.count, other.sum)

    def __str__(self):
        return f"{self.count} rows, {self.sum:016x}"


def instant(text):
    """A moment in UTC, however it is written."""
    text = text.replace("T", " ").removesuffix("Z").removesuffix("+00:00").removesuffix("+00")
    return text.rstrip("0").removesuffix(".") if "." in text else text
