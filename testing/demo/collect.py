"""Writes down what the witnesses of a run know: the source, and kcat for the log."""

import os
import subprocess

CAPTURED = ("customers", "orders", "order_lines")

COLUMNS = f"""
COPY (
    SELECT c.relname, a.attname, format_type(a.atttypid, NULL),
        coalesce(array_position(i.indkey::int2[], a.attnum), -1) + 1, c.relreplident
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
    WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY ('{{{",".join(CAPTURED)}}}')
        AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY c.relname, a.attnum
) TO STDOUT;
"""

TRUTH = """
COPY (
    SELECT lsn, xid, data FROM pg_logical_slot_peek_changes('truth', NULL, NULL, 'include-xids', '1')
) TO STDOUT;
"""


def collect(folder, postgres, kafka, trail):
    """Fills `folder` with everything that compare.py needs beside the client's file and the kills."""
    queries = {
        "columns": COLUMNS,
        "truth": TRUTH,
        "ledger": "COPY (SELECT writer, n, events FROM ledger) TO STDOUT;",
    }
    queries |= {f"table-{name}": f"COPY {name} TO STDOUT;" for name in CAPTURED}
    for name, sql in queries.items():
        with open(os.path.join(folder, f"{name}.txt"), "wb") as file:
            postgres.run(sql, out=file)
    list_trail(os.path.join(folder, "trail.txt"), kafka, trail)
    list_trail(os.path.join(folder, "trail-all.txt"), kafka, trail, "read_uncommitted")


def list_trail(path, kafka, trail, isolation="read_committed"):
    """Lists the headers of every record of the trail up to now, one a line, with kcat.

    The number of records is asked for first: kcat -e alone ends at an empty answer, and under load
    there is none.
    """
    first, end = (end_of(kafka, trail, which) for which in ("-2", "-1"))
    command = [
        "kcat", "-C", "-b", kafka, "-X", f"isolation.level={isolation}", "-t", trail, "-p", "0",
        "-o", str(first), "-c", str(end - first),
    ]  # fmt: skip
    with open(path, "wb") as file:
        if end > first:
            subprocess.run([*command, "-e", "-q", "-f", "%o %h\\n"], stdout=file, check=True, timeout=120)


def end_of(kafka, trail, which):
    """The first offset (-2) or the one behind the last (-1)."""
    command = ["kcat", "-Q", "-b", kafka, "-t", f"{trail}:0:{which}"]
    answer = subprocess.run(
        command, check=True, timeout=30, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ).stdout
    return int(answer.split()[-1])
