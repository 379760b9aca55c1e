#!/usr/bin/env python3
"""The demo's application: follows a stream into a file and survives being killed.

Each record becomes one line {"pos":...,"record":...}, the record byte for byte as it came. The file
is synced after every message, and after a kill the client goes on behind its last whole line.
It never looks for duplicates: whatever arrives is written.
"""

import argparse
import json
import os
import sys
import time
from urllib.parse import quote

from websocket import Closed, Refused, WebSocket

FIRST_WAIT, LONGEST_WAIT = 0.05, 1.0
WITHOUT_POSITION = {"STREAM_METADATA", "OBJECT_METADATA", "ERROR"}


def split_records(message):
    """The records of a JSON array, each as (its text, its parsed form)."""
    decoder = json.JSONDecoder()
    at = skip_space(message, 0)
    if message[at : at + 1] != "[":
        raise ValueError(f"a message is a JSON array, not {message[:80]!r}")
    at = skip_space(message, at + 1)
    while message[at] != "]":
        record, end = decoder.raw_decode(message, at)
        yield message[at:end], record
        at = skip_space(message, end)
        if message[at] == ",":
            at = skip_space(message, at + 1)


def skip_space(text, at):
    """The first place from `at` on that holds no JSON white space."""
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at


def is_description(record):
    """Whether a record only describes others: a JSON Schema, or metadata of a stream or table."""
    return "op_type" not in record or record["op_type"] in WITHOUT_POSITION


def line_of(text, record):
    """The line of the file for one record; one without `pos` could not be resumed from."""
    if "pos" not in record:
        raise ValueError(f"a record without pos: {text[:200]}")
    return f'{{"pos":{json.dumps(record["pos"])},"record":{text}}}\n'.encode()


def drop_torn_line(file):
    """Cuts the file behind its last whole line."""
    size = file.seek(0, os.SEEK_END)
    file.truncate(end_of_last_line(file, size))
    file.seek(0, os.SEEK_END)


def last_position(file):
    """The position in the last line of a file of whole lines; None when there is none."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return None
    start = end_of_last_line(file, size - 1)
    file.seek(start)
    line = file.read(size - start)
    file.seek(0, os.SEEK_END)
    return json.loads(line)["pos"]


def end_of_last_line(file, size, block=65536):
    """The place behind the last line feed among the first `size` bytes; 0 without one."""
    end = size
    while end > 0:
        start = max(0, end - block)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def follow(url, file):
    """Connects behind the file's last position and writes until the connection ends."""
    position = last_position(file)
    begin = "earliest" if position is None else quote(position, safe="")
    connection = WebSocket(f"{url}?begin={begin}")
    try:
        for message in connection.messages():
            lines = [line_of(t, r) for t, r in split_records(message) if not is_description(r)]
            if lines:
                file.write(b"".join(lines))
                file.flush()
                os.fsync(file.fileno())
    finally:
        connection.close()


def run(url, path):
    """Follows for ever; returns an exit code when the server refuses."""
    wait = FIRST_WAIT
    with open(path, "a+b") as file:
        drop_torn_line(file)
        while True:
            size = file.seek(0, os.SEEK_END)
            try:
                follow(url, file)
            except Refused as refusal:
                if refusal.status != 503:
                    print(f"The server refused the stream: {refusal}", file=sys.stderr)
                    return 1
            except (Closed, OSError) as ended:
                print(f"Connection: {ended}", file=sys.stderr)
            wait = FIRST_WAIT if file.seek(0, os.SEEK_END) > size else min(2 * wait, LONGEST_WAIT)
            time.sleep(wait)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="ws://HOST:PORT/services/v2/stream/NAME")
    parser.add_argument("--file", required=True, help="where the records go")
    arguments = parser.parse_args()
    sys.exit(run(arguments.url, arguments.file))


if __name__ == "__main__":
    main()
