"""What strangers send: each of these opens a connection, says something wrong and goes away."""

import os
import random
import socket
import struct

HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"
TLS_HELLO = bytes.fromhex("16030100050100000100") + os.urandom(64)


def kafka_head(length, key=0, version=9):
    """The first bytes of a frame that says it has `length` bytes."""
    return struct.pack(">ihhi", length, key, version, 1)


def kafka_sayings(rng):
    """What is said to a Kafka port."""
    yield TLS_HELLO
    yield b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
    for length in (-1, 0, 7, 2**31 - 1, -(2**31)):
        yield kafka_head(length)
    yield kafka_head(100 << 20)[:6]
    yield kafka_head(100 << 20) + rng.randbytes(100_000)
    for key in (0, 1, 2, 3, 18, 19, 32, 44):
        for version in (0, 3, 9, 12):
            body = bytes(rng.choice((0, 0, 1, 2, 255, rng.randrange(256))) for _ in range(rng.randrange(300)))
            yield kafka_head(8 + len(body), key, version) + body
    # An array of two billion topics, in a frame of a few bytes.
    yield kafka_head(8 + 2 + 4, 3, 4) + struct.pack(">hi", -1, 2**31 - 1)
    yield rng.randbytes(5_000)


def http_sayings(rng):
    """What is said to the HTTP port."""
    post = b"POST /connectors HTTP/1.1\r\n" + HOST + JSON
    yield TLS_HELLO
    yield rng.randbytes(5_000)
    yield b"\r\n" * 20_000
    yield b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n"
    yield b"GET / HTTP/1.1\r\n" + HOST + b"X-Long: " + b"a" * 200_000 + b"\r\n\r\n"
    yield b"GET / HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: 1\r\n" % i for i in range(5_000)) + b"\r\n"
    yield b"GET / HTTP/1.1\r\n" + b"Host: localhost\x00\r\n\r\n"
    yield post + b"Content-Length: 18446744073709551615\r\n\r\n{"
    yield post + b"Content-Length: -1\r\n\r\n{}"
    yield post + b"Content-Length: 5\r\nContent-Length: 2\r\n\r\n{}"
    yield post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    yield post + b"Content-Length: 1000\r\n\r\n{}"
    yield post + b"Content-Length: 3000000\r\n\r\n" + b" " * 3_000_000
    yield post + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}"
    yield post + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n"
    yield post + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 100_000
    yield post + b"Transfer-Encoding: chunked\r\n\r\n2;" + b"x" * 200_000 + b"\r\n{}\r\n0\r\n\r\n"
    yield post + b"Content-Length: 200000\r\n\r\n" + b"[" * 200_000
    for path in (b"/services/v2/stream/%ff", b"/connectors/%00", b"/" + b"../" * 500, b"/services/v2/stream/s?begin=" + b"A" * 9_000):
        yield b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n"


def frame(payload, opcode=2, length=None, masked=True, fin=True):
    """A WebSocket frame, which may lie about its length."""
    length = len(payload) if length is None else length
    first = (0x80 if fin else 0) | opcode
    mask = 0x80 if masked else 0
    if length < 126:
        head = struct.pack(">BB", first, mask | length)
    elif length < 1 << 16:
        head = struct.pack(">BBH", first, mask | 126, length)
    else:
        head = struct.pack(">BBQ", first, mask | 127, length)
    return head + (b"\0\0\0\0" if masked else b"") + payload


def websocket_sayings(rng):
    """What is said on an open stream."""
    yield frame(b"", length=2**63 - 1)
    yield frame(b"", length=2**64 - 1)
    yield frame(b"x" * 1_000, length=16 << 20)
    yield frame(b"x" * 1_000, length=60 << 10)
    yield frame(b"x" * 100, masked=False)
    yield frame(b"x" * 200_000)
    yield frame(b"hello", opcode=1)
    yield frame(b"\xff\xfe", opcode=1)
    yield frame(b"", opcode=11)
    yield frame(b"x" * 126, opcode=9)
    yield frame(b"x", opcode=9, fin=False)
    yield frame(b"x", opcode=8)
    yield frame(b"x", opcode=1, fin=False) + frame(b"x", opcode=0, fin=False) * 5_000
    yield frame(b"x" * 100, opcode=9) * 20_000
    yield rng.randbytes(2_000)


def upgrade(stream):
    """The request that opens a stream."""
    return (
        f"GET /services/v2/stream/{stream} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


def say(port, saying, first=b"", ends=False):
    """Opens a connection, says it, and takes what comes; `ends` wants the server to end it.

    Returns what came. A server that resets the connection has understood enough.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
        try:
            if first:
                stranger.sendall(first)
                head = stranger.recv(4_096)
                if not head.startswith(b"HTTP/1.1 101"):
                    raise RuntimeError(f"the stream does not open: {head!r}")
            stranger.sendall(saying)
            stranger.settimeout(10 if ends else 0.05)
            return taken(stranger)
        except TimeoutError:
            if ends:
                raise
            return b""
        except OSError:
            return b""


class Lingering:
    """Says something, and then neither goes on nor reads: the server has to end it by itself."""

    def __init__(self, port, saying):
        # A connection request that a full queue drops is sent again by the system after a second.
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.settimeout(1)
        try:
            self.socket.sendall(saying)
        except OSError:
            pass  # nobody takes any more of it

    def is_ended(self):
        """Whether the server has; tried by sending, for what it said is not read."""
        try:
            self.socket.send(b"x")
            return False
        except TimeoutError:
            return False
        except OSError:
            return True


def taken(stranger, most=1 << 20):
    """Everything up to the end of the connection."""
    came = b""
    while len(came) < most and (more := stranger.recv(65_536)):
        came += more
    return came


def chosen(seed):
    """The source of all chance."""
    return random.Random(seed)
