#!/usr/bin/env python3
"""Makes and deletes topics with nothing but sockets:

topic.py HOST:PORT PARTITIONS [KEY=VALUE...] NAME...
topic.py HOST:PORT delete NAME...
"""

import socket
import struct
import sys


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def request(key, version, body):
    header = struct.pack(">hhi", key, version, 1) + text("topic.py")
    return struct.pack(">i", len(header + body)) + header + body


def create_topics(partitions, config, names):
    """CreateTopics version 2."""
    entries = struct.pack(">i", len(config)) + b"".join(text(key) + text(value) for key, value in config)
    topics = b"".join(text(name) + struct.pack(">ihi", partitions, 1, 0) + entries for name in names)
    return request(19, 2, struct.pack(">i", len(names)) + topics + struct.pack(">ib", 10000, 0))


def delete_topics(names):
    """DeleteTopics version 1."""
    return request(20, 1, struct.pack(">i", len(names)) + b"".join(map(text, names)) + struct.pack(">i", 10000))


def read(connection, count):
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            sys.exit("topic.py: the broker ended the connection")
        data += more
    return data


def errors(answer, has_message):
    """Name and code of each topic; correlation id and throttle time stand in front."""
    (count,) = struct.unpack_from(">i", answer, 8)
    at = 12
    for _ in range(count):
        (length,) = struct.unpack_from(">h", answer, at)
        name = answer[at + 2 : at + 2 + length].decode()
        (code,) = struct.unpack_from(">h", answer, at + 2 + length)
        at += 2 + length + 2
        if has_message:
            (length,) = struct.unpack_from(">h", answer, at)
            at += 2 + max(length, 0)
        yield name, code


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    config = [tuple(word.split("=", 1)) for word in sys.argv[3:] if "=" in word]
    names = [word for word in sys.argv[3:] if "=" not in word]
    creates = sys.argv[2] != "delete"
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(create_topics(int(sys.argv[2]), config, names) if creates else delete_topics(names))
        (length,) = struct.unpack(">i", read(connection, 4))
        for name, code in errors(read(connection, length), has_message=creates):
            if code:
                sys.exit(f"topic.py: {name} was refused with code {code}")


main()
